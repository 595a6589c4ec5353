// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// toBackUp makes two clusters, with and without a SlurmCluster, and what is not to be in a backup.
func toBackUp(t *testing.T, server *apiserver.Server) {
	t.Helper()
	c := server.Client(t, newScheme(t))
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: server.Namespace} }
	cluster := manifest.Parse[nebiusv1.SlurmCluster](t, readFile(t, "../../config/samples/slurmcluster-minimal.yaml"))
	cluster.Namespace = server.Namespace
	if err := c.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	owned := meta("minimal")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "slurm.nebius.ai/v1", Kind: "SlurmCluster", Name: "minimal", UID: cluster.UID, Controller: new(true)}}
	composed := &slinkyv1beta1.Controller{ObjectMeta: owned}
	lone := &slinkyv1beta1.Controller{ObjectMeta: meta("lone")}
	lone.Spec.SlurmKeyRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "my-key"}, Key: "slurm.key"}
	lone.Spec.ConfigFileRefs = []slinkyv1beta1.ObjectReference{{Name: "files"}, {Name: "gone"}}
	lone.Finalizers = []string{"example.com/finalizer"}
	token := &slinkyv1beta1.Token{ObjectMeta: meta("ci")}
	token.Spec = slinkyv1beta1.TokenSpec{JwtKeyRef: lone.AuthJwtRef(), Username: "alice"}
	objects := []client.Object{composed, lone, token, &corev1.ConfigMap{ObjectMeta: meta("files"), Data: map[string]string{"gres.conf": "AutoDetect=nvml"}},
		&corev1.Secret{ObjectMeta: meta("ci-jwt-alice"), StringData: map[string]string{"SLURM_JWT": "x"}}, &corev1.ConfigMap{ObjectMeta: meta("unrelated")}}
	for _, name := range []string{"minimal-auth-slurm", "minimal-auth-jwt", "lone-auth-jwt", "my-key", "unrelated"} {
		s := &corev1.Secret{ObjectMeta: meta(name), Data: map[string][]byte{"key": []byte("the key " + name + " \x00\xff")}}
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: types.UID("uid")}}
		objects = append(objects, s)
	}
	for _, o := range objects {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func TestABackupIsRestored(t *testing.T) {
	from, to := apiserver.Start(t), apiserver.Start(t)
	toBackUp(t, from)
	directory := t.TempDir()
	first, second := filepath.Join(directory, "first.yaml"), filepath.Join(directory, "second.yaml")
	source := "--kubeconfig=" + writeKubeconfig(t, from.Config, from.Namespace)
	target := "--kubeconfig=" + writeKubeconfig(t, to.Config, to.Namespace)
	printed := func(got result) result {
		for _, name := range []string{from.Namespace, to.Namespace} {
			got.out, got.errors = strings.ReplaceAll(got.out, name, "NAMESPACE"), strings.ReplaceAll(got.errors, name, "NAMESPACE")
		}
		return got
	}
	got := run(t.Context(), t, program(), source, "backup", "-f", first).check(t, 0)
	golden.Check(t, "backup/backup.txt", printed(got).golden("backup", "-f", "FILE"))
	info, err := os.Stat(first)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info.Mode(), err)
	}
	run(t.Context(), t, program(), source, "backup", "-f", first).check(t, 1) // it is there
	text := readFile(t, first)
	golden.Check(t, "backup/file.yaml", []byte(strings.ReplaceAll(text, from.Namespace, "NAMESPACE")))

	got = run(t.Context(), t, program(), target, "restore", "-f", first, "--dry-run").check(t, 0)
	golden.Check(t, "backup/dry_run.txt", printed(got).golden("restore", "-f", "FILE", "--dry-run"))
	empty := run(t.Context(), t, program(), target, "backup", "-f", second).check(t, 1)
	if !strings.Contains(empty.errors, "there is no object of slurm.nebius.ai or slinky.slurm.net") {
		t.Errorf("the errors are %q", empty.errors)
	}
	got = run(t.Context(), t, program(), target, "restore", "-f", first).check(t, 0)
	golden.Check(t, "backup/restore.txt", printed(got).golden("restore", "-f", "FILE"))
	run(t.Context(), t, program(), target, "restore", "-f", first).check(t, 0) // it is the same
	// The Controller of the SlurmCluster is not composed there.
	composed := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "minimal", Namespace: to.Namespace}}
	composed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "slurm.nebius.ai/v1", Kind: "SlurmCluster", Name: "minimal", UID: "u", Controller: new(true)}}
	c := to.Client(t, newScheme(t))
	if err := c.Create(t.Context(), composed); err != nil {
		t.Fatal(err)
	}
	run(t.Context(), t, program(), target, "backup", "-f", second).check(t, 0)
	if again := strings.ReplaceAll(readFile(t, second), to.Namespace, from.Namespace); again != text {
		t.Errorf("a backup of what was restored is another one:\n%s\nwas:\n%s", again, text)
	}

	// Other keys are there: nothing is written but by force.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "my-key", Namespace: to.Namespace}}
	if err := c.Patch(t.Context(), secret, client.RawPatch(types.MergePatchType, []byte(`{"data":{"key":"b3RoZXI="}}`)), client.FieldOwner("somebody")); err != nil {
		t.Fatal(err)
	}
	got = run(t.Context(), t, program(), target, "restore", "-f", first).check(t, 2)
	if strings.Contains(got.errors, "the key") || got.out != "" {
		t.Errorf("it shows a key, or wrote: %q %q", got.errors, got.out)
	}
	golden.Check(t, "backup/other_keys.txt", printed(got).golden("restore", "-f", "FILE"))
	run(t.Context(), t, program(), target, "restore", "-f", first, "--force").check(t, 0)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil || !strings.HasPrefix(string(secret.Data["key"]), "the key my-key") {
		t.Errorf("the key is %q, %v", secret.Data["key"], err)
	}
	for _, command := range []string{"backup", "restore"} {
		golden.Check(t, "backup/help_"+command+".txt", run(t.Context(), t, program(), command, "--help").check(t, 0).golden(command, "--help"))
	}
}

// Without a right nothing is written, since a backup without a key is useless.
func TestABackupNeedsAllRights(t *testing.T) {
	server := apiserver.Start(t)
	toBackUp(t, server)
	everything := rbacv1.PolicyRule{APIGroups: []string{"slurm.nebius.ai", "slinky.slurm.net"}, Resources: []string{"*"}, Verbs: []string{"list"}}
	config := as(t, server, "reader", append(rules("get :configmaps"), everything)...)
	path := filepath.Join(t.TempDir(), "backup.yaml")
	got := run(t.Context(), t, program(), "--kubeconfig="+writeKubeconfig(t, config, server.Namespace), "backup", "-f", path).check(t, 1)
	if !strings.Contains(got.errors, "cannot get resource \"secrets\"") {
		t.Errorf("the errors are %q", got.errors)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a file is there: %v", err)
	}
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, server.Config, server.Namespace)
	for name, tc := range map[string]struct{ in, want string }{
		"nothing":           {"", "the file is empty"},
		"another kind":      {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}", `Deployment "x" of "apps/v1" is not part of a backup`},
		"another namespace": {"apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: kube-system}", "belongs to namespace kube-system"},
		"no YAML":           {"a: b: c", "mapping values are not allowed"},
		"a refused object":  {"apiVersion: slinky.slurm.net/v1beta1\nkind: Token\nmetadata: {name: x}\nspec: {username: x}", "jwtKeyRef must be set"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := runWith(t, program(), tc.in, kubeconfig, "restore", "-f", "-").check(t, 1); !strings.Contains(got.errors, tc.want) {
				t.Errorf("the errors are %q, want %q", got.errors, tc.want)
			}
		})
	}
}
