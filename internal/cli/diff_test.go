// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// diffRights returns the rights that "kubectl slurm diff" names for a SlurmCluster.
func diffRights() []string {
	out := []string{"get slurm.nebius.ai:slurmclusters", "patch slurm.nebius.ai:slurmclusters", "list :configmaps"}
	for kind := range strings.FieldsSeq("slurm.nebius.ai:slurmclusters slurm.nebius.ai:nodesets slurm.nebius.ai:nodeconfigurators " +
		"slinky.slurm.net:controllers slinky.slurm.net:accountings slinky.slurm.net:restapis slinky.slurm.net:loginsets slinky.slurm.net:nodesets slinky.slurm.net:tokens") {
		out = append(out, "list "+kind)
	}
	return out
}

// runWith runs the program with a standard input.
func runWith(t testing.TB, p cli.Program, in string, args ...string) result {
	t.Helper()
	var out, errors bytes.Buffer
	p.Streams = genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &errors}
	code := cli.Run(t.Context(), p, args)
	return result{code: code, out: out.String(), errors: errors.String()}
}

func TestDiff(t *testing.T) {
	server := apiserver.Start(t)
	c := client.WithFieldOwner(server.Client(t, newScheme(t)), "kubectl")
	text := readFile(t, "../../config/samples/slurmcluster-minimal.yaml")
	cluster := manifest.Parse[nebiusv1.SlurmCluster](t, text)
	cluster.Namespace = server.Namespace
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{Data: map[string][]byte{"a": []byte("secret-a"), "b": []byte("secret-b")}}
	secret.Name, secret.Namespace = "keys", server.Namespace
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, as(t, server, "differ", rules(diffRights()...)...), server.Namespace)
	all := "--kubeconfig=" + writeKubeconfig(t, server.Config, server.Namespace)
	changed := strings.Replace(text, "spec:\n", "spec:\n  slurmConfig: {messageTimeout: 77}\n", 1)
	if changed == text {
		t.Fatal("the sample has no spec")
	}
	for name, tc := range map[string]struct {
		kubeconfig, in string
		code           int
	}{
		"nothing":       {kubeconfig, text, 0},
		"a_new_cluster": {kubeconfig, "apiVersion: slurm.nebius.ai/v1\nkind: SlurmCluster\nmetadata: {name: x}\nspec: {maintenance: wrong}\n", 2},
		"a_field":       {kubeconfig, changed, 1},
		"secrets":       {all, "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {a: secret-a, b: secret-c, d: secret-d}\n", 1},
		"no_right":      {kubeconfig, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", 2},
		"another_group": {kubeconfig, "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\n", 0},
		"no_yaml":       {kubeconfig, "a: b: c", 2},
		"help":          {kubeconfig, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"diff", "-f", "-"}
			if name == "help" {
				args = []string{"diff", "--help"}
			}
			got := runWith(t, program(), tc.in, append([]string{tc.kubeconfig}, args...)...).check(t, tc.code)
			if strings.Contains(got.out+got.errors, "secret-") || strings.Contains(got.out+got.errors, "c2VjcmV0") {
				t.Errorf("it shows the value of a Secret: %s", got.out)
			}
			// Digests are those of texts with the namespace.
			got.out = regexp.MustCompile("[0-9a-f]{64}").ReplaceAllString(strings.ReplaceAll(got.out, server.Namespace, "NAMESPACE"), "DIGEST")
			got.errors = strings.ReplaceAll(got.errors, server.Namespace, "NAMESPACE")
			golden.Check(t, "diff/"+name+".txt", got.golden(args...))
		})
	}
	p := program()
	p.Colour = true
	if got := runWith(t, p, changed, kubeconfig, "diff", "-f", "-").check(t, 1); !strings.Contains(got.out, "\x1b[32m+") || !strings.Contains(got.out, "\x1b[31m-") {
		t.Errorf("it is not coloured: %q", got.out)
	}
	var live nebiusv1.SlurmCluster
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(cluster), &live); err != nil {
		t.Fatal(err)
	}
	if live.ResourceVersion != cluster.ResourceVersion {
		t.Error("it has changed the SlurmCluster")
	}
}

// What is made of a component is removed with the component.
func TestDiffOfAnExporterThatIsNotWantedAnyMore(t *testing.T) {
	server := apiserver.Start(t)
	c := server.Client(t, newScheme(t))
	text := readFile(t, "../../config/samples/slurmcluster-minimal.yaml")
	with := func(enabled string) string {
		return strings.Replace(text, "  slurmNodes:\n", "  slurmNodes:\n    exporter: {enabled: "+enabled+"}\n", 1)
	}
	cluster := manifest.Parse[nebiusv1.SlurmCluster](t, with("true"))
	cluster.Namespace = server.Namespace
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	token := &slinkyv1beta1.Token{Spec: slinkyv1beta1.TokenSpec{Username: "nobody", JwtKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	token.Spec.JwtKeyRef.Name = "keys"
	token.Name, token.Namespace = cluster.ExporterName(), server.Namespace
	if err := controllerutil.SetControllerReference(cluster, token, c.Scheme()); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	got := runWith(t, program(), with("false"), "--kubeconfig="+writeKubeconfig(t, server.Config, server.Namespace), "diff", "-f", "-").check(t, 1)
	for _, gone := range []string{"Deployment/minimal-exporter", "Token/minimal-exporter", "Secret/minimal-exporter-jwt-nobody"} {
		if !strings.Contains(got.out, "--- now/"+server.Namespace+"/"+gone) {
			t.Errorf("%s is not said to go:\n%s", gone, got.out)
		}
	}
}
