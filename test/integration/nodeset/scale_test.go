// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// scaleOf reads the scale subresource of an object.
func scaleOf(t *testing.T, o *operator.Operator, obj client.Object) *autoscalingv1.Scale {
	t.Helper()
	s := &autoscalingv1.Scale{}
	if err := o.User.SubResource("scale").Get(t.Context(), obj, s); err != nil {
		t.Fatalf("reading the scale of %s: %v", obj.GetName(), err)
	}
	return s
}

// rescale does what kubectl scale and a HorizontalPodAutoscaler do.
func rescale(t *testing.T, o *operator.Operator, obj client.Object, replicas int32) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		s := scaleOf(t, o, obj)
		s.Spec.Replicas = replicas
		return o.User.SubResource("scale").Update(t.Context(), obj, client.WithSubResourceBody(s), client.FieldOwner("hpa"))
	})
}

func named[T any, P interface {
	*T
	client.Object
}](o *operator.Operator, name string) P {
	var obj P = new(T)
	obj.SetNamespace(o.Namespace)
	obj.SetName(name)
	return obj
}

func TestAnAutoscalerMayScaleANodeSet(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	set := named[slinkyv1beta1.NodeSet](o, "w")
	s := scaleOf(t, o, set)
	if s.Spec.Replicas != 2 || s.Status.Replicas != 2 {
		t.Errorf("%d replicas of %d", s.Status.Replicas, s.Spec.Replicas)
	}
	selector, err := labels.Parse(s.Status.Selector)
	if err != nil {
		t.Fatal(err)
	}
	var selected corev1.PodList
	if err := o.User.List(t.Context(), &selected, client.InNamespace(o.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		t.Fatal(err)
	}
	if len(selected.Items) != 2 {
		t.Errorf("%q selects %d pods", s.Status.Selector, len(selected.Items))
	}
	rescale(t, o, set, 3)
	o.ExpectWorkers(operator.WorkerNames(3)...)
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	rescale(t, o, set, 1)
	o.ExpectWorkers(operator.WorkerNames(1)...)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	if s := scaleOf(t, o, set); s.Spec.Replicas != 1 || s.Status.Replicas != 1 {
		t.Errorf("%d replicas of %d", s.Status.Replicas, s.Spec.Replicas)
	}
	// What others apply without replicas does not touch what the autoscaler has set, and neither does the operator.
	o.ExpectNothingWritten(o.Restart)
	if s := scaleOf(t, o, set); s.Spec.Replicas != 1 {
		t.Errorf("%d replicas", s.Spec.Replicas)
	}
}

// A program with Go types writes the whole object, and every unset field as empty. It means the number.
func TestAProgramThatWritesEmptyFieldsScalesANodeSet(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `slurmd: {image: "example.com/slurmd:1"}`)
	before := o.Workers()[0].UID
	apiserver.Eventually(t, func() error {
		set := operator.Get[slinkyv1beta1.NodeSet](o, "w")
		set.Spec.Replicas = new(int32(2))
		set.Spec.Slurmd.Raw = []byte(`{"name":"","image":"example.com/slurmd:1","env":null,"args":[],"volumeMounts":null,"resources":{}}`)
		set.Spec.Template.Spec = &embedded.PodSpec{}
		set.Spec.Template.Spec.Raw = []byte(`{"containers":null,"tolerations":[],"affinity":{},"volumes":null}`)
		set.Spec.SSH.SssdConfRef = &corev1.SecretKeySelector{}
		return o.User.Update(t.Context(), set)
	})
	apiserver.Eventually(t, func() error {
		c := operator.Get[slinkyv1beta1.Controller](o, "demo")
		c.Spec.AccountingRef, c.Spec.SlurmKeyRef = &slinkyv1beta1.ObjectReference{}, &corev1.SecretKeySelector{}
		return o.User.Update(t.Context(), c)
	})
	o.ExpectWorkers(operator.WorkerNames(2)...)
	o.RunWorkers()
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	o.RunWorkloads()
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionFalse, "Reconciled")
	o.Settle()
	for _, p := range o.Workers() {
		if p.Name == "w-0" && p.UID != before {
			t.Error("the worker that was there has been replaced")
		}
		if len(p.Spec.Containers) != 1 || len(p.Spec.Containers[0].VolumeMounts) < 2 || len(p.Spec.Tolerations) < 3 {
			t.Errorf("%s lacks what the operator generates: %v, tolerations %v", p.Name, p.Spec.Containers, p.Spec.Tolerations)
		}
	}
}

// A composed NodeSet is to a SlurmCluster, or to a NodeSet of slurm.nebius.ai, what a ReplicaSet is to a Deployment: what is
// scaled is the latter.
func TestAnAutoscalerScalesWhatANodeSetIsComposedFrom(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[nebiusv1.SlurmCluster](o, `{metadata: {name: demo}, spec: {}}`)
	operator.Create[nebiusv1alpha1.NodeSet](o, `{metadata: {name: big}, spec: {clusterName: demo, replicas: 2, slurmd: {resources: {cpu: "1", memory: 1Gi}}}}`)
	replicas := func(want int32) {
		t.Helper()
		apiserver.Eventually(t, func() error {
			n := operator.Get[slinkyv1beta1.NodeSet](o, "demo-big")
			if *n.Spec.Replicas != want {
				return fmt.Errorf("the composed NodeSet is %+v", n)
			}
			return nil
		})
	}
	replicas(2)
	rescale(t, o, named[nebiusv1alpha1.NodeSet](o, "big"), 3)
	replicas(3)
	rescale(t, o, named[slinkyv1beta1.NodeSet](o, "demo-big"), 5)
	replicas(3)
	operator.ExpectExists[appsv1.StatefulSet](o, "demo-login") // its host keys take a while
	o.ExpectNothingWritten(func() {})
	replicas(3)
}
