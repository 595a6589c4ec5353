// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/test/login"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

const (
	// jobsTimeout is the time within which all jobs must have ended and been accounted for.
	jobsTimeout = 2 * time.Minute
	arrayTasks  = 4
)

const arrayScript = `echo "task $SLURM_ARRAY_TASK_ID of $(id -un) ran on $SLURMD_NODENAME"
sleep 1
`

// jobs does what a user would do on the first day.
func (d *demo) jobs(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, jobsTimeout, fmt.Errorf("the jobs have not ended within %s", jobsTimeout))
	defer cancel()
	d.progress.Waiting("the login node")
	s, leave, err := walk.LogIn(ctx, d.k, d.door, d.sample.User, d.key)
	if err != nil {
		return err
	}
	defer leave()
	if err := d.installs(ctx, s); err != nil {
		return err
	}
	d.progress.Waiting("the jobs")
	job, err := s.Submit(ctx, login.Batch{Script: arrayScript, Options: []string{
		"--job-name=array", fmt.Sprintf("--array=1-%d", arrayTasks), "--output=%x-%A-%a.out",
	}})
	if err != nil {
		return err
	}
	d.progress.Say("  $ sbatch --array=1-%d array.sh", arrayTasks)
	d.progress.Block(fmt.Sprintf("Submitted batch job %d", job))
	out, err := d.show(ctx, s, "srun --nodes=2 hostname")
	if err != nil {
		return err
	}
	if hosts := strings.Fields(out); len(hosts) != 2 || hosts[0] == hosts[1] {
		return fmt.Errorf("srun ran on %v, not on two nodes", hosts)
	}
	tasks, err := s.AwaitAccounted(ctx, job, arrayTasks)
	if err != nil {
		return err
	}
	for _, command := range []string{
		fmt.Sprintf("cat array-%d-*.out", job),
		"sinfo",
		"sacct --allocations --starttime=now-2minutes --format=JobID,JobName,Partition,User,NodeList,State,ExitCode",
	} {
		if _, err := d.show(ctx, s, command); err != nil {
			return err
		}
	}
	for _, t := range tasks {
		if t.State != "COMPLETED" {
			return fmt.Errorf("task %s is %s, not COMPLETED", t.ID, t.State)
		}
	}
	return nil
}

// greeting makes a Debian package with one program.
const greeting = `mkdir -p greeting/DEBIAN greeting/usr/bin
printf 'Package: greeting\nVersion: 1\nArchitecture: all\nMaintainer: alice\nDescription: says hello\n' >greeting/DEBIAN/control
printf '#!/bin/sh\necho "hello from $(hostname)"\n' >greeting/usr/bin/greeting
chmod 755 greeting/usr/bin/greeting
dpkg-deb --root-owner-group --build greeting`

// installs installs a package on the login node, and uses it in a job on both workers: they share a root file system.
func (d *demo) installs(ctx context.Context, s *login.Session) error {
	d.progress.Waiting("a package")
	if _, err := s.Run(ctx, greeting); err != nil {
		return err
	}
	if _, err := d.show(ctx, s, "sudo dpkg --install greeting.deb"); err != nil {
		return err
	}
	out, err := d.show(ctx, s, "srun --nodes=2 greeting")
	if err != nil {
		return err
	}
	if got := strings.Split(strings.TrimSpace(out), "\n"); len(got) != 2 || got[0] == got[1] {
		return fmt.Errorf("the package said %q, not hello from two nodes", out)
	}
	return nil
}

// show runs a command and shows it with its output.
func (d *demo) show(ctx context.Context, s *login.Session, command string) (string, error) {
	out, err := s.Run(ctx, command)
	if err != nil {
		return "", err
	}
	d.progress.Say("  $ %s", command)
	d.progress.Block(out)
	if strings.TrimSpace(out) == "" {
		return "", fmt.Errorf("%q printed nothing", command)
	}
	return out, nil
}
