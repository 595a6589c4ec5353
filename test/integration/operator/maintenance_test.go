// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const maintained = `{metadata: {name: demo}, spec: {slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}}, controller: {}, login: {size: 1}, rest: {enabled: true}}}}`

// around is what is around the operator: Kubernetes and the daemons. down is true if slurmctld is stopped.
type around struct {
	*operator.Operator
	t    *testing.T
	down bool
}

// until lets everybody work until ok is satisfied. Slurm answers as long as slurmctld has pods.
func (a *around) until(ok func() error) {
	a.t.Helper()
	apiserver.Eventually(a.t, func() error {
		a.RunWorkloads()
		if set, err := operator.Find[appsv1.StatefulSet](a.Operator, "demo-controller"); err == nil {
			switch runs := *set.Spec.Replicas > 0; {
			case !a.down && !runs:
				a.Slurm.Stop()
				a.down = true
			case a.down && runs:
				a.Slurm.Start(true)
				a.down = false
			}
		}
		if !a.down {
			a.RunWorkers()
		}
		return ok()
	})
}

// replicas returns the replicas of all workloads, by name.
func replicas(t *testing.T, o *operator.Operator) map[string]int32 {
	t.Helper()
	out := map[string]int32{}
	var sets appsv1.StatefulSetList
	var deployments appsv1.DeploymentList
	if err := errors.Join(o.User.List(t.Context(), &sets, client.InNamespace(o.Namespace)), o.User.List(t.Context(), &deployments, client.InNamespace(o.Namespace))); err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		out[sets.Items[i].Name] = *sets.Items[i].Spec.Replicas
	}
	for i := range deployments.Items {
		out[deployments.Items[i].Name] = *deployments.Items[i].Spec.Replicas
	}
	return out
}

// keys returns the UIDs of all Secrets that hold generated keys, by name.
func keys(t *testing.T, o *operator.Operator) map[string]types.UID {
	t.Helper()
	var list corev1.SecretList
	if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]types.UID{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].UID
	}
	return out
}

// phase returns an error unless the SlurmCluster is in a phase, and Ready for a reason.
func phase(o *operator.Operator, want nebiusv1.Phase, reason string) error {
	c := operator.Get[nebiusv1.SlurmCluster](o, "demo")
	ready := meta.FindStatusCondition(c.Status.Conditions, "Ready")
	if c.Status.ObservedGeneration != c.Generation || c.Status.Phase != want || ready == nil || ready.Status != metav1.ConditionTrue || ready.Reason != reason {
		return fmt.Errorf("phase %s, %+v", c.Status.Phase, ready)
	}
	return nil
}

func mode(o *operator.Operator, m nebiusv1.MaintenanceMode) {
	operator.Change(o, "demo", func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = m })
}

func TestMaintenanceStopsAClusterInOrderAndGivesItBack(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	around := &around{Operator: o, t: t}
	operator.Create[nebiusv1alpha1.NodeSet](o, `{metadata: {name: w}, spec: {replicas: 2}}`)
	operator.Create[nebiusv1.SlurmCluster](o, maintained)
	running := func() error { return phase(o, nebiusv1.PhaseAvailable, "Available") }
	around.until(running)
	o.Settle()
	had, runs := keys(t, o), replicas(t, o)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	waits := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 4})
	h := follow(t, o)

	// The worker without jobs goes, and Slurm answers as long as the other one works.
	mode(o, nebiusv1.MaintenanceDownscale)
	around.until(func() error {
		if workers := o.Workers(); len(workers) != 1 || workers[0].Name != "demo-w-1" {
			return fmt.Errorf("there are %d workers", len(workers))
		}
		return condition(operator.Get[nebiusv1.SlurmCluster](o, "demo"), "WorkersAvailable", "1 workers are still there")
	})
	o.Settle()
	if diff := cmp.Diff(map[string]int32{"demo-controller": 1, "demo-accounting": 1, "demo-database": 1, "demo-restapi": 1, "demo-login": 0}, replicas(t, o)); diff != "" {
		t.Errorf("with a job that runs (-want +got): %s", diff)
	}
	if state, _ := o.Slurm.Job(job); !slices.Contains(state.State, "RUNNING") {
		t.Errorf("the job is %v", state)
	}

	// Then slurmctld with slurmrestd, slurmdbd and the database, each when it is known that the one before has stopped.
	o.Slurm.Finish(job)
	apiserver.Eventually(t, func() error { return stage(replicas(t, o), "demo-controller") })
	o.Settle()
	if diff := cmp.Diff(map[string]int32{"demo-controller": 0, "demo-accounting": 1, "demo-database": 1, "demo-restapi": 0, "demo-login": 0}, replicas(t, o)); diff != "" {
		t.Errorf("before slurmctld is known to have stopped (-want +got): %s", diff)
	}
	pod := slurmdbdPod(t, o)
	around.until(func() error { return stage(replicas(t, o), "demo-accounting") })
	o.Settle()
	if got := replicas(t, o)["demo-database"]; got != 1 {
		t.Error("the database stops while slurmdbd has a pod")
	}
	o.Kill(pod)
	around.until(func() error { return phase(o, nebiusv1.PhaseNotAvailable, "Maintenance") })
	for name, n := range replicas(t, o) {
		if n != 0 {
			t.Errorf("%s still has %d pods", name, n)
		}
	}
	expectRest(t, o)
	if state, ok := o.Slurm.Job(waits); !ok || !slices.Contains(state.State, "PENDING") {
		t.Errorf("the job that waits is %v", state)
	}
	o.Settle()
	if diff := cmp.Diff(map[string]string{
		"SlurmCluster phase": "Available Not available", "SlurmCluster ControllersAvailable": "True False", "SlurmCluster WorkersAvailable": "True False",
		"SlurmCluster LoginAvailable": "True False", "SlurmCluster AccountingAvailable": "True False", "SlurmCluster CommonAvailable": "True False",
		"SlurmCluster PopulateJailMode": "True Unknown", "SlurmCluster Stalled": "False", "NodeSet phase": "Ready Terminating",
		"NodeSet StatefulSetTerminated": "False True", "NodeSet Stalled": "False", "Controller SlurmReachable": "True False",
	}, only(h.all(), "SlurmCluster Ready", "SlurmCluster Reconciling", "NodeSet Ready", "NodeSet Reconciling", "NodeSet PodsReady", "NodeSet StatefulSetUpdated",
		"Controller Ready", "Controller Reconciling", "Controller Suspended")); diff != "" {
		t.Errorf("on the way to rest (-want +got): %s", diff)
	}

	h.forget()
	mode(o, nebiusv1.MaintenanceNone)
	around.until(running)
	o.Settle()
	if diff := cmp.Diff(runs, replicas(t, o)); diff != "" {
		t.Errorf("after maintenance (-before +after): %s", diff)
	}
	if diff := cmp.Diff(had, keys(t, o)); diff != "" {
		t.Errorf("other keys (-before +after): %s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"SlurmCluster phase": "Not available Available", "SlurmCluster ControllersAvailable": "False True", "SlurmCluster WorkersAvailable": "False True",
		"SlurmCluster LoginAvailable": "False True", "SlurmCluster AccountingAvailable": "False True", "SlurmCluster CommonAvailable": "False True",
		"SlurmCluster PopulateJailMode": "Unknown True", "SlurmCluster Ready": "True False True", "SlurmCluster Stalled": "False",
		"NodeSet phase": "Terminating Provisioning Ready", "NodeSet StatefulSetTerminated": "True False", "NodeSet PodsReady": "True False True",
		"NodeSet Stalled": "False",
	}, only(h.all(), "SlurmCluster Reconciling", "NodeSet Ready", "NodeSet Reconciling", "NodeSet StatefulSetUpdated",
		"Controller Ready", "Controller Reconciling", "Controller Suspended", "Controller SlurmReachable")); diff != "" {
		t.Errorf("on the way back (-want +got): %s", diff)
	}
	apiserver.Eventually(t, func() error {
		if state, _ := o.Slurm.Job(waits); !slices.Contains(state.State, "RUNNING") {
			return fmt.Errorf("the job that waited is %v; its node is %s", state, o.NodeState("w-1"))
		}
		return nil
	})
	o.ExpectNoErrors()
}

// only returns the entries that change or are reported, except those without a place in a comparison.
func only(all map[string]string, but ...string) map[string]string {
	out := map[string]string{}
	for what, values := range all {
		told := strings.HasSuffix(what, "Stalled") && !strings.HasPrefix(what, "Controller")
		if !slices.Contains(but, what) && (told || strings.Contains(strings.TrimPrefix(values, "Not "), " ")) {
			out[what] = values
		}
	}
	return out
}

// stage returns an error unless a workload is scaled to zero.
func stage(replicas map[string]int32, name string) error {
	if replicas[name] != 0 {
		return fmt.Errorf("%s has %d pods", name, replicas[name])
	}
	return nil
}

// condition returns an error unless a condition of a SlurmCluster is False, as maintenance makes it, with a text.
func condition(c *nebiusv1.SlurmCluster, kind, text string) error {
	found := meta.FindStatusCondition(c.Status.Conditions, kind)
	if found == nil || found.Status != metav1.ConditionFalse || found.Reason != nebiusv1.ReasonMaintenance || !strings.Contains(found.Message, text) {
		return fmt.Errorf("%s is %+v", kind, found)
	}
	return nil
}

// expectRest compares the conditions of a cluster that is at rest.
func expectRest(t *testing.T, o *operator.Operator) {
	t.Helper()
	c := operator.Get[nebiusv1.SlurmCluster](o, "demo")
	for kind, text := range map[string]string{
		"CommonAvailable": "spec.maintenance is downscale", "ControllersAvailable": "slurmctld is stopped, and its state is kept",
		"WorkersAvailable": "there are no workers during maintenance", "LoginAvailable": "there are no login pods during maintenance",
		"AccountingAvailable": "slurmdbd is stopped, and its records are kept",
	} {
		if err := condition(c, kind, text); err != nil {
			t.Error(err)
		}
	}
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Suspended", metav1.ConditionTrue, "Suspended")
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionTrue, "Suspended")
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "SlurmReachable", metav1.ConditionFalse, "Suspended")
	operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Suspended", metav1.ConditionTrue, "Suspended")
	operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "DatabaseReachable", metav1.ConditionUnknown, "DatabaseNotSeen")
	operator.ExpectCondition[nebiusv1alpha1.NodeSet](o, "w", "StatefulSetTerminated", metav1.ConditionTrue, "Maintenance")
}

// slurmdbdPod makes the pod that Kubernetes would have made, and returns its name.
func slurmdbdPod(t *testing.T, o *operator.Operator) string {
	t.Helper()
	template := operator.Get[appsv1.StatefulSet](o, "demo-accounting").Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "demo-accounting-0", Labels: template.Labels}, Spec: template.Spec}
	if err := o.User.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod.Name
}

func TestTheOtherModesOfMaintenance(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	around := &around{Operator: o, t: t}
	operator.Create[nebiusv1alpha1.NodeSet](o, `{metadata: {name: w}, spec: {replicas: 1}}`)
	operator.Create[nebiusv1.SlurmCluster](o, maintained)
	running := func() error { return phase(o, nebiusv1.PhaseAvailable, "Available") }
	around.until(running)
	o.Settle()
	h := follow(t, o)
	for _, m := range []nebiusv1.MaintenanceMode{
		nebiusv1.MaintenanceDownscaleAndDeletePopulateJail, nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail, nebiusv1.MaintenanceDownscale,
	} {
		mode(o, m)
		around.until(func() error { return phase(o, nebiusv1.PhaseNotAvailable, "Maintenance") })
	}
	mode(o, nebiusv1.MaintenanceSkipPopulateJail)
	around.until(running)
	mode(o, nebiusv1.MaintenanceNone)
	around.until(running)
	o.Settle()
	seen := h.all()
	for what, want := range map[string]string{
		"SlurmCluster phase": "Available Not available Available", "SlurmCluster WorkersAvailable": "True False True",
		"SlurmCluster ControllersAvailable": "True False True", "SlurmCluster AccountingAvailable": "True False True",
		"SlurmCluster PopulateJailMode": "True Unknown True", "NodeSet phase": "Ready Terminating Provisioning Ready",
		"NodeSet StatefulSetTerminated": "False True False",
	} {
		if seen[what] != want {
			t.Errorf("%s was %q, want %q", what, seen[what], want)
		}
	}
	o.ExpectNoErrors()
}

func TestASuspendedSlurmctldCostsNoWorkers(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	around := &around{Operator: o, t: t}
	o.Settle()
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.Suspend = true })
	around.until(func() error {
		c := operator.Get[slinkyv1beta1.Controller](o, "demo")
		if !meta.IsStatusConditionTrue(c.Status.Conditions, "Suspended") {
			return fmt.Errorf("conditions %+v", c.Status.Conditions)
		}
		return nil
	})
	// What only Slurm knows is not known: a worker that is not wanted stays.
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(1)) })
	o.Settle()
	if got := len(o.Workers()); got != 2 {
		t.Errorf("there are %d workers of 2", got)
	}
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.Suspend = false })
	around.until(func() error {
		c := operator.Get[slinkyv1beta1.Controller](o, "demo")
		if s := meta.FindStatusCondition(c.Status.Conditions, "Suspended"); s == nil || s.Reason != "Resumed" {
			return fmt.Errorf("conditions %+v", c.Status.Conditions)
		}
		if got := len(o.Workers()); got != 1 {
			return fmt.Errorf("there are %d workers of 1", got)
		}
		return nil
	})
}
