// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestAnEditTellsForWhichJobsItWaits(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller", "restapi")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {inplaceReconfigure: true, extraConf: "PartitionName=old Nodes=ALL\nPartitionName=new Nodes=ALL"}}`)
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	o.Slurm.Register(fake.Node{Name: "worker-0", CPUs: 4, Partitions: []string{"old", "new"}})
	job := o.Slurm.Submit(fake.Job{Partition: "old", NodeList: []string{"worker-0"}, CPUs: 1, Limit: time.Hour})
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "SlurmReachable", metav1.ConditionTrue, "Answering")
	load(o)
	o.Settle()

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "PartitionName=new Nodes=ALL" })
	o.Slurm.SetPartition("old", "DRAIN")
	apiserver.Eventually(t, func() error {
		c := operator.Get[slinkyv1beta1.Controller](o, "demo")
		waits := meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionEditWaits)
		if want := fmt.Sprintf("; jobs of old: 1 running (job %d ends last, by 2", job); waits == nil || !strings.Contains(waits.Message, want) {
			return fmt.Errorf("condition %v, want %q", waits, want)
		}
		return nil
	})
	load(o)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "ConfigApplied", metav1.ConditionTrue, "ConfigLoaded")
	o.Settle()
	o.Writes.Reset()
	o.Settle()
	if all := o.Writes.All(); len(all) > 0 {
		t.Errorf("it writes while nothing changes: %v", all)
	}
	o.Slurm.Finish(job)
	apiserver.Eventually(t, func() error {
		c := operator.Get[slinkyv1beta1.Controller](o, "demo")
		if waits := meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionEditWaits); waits != nil {
			return fmt.Errorf("condition %v stays", waits)
		}
		return nil
	})
}
