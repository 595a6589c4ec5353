// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// ownClaims gives the claims of the NodeSet the owners with which they are to be deleted. It comes before any worker is marked: the claim
// of a deleted worker must have its owner by then. So the workers stay whose claims somebody does not let us change.
func (r *reconciler) ownClaims(ctx context.Context, n *slinkyv1beta1.NodeSet, pods []corev1.Pod, scaledIn map[string]bool) (*refusedClaims, error) {
	refused := &refusedClaims{stay: map[string]bool{}}
	if len(n.Spec.VolumeClaimTemplates) == 0 {
		return refused, nil
	}
	var claims corev1.PersistentVolumeClaimList
	err := r.Client.List(ctx, &claims, client.InNamespace(n.Namespace), client.MatchingLabels(slurmd.Labels(n).Selector()))
	if err != nil {
		return nil, fmt.Errorf("listing the claims of NodeSet %s/%s: %w", n.Namespace, n.Name, err)
	}
	users := map[string]*corev1.Pod{}
	for i := range pods {
		for _, v := range pods[i].Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				users[v.PersistentVolumeClaim.ClaimName] = &pods[i]
			}
		}
	}
	holders := nodesetplan.Holders{Set: metav1.OwnerReference{
		APIVersion: slinkyv1beta1.GroupVersion.String(), Kind: "NodeSet", Name: n.Name, UID: n.UID,
	}}
	holders.WhenDeleted, holders.WhenScaled = n.ClaimRetention()
	err = kube.SlowStart(len(claims.Items), func(i int) error {
		h, pod := holders, users[claims.Items[i].Name]
		if pod != nil {
			h.Pod = &metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
			h.ScaledIn = scaledIn[pod.Name]
		}
		refusal, err := r.ownClaim(ctx, n, &claims.Items[i], h)
		if refusal != nil {
			refused.add(&claims.Items[i], pod, *refusal)
		}
		return err
	})
	return refused, err
}

// ownClaim gives a claim its owner. It returns a refusal when somebody does not allow that.
func (r *reconciler) ownClaim(ctx context.Context, n *slinkyv1beta1.NodeSet, claim *corev1.PersistentVolumeClaim, h nodesetplan.Holders) (*claimRefusal, error) {
	owners, change, foreign := h.Own(claim.OwnerReferences)
	if foreign && metav1.GetControllerOf(claim) != nil {
		r.Recorder.Eventf(n, claim, corev1.EventTypeWarning, "ConflictingController", "Own",
			"PersistentVolumeClaim %s is controlled by %s; the retention policy does not apply to it", claim.Name, metav1.GetControllerOf(claim).Name)
	}
	if !change || claim.DeletionTimestamp != nil {
		return nil, nil
	}
	if refusal, ok := r.refusalOf(claim, owners); ok {
		return &refusal, nil
	}
	changed := claim.DeepCopy()
	changed.OwnerReferences = owners
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(claim, client.MergeFromWithOptimisticLock{}))
	if refused(err) {
		refusal := claimRefusal{version: claim.ResourceVersion, owners: owners, until: r.Clock.Now().Add(claimRetryInterval), why: err}
		r.refusals.Add(claim.UID, refusal)
		return &refusal, nil
	}
	r.refusals.Remove(claim.UID)
	if err == nil {
		r.Applier.Wrote(n, changed)
	}
	if err = reconcile.IgnoreGone(err); err != nil {
		return nil, fmt.Errorf("changing the owners of PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil, nil
}

// createClaims makes the claims of a worker that do not exist; those that exist are kept for it. A claim that is about to go with the
// worker before is a problem that heals: a pod that used it would wait for ever.
func (r *reconciler) createClaims(ctx context.Context, n *slinkyv1beta1.NodeSet, place workerpod.Place) error {
	claims, err := slurmd.Claims(n, place)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		live := &corev1.PersistentVolumeClaim{}
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(claim), live)
		if apierrors.IsNotFound(err) {
			live = claim
			err = r.Client.Create(ctx, claim, client.FieldOwner(kube.FieldManager))
			if apierrors.IsAlreadyExists(err) { // somebody else's, without our labels
				err = nil
			}
		}
		if err != nil {
			return fmt.Errorf("creating PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		for _, owner := range live.OwnerReferences {
			if live.DeletionTimestamp != nil || owner.Kind == "Pod" {
				return problem.Waitingf("PersistentVolumeClaim "+live.Name, slinkyv1beta1.ReasonWaiting, "it is deleted with Pod %s; the next pod waits for that", owner.Name)
			}
		}
		if live.DeletionTimestamp != nil {
			return problem.Waitingf("PersistentVolumeClaim "+live.Name, slinkyv1beta1.ReasonWaiting, "it is being deleted; the worker waits for that")
		}
	}
	return nil
}

// setOfClaim returns the NodeSet whose workers a claim was made for, which may wait for its end.
func setOfClaim(_ context.Context, claim client.Object) []ctrl.Request {
	l := claim.GetLabels()
	if l[label.Name] != slinkyv1beta1.NameSlurmd || l[label.Instance] == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: claim.GetNamespace(), Name: l[label.Instance]}}}
}

const (
	// claimRetryInterval is how long a claim is left alone after the API server did not let us change it. A change of the claim ends it. No
	// event shows a change of what else may have refused it: a policy, a webhook, a right. With a thousand such claims that is 17 requests a
	// second.
	claimRetryInterval = time.Minute
	// maxClaimRefusals bounds how many refusals are kept. Forgetting one costs a request.
	maxClaimRefusals = 4096
)

// A claimRefusal means that the API server did not let us change the owners of a claim.
type claimRefusal struct {
	// version is the version of the claim, and owners are those that it was to have.
	version string
	owners  []metav1.OwnerReference
	until   time.Time
	why     error
}

// stands reports whether the same change would be refused again.
func (c claimRefusal) stands(claim *corev1.PersistentVolumeClaim, owners []metav1.OwnerReference, now time.Time) bool {
	return now.Before(c.until) && c.version == claim.ResourceVersion && equality.Semantic.DeepEqual(c.owners, owners)
}

// refusalOf returns the refusal of the same change of a claim within the last minute.
func (r *reconciler) refusalOf(claim *corev1.PersistentVolumeClaim, owners []metav1.OwnerReference) (known claimRefusal, ok bool) {
	value, _ := r.refusals.Get(claim.UID)
	known, ok = value.(claimRefusal)
	return known, ok && known.stands(claim, owners, r.Clock.Now())
}

// refused reports whether the API server answered that somebody does not allow the request, so that only a person can help.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// refusedClaims are the claims of a NodeSet whose owners we may not change.
type refusedClaims struct {
	mu sync.Mutex
	// stay are the pods that use one, and problems describe each.
	stay     map[string]bool
	problems []error
	// again is when the first one may be tried again; zero when there is none.
	again time.Time
}

func (c *refusedClaims) add(claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, refusal claimRefusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := ""
	if pod != nil {
		c.stay[pod.Name], kept = true, ", and Pod "+pod.Name+" is therefore not deleted"
	}
	c.problems = append(c.problems, problem.Waitingf("PersistentVolumeClaim "+claim.Name, slinkyv1beta1.ReasonApplyFailed,
		"the API server refuses the owner that persistentVolumeClaimRetentionPolicy asks for%s: %v", kept, refusal.why))
	c.again = workerpod.Sooner(c.again, refusal.until)
}
