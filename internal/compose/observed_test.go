// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

func TestANodeSetStaysUnlessItsSourceIsKnownToBeGone(t *testing.T) {
	d := load(t)
	for name, tc := range map[string]struct {
		object, source string
		gone           node.Answer
		want           []string
	}{
		"the server was not asked":                           {object: "demo-gone", source: "gone", gone: node.Unknown, want: []string{"demo-gone"}},
		"the server has its source":                          {object: "demo-gone", source: "gone", gone: node.No, want: []string{"demo-gone"}},
		"the server says that its source is gone":            {object: "demo-gone", source: "gone", gone: node.Yes},
		"the NodeSet is composed, and applied":               {object: "demo-gpu", source: "gpu", gone: node.Unknown},
		"the NodeSet comes from slurmNodes.worker, now gone": {object: "demo-worker", gone: node.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.cluster(t, `{slurmNodes: {controller: {}, login: {size: 1}}}`, `gpu {replicas: 1}`)
			object := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: tc.object, Labels: map[string]string{}}}
			if tc.source != "" {
				object.Labels[LabelNodeSet] = tc.source
			}
			in.Observed.NodeSets = []ObservedNodeSet{{Object: object, SourceGone: tc.gone}}
			var got []string
			for _, set := range Cluster(in).Kept {
				got = append(got, set.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}
