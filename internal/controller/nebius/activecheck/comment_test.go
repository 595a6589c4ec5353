// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
)

// commentOf returns what is noted on the pod of w-0.
func (w *world) commentOf() string {
	w.t.Helper()
	var pod corev1.Pod
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "slurm", Name: "w-0"}, &pod); err != nil {
		w.t.Fatal(err)
	}
	return pod.Annotations[slinkyv1beta1.AnnotationCheckComment]
}

// says applies what a job reports about a node to the comment.
func (w *world) says(n activecheckplan.NodeReaction) (did, left int) {
	w.t.Helper()
	check, _ := aCheck(w.t, "first")
	told, refused, err := w.r.comment(w.t.Context(), check, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(told), len(refused)
}

func TestACheckCommentsOnAWorker(t *testing.T) {
	const failed, other = "see Failed gpu: job 17 [slurm_job]", "Failed disk: job 18 [slurm_job]"
	simulate(t, func(w *world) {
		for _, step := range []struct {
			name      string
			n         activecheckplan.NodeReaction
			did, left int
			want      string
		}{
			{"a success with nothing to take away does nothing", activecheckplan.NodeReaction{Node: "w-0", Uncomment: true}, 0, 0, ""},
			{"a failure is noted", activecheckplan.NodeReaction{Node: "w-0", Comment: failed}, 1, 0, failed},
			{"a failure is noted once", activecheckplan.NodeReaction{Node: "w-0", Comment: failed}, 0, 0, failed},
			{"a reaction without a comment leaves the note", activecheckplan.NodeReaction{Node: "w-0", Drain: "x"}, 0, 0, failed},
			{"a success takes the note away", activecheckplan.NodeReaction{Node: "w-0", Uncomment: true}, 1, 0, ""},
			{"a failure of another check is noted", activecheckplan.NodeReaction{Node: "w-0", Comment: other}, 1, 0, other},
			{"a success leaves what another check has noted", activecheckplan.NodeReaction{Node: "w-0", Uncomment: true}, 0, 0, other},
			{"a node that is no worker is told of", activecheckplan.NodeReaction{Node: "elsewhere", Comment: failed}, 0, 1, other},
			{"a node that is no worker has nothing to take away", activecheckplan.NodeReaction{Node: "elsewhere", Uncomment: true}, 0, 0, other},
		} {
			if did, left := w.says(step.n); did != step.did || left != step.left || w.commentOf() != step.want {
				t.Errorf("%s: did %d, left %d; the pod says %q", step.name, did, left, w.commentOf())
			}
		}
	})
}
