// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

func ended(message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: message}}
}

// aPod returns a ready slurmctld pod that was made for a digest.
func aPod(digest string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{slinkyv1beta1.AnnotationSlurmConfigHash: digest}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "slurmctld", Ready: true}}
	if change != nil {
		change(&p)
	}
	return p
}

func TestConfigApplied(t *testing.T) {
	const stamp = "coxswain_config="
	daemons := func(parameters ...string) slurmcache.Daemons {
		return slurmcache.Daemons{Loaded: true, Parameters: parameters}
	}
	tests := []struct {
		name       string
		external   bool
		suspend    bool
		inPlace    bool
		problems   problem.List
		slurmctlds slurmctlds
		before     string
		want       string
	}{
		{name: "slurmctld says that it has loaded the configuration", slurmctlds: slurmctlds{connected: true, daemons: daemons("a", stamp+"d2")},
			want: "True ConfigLoaded: slurmctld has loaded d2"},
		{name: "slurmctld says that it has another configuration", slurmctlds: slurmctlds{connected: true, daemons: daemons(stamp + "d1"), pods: []corev1.Pod{aPod("d2", nil)}},
			want: "False ConfigPending: d2 is on its way to slurmctld"},
		{name: "without an answer, a pod that was started with the configuration has it", slurmctlds: slurmctlds{pods: []corev1.Pod{aPod("d2", nil)}},
			want: "True ConfigLoaded: slurmctld has started with d2"},
		{name: "without an answer, it is not known whether the configuration is loaded while another pod runs yet", slurmctlds: slurmctlds{pods: []corev1.Pod{aPod("d1", nil), aPod("d2", nil)}},
			want: "Unknown ConfigUnknown: there is no RestApi, so it is not known whether slurmctld has loaded d2"},
		{name: "without an answer, it is not known whether a pod has loaded what it is told while it runs", inPlace: true, slurmctlds: slurmctlds{pods: []corev1.Pod{aPod("d2", nil)}},
			want: "Unknown ConfigUnknown: there is no RestApi, so it is not known whether slurmctld has loaded d2"},
		{name: "an answer that does not come is Unknown", inPlace: true, slurmctlds: slurmctlds{connected: true, daemons: slurmcache.Daemons{Why: "no slurmctld answers"}},
			want: "Unknown ConfigUnknown: no slurmctld answers, so whether it has loaded d2 is not known"},
		{name: "an answer that does not come leaves what was said before of the same configuration", inPlace: true, slurmctlds: slurmctlds{connected: true, daemons: slurmcache.Daemons{Why: "no slurmctld answers"}},
			before: "slurmctld has loaded d2", want: "True ConfigLoaded: slurmctld has loaded d2"},
		{name: "what was said before of another configuration says nothing", inPlace: true, slurmctlds: slurmctlds{connected: true, daemons: slurmcache.Daemons{Why: "no slurmctld answers"}},
			before: "slurmctld has loaded d1", want: "Unknown ConfigUnknown: no slurmctld answers, so whether it has loaded d2 is not known"},
		{name: "a mistake keeps the configuration from slurmctld", problems: problem.List{problem.Errorf("spec.extraConf", slinkyv1beta1.ReasonInvalidConfiguration, "line 1: bad")},
			slurmctlds: slurmctlds{connected: true, daemons: daemons(stamp + "d2")},
			want:       "False InvalidConfiguration: slurmctld keeps the previous configuration: spec.extraConf: line 1: bad"},
		{name: "what is missing keeps the configuration from slurmctld", problems: problem.List{problem.Waitingf("spec.accountingRef", "ReferenceNotFound", "gone")},
			want: "False ConfigPending: slurmctld keeps the previous configuration: spec.accountingRef: gone"},
		{name: "what scontrol refused is quoted", inPlace: true, slurmctlds: slurmctlds{connected: true, daemons: daemons(stamp + "d1"), pods: []corev1.Pod{aPod("", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "reconfigure",
				LastTerminationState: ended("d2: scontrol: error: Parsing error at unrecognized key: Foo\nscontrol: fatal: Unable to process configuration file\n")}}
		})}}, want: "False ConfigRejected: slurmctld does not accept the configuration: error: Parsing error at unrecognized key: Foo; fatal: Unable to process configuration file"},
		{name: "what scontrol refused of an earlier configuration is not quoted", inPlace: true, slurmctlds: slurmctlds{connected: true, daemons: daemons(stamp + "d1"), pods: []corev1.Pod{aPod("", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "reconfigure", LastTerminationState: ended("d0: scontrol: fatal: x")}}
		})}}, want: "False ConfigPending: d2 is on its way to slurmctld"},
		{name: "the last words of a slurmctld that does not start are quoted", slurmctlds: slurmctlds{connected: true, pods: []corev1.Pod{aPod("d2", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "slurmctld",
				LastTerminationState: ended("[2026-11-20T13:58:51.515] error: old\n[2026-11-20T13:58:51.515] build_part_bitmap: x\n[2026-11-20T13:58:51.515] fatal: Invalid node names in partition p\n")}}
		})}}, want: "False ConfigRejected: slurmctld does not start: fatal: Invalid node names in partition p"},
		{name: "a suspended slurmctld has what it had", suspend: true, inPlace: true, before: "slurmctld has loaded d2", want: "True ConfigLoaded: slurmctld has loaded d2"},
		{name: "a suspended slurmctld begins with another configuration than it had", suspend: true, inPlace: true, before: "slurmctld has loaded d1",
			want: "False ConfigPending: spec.suspend is true: slurmctld is stopped; it starts with d2 when it is resumed"},
		{name: "an external slurmctld has a configuration of its own", external: true, slurmctlds: slurmctlds{connected: true, daemons: daemons()},
			want: "True External: slurmctld runs elsewhere, with a configuration of its own"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &slinkyv1beta1.Controller{}
			c.Spec.External, c.Spec.InplaceReconfigure, c.Status.ConfigDigest = tt.external, tt.inPlace, "d2"
			c.Spec.Suspend = tt.suspend
			var before *metav1.Condition
			if tt.before != "" {
				before = &metav1.Condition{Status: metav1.ConditionTrue, Reason: slinkyv1beta1.ReasonConfigLoaded, Message: tt.before}
			}
			got := configApplied(c, tt.problems, tt.slurmctlds, before)
			if diff := cmp.Diff(tt.want, string(got.Status)+" "+got.Reason+": "+got.Message); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVersionSupported(t *testing.T) {
	for release, want := range map[string]string{
		"": "Unknown VersionUnknown", "26.05.5": "True VersionSupported", "24.11.5": "True VersionSupported",
		"27.11.0": "True VersionSupported", "23.02.1": "False VersionUnsupported",
	} {
		if c := versionSupported(release); string(c.Status)+" "+c.Reason != want {
			t.Errorf("release %q: %s %s, want %s", release, c.Status, c.Reason, want)
		}
	}
}

func FuzzComplaint(f *testing.F) {
	f.Add("error: a\nfatal: b")
	f.Add("")
	f.Fuzz(func(_ *testing.T, log string) { complaint(log) })
}
