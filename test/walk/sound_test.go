// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func aPod(name string, ready corev1.ConditionStatus, containers ...corev1.ContainerStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: name, UID: types.UID(name)},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: containers,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
		},
	}
}

func aContainer(name string, restarts int32) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: name, Ready: true, RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	if restarts > 0 {
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1, Message: "no configuration\n"}
	}
	return s
}

func TestPodsThatAreNotSoundAreNamed(t *testing.T) {
	missing := aContainer("webhook", 0)
	missing.Ready = false
	missing.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "exec: /usr/bin/webhook: no such file"}}
	sidecar := aPod("w-0", corev1.ConditionTrue, aContainer("slurmd", 0))
	sidecar.Status.InitContainerStatuses = []corev1.ContainerStatus{aContainer("logfile", 1)}
	tests := []struct {
		name               string
		pods               []corev1.Pod
		before             Restarts
		unready, restarted string
	}{
		{name: "pods that are ready and were never restarted are sound", pods: []corev1.Pod{aPod("a", corev1.ConditionTrue, aContainer("c", 0))}},
		{name: "without pods nothing is sound", unready: "there are no pods"},
		{
			name: "a program that the image lacks is not sound", pods: []corev1.Pod{aPod("webhook-1", corev1.ConditionFalse, missing)},
			unready: "pod webhook-1 in sys is not ready: Running; webhook waits: CrashLoopBackOff exec: /usr/bin/webhook: no such file",
		},
		{
			name: "a daemon that needed a second try is not sound", pods: []corev1.Pod{aPod("w-0", corev1.ConditionTrue, aContainer("slurmd", 2))},
			restarted: "container slurmd of pod w-0 in sys was restarted (2 times): Error, exit code 1, no configuration",
		},
		{
			name: "a sidecar that needed a second try is not sound", pods: []corev1.Pod{sidecar},
			restarted: "container logfile of pod w-0 in sys was restarted (1 times): Error, exit code 1, no configuration",
		},
		{
			name: "what happened before does not count", pods: []corev1.Pod{aPod("w-0", corev1.ConditionTrue, aContainer("slurmd", 2))},
			before: Restarts{{"w-0", "slurmd"}: 2},
		},
		{
			name: "what came after does count", pods: []corev1.Pod{aPod("w-0", corev1.ConditionTrue, aContainer("slurmd", 2))},
			before:    Restarts{{"w-0", "slurmd"}: 1},
			restarted: "container slurmd of pod w-0 in sys was restarted (1 times): Error, exit code 1, no configuration",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			unready, restarted := unsound(tt.pods, tt.before)
			if got := text(unready); got != tt.unready {
				t.Errorf("not ready: %q, want %q", got, tt.unready)
			}
			if got := text(restarted); got != tt.restarted {
				t.Errorf("restarted: %q, want %q", got, tt.restarted)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestPodsAreListedAsKubectlDoes(t *testing.T) {
	initialised := aContainer("initconf", 0)
	initialised.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	pod, other := aPod("worker-0", corev1.ConditionTrue, aContainer("slurmd", 2)), aPod("login", corev1.ConditionFalse, aContainer("login", 0))
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{initialised, aContainer("logfile", 0)}
	other.Status.ContainerStatuses[0].Ready = false
	k := &Kubernetes{WithWatch: fake.NewClientBuilder().WithObjects(&pod, &other).Build()}
	table, err := k.PodTable(t.Context(), "sys", "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"NAMESPACE   NAME       READY   STATUS    RESTARTS",
		"sys         login      0/1     Running   0",
		"sys         worker-0   2/2     Running   2",
	}
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(table), "\n")); diff != "" {
		t.Error(diff)
	}
	restarts, err := k.RestartsIn(t.Context(), "sys")
	if err != nil {
		t.Fatal(err)
	}
	if got := restarts[containerKey{"worker-0", "slurmd"}]; got != 2 {
		t.Errorf("slurmd was restarted %d times, want 2", got)
	}
}
