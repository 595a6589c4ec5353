// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"context"
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
)

// Nobody looks again at the jobs of a Job that is over. So its annotations note how they ended before its status is written.
func TestAJobIsNotOverBeforeItIsNotedHowItsSlurmJobsEnded(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(batchv1.AddToScheme(scheme), nebiusv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	started := metav1.NewTime(now.Add(-time.Minute))
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gpu-now", UID: "1", Annotations: map[string]string{activecheckplan.AnnotationSlurmJobs: "17"}},
		Spec:       batchv1.JobSpec{ManagedBy: new(activecheckplan.ManagedBy)}, Status: batchv1.JobStatus{StartTime: &started, Active: 1},
	}
	check := &nebiusv1alpha1.ActiveCheck{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gpu", UID: "2"}}
	refused, statuses := error(nil), 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(job, check).WithStatusSubresource(job).WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			if refused != nil {
				return refused
			}
			return c.Apply(ctx, o, options...)
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			statuses++
			return c.SubResource(sub).Apply(ctx, o, options...)
		},
	}).Build()
	r := &reconciler{Base: reconcile.Base{Reader: reference.Reader{Client: c, Live: c}, Applier: kube.NewApplier(c, c), Clock: clocktesting.NewFakePassiveClock(now)}}
	follow := func() error {
		var live batchv1.Job
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(job), &live); err != nil {
			t.Fatal(err)
		}
		record := activecheckplan.ReadRecord(live.Annotations)
		record.Ended["17"] = activecheckplan.End{State: "COMPLETED"}
		return r.follow(t.Context(), check, nil, activecheckplan.RunPlan{Job: &live, Step: activecheckplan.StepFollow, Record: record})
	}
	refused = errors.New("the API server is busy")
	if err := follow(); !errors.Is(err, refused) || statuses != 0 {
		t.Errorf("%v; the status was written %d times", err, statuses)
	}
	refused = nil
	if err := follow(); err != nil || statuses != 1 {
		t.Errorf("%v; the status was written %d times", err, statuses)
	}
	var after batchv1.Job
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(job), &after); err != nil || !activecheckplan.Over(&after) || len(activecheckplan.ReadRecord(after.Annotations).Open()) > 0 {
		t.Errorf("%v; %+v", err, after)
	}
}
