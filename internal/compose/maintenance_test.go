// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// resting is a cluster with accounting whose components are played by the test.
type resting struct {
	in Input
	// slurmctld and slurmdbd are numbers of pods.
	slurmctld, slurmdbd int
}

func newResting(t testing.TB) *resting {
	t.Helper()
	d := load(t)
	return &resting{in: d.cluster(t, `{slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}}, worker: {size: 2}, login: {size: 1}}}`)}
}

// pass composes the cluster and applies the result.
func (r *resting) pass() Output {
	out := Cluster(r.in)
	seen := &r.in.Observed
	applied := func(was *int64, changed bool) int64 {
		if was == nil {
			return 1
		}
		if changed {
			return *was + 1
		}
		return *was
	}
	controller := out.Components.Controller.DeepCopy()
	if was := seen.Rest.Controller; was != nil {
		controller.Generation, controller.Status = applied(&was.Generation, was.Spec.Suspend != controller.Spec.Suspend), was.Status
	}
	accounting := out.Components.Accounting.DeepCopy()
	if was := seen.Rest.Accounting; was != nil {
		accounting.Generation, accounting.Status = applied(&was.Generation, was.Spec.Suspend != accounting.Spec.Suspend), was.Status
	}
	login := out.Components.LoginSet.DeepCopy()
	workers := out.Components.NodeSets[0].DeepCopy()
	if len(seen.NodeSets) > 0 {
		was := seen.NodeSets[0].Object
		workers.Generation, workers.Status = applied(&was.Generation, was.Replicas() != workers.Replicas()), was.Status
	}
	seen.Rest.Controller, seen.Rest.Accounting, seen.Rest.LoginSet = controller, accounting, login
	seen.NodeSets = []ObservedNodeSet{{Object: workers}}
	return out
}

// suspension plays the controller of a component: one step of its pods, and the conditions it writes.
func suspension(asked bool, pods *int, conditions *[]metav1.Condition, generation int64) {
	var before *metav1.Condition
	if len(*conditions) > 0 {
		before = &(*conditions)[0]
	}
	var reason string
	switch {
	case asked && *pods > 0:
		*pods, reason = 0, slinkyv1beta1.ReasonSuspending
	case asked:
		reason = slinkyv1beta1.ReasonSuspended
	case before == nil:
		*pods = 1
		return
	case before.Reason == slinkyv1beta1.ReasonResumed || *pods > 0:
		reason = slinkyv1beta1.ReasonResumed
	default:
		*pods, reason = 1, slinkyv1beta1.ReasonResuming
	}
	status := metav1.ConditionFalse
	if reason == slinkyv1beta1.ReasonSuspended {
		status = metav1.ConditionTrue
	}
	*conditions = []metav1.Condition{{Type: slinkyv1beta1.ConditionSuspended, Status: status, Reason: reason, ObservedGeneration: generation}}
}

// step plays one of the controllers that work on a cluster.
func (r *resting) step(who int) {
	rest := &r.in.Observed.Rest
	switch who {
	case 0:
		suspension(rest.Controller.Spec.Suspend, &r.slurmctld, &rest.Controller.Status.Conditions, rest.Controller.Generation)
	case 1:
		suspension(rest.Accounting.Spec.Suspend, &r.slurmdbd, &rest.Accounting.Status.Conditions, rest.Accounting.Generation)
	default:
		set := r.in.Observed.NodeSets[0].Object
		if wanted := int(set.Replicas()); rest.Workers < wanted {
			rest.Workers++
		} else if rest.Workers > wanted && r.slurmctld > 0 { // a worker goes when Slurm reports that nothing runs there
			rest.Workers--
		}
		set.Status.ObservedGeneration, set.Status.Replicas = set.Generation, int32(rest.Workers)
	}
}

func (r *resting) mode(m nebiusv1.MaintenanceMode) { r.in.Cluster.Spec.Maintenance = m }

// settle lets all controllers work until nothing changes.
func (r *resting) settle() Output {
	var out Output
	for range 20 {
		out = r.pass()
		for who := range 3 {
			r.step(who)
		}
	}
	return out
}

func TestAClusterGoesToRestAndComesBackInOrder(t *testing.T) {
	r := newResting(t)
	r.settle()
	if r.slurmctld != 1 || r.slurmdbd != 1 || r.in.Observed.Rest.Workers != 2 {
		t.Fatalf("%+v does not run", r)
	}
	r.mode(nebiusv1.MaintenanceDownscale)
	var said []string
	tell := func(out Output) {
		text := strings.Join([]string{out.Rest.Workers, out.Rest.Slurmctld, out.Rest.Slurmdbd, out.Rest.Clients}, " | ")
		if len(said) == 0 || said[len(said)-1] != text {
			said = append(said, text)
		}
	}
	for range 12 {
		tell(r.pass())
		for who := range 3 {
			r.step(who)
		}
	}
	if out := r.pass(); !out.Rest.Reached || r.slurmctld+r.slurmdbd+r.in.Observed.Rest.Workers != 0 || out.Components.RestAPI.Replicas() != 0 {
		t.Errorf("rest is not reached: %+v", out.Rest)
	}
	r.mode(nebiusv1.MaintenanceNone)
	for range 12 {
		tell(r.pass())
		for who := range 3 {
			r.step(who)
		}
	}
	want := []string{
		"2 workers are still there; a worker goes when its jobs have ended | slurmctld runs until the workers are gone | slurmdbd runs until slurmctld is stopped | ",
		"1 workers are still there; a worker goes when its jobs have ended | slurmctld runs until the workers are gone | slurmdbd runs until slurmctld is stopped | ",
		"there are no workers during maintenance | slurmctld is being stopped | slurmdbd runs until slurmctld is stopped | ",
		"there are no workers during maintenance | slurmctld is stopped, and its state is kept | slurmdbd is being stopped | ",
		"there are no workers during maintenance | slurmctld is stopped, and its state is kept | slurmdbd is stopped, and its records are kept | ",
		" | slurmctld waits until slurmdbd is started |  | waits for slurmctld",
		" |  |  | waits for slurmctld",
		" |  |  | ",
	}
	if got := strings.Join(said, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("it says\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if r.slurmctld != 1 || r.slurmdbd != 1 || r.in.Observed.Rest.Workers != 2 {
		t.Errorf("%+v does not run again", r)
	}
}

func TestNobodyIsStoppedBeforeItsTime(t *testing.T) {
	start := newResting(t)
	rapid.Check(t, func(t *rapid.T) {
		r := &resting{in: start.in}
		r.in.Cluster = start.in.Cluster.DeepCopy()
		modes := []nebiusv1.MaintenanceMode{
			nebiusv1.MaintenanceNone, nebiusv1.MaintenanceDownscale, nebiusv1.MaintenanceDownscaleAndDeletePopulateJail,
			nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail, nebiusv1.MaintenanceSkipPopulateJail,
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
				r.mode(rapid.SampledFrom(modes).Draw(t, "mode"))
			}
			wasWorkers := 0
			if len(r.in.Observed.NodeSets) > 0 {
				wasWorkers = int(r.in.Observed.NodeSets[0].Object.Replicas())
			}
			wasSlurmctld := r.in.Observed.Rest.Controller != nil && !r.in.Observed.Rest.Controller.Spec.Suspend
			wasSlurmdbd := r.in.Observed.Rest.Accounting != nil && !r.in.Observed.Rest.Accounting.Spec.Suspend
			out := r.pass()
			rest := &r.in.Observed.Rest
			down := r.in.Cluster.Spec.Maintenance.Downscaled()
			if now := int(r.in.Observed.NodeSets[0].Object.Replicas()); now < wasWorkers && !down {
				t.Fatalf("%d workers become %d without maintenance", wasWorkers, now)
			}
			if wasSlurmctld && rest.Controller.Spec.Suspend && (!down || rest.Workers > 0) {
				t.Fatalf("slurmctld is suspended with %d workers in mode %s", rest.Workers, r.in.Cluster.Spec.Maintenance)
			}
			if wasSlurmdbd && rest.Accounting.Spec.Suspend && (!down || r.slurmctld > 0) {
				t.Fatalf("slurmdbd is suspended with %d slurmctlds in mode %s", r.slurmctld, r.in.Cluster.Spec.Maintenance)
			}
			if out.Components.Controller.Spec.Suspend != (out.Components.RestAPI.Replicas() == 0) {
				t.Fatalf("slurmrestd does not follow slurmctld: %+v", out.Rest)
			}
			r.step(rapid.IntRange(0, 2).Draw(t, "who"))
		}
		if out := r.settle(); r.in.Cluster.Spec.Maintenance.Downscaled() != out.Rest.Reached {
			t.Fatalf("it ends in mode %s with %+v", r.in.Cluster.Spec.Maintenance, out.Rest)
		} else if want := len(r.in.Observed.NodeSets); !out.Rest.Reached && (r.in.Observed.Rest.Workers != 2 || r.slurmctld != want || r.slurmdbd != want) {
			t.Fatalf("not all runs that is to: %+v", r)
		}
	})
}

func TestASlurmctldThatSomebodyHasSuspendedCostsNoWorkers(t *testing.T) {
	r := newResting(t)
	r.settle()
	r.in.Observed.Rest.Controller.Spec.Suspend = true
	out := Cluster(r.in)
	if got := out.Components.NodeSets[0].Replicas(); got != 2 {
		t.Errorf("%d workers are left of 2", got)
	}
	if got := out.Components.LoginSet.Replicas(); got != 1 {
		t.Errorf("%d login pods are left of 1", got)
	}
}

func TestAClusterThatBeginsAtRestStartsNothing(t *testing.T) {
	r := newResting(t)
	r.mode(nebiusv1.MaintenanceDownscale)
	out := Cluster(r.in)
	parts := out.Components
	if !parts.Controller.Spec.Suspend || !parts.Accounting.Spec.Suspend || parts.RestAPI.Replicas()+parts.LoginSet.Replicas()+parts.NodeSets[0].Replicas() != 0 {
		t.Errorf("something is started: %+v", out.Rest)
	}
}

func TestWhatKeepsSlurmRunning(t *testing.T) {
	set := func(replicas, left int32, generation int64) ObservedNodeSet {
		out := &slinkyv1beta1.NodeSet{Spec: slinkyv1beta1.NodeSetSpec{Replicas: &replicas}, Status: slinkyv1beta1.NodeSetStatus{Replicas: left, ObservedGeneration: generation}}
		out.Name, out.Generation = "demo-a", 2
		return ObservedNodeSet{Object: out}
	}
	controller := &slinkyv1beta1.Controller{}
	composed := []*slinkyv1beta1.NodeSet{set(0, 0, 2).Object}
	for name, test := range map[string]struct {
		seen Observed
		want string
	}{
		"nothing when all have gone":                    {Observed{Rest: ObservedRest{Controller: controller}, NodeSets: []ObservedNodeSet{set(0, 0, 2)}}, ""},
		"a worker of any NodeSet":                       {Observed{Rest: ObservedRest{Controller: controller, Workers: 3}, NodeSets: []ObservedNodeSet{set(0, 0, 2)}}, "3 workers are still there"},
		"a NodeSet that is held":                        {Observed{Rest: ObservedRest{Controller: controller}, NodeSets: []ObservedNodeSet{set(1, 0, 2)}}, "NodeSet demo-a may still have workers"},
		"a NodeSet that has not read its latest spec":   {Observed{Rest: ObservedRest{Controller: controller}, NodeSets: []ObservedNodeSet{set(0, 0, 1)}}, "NodeSet demo-a may still have workers"},
		"a NodeSet that says that it has one":           {Observed{Rest: ObservedRest{Controller: controller}, NodeSets: []ObservedNodeSet{set(0, 1, 2)}}, "NodeSet demo-a may still have workers"},
		"a NodeSet that is about to be made":            {Observed{Rest: ObservedRest{Controller: controller}}, "NodeSet demo-a is not created yet"},
		"nothing where there has been nothing so far":   {Observed{}, ""},
		"a NodeSet whose Controller somebody has taken": {Observed{NodeSets: []ObservedNodeSet{set(2, 2, 2)}}, "NodeSet demo-a may still have workers"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.seen.workersLeft(composed); got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}
