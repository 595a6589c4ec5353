// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// Login pods and workers share a root file system: a user made in it is known everywhere, and what is installed in it is
// there for the next job.
func TestJail(t *testing.T) {
	needsTime(t)
	t.Parallel()
	s := newScene(t)
	m := s.manifest(t, "jail.yaml")
	s.apply(t, m[:2])
	s.awaitJob(t, "populate")
	s.apply(t, m[2:])
	s.awaitReady(t, m)
	s.sound(t)
	root := s.enterLoginSet(t, "login", "root")
	carol := s.newcomer(t, root, "carol")
	t.Run("a new user is known everywhere", func(t *testing.T) { s.knows(t, "carol") })
	t.Run("jobs run in the jail, with the user's groups, and are accounted for", func(t *testing.T) {
		job := carol.submits(t, "pwd; id -un; id -nG; ls -d /scratch; test -e /etc/soperator-jail-populated && echo in the jail\n", "--output=/home/carol/where.out")
		carol.awaits(t, job, "COMPLETED")
		if got, want := carol.runs(t, "cat where.out"), "/home/carol\ncarol\ncarol video users\n/scratch\nin the jail"; got != want {
			t.Errorf("the job printed %q, want %q", got, want)
		}
		carol.walksThrough(t)
		carol.seesAccounted(t, job)
	})
	t.Run("what is installed on a login node is there for jobs on all workers", func(t *testing.T) {
		root.runs(t, `printf '#!/bin/sh\necho a tool of the jail\n' >/usr/local/bin/tool && chmod 755 /usr/local/bin/tool`)
		if got := carol.runs(t, "srun --nodes=2 tool"); got != "a tool of the jail\na tool of the jail" {
			t.Errorf("srun --nodes=2 tool printed %q", got)
		}
	})
	t.Run("Slurm's commands are those of the pod, also where the jail has others", func(t *testing.T) {
		want := carol.runs(t, "squeue --version")
		if got := carol.runs(t, "srun squeue --version"); got != want || !strings.HasPrefix(got, "slurm") {
			t.Errorf("squeue --version printed %q in a job, %q on the login node", got, want)
		}
	})
	t.Run("a client of munge submits a job, whose programs have munge, too", carol.usesMunge)
	t.Run("PMI2 ranks the tasks of a step over both workers", func(t *testing.T) { carol.seesRanks(t, "pmi2", "PMI_RANK", "node-0", "node-1") })
	t.Run("somebody of the users list has a home in the jail after the first login", func(t *testing.T) {
		dave := s.enterLoginSet(t, "login", "dave")
		if got, want := dave.runs(t, "pwd; stat -c '%U %a' ."), "/home/dave\ndave 700"; got != want {
			t.Errorf("dave's home is %q, want %q", got, want)
		}
		if got, want := dave.runs(t, "srun --nodes=2 sh -c 'echo $(id -un) in $(pwd)'"), "dave in /home/dave"; got != want+"\n"+want {
			t.Errorf("the job printed %q", got)
		}
	})
	t.Run("a hundred users are known everywhere within seconds", func(t *testing.T) { s.knowsAHundred(t, root) })
	t.Run("nobody who logs in can mount, not even root", func(t *testing.T) {
		if out, err := root.Run(t.Context(), "mount -t tmpfs tmpfs /mnt"); err == nil {
			t.Errorf("root has mounted something: %s", out)
		}
	})
}

// seesRanks runs a task for MPI on each of the nodes. variable is where this kind of MPI gives a task its rank. Which node has the first
// one is up to Slurm: it counts nodes in the order in which they registered.
func (u *user) seesRanks(t *testing.T, kind, variable string, nodes ...string) {
	t.Helper()
	command := fmt.Sprintf("srun --chdir=/ --mpi=%s --nodes=%d --nodelist=%s sh -c 'echo $%s $(hostname)'",
		kind, len(nodes), strings.Join(nodes, ","), variable)
	var ranks, hosts []string
	for line := range strings.Lines(u.runs(t, command)) {
		rank, host, _ := strings.Cut(strings.TrimSpace(line), " ")
		ranks, hosts = append(ranks, rank), append(hosts, host)
	}
	slices.Sort(ranks)
	slices.Sort(hosts)
	var want []string
	for rank := range nodes {
		want = append(want, strconv.Itoa(rank))
	}
	if !slices.Equal(ranks, want) || !slices.Equal(hosts, nodes) {
		t.Errorf("%s printed ranks %q on %q, want %q on %q", command, ranks, hosts, want, nodes)
	}
}

// awaitJob waits until a Job of Kubernetes is complete.
func (s *scene) awaitJob(t *testing.T, name string) {
	t.Helper()
	eventually(t, patient, "Job "+name+" to complete", func(ctx context.Context) error {
		var job batchv1.Job
		if err := s.Get(ctx, s.name(name), &job); err != nil {
			return err
		}
		if job.Status.Succeeded == 0 {
			return fmt.Errorf("%d of its pods have failed", job.Status.Failed)
		}
		return nil
	})
}

// newcomer makes a user in the jail, with a home and a key, and logs in as that user. It logs how long that takes.
func (s *scene) newcomer(t *testing.T, root *user, name string) *user {
	t.Helper()
	root.runs(t, fmt.Sprintf("createuser --uid 2345 --without-sudo --groups video --ssh-key '%s' %s", strings.TrimSpace(stage.key.AuthorizedKey()), name))
	made := time.Now()
	door, err := walk.NewDoor(t.Context(), s.Kubernetes, s.name("login"), "login")
	if err != nil {
		t.Fatal(err)
	}
	var entered *user
	eventually(t, soon, name+" to log in", func(ctx context.Context) error {
		session, leave, err := walk.LogIn(ctx, s.Kubernetes, door, name, stage.key)
		if err != nil {
			return err
		}
		t.Cleanup(leave)
		entered = &user{Session: session}
		return nil
	})
	t.Logf("%s logs in %.1f s after the account was made", name, time.Since(made).Seconds())
	return entered
}

// knows waits until all login pods, workers and slurmctld know these users of the jail.
func (s *scene) knows(t *testing.T, names ...string) {
	t.Helper()
	for _, place := range []struct{ pod, container string }{
		{"login-0", "login"}, {"login-1", "login"}, {"node-0", "slurmd"}, {"node-1", "slurmd"}, {"slurm-controller-0", "slurmctld"},
	} {
		eventually(t, soon, fmt.Sprintf("%s to know %d users", place.pod, len(names)), func(ctx context.Context) error {
			out, err := s.Exec(ctx, s.name(place.pod), place.container, append([]string{"getent", "passwd"}, names...)...)
			if got := strings.Count(out, "\n"); err == nil && got != len(names) {
				err = fmt.Errorf("it knows %d", got)
			}
			return err
		})
	}
}
