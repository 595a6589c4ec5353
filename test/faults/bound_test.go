// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// TestAListOfTooManyNodesIsNotBelieved lets slurmrestd list more nodes than any Slurm has: the Controller shows which bound that
// exceeds, and no worker is touched.
func TestAListOfTooManyNodesIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, clocks{})
		defer w.close()
		w.boot()
		w.cluster(threeWorkers)
		w.settle()
		var body strings.Builder
		body.WriteString(`{"last_update":{"set":true,"number":1},"nodes":[{"name":"n"}`)
		for i := range 70_000 {
			fmt.Fprintf(&body, `,{"name":"n%d"}`, i)
		}
		body.WriteString("]}")
		w.slurm.SetFault(func(r *http.Request) *fake.Fault {
			if listsNodes(r) {
				return &fake.Fault{Status: http.StatusOK, Body: body.String()}
			}
			return nil
		})
		before := w.workers()
		w.sleep(5 * time.Second) // until Slurm has been asked
		w.cordon("true")
		w.sleep(time.Minute)
		controller, _ := get[slinkyv1beta1.Controller](w, "demo")
		c := meta.FindStatusCondition(controller.Status.Conditions, slinkyv1beta1.ConditionSlurmReachable)
		if c == nil || c.Status != metav1.ConditionUnknown || c.Reason != slinkyv1beta1.ReasonAnswersInDoubt || !strings.Contains(c.Message, "more than 65536 nodes") {
			t.Errorf("the condition is %+v", c)
		}
		if after := w.workers(); len(after) != len(before) || w.slurmCalls("DRAIN") > 0 {
			t.Errorf("%d workers, %d drains", len(after), w.slurmCalls("DRAIN"))
		}
		w.slurm.SetFault(nil)
		w.cordon("")
		w.settle()
		w.expectGoal()
		for _, v := range w.violations {
			t.Error(v)
		}
	})
}
