// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// What happens to a SlurmCluster in its life, in this order.
func TestSlurmCluster(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	program := buildsPlugin(t)
	c := s.slurmCluster(t)
	alice := c.logsIn(t)
	for _, chapter := range []struct {
		name string
		is   func(*testing.T, *slurmCluster, *user)
	}{
		{"shows the state of the Slurm nodes on the workers' pods", showsState},
		{"runs an array and a step on two nodes, and accounts for them", runsJobs},
		{"tells of accounted jobs as the fake Slurm does", func(t *testing.T, c *slurmCluster, alice *user) {
			name := c.sample.Cluster.GetName()
			c.comparesAccounted(t, alice, name, name, "worker-0")
		}},
		{"shows an accounted job in metrics, as long as the exporter is wanted", exportsAccounted},
		{"answers kubectl slurm", func(t *testing.T, c *slurmCluster, alice *user) { answersThePlugin(t, c, alice, program(t)) }},
		{"gives no process of a pod more rights than administrators are told", givesRights},
		{"greets a user who logs in at a terminal", greets},
		{"lets a user log in to the workers of her job by ssh", goesOnToWorkers},
		{"brings a deleted worker back under its name, and it runs jobs", replacesWorker},
		{"loses no running, pending or finished job with slurmctld's pod", survivesSlurmctld},
		{"knows the switches of its workers, and where one moves to", followsNetwork},
		{"takes an edit of customSlurmConfig without another slurmctld", takesConfiguration},
		{"keeps a partition that is renamed until its jobs have ended", renamesPartitions},
		{"grows to three workers and shrinks to one without killing a job", scales},
		{"takes a worker back that it had retired", takesBack},
		{"comes to rest for maintenance and back, with its queue, keys and records", rests},
		{"leaves its claims when it is deleted, and says so", departs},
		{"finds its jobs again when it is made anew", returns},
	} {
		t.Run(chapter.name, func(t *testing.T) { chapter.is(t, c, alice) })
	}
}

func showsState(t *testing.T, c *slurmCluster, _ *user) {
	for ordinal := range 2 {
		name := c.workerPod(ordinal)
		eventually(t, soon, "condition SlurmNodeStateIdle of "+name, func(ctx context.Context) error {
			var p corev1.Pod
			if err := c.Get(ctx, c.name(name), &p); err != nil {
				return err
			}
			for _, condition := range p.Status.Conditions {
				if condition.Type == "SlurmNodeStateIdle" && condition.Status == corev1.ConditionTrue {
					return nil
				}
			}
			return errors.New("it is not there")
		})
	}
}

func runsJobs(t *testing.T, _ *slurmCluster, alice *user) {
	job := alice.submits(t, "true\n")
	alice.walksThrough(t)
	alice.seesAccounted(t, job)
	if got := alice.runs(t, "srun --nodes=2 stat --file-system --format=%T /mnt/memory"); got != "tmpfs\ntmpfs" {
		t.Errorf("/mnt/memory of jobs is %q", got)
	}
}

func replacesWorker(t *testing.T, c *slurmCluster, alice *user) {
	deleted := time.Now()
	uid := c.deletePod(t, c.workerPod(1))
	c.awaitPod(t, c.workerPod(1), uid)
	alice.seesNode(t, "worker-1", "idle")
	t.Logf("worker-1 is idle again %.1f s after its pod was deleted", time.Since(deleted).Seconds())
	if got := alice.runs(t, "srun --nodelist=worker-1 hostname"); got != "worker-1" {
		t.Errorf("srun --nodelist=worker-1 hostname printed %q", got)
	}
}

func survivesSlurmctld(t *testing.T, c *slurmCluster, alice *user) {
	finished := alice.submits(t, "true\n")
	alice.awaits(t, finished, "COMPLETED")
	running, release := alice.submitsBlocked(t)
	pending := alice.submits(t, "true\n", "--hold")
	alice.awaits(t, pending, "PENDING")

	deleted := time.Now()
	uid := c.deletePod(t, c.controllerPod())
	c.awaitPod(t, c.controllerPod(), uid)
	alice.awaits(t, pending, "PENDING")
	t.Logf("squeue answers again %.1f s after slurmctld's pod was deleted", time.Since(deleted).Seconds())
	alice.awaits(t, running, "RUNNING")
	alice.awaits(t, finished, "COMPLETED")

	release(t)
	alice.runs(t, fmt.Sprintf("scontrol release %d", pending))
	for _, job := range []int{running, pending} {
		alice.awaits(t, job, "COMPLETED")
	}
	for _, job := range []int{finished, running, pending} {
		alice.seesAccounted(t, job)
	}
}

func takesConfiguration(t *testing.T, c *slurmCluster, alice *user) {
	before := c.pod(t, c.controllerPod())
	// A value that no default has.
	const want = 77
	config, _, _ := unstructured.NestedString(c.sample.Cluster.Object, "spec", "customSlurmConfig")
	edited := time.Now()
	c.change(t, config+fmt.Sprintf("\nMessageTimeout=%d\n", want), "spec", "customSlurmConfig")
	eventually(t, soon, "slurmctld to load the configuration", func(ctx context.Context) error {
		out, err := alice.Run(ctx, "scontrol show config | grep ^MessageTimeout")
		if err != nil {
			return err
		}
		if !strings.Contains(out, fmt.Sprintf("= %d sec", want)) {
			return fmt.Errorf("scontrol says %q", out)
		}
		return nil
	})
	t.Logf("slurmctld has the edited configuration after %.1f s", time.Since(edited).Seconds())
	after := c.pod(t, c.controllerPod())
	if before.UID != after.UID {
		t.Errorf("slurmctld's pod was replaced")
	}
	for i, s := range after.Status.ContainerStatuses {
		if s.RestartCount != before.Status.ContainerStatuses[i].RestartCount {
			t.Errorf("container %s was restarted", s.Name)
		}
	}
}

// renamesPartitions also takes the edit back: slurmctld ends the jobs of a partition that has no line any more.
func renamesPartitions(t *testing.T, c *slurmCluster, alice *user) {
	controller := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Controller",
		"metadata": map[string]any{"namespace": c.namespace, "name": c.sample.Cluster.GetName()}}}
	was, found, _ := unstructured.NestedMap(c.sample.Cluster.Object, "spec", "partitionConfiguration")
	if !found {
		was = map[string]any{"configType": "default"}
	}
	running, release := alice.submitsBlocked(t, "--partition=main")
	held := alice.submits(t, "true\n", "--partition=main", "--hold")
	c.change(t, map[string]any{"configType": "custom", "rawConfig": []any{"PartitionName=renamed Nodes=ALL Default=YES MaxTime=INFINITE OverSubscribe=YES"}},
		"spec", "partitionConfiguration")
	c.awaitCondition(t, soon, controller, "EditWaits", metav1.ConditionTrue)
	alice.seesPartitions(t, "main:drain renamed:up")
	if out, err := alice.Run(t.Context(), "sbatch --partition=main --wrap true 2>&1"); err == nil || !strings.Contains(out, "inactive or drain") {
		t.Errorf("a new job in the partition that is to go: %v %s", err, out)
	}
	alice.awaits(t, alice.submits(t, "true\n"), "COMPLETED") // in the new one
	alice.awaits(t, running, "RUNNING")
	alice.awaits(t, held, "PENDING")
	release(t)
	alice.awaits(t, running, "COMPLETED")
	alice.runs(t, fmt.Sprintf("scontrol release %d", held))
	alice.awaits(t, held, "COMPLETED")
	alice.seesPartitions(t, "renamed:up")
	c.change(t, was, "spec", "partitionConfiguration")
	alice.seesPartitions(t, "main:up")
}

// seesPartitions waits until sinfo shows no other partitions than these, without those that are hidden.
func (u *user) seesPartitions(t *testing.T, want string) {
	t.Helper()
	eventually(t, patient, "the partitions to be "+want, func(ctx context.Context) error {
		out, err := u.Run(ctx, "sinfo --noheader --summarize --format=%R:%a")
		lines := strings.Fields(out)
		slices.Sort(lines)
		if got := strings.Join(lines, " "); err == nil && got != want {
			err = fmt.Errorf("they are %s", got)
		}
		return err
	})
}

func scales(t *testing.T, c *slurmCluster, alice *user) {
	workers := []string{"spec", "slurmNodes", "worker", "size"}
	c.change(t, int64(3), workers...)
	c.awaitPod(t, c.workerPod(2), "")
	alice.seesNode(t, "worker-2", "idle")
	busy, release := alice.submitsBlocked(t, "--nodelist=worker-2")
	uid := c.pod(t, c.workerPod(2)).UID

	c.change(t, int64(1), workers...)
	c.awaitNoPod(t, c.workerPod(0))
	c.awaitNoPod(t, c.workerPod(1))
	if state := alice.runs(t, "scontrol show node worker-1 | grep State="); !strings.Contains(state, "DRAIN") {
		t.Errorf("the idle worker's pod was deleted before its Slurm node was drained: %s", state)
	}
	alice.awaits(t, busy, "RUNNING")
	if p := c.pod(t, c.workerPod(2)); p.UID != uid || p.DeletionTimestamp != nil {
		t.Errorf("the busy worker has been deleted while its job ran")
	}
	release(t)
	alice.awaits(t, busy, "COMPLETED")
	c.awaitAvailable(t)
	if got := alice.runs(t, "srun hostname"); got != "worker-2" {
		t.Errorf("srun hostname printed %q, not the worker that is left", got)
	}
}

func takesBack(t *testing.T, c *slurmCluster, alice *user) {
	c.change(t, int64(2), "spec", "slurmNodes", "worker", "size")
	alice.seesNode(t, "worker-0", "idle")
	if got := alice.runs(t, "srun --nodelist=worker-0 hostname"); got != "worker-0" {
		t.Errorf("srun --nodelist=worker-0 hostname printed %q", got)
	}
}

// slurmCluster is the sample's SlurmCluster in a scene.
type slurmCluster struct {
	*scene
	sample *walk.Sample
}

// slurmCluster applies the sample and waits until it is available.
func (s *scene) slurmCluster(t *testing.T) *slurmCluster {
	t.Helper()
	sample, err := walk.ReadSample(stage.repository, s.namespace, stage.key)
	if err != nil {
		t.Fatal(err)
	}
	// Several clusters, and perhaps that of the demo, share a machine that may have few CPUs.
	unstructured.RemoveNestedField(sample.Cluster.Object, "spec", "slurmNodes", "worker", "slurmd", "resources", "cpu")
	c := &slurmCluster{scene: s, sample: sample}
	s.apply(t, sample.Manifest)
	c.awaitAvailable(t)
	c.sound(t)
	return c
}

// change sets a field of the SlurmCluster's manifest and applies it.
func (c *slurmCluster) change(t *testing.T, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(c.sample.Cluster.Object, value, path...); err != nil {
		t.Fatal(err)
	}
	c.apply(t, c.sample.Manifest)
}

func (c *slurmCluster) awaitAvailable(t *testing.T) {
	t.Helper()
	err := walk.AwaitAvailable(t.Context(), c.Kubernetes, walk.NewProgress(logWriter{t}), c.sample.Name(), patient)
	if err != nil {
		t.Fatal(err)
	}
}

// logsIn logs the sample's user in.
func (c *slurmCluster) logsIn(t *testing.T) *user {
	t.Helper()
	door, err := walk.DoorOf(t.Context(), c.Kubernetes, c.sample.Name())
	if err != nil {
		t.Fatal(err)
	}
	return c.enter(t, door, c.sample.User)
}

func (c *slurmCluster) object() *nebiusv1.SlurmCluster {
	return &nebiusv1.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: c.sample.Cluster.GetName()}}
}

func (c *slurmCluster) controllerPod() string { return c.object().ControllerName() + "-controller-0" }

func (c *slurmCluster) workerPod(ordinal int) string {
	return fmt.Sprintf("%s-%d", c.object().WorkerNodeSetName(), ordinal)
}

// uid returns the UID of the SlurmCluster.
func (c *slurmCluster) uid(t *testing.T) types.UID {
	t.Helper()
	live := c.object()
	if err := c.Get(t.Context(), c.sample.Name(), live); err != nil {
		t.Fatal(err)
	}
	return live.UID
}

// logWriter writes lines to a test's log.
type logWriter struct{ t *testing.T }

func (w logWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimRight(string(b), "\n"))
	return len(b), nil
}
