// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestSlurmComesBackWithTheStateOfAnotherDay(t *testing.T) {
	t.Parallel()
	o, _ := operator.StartWorkersOn(t, 3, `partition: {enabled: true}`)
	apiserver.Eventually(t, func() error {
		for _, name := range operator.WorkerNames(3) {
			if found, _ := o.Slurm.Node(name); found.Comment == "" {
				return fmt.Errorf("%s has no comment", name)
			}
		}
		return nil
	})
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(2)) })
	o.ExpectLeft("w-0", "w-1")
	o.ExpectNode("w-2", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod was cordoned pending termination")
	// A slurmctld that reads its configuration anew may forget what it was sent meanwhile.
	var forgotten atomic.Bool
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		if r.Method == http.MethodPost && forgotten.CompareAndSwap(false, true) {
			return &fake.Fault{Status: http.StatusOK, Body: `{"errors": [], "warnings": []}`}
		}
		return nil
	})
	if err := o.Slurm.Update("root", "w-2", "RESUME", ""); err != nil {
		t.Fatal(err)
	}
	o.ExpectNode("w-2", "IDLE+DRAIN+DYNAMIC_NORM slurm-operator: Pod is gone")
	if !forgotten.Load() {
		t.Error("Slurm was told only once")
	}
	if got := o.NodeState("w-1"); got != "IDLE+DYNAMIC_NORM " {
		t.Errorf("w-1, which has a pod, is %s", got)
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(3)) })
	o.ExpectWorkers(operator.WorkerNames(3)...)
	o.RunWorkers()
	o.ExpectNode("w-2", "IDLE+DYNAMIC_NORM ")
}
