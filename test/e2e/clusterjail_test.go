// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// The jail of a SlurmCluster is filled, workers of two kinds run jobs in it, and files of JailedConfigs are written into it, also
// when what does so is killed in the middle.
func TestJailOfASlurmCluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	images := s.startRegistry(t)
	m := s.manifest(t, "clusterjail.yaml", "INSECURE_REGISTRY", images.host)
	cluster, err := m.Only("SlurmCluster")
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, m)
	if !t.Run("a copy that is killed is none, and the next one goes on with it", func(t *testing.T) { s.fillsInSpiteOfKills(t, cluster) }) {
		return
	}
	s.awaitCondition(t, patient, cluster, "Ready", metav1.ConditionTrue)
	s.awaitCondition(t, soon, cluster, "SConfigControllerAvailable", metav1.ConditionTrue)
	t.Run("a job runs in each partition, on each kind of worker that it has", s.runsInEachPartition)
	t.Run("a step runs in containers on each kind of worker", func(t *testing.T) { s.runsContainersInJail(t, images) })
	t.Run("slurmctld and a worker have munged, as the SlurmCluster asks", s.answersMunge)
	t.Run("checks of the spec run before and after a job, and a drain of theirs ends with its cause", s.runsChecks)
	t.Run("Prometheus is led to the metrics, and an alert fires as long as a check has drained a worker", s.isObserved)
	t.Run("an ActiveCheck has run after its creation, and runs by hand", func(t *testing.T) { s.runsActiveCheck(t, m) })
	t.Run("an ActiveCheck runs as a Slurm job on each worker, and drains the one that is broken", s.runsSlurmCheck)
	t.Run("a new worker takes jobs once a required check has passed on its machine", s.waitsForItsCheck)
	t.Run("the checks of the chart run, and all is well", s.runsChartOfChecks)
	t.Run("files of a JailedConfig are there for jobs, and follow the ConfigMap", func(t *testing.T) { s.hasFiles(t, m) })
	t.Run("a writer that is killed leaves each file old or new, and its successor ends the work", s.writesInSpiteOfKills)
}

// runsInEachPartition runs a job on every node of every partition. An srun in slurmctld's own pod that has to wait for the Epilog of the
// job before it never learns of its allocation: slurmctld sees the address of the Kubernetes node. So it waits for a short time.
func (s *scene) runsInEachPartition(t *testing.T) {
	ran := map[string]string{}
	for partition, nodes := range map[string]int{"main": 2, "second": 1, "unseen": 2} {
		eventually(t, soon, "a job to run in partition "+partition, func(ctx context.Context) error {
			out, err := s.slurm(ctx, "srun", "--partition="+partition, fmt.Sprintf("--nodes=%d", nodes), "--immediate=5", "sh", "-c",
				"test -e /etc/soperator-jail-populated && echo $SLURM_JOB_PARTITION $(hostname)")
			lines := strings.Split(strings.TrimSpace(out), "\n")
			slices.Sort(lines)
			ran[partition] = strings.Join(lines, ", ")
			return err
		})
	}
	want := map[string]string{"main": "main big-0, main small-0", "second": "second big-0", "unseen": "unseen big-0, unseen small-0"}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Errorf("jobs in partitions ran elsewhere (-want +got):\n%s", diff)
	}
}

// hasFiles looks at the files of the manifest's JailedConfig with jobs, before and after a change.
func (s *scene) hasFiles(t *testing.T, m walk.Manifest) {
	config, err := m.Only("JailedConfig")
	if err != nil {
		t.Fatal(err)
	}
	s.awaitCondition(t, soon, config, "Ready", metav1.ConditionTrue)
	s.jobPrints(t, "good morning 644 755 a tool")

	files, err := m.Only("ConfigMap")
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(files.Object, "good evening", "data", "greeting"); err != nil {
		t.Fatal(err)
	}
	s.keepsConnections(t)
	changed := time.Now()
	s.apply(t, m)
	s.jobPrints(t, "good evening 644 755 a tool")
	t.Logf("a job sees the new file %.1f s after the ConfigMap was changed", time.Since(changed).Seconds())
	s.awaitCondition(t, soon, config, "UpdateActionsCompleted", metav1.ConditionTrue)
}

// keepsConnections keeps connections to slurmrestd open for some seconds, and asks nothing. slurmrestd would let others wait when
// ten do, if it were not configured otherwise.
func (s *scene) keepsConnections(t *testing.T) {
	t.Helper()
	held := make(chan struct{})
	go func() {
		defer close(held)
		// The exit code counts: a kubelet that has much to do can lose what a command prints at its end.
		const hold = `for i in {1..40}; do exec {fd}<>/dev/tcp/demo-restapi/6820 || exit 1; done; sleep 15`
		if _, err := s.slurm(context.WithoutCancel(t.Context()), "bash", "-c", hold); err != nil {
			t.Errorf("keeping connections to slurmrestd: %v", err)
		}
	}()
	t.Cleanup(func() { <-held })
}

// jobPrints waits until a job sees the files of the JailedConfig so. Each srun has 30 s: of a job that slurmctld starts within
// milliseconds of a request to reconfigure, it forgets to launch the prolog, and srun would wait for ever (docs/users/edits.md).
func (s *scene) jobPrints(t *testing.T, want string) {
	t.Helper()
	const look = "echo $(cat /etc/slurm/greeting; echo; stat -c %a /etc/slurm/greeting /etc/slurm/tool.sh; /etc/slurm/tool.sh)"
	eventually(t, soon, "a job to print "+want, func(ctx context.Context) error {
		out, err := s.slurm(ctx, "timeout", "30", "srun", "--immediate=5", "sh", "-c", look)
		if err != nil {
			return err
		}
		if out != want && out != want+"\n" {
			return fmt.Errorf("it prints %q", out)
		}
		return nil
	})
}
