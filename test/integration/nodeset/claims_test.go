// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestClaimsAreMadeWithWorkersAndKept(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `volumeClaimTemplates: [{metadata: {name: scratch}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]`)
	o.Scale(1)
	o.ExpectWorkers("w-0")
	for _, name := range []string{"scratch-w-0", "scratch-w-1"} {
		claim, err := operator.Find[corev1.PersistentVolumeClaim](o, name)
		if err != nil || claim.DeletionTimestamp != nil || len(claim.OwnerReferences) > 0 {
			t.Errorf("claim %s is %+v (%v)", name, claim, err)
		}
	}
}

// claimsOf starts a cluster of two workers with a claim each and a retention policy.
func claimsOf(t *testing.T, policy string) *operator.Operator {
	t.Helper()
	return operator.StartWorkers(t, 2, `volumeClaimTemplates: [{metadata: {name: scratch}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}],
		persistentVolumeClaimRetentionPolicy: {`+policy+`}`)
}

// ownersOf returns the kinds and names of the owners of a claim.
func ownersOf(o *operator.Operator, name string) string {
	claim, err := operator.Find[corev1.PersistentVolumeClaim](o, name)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, r := range claim.OwnerReferences {
		out = append(out, r.Kind+"/"+r.Name)
	}
	return strings.Join(out, ",")
}

func expectOwners(t *testing.T, o *operator.Operator, claim, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := ownersOf(o, claim); got != want {
			return fmt.Errorf("the owners of %s are %q, want %q", claim, got, want)
		}
		return nil
	})
}

func TestClaimsGoWithWhomThePolicySays(t *testing.T) {
	t.Parallel()
	o := claimsOf(t, `whenDeleted: Delete, whenScaled: Delete`)
	expectOwners(t, o, "scratch-w-0", "NodeSet/w")
	expectOwners(t, o, "scratch-w-1", "NodeSet/w")
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 2 })
	o.Scale(1)
	expectOwners(t, o, "scratch-w-1", "Pod/w-1")
	o.Scale(2)
	expectOwners(t, o, "scratch-w-1", "NodeSet/w")
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.PersistentVolumeClaimRetentionPolicy = nil })
	expectOwners(t, o, "scratch-w-0", "")
}

// Claims of others, such as those of a storage system, may be guarded by a policy of theirs.
func TestAClaimThatMayNotBeChangedKeepsItsWorkerAndNoOther(t *testing.T) {
	t.Parallel()
	o := claimsOf(t, `whenScaled: Delete`)
	guard := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}
	guard.Spec.MatchConstraints = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: o.Namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumeclaims"}},
		}}},
	}
	guard.Spec.Validations = []admissionv1.Validation{{Expression: `object.metadata.name != "scratch-w-1" || "free" in object.metadata.labels`, Message: "guarded"}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: o.Namespace}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: o.Namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}
	for _, object := range []client.Object{guard, binding} {
		if err := o.User.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := o.User.Delete(context.WithoutCancel(t.Context()), object); err != nil {
				t.Error(err)
			}
		})
	}
	apiserver.Eventually(t, func() error {
		claim := operator.Get[corev1.PersistentVolumeClaim](o, "scratch-w-1")
		claim.Labels["look"] = "guarded"
		if err := o.User.Update(t.Context(), claim, client.DryRunAll); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("the claim is not guarded yet: %w", err)
		}
		return nil
	})
	o.Scale(0)
	o.ExpectWorkers("w-1") // both would have been marked in one go
	if p := operator.Get[corev1.Pod](o, "w-1"); p.Annotations[slinkyv1beta1.AnnotationRetired] != "" {
		t.Errorf("w-1 is to go without its claim: %v", p.Annotations)
	}
	message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Reconciling", metav1.ConditionTrue, slinkyv1beta1.ReasonApplyFailed)
	if !strings.HasPrefix(message, "PersistentVolumeClaim scratch-w-1: ") || !strings.Contains(message, "Pod w-1 is therefore not deleted") || !strings.HasSuffix(message, "guarded") {
		t.Errorf("the NodeSet says %q", message)
	}
	o.Settle()
	if errs := o.Errors(); len(errs) > 0 {
		t.Errorf("it failed: %v", errs)
	}
	operator.Change(o, "scratch-w-1", func(c *corev1.PersistentVolumeClaim) { c.Labels["free"] = "" })
	changed := time.Now()
	expectOwners(t, o, "scratch-w-1", "Pod/w-1")
	if took := time.Since(changed); took > 20*time.Second { // and not the minute after which it is tried again anyhow
		t.Errorf("the change of the claim was followed after %s", took)
	}
	o.ExpectWorkers()
}

func TestASuccessorWaitsForTheClaimOfItsPredecessorToGo(t *testing.T) {
	t.Parallel()
	o := claimsOf(t, `whenScaled: Delete`)
	o.Scale(1)
	o.ExpectWorkers("w-0")
	expectOwners(t, o, "scratch-w-1", "Pod/w-1")
	o.Scale(2)
	message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Reconciling", metav1.ConditionTrue, "Waiting")
	if want := "PersistentVolumeClaim scratch-w-1: it is deleted with Pod w-1; the next pod waits for that"; !strings.Contains(message, want) {
		t.Errorf("%q, want %q", message, want)
	}
	// What the garbage collector does.
	operator.Change(o, "scratch-w-1", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
	operator.Delete[corev1.PersistentVolumeClaim](o, "scratch-w-1")
	o.ExpectWorkers("w-0", "w-1")
}
