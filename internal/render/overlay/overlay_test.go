// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

func base() corev1.Container {
	return corev1.Container{
		Name: "slurmctld", Image: "base", Args: []string{"-v"},
		Env:          []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
		VolumeMounts: []corev1.VolumeMount{{Name: "etc", MountPath: "/etc/slurm", ReadOnly: true}},
		LivenessProbe: &corev1.Probe{
			FailureThreshold: 6, PeriodSeconds: 10,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/livez", Port: intstr.FromString("slurmctld")}},
		},
		SecurityContext: &corev1.SecurityContext{RunAsNonRoot: new(true)},
	}
}

func TestContainer(t *testing.T) {
	for name, tc := range map[string]struct {
		user    string
		want    func(*corev1.Container)
		problem string
	}{
		"nothing written changes nothing": {},
		"null changes nothing":            {user: `null`},
		"an image replaces the generated one": {
			user: `{"image":"mine"}`, want: func(c *corev1.Container) { c.Image = "mine" },
		},
		"arguments follow the generated ones": {
			user: `{"args":["-vvv"]}`, want: func(c *corev1.Container) { c.Args = []string{"-v", "-vvv"} },
		},
		"a variable meets the generated one by name and others are kept": {
			user: `{"env":[{"name":"B","value":"3"},{"name":"C","value":"4"}]}`,
			want: func(c *corev1.Container) {
				c.Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "3"}, {Name: "C", Value: "4"}}
			},
		},
		"another probe handler replaces the generated one and keeps its thresholds": {
			user: `{"livenessProbe":{"tcpSocket":{"port":6817}}}`,
			want: func(c *corev1.Container) {
				c.LivenessProbe.ProbeHandler = corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(6817)}}
			},
		},
		"a probe without handler only changes thresholds": {
			user: `{"livenessProbe":{"failureThreshold":2}}`,
			want: func(c *corev1.Container) { c.LivenessProbe.FailureThreshold = 2 },
		},
		"null is as if it were not written": {user: `{"livenessProbe":null,"env":null,"name":"","args":[],"securityContext":{}}`},
		"a directive deletes a generated probe": {
			user: `{"livenessProbe":{"$patch":"delete"}}`, want: func(c *corev1.Container) { c.LivenessProbe = nil },
		},
		"a directive does not delete a list": {user: `{"env":{"$patch":"delete"}}`, problem: "spec.slurmctld: decoding: json: cannot unmarshal object"},
		"a directive in a list is a mistake": {user: `{"env":[{"name":"A","$patch":"delete"}]}`, problem: `unknown field "env[0].$patch"`},
		"another source of a variable replaces the generated value": {
			user: `{"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}`,
			want: func(c *corev1.Container) {
				c.Env[0] = corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
			},
		},
		"a variable may be empty": {
			user: `{"env":[{"name":"A","value":""}]}`, want: func(c *corev1.Container) { c.Env[0].Value = "" },
		},
		"a security context is merged": {
			user: `{"securityContext":{"privileged":false}}`,
			want: func(c *corev1.Container) { c.SecurityContext.Privileged = new(false) },
		},
		"the same name may be written":       {user: `{"name":"slurmctld"}`},
		"another name is a mistake":          {user: `{"name":"x"}`, problem: `spec.slurmctld.name: this container is called "slurmctld"`},
		"a misspelt field is a mistake":      {user: `{"resurces":{}}`, problem: `spec.slurmctld: unknown field "resurces"`},
		"a mistyped field is a mistake":      {user: `{"image":5}`, problem: `spec.slurmctld: decoding: json: cannot unmarshal`},
		"a misspelt field deep is a mistake": {user: `{"securityContext":{"priviledged":true}}`, problem: `unknown field "securityContext.priviledged"`},
	} {
		t.Run(name, func(t *testing.T) {
			var user *embedded.Container
			if tc.user != "" {
				user = &embedded.Container{RawExtension: runtime.RawExtension{Raw: []byte(tc.user)}}
			}
			got, err := Container(base(), user, "spec.slurmctld")
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Fatalf("error = %v, want one with %q", err, tc.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := base()
			if tc.want != nil {
				tc.want(&want)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodSpecMergesContainersByName(t *testing.T) {
	generated := corev1.PodSpec{
		Containers: []corev1.Container{base()},
		Volumes:    []corev1.Volume{{Name: "etc"}},
	}
	user := &embedded.PodSpec{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"nodeSelector":{"a":"b"},"containers":[{"name":"slurmctld","image":"mine"},{"name":"extra","image":"x"}]}`)}}
	got, err := PodSpec(generated, user, "spec.template.spec")
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]string{}
	for _, c := range got.Containers {
		images[c.Name] = c.Image
	}
	if diff := cmp.Diff(map[string]string{"slurmctld": "mine", "extra": "x"}, images); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if got.NodeSelector["a"] != "b" || len(got.Volumes) != 1 {
		t.Errorf("node selector %v and volumes %v, want the user's and the generated ones", got.NodeSelector, got.Volumes)
	}
}

func TestServiceSpecKeepsSelectorAndDropsExternalIPs(t *testing.T) {
	user := &embedded.ServiceSpec{RawExtension: runtime.RawExtension{Raw: []byte(
		`{"type":"NodePort","selector":{"x":"y"},"externalIPs":["1.2.3.4"],"ports":[{"name":"extra","port":9}]}`)}}
	port := corev1.ServicePort{Name: "slurmctld", Port: 6817}
	got, err := ServiceSpec(user, map[string]string{"app": "slurmctld"}, port, "spec.service.spec")
	want := corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": "slurmctld"},
		Ports: []corev1.ServicePort{port, {Name: "extra", Port: 9}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if err == nil || !strings.Contains(err.Error(), "spec.service.spec.externalIPs") {
		t.Errorf("error = %v, want one that names spec.service.spec.externalIPs", err)
	}
}

func TestSearchDomainsFollowTheGeneratedOnes(t *testing.T) {
	generated := corev1.PodSpec{DNSConfig: &corev1.PodDNSConfig{Searches: []string{"workers"}}}
	for user, want := range map[string][]string{
		`{}`:                                  {"workers"},
		`{"dnsConfig":{"searches":["mine"]}}`: {"workers", "mine"},
		`{"dnsConfig":{"nameservers":["1.2.3.4"]}}`: {"workers"},
		`{"dnsConfig":null}`:                        {"workers"},
		`{"dnsConfig":{"$patch":"delete"}}`:         nil,
	} {
		got, err := PodSpec(generated, &embedded.PodSpec{RawExtension: runtime.RawExtension{Raw: []byte(user)}}, "spec.template.spec")
		if err != nil {
			t.Fatal(err)
		}
		var searches []string
		if got.DNSConfig != nil {
			searches = got.DNSConfig.Searches
		}
		if diff := cmp.Diff(want, searches); diff != "" {
			t.Errorf("%s: %s", user, diff)
		}
	}
}

func TestListsOfUsersAreAddedToTheGeneratedOnes(t *testing.T) {
	ours := corev1.PodAffinityTerm{TopologyKey: "kubernetes.io/hostname"}
	generated := corev1.PodSpec{
		Tolerations: []corev1.Toleration{{Key: "worker"}},
		Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{ours},
		}},
		Volumes: []corev1.Volume{{Name: "log", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
	}
	for user, want := range map[string]func(*corev1.PodSpec){
		`{"tolerations":[],"affinity":{},"volumes":null}`: func(*corev1.PodSpec) {},
		`{"tolerations":[{"key":"gpu"}]}`: func(s *corev1.PodSpec) {
			s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: "gpu"})
		},
		`{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack"}]}}}`: func(s *corev1.PodSpec) {
			s.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = []corev1.PodAffinityTerm{ours, {TopologyKey: "rack"}}
		},
		`{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[]}}}`: func(*corev1.PodSpec) {},
		`{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"rack","labelSelector":{}}]}}}`: func(s *corev1.PodSpec) {
			s.Affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: "rack", LabelSelector: &metav1.LabelSelector{}},
			}}
		},
		`{"volumes":[{"name":"log","hostPath":{"path":"/log"}}]}`: func(s *corev1.PodSpec) {
			s.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/log"}}
		},
		`{"volumes":[{"name":"scratch","emptyDir":{}}]}`: func(s *corev1.PodSpec) {
			s.Volumes = append([]corev1.Volume{{Name: "scratch", VolumeSource: s.Volumes[0].VolumeSource}}, s.Volumes...)
		},
	} {
		expected := *generated.DeepCopy()
		want(&expected)
		got, err := PodSpec(*generated.DeepCopy(), &embedded.PodSpec{RawExtension: runtime.RawExtension{Raw: []byte(user)}}, "spec.template.spec")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", user, diff)
		}
	}
}

func FuzzPodSpec(f *testing.F) {
	f.Add([]byte(`{"dnsConfig":{"$patch":"delete"},"containers":[{"name":"slurmctld","$patch":"delete"}]}`))
	f.Add([]byte(`{"containers":null,"dnsConfig":{"searches":["a"]},"volumes":[{"name":"etc","emptyDir":{}}]}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		generated := corev1.PodSpec{
			DNSConfig:  &corev1.PodDNSConfig{Searches: []string{"workers"}},
			Containers: []corev1.Container{base()}, Volumes: []corev1.Volume{{Name: "etc"}},
		}
		// Whatever is written, it is laid over or refused.
		_, _ = PodSpec(generated, &embedded.PodSpec{RawExtension: runtime.RawExtension{Raw: raw}}, "spec.template.spec")
	})
}

func FuzzContainer(f *testing.F) {
	f.Add([]byte(`{"image":"x","args":["a"],"livenessProbe":{"exec":{"command":["true"]}}}`))
	f.Add([]byte(`{"env":[{"$patch":"replace"}]}`))
	f.Add([]byte(`{"ports":[{"containerPort":"x"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Container(base(), &embedded.Container{RawExtension: runtime.RawExtension{Raw: raw}}, "spec.slurmctld")
		if err == nil && got.Name != "slurmctld" {
			t.Errorf("the container is called %q, want slurmctld", got.Name)
		}
	})
}
