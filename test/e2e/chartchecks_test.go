// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/predecessors"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// runsChecks installs the chart of ActiveChecks, whose scripts are stand-ins, and waits until all that run after their creation have done what
// they can on machines without GPUs.
func (c charts) runsChecks(t *testing.T) {
	t.Helper()
	for _, u := range predecessors.Manifests(t)["soperator-5.0-activechecks.yaml"] {
		predecessors.Move(u.Object, "soperator", c.namespace)
		u.SetNamespace(c.namespace)
		c.fillCheck(t, u)
		if err := c.Create(t.Context(), u); err != nil {
			t.Fatalf("creating ActiveCheck %s: %v", u.GetName(), err)
		}
	}
	want := map[string]string{
		"soperator-create-user-soperatorchecks": "Complete", "soperator-create-user-nebius": "Complete", "soperator-manage-jail-state": "Complete",
		"soperator-wait-for-topology": "Complete", "soperator-wait-for-soperatorchecks-srun-ready": "Complete",
		"soperator-gpu-checks": "Skipped", "soperator-ensure-healthy-nodes": "Complete",
	}
	eventually(t, patient, "the checks to have run", func(ctx context.Context) error {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("slurm.nebius.ai/v1alpha1")
		list.SetKind("ActiveCheckList")
		if err := c.List(ctx, list, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		var errs []error
		for i := range list.Items {
			u := &list.Items[i]
			if runs, _, _ := unstructured.NestedBool(u.Object, "spec", "runAfterCreation"); !runs {
				continue
			}
			job, _, _ := unstructured.NestedString(u.Object, "status", "k8sJobsStatus", "lastJobStatus")
			slurm, _, _ := unstructured.NestedString(u.Object, "status", "slurmJobsStatus", "lastRunStatus")
			if got := job + slurm; got != want[u.GetName()] {
				errs = append(errs, fmt.Errorf("%s is %q: %v", u.GetName(), got, walk.Conditions(u)))
			}
		}
		if len(list.Items) < len(want) {
			errs = append(errs, fmt.Errorf("there are %d checks", len(list.Items)))
		}
		return errors.Join(errs...)
	})
	const homes = "/opt/soperator-home/"
	must(t, c.jail, "id nebius && id soperatorchecks && test -d "+homes+"nebius && cd "+homes+"soperatorchecks/.ssh && test -s soperatorchecks_id_ecdsa && "+
		"grep -qxF -f soperatorchecks_id_ecdsa.pub authorized_keys")
}

// fillCheck puts the stand-in of its script into a check. The chart writes names of its own values into scripts.
func (c charts) fillCheck(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	name := strings.TrimPrefix(u.GetName(), "soperator-")
	if strings.HasPrefix(name, "manage-jail-state") {
		return // it has no script
	}
	text, err := os.ReadFile(filepath.Join("testdata", "soperator-checks", name+".sh"))
	if err != nil {
		t.Fatal(err)
	}
	if slurm, _, _ := unstructured.NestedMap(u.Object, "spec", "slurmJobSpec"); slurm != nil {
		err = unstructured.SetNestedField(u.Object, string(text), "spec", "slurmJobSpec", "sbatchScript")
	} else {
		script := "export SLURM_CLUSTER=soperator NAMESPACE=" + c.namespace + "\n" + string(text)
		err = unstructured.SetNestedSlice(u.Object, []any{"bash", "-c", script}, "spec", "k8sJobSpec", "jobContainer", "command")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// noticesMemory is scenario "memory": what is left in memory drains an idle node, until it is taken away. The suite has machines of which a
// worker takes at least half. Here RealMemory is small, and the check sees the memory of the machine. So the number in the pod, which the
// check takes first, is made larger than what is available.
func (c charts) noticesMemory(t *testing.T) {
	t.Helper()
	const metadata = "/run/soperator/node_metadata.env"
	node := chartNodes()[1]
	before := must(t, c.worker(node), "cat "+metadata)
	if before != "SOPERATOR_NODE_REAL_MEMORY_BYTES=536870912" {
		t.Errorf("the memory of the node is %q", before)
	}
	if out := must(t, c.controller, "scontrol show node "+node); !strings.Contains(out, "RealMemory=512 ") {
		t.Errorf("Slurm has another memory:\n%s", out)
	}
	total, err := strconv.ParseInt(must(t, c.worker(node), `LC_ALL=C free -b | awk "/^Mem:/ {print \$2}"`), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	must(t, c.worker(node), fmt.Sprintf("echo SOPERATOR_NODE_REAL_MEMORY_BYTES=%d >%s", total, metadata))
	program := "SLURMD_NODENAME=" + node + " /opt/slurm_scripts/hc_program.sh"
	must(t, c.worker(node), program)
	eventually(t, 3*time.Minute, "the node to be drained", func(ctx context.Context) error {
		out, err := c.controller(ctx, "scontrol show node "+node)
		if err == nil && (!strings.Contains(out, "DRAIN") || !strings.Contains(out, "Reason=[user_problem] alloc_mem_used: ")) {
			err = errors.New(out)
		}
		return err
	})
	must(t, c.worker(node), "echo "+before+" >"+metadata)
	must(t, c.worker(node), program)
	c.awaitUsable(t)
}
