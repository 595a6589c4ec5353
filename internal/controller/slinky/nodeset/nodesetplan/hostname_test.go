// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestWhoeverRunsKeepsItsHostName(t *testing.T) {
	tests := []struct {
		name string
		// nodes are Kubernetes nodes with their host names by annotation, running those on which workers run, with the workers' names.
		nodes, running map[string]string
		// want is the host name of each node's worker, with "-" behind the name when no new one is made there.
		want    map[string]string
		retired string
		mistake string
	}{
		{"a node that comes does not take a name", map[string]string{"a.rack": "b", "b.rack": ""}, map[string]string{"b.rack": "b"},
			map[string]string{"a.rack": "-", "b.rack": "b"}, "", "Node a.rack: host name b is that of the worker on Node b.rack already"},
		{"a worker that is to be called otherwise stays rather than take a name", map[string]string{"a": "b", "b": ""}, map[string]string{"a": "a", "b": "b"},
			map[string]string{"a": "a-", "b": "b"}, "", "Node a: host name b is that of the worker on Node b already"},
		{"a name that cannot be one takes no worker away", map[string]string{"a": "gpu 7"}, map[string]string{"a": "a"},
			map[string]string{"a": "a-"}, "", `Node a: host name "gpu 7" cannot be that of a worker`},
		{"a name that cannot be one makes no new worker", map[string]string{"a": "gpu 7"}, nil,
			map[string]string{"a": "-"}, "", `Node a: host name "gpu 7" cannot be that of a worker`},
		{"two workers exchange their names", map[string]string{"a": "b", "b": "a"}, map[string]string{"a": "a", "b": "b"},
			map[string]string{"a": "b", "b": "a"}, "w-a w-b", ""},
		{"a worker takes the name that another gives up", map[string]string{"a": "b", "b": "c"}, map[string]string{"a": "a", "b": "b"},
			map[string]string{"a": "b", "b": "c"}, "w-a w-b", ""},
		{"a worker does not take the name that another cannot give up", map[string]string{"a": "b", "b": "c", "c": ""}, map[string]string{"a": "a", "b": "b", "c": "c"},
			map[string]string{"a": "a-", "b": "b-", "c": "c"}, "", "Node b: host name c is that of the worker on Node c already"},
		{"a name of its own comes before one by annotation", map[string]string{"a": "b", "b": ""}, nil,
			map[string]string{"a": "-", "b": "b"}, "", "Node a: host name b is that of the worker on Node b already"},
		{"of two nodes of one name the one without a worker waits", map[string]string{"n.rack1": "", "n.rack2": ""}, map[string]string{"n.rack2": "n"},
			map[string]string{"n.rack1": "-", "n.rack2": "n"}, "", "Node n.rack1: host name n is that of the worker on Node n.rack2 already"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var nodes []corev1.Node
			for name, override := range tt.nodes {
				nodes = append(nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{
					Name: name, Annotations: map[string]string{slinkyv1beta1.AnnotationHostnameOverride: override},
				}})
			}
			in := nodesetplan.Input{Now: time.Unix(1e9, 0), Daemon: true, MaxUnavailable: 9, Revision: "r"}
			for node, host := range tt.running {
				in.Pods = append(in.Pods, workerpod.Pod{
					Name: "w-" + host, Node: node, Hostname: host, Ordinal: -1, Daemon: true, Revision: "r", Phase: "Running", Scheduled: true, Ready: true,
				})
			}
			found := nodesetplan.KubeNodes(&corev1.PodSpec{}, nodes)
			problems := nodesetplan.NameHosts(found, in.Pods)
			in.Nodes = found
			got := map[string]string{}
			for _, n := range found {
				switch n.Fit {
				case nodesetplan.Starts:
					got[n.Name] = n.Hostname
				case nodesetplan.Stays:
					got[n.Name] = n.Hostname + "-"
				default:
					got[n.Name] = "-"
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if message := problems.Message(); !strings.Contains(message, tt.mistake) || tt.mistake == "" && message != "" {
				t.Errorf("the problems are %q, want %q", message, tt.mistake)
			}
			var retired []string
			for _, r := range nodesetplan.Make(in).Retire {
				retired = append(retired, r.Pod)
			}
			if got := strings.Join(slices.Sorted(slices.Values(retired)), " "); got != tt.retired {
				t.Errorf("retired are %q, want %q", got, tt.retired)
			}
			for range 20 { // in whatever order the cache has them
				again := nodesetplan.KubeNodes(&corev1.PodSpec{}, nodes)
				if nodesetplan.NameHosts(again, in.Pods); fmt.Sprint(again) != fmt.Sprint(found) {
					t.Fatalf("the same nodes give %v and %v", found, again)
				}
			}
		})
	}
}
