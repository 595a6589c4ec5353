// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

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
