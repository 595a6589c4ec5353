// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"sync"

	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
)

// watched knows of each process that this localkube found or started whether
// it ended since.
type watched struct {
	mu        sync.Mutex
	processes map[string]watchedProcess
}

type watchedProcess struct {
	exited <-chan struct{}
	// found is true if the process ran before this localkube did.
	found bool
}

// reset begins with the processes that were found.
func (w *watched) reset(running map[string]proc.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes = map[string]watchedProcess{}
	for component, p := range running {
		w.processes[component] = watchedProcess{exited: proc.Watch(p.PID), found: true}
	}
}

// add adds a process that was started.
func (w *watched) add(component string, exited <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.processes[component] = watchedProcess{exited: exited}
}

// ended returns the first of the components whose process ended.
func (w *watched) ended(components []string) (component string, found, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, component := range components {
		p, ok := w.processes[component]
		if !ok {
			continue
		}
		select {
		case <-p.exited:
			return component, p.found, true
		default:
		}
	}
	return "", false, false
}

// endedError says that a process ended while it was needed.
type endedError struct {
	component string
	// found is true if the process ran before this localkube did.
	found bool
	log   string
}

func (e *endedError) Error() string { return fmt.Sprintf("the process %s ended%s", e.component, e.log) }

// ended returns an error for the first of the components whose process ended.
func (c *Cluster) ended(components ...string) error {
	if component, found, ok := c.watched.ended(components); ok {
		return &endedError{component: component, found: found, log: c.tail(component)}
	}
	return nil
}
