// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck/runner"
)

const (
	// jailPatience is how long the file system of the jail may take to answer: NFS that is mounted hard waits for its server for ever.
	jailPatience = 20 * time.Second
	// jailInterval is the time between two questions to it.
	jailInterval = time.Second
	// endPatience is how long the checks may take to end that were interrupted.
	endPatience = time.Second
)

// errHangs means that the file system of the jail does not answer.
var errHangs = errors.New("the file system of the jail does not respond; checks that were still running have no result")

// askJail waits for the server of the file system of the jail, which answers this call from no cache.
func askJail(o options) error {
	var st unix.Statfs_t
	return unix.Statfs(filepath.Join(o.root, o.jail), &st)
}

// guarded runs the checks, which open files of the jail, for as long as its file system answers. When it hangs, it does so on all nodes:
// the program ends as after any error of its own, so that no node is drained.
func guarded(ctx context.Context, in invocation, o options, checkContext passivecheck.Context, run func(context.Context) int) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hangs, done := make(chan struct{}), make(chan int, 1)
	go watchJail(ctx, in, o, hangs)
	go func() { done <- run(ctx) }()
	select {
	case code := <-done:
		return code
	case <-hangs:
	}
	cancel()
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C: // it waits for the jail
	}
	counter := passivecheck.Counter{Context: checkContext}
	fmt.Fprintln(in.Stderr, "check-runner:", errors.Join(errHangs, runner.Count(o.root, counter), runner.WriteToPodLog(o.root, counter, errHangs)))
	return 0
}

// watchJail closes a channel when the file system of the jail has not answered in time.
func watchJail(ctx context.Context, in invocation, o options, hangs chan<- struct{}) {
	next := time.NewTicker(jailInterval)
	defer next.Stop()
	for {
		answered := make(chan struct{})
		go func() {
			// An error is an answer. Opening the jail reports it.
			_ = in.Ask(o)
			close(answered)
		}()
		patience := time.NewTimer(in.Patience)
		select {
		case <-answered:
		case <-patience.C:
			close(hangs)
			return
		case <-ctx.Done():
			patience.Stop()
			return
		}
		patience.Stop()
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}
