// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package workerpod

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

func TestUnderWhichNameAWorkerHasRegistered(t *testing.T) {
	podNetwork := func(p *corev1.Pod) { p.Spec.HostNetwork = false }
	tests := []struct {
		name string
		node rest.Node
		pod  func(*corev1.Pod)
		want string
	}{
		{name: "a worker is found by the host name of the machine", node: rest.Node{Name: "ip-10-0-0-1", State: []string{"IDLE"}}, want: "ip-10-0-0-1"},
		{name: "a worker is found by a comment of ours about this pod", node: rest.Node{Name: "ip-10-0-0-1", State: []string{"MIXED"}, Comment: `{"podName":"w-0"}`}, want: "ip-10-0-0-1"},
		{name: "another worker's node is not found", node: rest.Node{Name: "w-9", State: []string{"IDLE"}, Comment: `{"podName":"w-9"}`}},
		{name: "a node that does not respond is not found", node: rest.Node{Name: "old", State: []string{"DOWN", "NOT_RESPONDING"}}},
		{name: "a node at another address is not found", node: rest.Node{Name: "other", Address: "10.0.0.2", State: []string{"IDLE"}}},
		{name: "a worker on a network of its own is found by its address", node: rest.Node{Name: "other", State: []string{"IDLE"}}, pod: podNetwork, want: "other"},
		{name: "a worker on a network of its own is found by its host name, with an address of another family", node: rest.Node{Name: "other", Hostname: "w-0", Address: "fd00::1", State: []string{"IDLE"}},
			pod: podNetwork, want: "other"},
		{name: "host names of machines are not only a pod's", node: rest.Node{Name: "other", Hostname: "ip-10-0-0-1.ec2.internal", Address: "10.0.0.2", State: []string{"IDLE"}}},
		{name: "another worker's node that has got the address of the pod is not found", node: rest.Node{Name: "w-9", State: []string{"IDLE"}, Comment: `{"podName":"w-9"}`}, pod: podNetwork},
		{name: "a pod without an address is nowhere", node: rest.Node{Name: "other", State: []string{"IDLE"}},
			pod: func(p *corev1.Pod) { p.Status.PodIP = "" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "w-0"},
				Spec:       corev1.PodSpec{HostNetwork: true, NodeName: "ip-10-0-0-1.ec2.internal"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"},
			}
			if tt.pod != nil {
				tt.pod(pod)
			}
			if tt.node.Address == "" {
				tt.node.Address = "10.0.0.1"
			}
			if got := RegisteredAs(pod, slurmcache.NewSnapshot(time.Now(), slurmcache.Fresh, tt.node)); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestWhetherSlurmHasKeptItsState(t *testing.T) {
	pod := func(registered node.Answer, change ...func(*Pod)) Pod {
		p := Pod{Phase: "Running", Ready: true, Registered: registered}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	was := func(p *Pod) { p.Was = true }
	unready := func(p *Pod) { p.Ready = false }
	terminating := func(p *Pod) { p.Terminating = true }
	tests := []struct {
		name string
		pods []Pod
		want node.Answer
	}{
		{"Slurm that has all records has kept its state", []Pod{pod(node.Yes, was), pod(node.Yes, was)}, node.Yes},
		{"Slurm that lacks one record of several has kept its state", []Pod{pod(node.Yes, was), pod(node.No, was)}, node.Yes},
		{"Slurm that lacks most records may have lost its state", []Pod{pod(node.Yes, was), pod(node.No, was), pod(node.No, was)}, node.Unknown},
		{"Slurm that lacks the only record may have lost its state", []Pod{pod(node.No, was)}, node.Unknown},
		{"Slurm that lacks the only record may have lost its state, also when the worker is not ready", []Pod{pod(node.No, was, unready)}, node.Unknown},
		{"workers that Slurm never had prove nothing", []Pod{pod(node.No), pod(node.No), pod(node.No)}, node.Yes},
		{"workers that are going prove nothing", []Pod{pod(node.No, was, terminating), pod(node.No, was, terminating), pod(node.Yes)}, node.Yes},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := kept(tt.pods); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}
