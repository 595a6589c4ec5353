// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// NodeSets in both scaling modes are updated and shrunk without harm to jobs.
func TestNodeSets(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.components(t, "nodesets.yaml")
	alice := s.enterLoginSet(t, "login", "alice")
	for _, part := range []struct {
		name string
		play func(*testing.T, *scene, *user)
	}{
		{"each Kubernetes node has its worker", runsOnEveryNode},
		{"a rolling update loses no job and requeues none, and Slurm knows the new workers", updatesUnderJobs},
		{"shrinking takes idle workers", shrinksByIdleness},
		{"shrinking takes no worker whose job is suspended", keepsSuspended},
		{"the workers of a ScheduledUpdate are replaced in their reservation", updatesInReservation},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.play(t, s, alice) }) {
			return
		}
	}
}

func runsOnEveryNode(t *testing.T, s *scene, alice *user) {
	var all corev1.NodeList
	if err := s.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	if n := len(all.Items); s.Local && n < *nodes {
		t.Errorf("there are %d Kubernetes nodes, not %d", n, *nodes)
	}
	for _, node := range all.Items {
		host, _, _ := strings.Cut(node.Name, ".")
		if on := s.pod(t, "daemon-"+host).Spec.NodeName; on != node.Name {
			t.Errorf("the worker of %s is on %s", node.Name, on)
		}
		if got := alice.runs(t, "srun --partition=daemon --nodelist="+host+" hostname"); got != host {
			t.Errorf("hostname on %s printed %q", host, got)
		}
		// Kubernetes counts how many may go, and spec.replicas is not how many there are.
		err := s.SubResource("eviction").Create(t.Context(), s.pod(t, "daemon-"+host), &policyv1.Eviction{
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		if !apierrors.IsTooManyRequests(err) {
			t.Errorf("the worker of %s, which is not drained, may be evicted: %v", node.Name, err)
		}
	}
}

// updatesUnderJobs replaces three workers while a user submits jobs, more than one a second.
func updatesUnderJobs(t *testing.T, s *scene, alice *user) {
	workers := []string{"cpu-0", "cpu-1", "cpu-2"}
	for _, name := range workers {
		alice.seesRecord(t, name, record{weight: 5, features: "a", memory: 600})
	}
	before := s.uids(t, "numbered-0", "numbered-1", "numbered-2")
	long, release := alice.submitsBlocked(t, "--partition=cpu", "--nodelist=cpu-2", "--output=/dev/null")
	type stream struct {
		jobs string
		err  error
	}
	submitted := make(chan stream, 1)
	go func() {
		const submit = "sbatch --parsable --partition=cpu --exclusive --output=/dev/null --wrap='sleep 1'"
		jobs, err := alice.Run(t.Context(), "until [ -e enough ]; do "+submit+" || exit 1; sleep 0.7; done")
		submitted <- stream{jobs, err}
	}()
	s.changeNodeSet(t, "numbered", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.ExtraConf = "Weight=9 Features=a,b"
		n.Spec.Slurmd.Raw = []byte(strings.Replace(string(n.Spec.Slurmd.Raw), "600Mi", "400Mi", 1))
	})
	// The last one waits for its job, and its record with it.
	alice.seesNode(t, "cpu-2", "draining")
	alice.seesRecord(t, "cpu-2", record{weight: 5, features: "a", memory: 600})
	alice.awaits(t, long, "RUNNING")
	if uid := s.pod(t, "numbered-2").UID; uid != before["numbered-2"] {
		t.Error("a worker was replaced while its job ran")
	}
	release(t)
	alice.awaits(t, long, "COMPLETED")
	s.awaitReplaced(t, "numbered", before)
	for _, name := range workers {
		alice.seesRecord(t, name, record{weight: 9, features: "a,b", memory: 400})
	}
	alice.runs(t, "touch enough")
	all := <-submitted
	if all.err != nil {
		t.Fatal(all.err)
	}
	jobs := strings.Fields(all.jobs)
	t.Logf("%d jobs were submitted meanwhile", len(jobs))
	eventually(t, patient, "all jobs to have ended, each at its first try", func(ctx context.Context) error {
		table, err := alice.Run(ctx, "squeue --noheader --states=all --jobs="+strings.Join(jobs, ",")+" --Format=JobID,State,RestartCnt")
		if err != nil {
			return err
		}
		ended := map[string]bool{}
		for row := range strings.Lines(table) {
			switch cells := strings.Fields(row); {
			case len(cells) != 3:
				return fmt.Errorf("squeue says %q", row)
			case cells[2] != "0":
				t.Fatalf("job %s was requeued %s times", cells[0], cells[2])
			case cells[1] == "COMPLETED":
				ended[cells[0]] = true
			case cells[1] != "PENDING" && cells[1] != "RUNNING" && cells[1] != "COMPLETING":
				t.Fatalf("job %s is %s", cells[0], cells[1])
			}
		}
		for _, job := range jobs {
			if !ended[job] {
				return fmt.Errorf("job %s has not ended, or is lost: %s", job, table)
			}
		}
		return nil
	})
}

func updatesInReservation(t *testing.T, s *scene, alice *user) {
	var names []string
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app.kubernetes.io/instance": "daemon"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		names = append(names, p.Name)
	}
	before := s.uids(t, names...)
	start := time.Now().Add(40 * time.Second).Truncate(time.Second) // a busy slurmrestd takes seconds for an answer
	s.changeNodeSet(t, "daemon", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.ExtraConf = "Weight=6"
		n.Spec.UpdateStrategy.Type = slinkyv1beta1.UpdateScheduled
		n.Spec.UpdateStrategy.ScheduledUpdate = &slinkyv1beta1.ScheduledUpdate{
			StartTime: &metav1.Time{Time: start}, Duration: &metav1.Duration{Duration: 10 * time.Minute},
		}
	})
	eventually(t, soon, "the reservation to be made", func(ctx context.Context) error {
		out, err := alice.Run(ctx, "scontrol show reservation --oneliner")
		if err == nil && !strings.Contains(out, "ReservationName=SlurmOperatorMaint-daemon ") {
			err = fmt.Errorf("scontrol says %q", out)
		}
		return err
	})
	if time.Now().Before(start) {
		for name, uid := range before {
			if p := s.pod(t, name); p.UID != uid || p.DeletionTimestamp != nil {
				t.Errorf("%s is replaced before the maintenance begins", name)
			}
		}
	}
	s.awaitReplaced(t, "daemon", before)
	if late := time.Now(); late.Before(start) {
		t.Errorf("the workers were replaced before the maintenance began at %s", start)
	}
	for _, name := range names {
		alice.seesShown(t, strings.TrimPrefix(name, "daemon-"), "Weight=6")
	}
	s.changeNodeSet(t, "daemon", func(n *slinkyv1beta1.NodeSet) { n.Spec.UpdateStrategy.Type = slinkyv1beta1.UpdateRolling })
	eventually(t, soon, "the reservation to be deleted", func(ctx context.Context) error {
		out, err := alice.Run(ctx, "scontrol show reservation")
		if err == nil && strings.Contains(out, "SlurmOperatorMaint") {
			err = fmt.Errorf("scontrol says %q", out)
		}
		return err
	})
}

func shrinksByIdleness(t *testing.T, s *scene, alice *user) {
	job, release := alice.submitsBlocked(t, "--partition=cpu", "--nodelist=cpu-2", "--output=/dev/null")
	s.changeNodeSet(t, "numbered", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(1)) })
	s.awaitNoPod(t, "numbered-0")
	s.awaitNoPod(t, "numbered-1")
	alice.awaits(t, job, "RUNNING")
	release(t)
	alice.awaits(t, job, "COMPLETED")
	if p := s.pod(t, "numbered-2"); p.DeletionTimestamp != nil {
		t.Error("the busy worker goes too")
	}
}

// uids returns the UIDs of pods by name.
func (s *scene) uids(t *testing.T, names ...string) map[string]types.UID {
	t.Helper()
	out := map[string]types.UID{}
	for _, name := range names {
		out[name] = s.pod(t, name).UID
	}
	return out
}

func (s *scene) changeNodeSet(t *testing.T, name string, edit func(*slinkyv1beta1.NodeSet)) {
	t.Helper()
	eventually(t, soon, "NodeSet "+name+" to be changed", func(ctx context.Context) error {
		var n slinkyv1beta1.NodeSet
		if err := s.Get(ctx, s.name(name), &n); err != nil {
			return err
		}
		edit(&n)
		return s.Update(ctx, &n)
	})
}

// awaitReplaced waits until all workers of a NodeSet are other pods than before and all is well.
func (s *scene) awaitReplaced(t *testing.T, name string, before map[string]types.UID) {
	t.Helper()
	eventually(t, patient, "the workers of NodeSet "+name+" to be replaced", func(ctx context.Context) error {
		var n slinkyv1beta1.NodeSet
		if err := s.Get(ctx, s.name(name), &n); err != nil {
			return err
		}
		for pod, uid := range before {
			var p corev1.Pod
			if err := s.Get(ctx, s.name(pod), &p); err != nil || p.UID == uid {
				return errors.Join(err, fmt.Errorf("%s is still the old one", pod))
			}
		}
		if s := n.Status; s.AvailableReplicas != s.Desired || s.UpdatedReplicas != s.Desired || s.SlurmDrain > 0 {
			return fmt.Errorf("the status is %+v", s)
		}
		return nil
	})
}
