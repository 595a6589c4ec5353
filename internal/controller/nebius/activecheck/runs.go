// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/activecheck/activecheckplan"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	slurmrest "github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// runs returns the runs of a check that are not over, with what Slurm reports of their jobs. From then on it follows these jobs and no
// others.
func (r *reconciler) runs(ctx context.Context, check *nebiusv1alpha1.ActiveCheck, jobs []batchv1.Job) (*slurmcache.Cache, []activecheckplan.RunInput, error) {
	key := client.ObjectKeyFromObject(check)
	var out []activecheckplan.RunInput
	there := map[types.UID]bool{}
	from := origin{check: check.UID, cluster: slurmcache.Key{Namespace: check.Namespace, Name: check.Spec.SlurmClusterRefName}}
	if !r.memory.enter(key, from) {
		r.forget(key)
		r.memory.enter(key, from)
	}
	l, linked := r.caches.Get(from.cluster)
	var errs []error
	var followed []int64
	for i := range jobs {
		job := &jobs[i]
		if !activecheckplan.Ours(job) || activecheckplan.Over(job) || job.DeletionTimestamp != nil {
			continue
		}
		there[job.UID] = true
		f := activecheckplan.RunInput{RunFacts: activecheckplan.RunFacts{Job: job, Now: r.Clock.Now()}}
		followed = append(followed, open(job)...)
		if linked {
			errs = append(errs, r.readSnapshot(ctx, key, l, &f))
		}
		out = append(out, f)
	}
	r.memory.keep(key, there)
	if linked {
		l.FollowJobs(key.String(), followed...)
	}
	return l, out, errors.Join(errs...)
}

// open returns the numbers of a run's jobs whose end is not noted yet.
func open(job *batchv1.Job) (out []int64) {
	for _, id := range activecheckplan.ReadRecord(job.Annotations).Open() {
		if number, err := strconv.ParseInt(id, 10, 64); err == nil {
			out = append(out, number)
		}
	}
	return out
}

// readSnapshot adds to a run what Slurm reports.
func (r *reconciler) readSnapshot(ctx context.Context, check types.NamespacedName, l *slurmcache.Cache, f *activecheckplan.RunInput) error {
	snapshot := l.Snapshot()
	if snapshot.Trust != slurmcache.Fresh {
		return nil
	}
	f.Reachable = true
	known, ok := r.memory.get(check, f.Job.UID)
	f.Known = ok
	switch activecheckplan.NextStep(f.RunFacts) {
	case activecheckplan.StepFind:
		found, err := find(ctx, l, f.Job)
		if err != nil {
			return err
		}
		known = submission{jobs: found}
		r.memory.put(check, f.Job.UID, known)
		f.Known = true
	case activecheckplan.StepFollow:
		err := ends(ctx, l, f)
		if len(f.Ended) > 0 {
			f.Nodes = listed(snapshot)
		}
		return err
	}
	f.There, f.Refused = known.jobs, known.refused
	if submits(*f) {
		f.Nodes = listed(snapshot)
	}
	return nil
}

// listed returns Slurm's nodes. A cluster may have thousands, so they are copied only where a decision needs them.
func listed(snapshot *slurmcache.Snapshot) (out []slurmrest.Node) {
	for n := range snapshot.Nodes() {
		out = append(out, *n)
	}
	return out
}

// find looks for the Slurm jobs of a run.
func find(ctx context.Context, l *slurmcache.Cache, job *batchv1.Job) (out []activecheckplan.SubmittedJob, err error) {
	found, err := l.CheckJobs(ctx, func(comment string) bool {
		_, ours := activecheckplan.ReadMarker(job, comment)
		return ours
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the Slurm jobs of Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	slices.SortFunc(found, func(a, b slurmrest.JobRecord) int { return cmp.Compare(a.ID, b.ID) })
	for i := range found {
		list, _ := activecheckplan.ReadMarker(job, found[i].Comment)
		nodes, err := expand(list)
		if err != nil {
			return nil, fmt.Errorf("reading the comment of Slurm job %d: %w", found[i].ID, err)
		}
		out = append(out, activecheckplan.SubmittedJob{ID: numbered(found[i].ID), Nodes: nodes})
	}
	return out, nil
}

func numbered(id int64) string { return strconv.FormatInt(id, 10) }

// maxNodes bounds the nodes of one job.
const maxNodes = 1 << 17

// expand returns the nodes of a host list, which may be empty.
func expand(expression string) ([]string, error) {
	if expression == "" {
		return nil, nil
	}
	return hostlist.Expand(expression, maxNodes)
}

// ends adds to a run the jobs that have ended and whose end is not noted yet.
func ends(ctx context.Context, l *slurmcache.Cache, f *activecheckplan.RunInput) error {
	var errs []error
	for _, number := range open(f.Job) {
		id := numbered(number)
		state, exists := l.JobState(number)
		switch {
		case exists == node.No:
			f.Ended = append(f.Ended, forgotten(id))
		case exists == node.Yes && slurmrest.Finished(state):
			job, err := l.Job(ctx, number)
			// A slurmctld that has lost its state gives the numbers again, to jobs of others.
			_, ours := activecheckplan.ReadMarker(f.Job, job.Comment)
			if errors.Is(err, slurmrest.Absent) || err == nil && !ours {
				f.Ended = append(f.Ended, forgotten(id))
				continue
			}
			ended, expandErr := endedJob(id, job)
			if err = errors.Join(err, expandErr); err != nil {
				errs = append(errs, fmt.Errorf("looking at Slurm job %s: %w", id, err))
				continue
			}
			if slurmrest.Finished(job.State) { // it may have been requeued since
				f.Ended = append(f.Ended, ended)
			}
		}
	}
	return errors.Join(errs...)
}

// forgotten returns a job that slurmctld does not have any more.
func forgotten(id string) activecheckplan.EndedJob {
	end := activecheckplan.Forgotten()
	return activecheckplan.EndedJob{CheckedJob: activecheckplan.CheckedJob{ID: id, State: end.State}, Reason: end.Reason}
}

// endedJob returns a job as Slurm has it.
func endedJob(id string, job slurmrest.JobRecord) (activecheckplan.EndedJob, error) {
	nodes, err := expand(job.Nodes)
	state := ""
	if len(job.State) > 0 {
		state = job.State[0]
	}
	return activecheckplan.EndedJob{CheckedJob: activecheckplan.CheckedJob{ID: id, State: state, Nodes: nodes}, Reason: strings.TrimSpace(job.Reason)}, err
}
