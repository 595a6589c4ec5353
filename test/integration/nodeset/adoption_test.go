// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestOrphanedWorkersAreAdopted(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	before := operator.Get[corev1.Pod](o, "w-1").UID
	// What "kubectl delete nodeset w --cascade=orphan" and the garbage collector leave, and the same NodeSet again.
	if err := o.User.Delete(t.Context(), operator.Get[slinkyv1beta1.NodeSet](o, "w"), client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	for _, name := range operator.WorkerNames(2) {
		operator.Change(o, name, func(p *corev1.Pod) { p.OwnerReferences = nil })
	}
	revision := "w-" + operator.Get[corev1.Pod](o, "w-1").Labels[slinkyv1beta1.LabelRevisionHash]
	operator.Change(o, revision, func(c *appsv1.ControllerRevision) { c.OwnerReferences = nil })
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Finalizers = slices.DeleteFunc(n.Finalizers, func(f string) bool { return f == metav1.FinalizerOrphanDependents })
	})
	apiserver.Eventually(t, func() error {
		if set, err := operator.Find[slinkyv1beta1.NodeSet](o, "w"); !apierrors.IsNotFound(err) {
			return errors.Join(err, fmt.Errorf("the NodeSet is still there, with finalizers %v", set.Finalizers))
		}
		return nil
	})
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: 2, partition: {enabled: true}}}`)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	if p := operator.Get[corev1.Pod](o, "w-1"); p.UID != before || len(p.OwnerReferences) != 1 {
		t.Errorf("w-1 is not the one that was there, or nobody's: %+v", p.ObjectMeta)
	}
	if c := operator.Get[appsv1.ControllerRevision](o, revision); len(c.OwnerReferences) != 1 || c.Revision != 1 {
		t.Errorf("the revision is %+v", c)
	}
}

func TestAPodOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[corev1.Pod](o, `{metadata: {name: w-0}, spec: {containers: [{name: c, image: i}]}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, replicas: 3}}`)
	message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Stalled", metav1.ConditionTrue, "NameConflict")
	if want := "Pod " + o.Namespace + "/w-0 exists and was not made for NodeSet " + o.Namespace + "/w"; !strings.HasPrefix(message, want) {
		t.Errorf("%q, want %q", message, want)
	}
	if p, err := operator.Find[corev1.Pod](o, "w-0"); err != nil || len(p.OwnerReferences) > 0 {
		t.Errorf("%+v (%v)", p, err)
	}
	apiserver.Eventually(t, func() error { // the workers behind it are made
		for _, name := range []string{"w-1", "w-2"} {
			if p, err := operator.Find[corev1.Pod](o, name); err != nil || len(p.OwnerReferences) == 0 {
				return fmt.Errorf("%s is not there: %w", name, err)
			}
		}
		return nil
	})
}

// To slurmctld both would be one node, and the jobs of the first worker would be lost.
func TestNoWorkerTakesTheNameOfAnotherOne(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `template: {spec: {hostname: gpu-}}`)
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: v}, spec: {controllerRef: {name: demo}, replicas: 3, template: {spec: {hostname: gpu-}}}}`)
	message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "v", "Stalled", metav1.ConditionTrue, "HostnameConflict")
	if want := "Pod v-0: a worker of NodeSet w has host name gpu-0 as well"; !strings.Contains(message, want) {
		t.Errorf("%q, want %q", message, want)
	}
	o.ExpectWorkers("v-2", "w-0", "w-1")
	o.Scale(1)
	o.ExpectWorkers("v-1", "v-2", "w-0")
}

// Both wait for the Controller and are woken by it, so that neither sees the other's workers in the cache when it makes its own.
func TestNodeSetsThatBeginInTheSameInstantShareNoName(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	const each = 20
	for _, name := range []string{"v", "w"} {
		operator.Create[slinkyv1beta1.NodeSet](o, fmt.Sprintf(`{metadata: {name: %s}, spec: {controllerRef: {name: demo}, replicas: %d, template: {spec: {hostname: gpu-}}}}`, name, each))
		operator.ExpectCondition[slinkyv1beta1.NodeSet](o, name, "Ready", metav1.ConditionFalse, "ReferenceNotFound")
	}
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	apiserver.Eventually(t, func() error {
		names := map[string]string{}
		for _, p := range o.Workers() {
			if other := names[p.Spec.Hostname]; other != "" {
				t.Fatalf("%s and %s have the host name %s", other, p.Name, p.Spec.Hostname)
			}
			names[p.Spec.Hostname] = p.Name
		}
		if len(names) < each {
			return fmt.Errorf("there are %d workers", len(names))
		}
		return nil
	})
	o.Settle()
	if n := len(o.Workers()); n != each {
		t.Errorf("there are %d workers, want %d", n, each)
	}
}

func TestRevisionsAreKeptUpToTheLimit(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `revisionHistoryLimit: 1, updateStrategy: {type: OnDelete}`)
	revisions := func() map[string]int64 {
		var list appsv1.ControllerRevisionList
		if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
			t.Fatal(err)
		}
		out := map[string]int64{}
		for _, r := range list.Items {
			out[r.Labels[slinkyv1beta1.LabelRevisionHash]] = r.Revision
		}
		return out
	}
	var hashes []string
	for _, extra := range []string{"", "Weight=1", "Weight=2", "Weight=3", "Weight=2"} {
		operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.ExtraConf = extra })
		operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
		hashes = append(hashes, operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.NodeSetHash)
	}
	if hashes[4] != hashes[2] {
		t.Errorf("the same spec has revisions %s and %s", hashes[2], hashes[4])
	}
	// The first is still that of the worker; of the others the newest is kept.
	apiserver.Eventually(t, func() error {
		if diff := cmp.Diff(map[string]int64{hashes[0]: 1, hashes[3]: 4, hashes[4]: 5}, revisions()); diff != "" {
			return fmt.Errorf("the revisions (-want +got):\n%s", diff)
		}
		return nil
	})
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}
