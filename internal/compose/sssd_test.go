// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

func TestSSSDRunsOnTheWorkersOfANodeSet(t *testing.T) {
	d := load(t)
	const cluster = `
metadata: {name: demo}
kind: SlurmCluster
spec: {volumeSources: [{name: VOLUME, nfs: {server: s, path: /}}]}
---
kind: NodeSet
metadata: {name: gpu}
spec: {slurmd: {image: {repository: r, tag: t}, ENV}, SSSD}
`
	const both = "sssdConfSecretRefName: directory, sssdDebugLevel: 6, sssdLdapCAConfigMapRefName: ca"
	named := &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "directory"}, Key: "sssd.conf"}
	for name, c := range map[string]struct {
		volume, sssd, env string
		conf              *corev1.SecretKeySelector
		options           string
		ignored           []string
	}{
		"workers have an sssd.conf and a debug level": {volume: "jail", sssd: both, conf: named, options: "--debug-level=6"},
		"workers have the debug level of sssd.conf":   {volume: "jail", sssd: "sssdConfSecretRefName: directory", conf: named},
		"options of sssd are ignored without an sssd.conf": {volume: "jail", sssd: "sssdDebugLevel: 6, sssdLdapCAConfigMapRefName: ca",
			ignored: []string{"spec.sssdDebugLevel (without sssdConfSecretRefName)", "spec.sssdLdapCAConfigMapRefName (without sssdConfSecretRefName)"}},
		"sssd is ignored without a jail": {volume: "data", sssd: both, ignored: []string{"spec.sssdConfSecretRefName (without a jail)", "spec.sssdDebugLevel (without a jail)", "spec.sssdLdapCAConfigMapRefName (without a jail)"}},
		"options of customEnv are left alone": {volume: "jail", sssd: both, env: "customEnv: [{name: SSSD_OPTIONS, value: -x}]", conf: named, options: "-x",
			ignored: []string{"spec.sssdDebugLevel (with SSSD_OPTIONS in customEnv)"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.input(t, strings.NewReplacer("VOLUME", c.volume, "SSSD", c.sssd, "ENV", c.env).Replace(cluster))
			out := NodeSet(in.Cluster, &in.NodeSets[0])
			if diff := cmp.Diff(c.conf, out.Object.Spec.SSH.SssdConfRef); diff != "" {
				t.Error(diff)
			}
			worker, err := out.Object.Spec.Slurmd.Decode()
			if err != nil {
				t.Fatal(err)
			}
			if got := valueOf(worker.Env, sssdOptionsVariable); got != c.options {
				t.Errorf("SSSD is started with %q, want %q", got, c.options)
			}
			mounted := slices.ContainsFunc(worker.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == pod.LDAPCADir })
			if want := c.conf != nil && strings.Contains(c.sssd, "sssdLdapCAConfigMapRefName"); mounted != want {
				t.Errorf("the certificates are mounted: %v, want %v", mounted, want)
			}
			if diff := cmp.Diff(c.ignored, out.Ignored); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSSSDOfLoginPodsTrustsTheAuthoritiesOfAConfigMap(t *testing.T) {
	d := load(t)
	const cluster = "metadata: {name: demo}\nkind: SlurmCluster\nspec: {slurmNodes: {login: {size: 1, SSSD}}}"
	for sssd, ignored := range map[string][]string{
		"sssdConfSecretRefName: directory, sssdLdapCAConfigMapRefName: ca": nil,
		"sssdLdapCAConfigMapRefName: ca":                                   {"spec.slurmNodes.login.sssdLdapCAConfigMapRefName (without sssdConfSecretRefName)"},
	} {
		out := Cluster(d.input(t, strings.ReplaceAll(cluster, "SSSD", sssd)))
		if diff := cmp.Diff(ignored, out.Ignored); diff != "" {
			t.Errorf("%s: %s", sssd, diff)
		}
		login, err := out.Components.LoginSet.Spec.Login.Decode()
		if err != nil {
			t.Fatal(err)
		}
		template, err := out.Components.LoginSet.Spec.Template.Spec.Decode()
		if err != nil {
			t.Fatal(err)
		}
		var from []string
		for _, m := range login.VolumeMounts {
			for _, v := range template.Volumes {
				if m.MountPath == pod.LDAPCADir && v.Name == m.Name {
					from = append(from, v.ConfigMap.Name)
				}
			}
		}
		if got, want := slices.Contains(from, "ca"), ignored == nil; got != want {
			t.Errorf("%s: the certificates are from ConfigMaps %v", sssd, from)
		}
	}
}

func TestSSSDRunsBesideSlurmctldAndSlurmrestd(t *testing.T) {
	d := load(t)
	const both = "sssdConfSecretRefName: directory, sssdDebugLevel: 6, sssdLdapCAConfigMapRefName: ca"
	const block = `sssd: {image: "reg/sssd:1", imagePullSecrets: [{name: pull}], resources: {memory: 64Mi}, customEnv: [{name: A, value: b}]}`
	conf := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "directory"}, Key: "sssd.conf"}
	authorities := &corev1.LocalObjectReference{Name: "ca"}
	for name, tt := range map[string]struct {
		controller string
		want       *slinkyv1beta1.SSSD
		container  string
		pull       []corev1.LocalObjectReference
		ignored    []string
		problem    string
	}{
		"an sssd.conf is all that is needed":         {controller: "sssdConfSecretRefName: directory", want: &slinkyv1beta1.SSSD{ConfRef: conf}},
		"a debug level and authorities are SSSD's":   {controller: both, want: &slinkyv1beta1.SSSD{ConfRef: conf, AuthoritiesRef: authorities}, container: `{"env":[{"name":"SSSD_OPTIONS","value":"--debug-level=6"}]}`},
		"the image of Soperator is replaced by ours": {controller: `sssdConfSecretRefName: directory, sssd: {image: "soperator/sssd:5.0.0-slurm26.05.3-nebius-2"}`, want: &slinkyv1beta1.SSSD{ConfRef: conf}, container: `{"imagePullPolicy":"IfNotPresent"}`},
		"another image is pulled for both pods": {
			controller: "sssdConfSecretRefName: directory, " + block, want: &slinkyv1beta1.SSSD{ConfRef: conf}, pull: []corev1.LocalObjectReference{{Name: "pull"}},
			container: `{"env":[{"name":"A","value":"b"}],"image":"reg/sssd:1","imagePullPolicy":"IfNotPresent","resources":{"limits":{"memory":"64Mi"},"requests":{"memory":"64Mi"}}}`,
		},
		"nothing runs without an sssd.conf": {controller: block + ", sssdDebugLevel: 6, sssdLdapCAConfigMapRefName: ca", ignored: []string{
			"spec.slurmNodes.controller.sssd (without sssdConfSecretRefName)", "spec.slurmNodes.controller.sssdDebugLevel (without sssdConfSecretRefName)",
			"spec.slurmNodes.controller.sssdLdapCAConfigMapRefName (without sssdConfSecretRefName)",
		}},
		"the name of the sidecar is taken": {
			controller: "sssdConfSecretRefName: directory, customInitContainers: [{name: sssd, image: i}]", want: &slinkyv1beta1.SSSD{ConfRef: conf},
			problem: "spec.slurmNodes.controller.customInitContainers: an entry is called sssd, as the sidecar of sssdConfSecretRefName of the controller is; give it another name",
		},
		"the name of slurmrestd's sidecar is taken": {
			controller: "sssdConfSecretRefName: directory}, rest: {customInitContainers: [{name: sssd, image: i}]", want: &slinkyv1beta1.SSSD{ConfRef: conf},
			problem: "spec.slurmNodes.rest.customInitContainers: an entry is called sssd, as the sidecar of sssdConfSecretRefName of the controller is; give it another name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(d.cluster(t, "{slurmNodes: {controller: {"+tt.controller+"}}}"))
			got := out.Components.Controller.Spec.SSSD
			var container string
			if got != nil && got.Container != nil {
				container, got.Container = string(got.Container.Raw), nil
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if container != tt.container {
				t.Errorf("the container is %s, want %s", container, tt.container)
			}
			if diff := cmp.Diff(tt.ignored, out.Ignored); diff != "" {
				t.Error(diff)
			}
			if got := out.Problems.Message(); got != tt.problem {
				t.Errorf("the problem is %q, want %q", got, tt.problem)
			}
			for of, template := range map[string]slinkyv1beta1.PodTemplate{
				"slurmctld": out.Components.Controller.Spec.Template, "slurmrestd": out.Components.RestAPI.Spec.Template,
			} {
				var pod corev1.PodSpec
				if template.Spec != nil {
					decoded, err := template.Spec.Decode()
					if err != nil {
						t.Fatal(err)
					}
					pod = *decoded
				}
				if diff := cmp.Diff(tt.pull, pod.ImagePullSecrets); diff != "" {
					t.Errorf("%s: %s", of, diff)
				}
			}
		})
	}
}

func TestWhereSSSDRunsIsTold(t *testing.T) {
	d := load(t)
	const cluster = `
metadata: {name: demo}
kind: SlurmCluster
spec: {slurmNodes: {login: {size: 1, sssd: {image: i}}}}
---
kind: NodeSet
metadata: {name: gpu}
spec: {slurmd: {image: {repository: r, tag: t}}, sssd: {image: {repository: s}}}
`
	in := d.input(t, cluster)
	notes := append(Cluster(in).Notes, NodeSet(in.Cluster, &in.NodeSets[0]).Notes...)
	for _, want := range []string{
		"spec.slurmNodes.login.sssd: SSSD runs in the container of sshd,",
		"spec.sssd: SSSD runs in the container of slurmd,",
	} {
		if !slices.ContainsFunc(notes, func(note string) bool { return strings.HasPrefix(note, want) }) {
			t.Errorf("%q does not begin with %q", notes, want)
		}
	}
}
