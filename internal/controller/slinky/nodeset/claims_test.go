// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
)

// guarded is a NodeSet with the claim of its worker w-0. The API server answers with answer.
type guarded struct {
	*reconciler
	set    *slinkyv1beta1.NodeSet
	pods   []corev1.Pod
	clock  *clocktesting.FakePassiveClock
	answer error
	asked  int
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(slinkyv1beta1.AddToScheme(scheme))
	g := &guarded{clock: clocktesting.NewFakePassiveClock(time.Unix(1795172262, 0))}
	g.set = &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "w", UID: "set"}}
	g.set.Spec.VolumeClaimTemplates = make([]embedded.PersistentVolumeClaim, 1)
	g.set.Spec.PersistentVolumeClaimRetentionPolicy = &slinkyv1beta1.PersistentVolumeClaimRetentionPolicy{WhenDeleted: slinkyv1beta1.ClaimDelete}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "w-0", UID: "pod"}}
	pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "scratch-w-0"}}}}
	g.pods = []corev1.Pod{pod}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "scratch-w-0", UID: "claim", Labels: slurmd.Labels(g.set).Selector()}}
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			g.asked++
			if g.answer != nil {
				return g.answer
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}).Build()
	g.reconciler = &reconciler{refusals: lru.New(maxClaimRefusals)}
	g.Reader, g.Applier, g.Clock = reference.Reader{Client: server}, kube.NewApplier(server, server), g.clock
	return g
}

// own looks after the claims, and returns how often it asked the API server.
func (g *guarded) own(t *testing.T) (*refusedClaims, int) {
	t.Helper()
	g.asked = 0
	refused, err := g.ownClaims(t.Context(), g.set, g.pods, nil)
	if err != nil {
		t.Fatal(err)
	}
	return refused, g.asked
}

func TestAClaimThatMayNotBeChangedIsAProblemAndTriedAgainEachMinute(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	for name, answer := range map[string]error{
		"a policy denies it":                             apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "scratch-w-0", nil),
		"a webhook denies it":                            apierrors.NewForbidden(claims, "scratch-w-0", errors.New("guarded")),
		"the API server answers that the request is bad": apierrors.NewBadRequest("guarded"),
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			g.answer = answer
			for _, after := range []struct {
				time  time.Duration
				asked int
			}{{0, 1}, {time.Second, 0}, {58 * time.Second, 0}, {time.Second, 1}, {time.Second, 0}} {
				g.clock.SetTime(g.clock.Now().Add(after.time))
				refused, asked := g.own(t)
				if asked != after.asked {
					t.Errorf("%s later it was asked for %d times, want %d", after.time, asked, after.asked)
				}
				problems, rest := problem.FromError(errors.Join(refused.problems...))
				if len(problems) != 1 || rest != nil || problems[0].Reason != slinkyv1beta1.ReasonApplyFailed || !strings.Contains(problems[0].Message, "Pod w-0") {
					t.Errorf("%s later the problems are %v, and %v", after.time, problems, rest)
				}
				again, err := g.execute(t.Context(), &scope{facts: facts{set: g.set, pods: g.pods}, plan: &plan{}})
				if left := again.Sub(g.clock.Now()); !refused.stay["w-0"] || left <= 0 || left > time.Minute {
					t.Errorf("%s later w-0 stays: %t, and it is tried again after %s: %v", after.time, refused.stay["w-0"], left, err)
				}
			}
			g.answer = nil
			g.clock.SetTime(g.clock.Now().Add(time.Minute))
			if refused, asked := g.own(t); asked != 1 || len(refused.stay)+len(refused.problems) > 0 || !refused.again.IsZero() {
				t.Errorf("when it is allowed, it is asked for %d times, and %v stay: %v", asked, refused.stay, refused.problems)
			}
			if _, asked := g.own(t); asked != 0 {
				t.Error("it is asked for again when it is done")
			}
		})
	}
}

func TestARefusedClaimIsTriedAgainAtOnceWhenItOrItsOwnerIsAnother(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, g *guarded){
		"somebody has changed the claim": func(t *testing.T, g *guarded) {
			var claim corev1.PersistentVolumeClaim
			if err := g.Client.Get(t.Context(), client.ObjectKey{Namespace: "slurm", Name: "scratch-w-0"}, &claim); err != nil {
				t.Fatal(err)
			}
			claim.Labels["free"] = ""
			if err := g.Client.Update(t.Context(), &claim); err != nil {
				t.Fatal(err)
			}
		},
		"another owner is wanted": func(_ *testing.T, g *guarded) { g.set.UID = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded(t)
			g.answer = apierrors.NewForbidden(schema.GroupResource{}, "scratch-w-0", nil)
			g.own(t)
			change(t, g)
			if _, asked := g.own(t); asked != 1 {
				t.Errorf("it was asked for %d times", asked)
			}
		})
	}
}

// An answer that is not about the claim is tried again with everything else.
func TestAClaimThatCouldNotBeChangedFailsThePass(t *testing.T) {
	g := newGuarded(t)
	g.answer = apierrors.NewInternalError(errors.New("a webhook does not answer"))
	if _, err := g.ownClaims(t.Context(), g.set, g.pods, nil); err == nil {
		t.Error("nothing failed")
	}
}
