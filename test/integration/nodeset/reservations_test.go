// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// soon returns when a maintenance begins for which a slow machine has the time to make its reservation.
func soon() time.Time { return time.Now().Add(10 * time.Second).Truncate(time.Second) }

// schedule changes the workers, and asks for the change to be made in a maintenance of an hour.
func schedule(o *operator.Operator, start time.Time, flags ...string) {
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.ExtraConf = "Weight=7"
		n.Spec.UpdateStrategy = slinkyv1beta1.NodeSetUpdateStrategy{
			Type: slinkyv1beta1.UpdateScheduled,
			ScheduledUpdate: &slinkyv1beta1.ScheduledUpdate{
				StartTime: &metav1.Time{Time: start}, Duration: &metav1.Duration{Duration: time.Hour}, Flags: flags,
			},
		}
	})
}

// expectReservation waits until slurmctld has a reservation of these nodes from then on, or none.
func expectReservation(t *testing.T, o *operator.Operator, start time.Time, nodes ...string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		list := o.Slurm.Reservations()
		if len(nodes) == 0 || len(list) == 0 {
			if len(nodes) != len(list) {
				return fmt.Errorf("there are %d reservations", len(list))
			}
			return nil
		}
		got := list[0]
		if got.Name != "SlurmOperatorMaint-w" || !got.Start.Equal(start) || got.End.Sub(got.Start) != time.Hour || !slices.Equal(got.Nodes, nodes) ||
			!slices.Contains(got.Flags, "MAINT") || !slices.Contains(got.Flags, "IGNORE_JOBS") || !slices.Equal(got.Users, []string{"slurm"}) {
			return fmt.Errorf("the reservation is %+v", got)
		}
		return nil
	})
}

func TestAScheduledUpdateKeepsToItsReservation(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `updateStrategy: {type: OnDelete}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	before := map[string]corev1.Pod{}
	for _, p := range o.Workers() {
		before[p.Name] = p
	}
	start := soon()
	schedule(o, start)
	expectReservation(t, o, start, "w-0", "w-1")
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionReservationCreated, metav1.ConditionTrue, slinkyv1beta1.ReasonReservationCreated)
	o.ExpectReplaced("w-1", before["w-1"].UID)
	if early := time.Until(start); early > 0 {
		t.Errorf("w-1 is replaced %s before the maintenance", early)
	}
	o.RunWorkers()
	// Jobs end by themselves, in a maintenance too; then their worker goes.
	o.ExpectNode("w-0", "MIXED+RESERVED+DRAIN+MAINTENANCE+DYNAMIC_NORM slurm-operator: Pod was cordoned pending termination")
	o.Settle()
	if operator.Get[corev1.Pod](o, "w-0").UID != before["w-0"].UID {
		t.Fatal("w-0 was replaced while its job ran")
	}
	o.Slurm.Finish(job)
	o.ExpectReplaced("w-0", before["w-0"].UID)
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	expectReservation(t, o, start, "w-0", "w-1")
	expectWeights(t, o, 7, "w-0", "w-1")
	o.ExpectNothingWritten(o.Restart)

	// Another time is another reservation; another strategy needs none, and the finalizer goes with it.
	later := start.Add(24 * time.Hour)
	schedule(o, later, "WEEKLY")
	expectReservation(t, o, later, "w-0", "w-1")
	o.Scale(3)
	o.ExpectWorkers(operator.WorkerNames(3)...)
	o.RunWorkers()
	expectReservation(t, o, later, operator.WorkerNames(3)...)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.UpdateStrategy.Type = slinkyv1beta1.UpdateOnDelete })
	expectReservation(t, o, time.Time{})
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionReservationCreated, metav1.ConditionFalse, slinkyv1beta1.ReasonReservationNotExists)
	apiserver.Eventually(t, func() error {
		if n := operator.Get[slinkyv1beta1.NodeSet](o, "w"); slices.Contains(n.Finalizers, slinkyv1beta1.FinalizerReservation) || n.Status.Reservation != nil {
			return fmt.Errorf("the finalizers are %v, the status has %+v", n.Finalizers, n.Status.Reservation)
		}
		return nil
	})
}

// expectWeights checks that the records of nodes are from workers that register with this weight.
func expectWeights(t *testing.T, o *operator.Operator, want int, nodes ...string) {
	t.Helper()
	for _, name := range nodes {
		if n, _ := o.Slurm.Node(name); n.Record.Weight != want {
			t.Errorf("the weight of %s is %d, not %d", name, n.Record.Weight, want)
		}
	}
}

// Slurm deletes no record below a reservation, which has to have a node: the last worker ends it, or waits for others.
func TestAScheduledUpdateOfAllWorkersRefreshesTheirRecords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		workers int
		flags   []string
		left    []string
	}{
		{"one worker ends the maintenance", 1, nil, nil},
		{"a maintenance that recurs waits for the first workers", 2, []string{"DAILY"}, operator.WorkerNames(2)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := operator.StartWorkers(t, tt.workers, `updateStrategy: {type: OnDelete}`)
			before := map[string]corev1.Pod{}
			for _, p := range o.Workers() {
				before[p.Name] = p
			}
			start := soon()
			schedule(o, start, tt.flags...)
			expectReservation(t, o, start, operator.WorkerNames(tt.workers)...)
			apiserver.Eventually(t, func() error {
				o.RunWorkers()
				for name, p := range before {
					now, err := operator.Find[corev1.Pod](o, name)
					if n, _ := o.Slurm.Node(name); err != nil || now.UID == p.UID || n.Record.Weight != 7 {
						return errors.Join(err, fmt.Errorf("%s is not replaced, or its weight is %d", name, n.Record.Weight))
					}
				}
				return nil
			})
			expectReservation(t, o, start, tt.left...)
			operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
		})
	}
}

func TestAReservationThatSlurmRefusesIsTold(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `updateStrategy: {type: OnDelete}`)
	o.Slurm.SetFault(func(r *http.Request) *fake.Fault {
		if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/reservation") {
			return &fake.Fault{Error: &fake.Error{Number: 2016, Text: "Requested nodes are busy"}}
		}
		return nil
	})
	schedule(o, time.Now().Add(time.Hour).Truncate(time.Second))
	apiserver.Eventually(t, func() error {
		message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", slinkyv1beta1.ConditionReservationCreated, metav1.ConditionFalse, slinkyv1beta1.ReasonReservationNotExists)
		if !strings.Contains(message, "Requested nodes are busy") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
	o.Settle()
	o.ExpectWorkers(operator.WorkerNames(1)...)
}

func TestTheReservationGoesWithItsNodeSet(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `updateStrategy: {type: OnDelete}`)
	start := time.Now().Add(time.Hour).Truncate(time.Second)
	schedule(o, start)
	expectReservation(t, o, start, "w-0")
	operator.Delete[slinkyv1beta1.NodeSet](o, "w")
	apiserver.Eventually(t, func() error {
		if n, err := operator.Find[slinkyv1beta1.NodeSet](o, "w"); !apierrors.IsNotFound(err) {
			return errors.Join(err, fmt.Errorf("the NodeSet is still there, with finalizers %v", n.Finalizers))
		}
		return nil
	})
	expectReservation(t, o, time.Time{})
}

func TestRecordsOfNodesAreDeletedWithTheirKubernetesNodes(t *testing.T) {
	t.Parallel()
	o, a, b := daemons(t)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.PruneSlurmNodeRecords = slinkyv1beta1.PruneNodeNotFound })
	o.Bind("w-a", a.Name)
	o.Bind("w-b", b.Name)
	for _, name := range []string{"a", "b"} {
		apiserver.Eventually(t, func() error {
			if n, _ := o.Slurm.Node(name); !strings.Contains(n.Comment, o.Namespace+"-"+name) {
				return fmt.Errorf("the comment of %s is %q", name, n.Comment)
			}
			return nil
		})
	}
	// A reservation of somebody else, without our comment, is left alone, dead or not.
	o.Slurm.Register(fake.Node{Name: "other"})
	o.Slurm.Lose("other")
	if err := o.User.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	o.ExpectLeft("w-a")
	named := o.Slurm.Submit(fake.Job{NodeList: []string{"b"}}) // it waits when the node is lost
	o.Slurm.Lose("a", "b")
	o.Settle()
	if _, there := o.Slurm.Node("b"); !there {
		t.Error("the record of b is gone although a job names it")
	}
	o.Slurm.Cancel(named)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Labels = map[string]string{"look": "again"} })
	apiserver.Eventually(t, func() error {
		if _, there := o.Slurm.Node("b"); there {
			return errors.New("the record of b is still there")
		}
		return nil
	})
	o.Settle()
	if diff := cmp.Diff([]string{"a", "other"}, o.Slurm.Names()); diff != "" {
		t.Error(diff)
	}
}
