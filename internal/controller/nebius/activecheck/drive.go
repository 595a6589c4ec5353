// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	slurmrest "github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// fieldManager owns the annotations of Jobs that stand for runs of Slurm jobs.
const fieldManager = kube.FieldManager + "-activecheck"

func (r *reconciler) drive(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, f facts, p *plan, _ *struct{}) error {
	errs := []error{r.Apply(ctx, check, &p.Plan)}
	if errs[0] == nil { // a pod reports only what is so
		errs = append(errs, r.mark(ctx, check, p.marks))
	}
	for _, run := range p.runs {
		errs = append(errs, r.step(ctx, check, f.cache, run))
	}
	return errors.Join(errs...)
}

// step does what is next for a run. What is noted on the Job wakes the check again.
func (r *reconciler) step(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, l *slurmcache.Cache, run activecheckplan.RunPlan) error {
	switch run.Step {
	case activecheckplan.StepBegin:
		if wrote, err := r.status(ctx, check, run.Job, run.Record); err != nil || !wrote {
			return err
		}
		r.budgets.Withdraw(budgetName(client.ObjectKeyFromObject(check))) // a new run decides anew which nodes are to go
		// Nothing was submitted before the Job showed that the run has begun.
		r.memory.put(client.ObjectKeyFromObject(check), run.Job.UID, submission{})
		return nil
	case activecheckplan.StepSubmit, activecheckplan.StepGiveUp:
		return r.submit(ctx, check, l, run)
	case activecheckplan.StepFollow:
		return r.follow(ctx, check, l, run)
	case activecheckplan.StepNone, activecheckplan.StepWait, activecheckplan.StepFind:
	}
	return nil
}

// No reconcile waits long for Slurm. The next one does what is left.
const (
	submitTimeout = time.Minute
	reactTimeout  = 20 * time.Second
)

// submit submits the jobs of a run, and notes their numbers once all are submitted.
func (r *reconciler) submit(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, l *slurmcache.Cache, run activecheckplan.RunPlan) error {
	key := client.ObjectKeyFromObject(check)
	known, _ := r.memory.get(key, run.Job.UID)
	limited, cancel := context.WithTimeout(ctx, min(submitTimeout, activecheckplan.LastSubmission(run.Job).Sub(r.Clock.Now())))
	defer cancel()
	for _, s := range run.Submit {
		id, err := l.SubmitJob(limited, s)
		switch {
		case err == nil:
			known.jobs = append(known.jobs, activecheckplan.SubmittedJob{ID: numbered(id), Nodes: s.Nodes})
			run.Record.IDs = append(run.Record.IDs, numbered(id))
			r.memory.put(key, run.Job.UID, known)
		case errors.Is(err, slurmrest.Unauthorized) && activecheckplan.AwaitsUser(run.Job, r.Clock.Now()):
			return fmt.Errorf("submitting the jobs of Job %s/%s, which is tried again: %w", run.Job.Namespace, run.Job.Name, err)
		case refused(err):
			known.refused = activecheckplan.Refusal(s, err)
			run.Record.Refused = known.refused
			r.memory.put(key, run.Job.UID, known)
			if errors.Is(err, slurmrest.Unauthorized) { // so it is for all of them
				return r.submitted(ctx, check, run)
			}
		default:
			// The job may be there all the same, and is searched for.
			r.memory.forget(key, run.Job.UID)
			return fmt.Errorf("submitting the jobs of Job %s/%s: %w", run.Job.Namespace, run.Job.Name, err)
		}
	}
	return r.submitted(ctx, check, run)
}

// refused reports whether Slurm refuses a job. The Slurm cache is Fresh, so what is unauthorized is the user of the job.
func refused(err error) bool {
	return errors.Is(err, slurmrest.Refused) || errors.Is(err, slurmrest.Absent) || errors.Is(err, slurmrest.Unauthorized)
}

// submitted notes that all jobs of a run are submitted.
func (r *reconciler) submitted(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, run activecheckplan.RunPlan) error {
	if err := r.note(ctx, check, run.Job, run.Record); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Submitted the Slurm jobs of a run", "job", run.Job.Name, "jobs", strings.Join(run.Record.IDs, ","), "refused", run.Record.Refused)
	_, err := r.status(ctx, check, run.Job, run.Record)
	return err
}

// follow reacts to the jobs of a run that have ended, and notes that. If the operator stops in between, it reacts once more, which changes
// nothing: a node that drains keeps its reason, and a reservation that is there stays.
func (r *reconciler) follow(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, l *slurmcache.Cache, run activecheckplan.RunPlan) error {
	limited, cancel := context.WithTimeout(ctx, reactTimeout)
	defer cancel()
	var errs []error
	for _, c := range run.Conclusions {
		if err := r.react(limited, check, l, run.Job.UID, c); err != nil {
			delete(run.Record.Ended, c.Job.ID)
			errs = append(errs, fmt.Errorf("reacting to Slurm job %s of check %s/%s: %w", c.Job.ID, check.Namespace, check.Name, err))
		}
	}
	if err := r.note(ctx, check, run.Job, run.Record); err != nil {
		return errors.Join(append(errs, err)...) // nobody looks again at the jobs of a Job that is over
	}
	_, err := r.status(ctx, check, run.Job, run.Record)
	return errors.Join(append(errs, err)...)
}

// react reacts to the end of one job.
func (r *reconciler) react(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, l *slurmcache.Cache, job types.UID, c activecheckplan.Conclusion) error {
	var did []string
	left := c.Left
	for _, n := range c.Reactions {
		if n.Drain != "" {
			switch err := r.drain(ctx, check, l, job, n); {
			case isOverBudget(err):
				left = append(left, err.Error())
			case errors.Is(err, slurmcache.ErrHeld):
				left = append(left, "somebody else has drained node "+n.Node)
			case errors.Is(err, slurmrest.Absent):
				left = append(left, "node "+n.Node+" does not exist any more")
			case err != nil:
				return err
			default:
				did = append(did, fmt.Sprintf("drained node %s: %s", n.Node, n.Drain))
			}
		}
		told, refused, err := r.reserve(ctx, l, n)
		if err != nil {
			return err
		}
		did, left = append(did, told...), append(left, refused...)
		if told, refused, err = r.comment(ctx, check, n); err != nil {
			return err
		}
		did, left = append(did, told...), append(left, refused...)
	}
	if len(did)+len(left) > 0 {
		note := fmt.Sprintf("Slurm job %s is %s: %s", c.Job.ID, c.Job.State, strings.Join(append(did, left...), "; "))
		kind := corev1.EventTypeWarning
		if c.Job.State == "COMPLETED" {
			kind = corev1.EventTypeNormal
		}
		r.Recorder.Eventf(check, nil, kind, nebiusv1alpha1.ReasonCheckReaction, "React", "%s", kube.Note(note))
	}
	if len(did) > 0 {
		log.FromContext(ctx).Info("Reacted to a Slurm job of a check", "job", c.Job.ID, "state", c.Job.State, "did", strings.Join(did, "; "))
	}
	return nil
}

// reservationTime is how long a reservation of a check lasts if nobody ends it: what Slurm makes of a duration without end.
const reservationTime = 365 * 24 * time.Hour

// reserve makes and deletes the reservations of a node. One that is there stays as it is.
func (r *reconciler) reserve(ctx context.Context, l *slurmcache.Cache, n activecheckplan.NodeReaction) (did, left []string, err error) {
	if n.AddReservation == "" && n.RemoveReservation == "" {
		return nil, nil, nil
	}
	list, err := l.Reservations(ctx)
	if err != nil {
		return nil, nil, err
	}
	there := map[string]bool{}
	for i := range list {
		there[list[i].Name] = true
	}
	do := func(name, done string, f func() error) {
		switch callErr := f(); {
		case callErr == nil:
			did = append(did, done+" reservation "+name)
		case errors.Is(callErr, slurmrest.Refused):
			left = append(left, "Slurm refuses reservation "+name+": "+callErr.Error())
		default:
			err = errors.Join(err, callErr)
		}
	}
	if name := n.AddReservation; name != "" && there[name] {
		left = append(left, "reservation "+name+" exists already")
	} else if name != "" {
		start := r.Clock.Now().Add(l.Snapshot().Ahead)
		do(name, "made", func() error {
			return l.PutReservation(ctx, slurmrest.Reservation{
				Name: name, Start: start, End: start.Add(reservationTime), Nodes: hostlist.Compress([]string{n.Node}),
				Flags: []string{"MAINT", "IGNORE_JOBS"}, Users: []string{slurmcache.ChecksUser},
			})
		})
	}
	if name := n.RemoveReservation; there[name] && name != n.AddReservation {
		do(name, "deleted", func() error { return l.DeleteReservation(ctx, name) })
	}
	return did, left, err
}

// note writes a record into the annotations of a Job, if it differs from what is there.
func (r *reconciler) note(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, job *batchv1.Job, record activecheckplan.Record) error {
	want := record.Annotations()
	if maps.Equal(want, activecheckplan.ReadRecord(job.Annotations).Annotations()) {
		return nil
	}
	annotations := map[string]any{}
	for key, value := range want {
		annotations[key] = value
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": annotations}}}
	u.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	u.SetNamespace(job.Namespace)
	u.SetName(job.Name)
	u.SetUID(job.UID)
	err := r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(fieldManager), client.ForceOwnership)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting the Slurm jobs of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	if err == nil {
		r.Applier.Changed(check, u)
		job.ResourceVersion = u.GetResourceVersion()
	}
	return nil
}

// status writes the status of a Job, if it differs from what is there, and reports whether it wrote. A Job that has changed meanwhile is
// looked at again.
func (r *reconciler) status(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, job *batchv1.Job, record activecheckplan.Record) (bool, error) {
	after := job.DeepCopy()
	after.Status = activecheckplan.RunStatus(job, record, r.Clock.Now())
	wrote, err := r.Applier.PatchStatus(ctx, job, after)
	switch {
	case apierrors.IsConflict(err):
		return false, nil // an event is on its way
	case err != nil:
		return false, fmt.Errorf("writing the status of Job %s/%s: %w", job.Namespace, job.Name, err)
	case wrote:
		r.Applier.Changed(check, after)
	}
	return wrote, nil
}
