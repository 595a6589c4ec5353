// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
)

// watched records of each process that this localkube found or started whether
// it has ended since.
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
func (w *watched) ended(components []string) (component string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, component := range components {
		select {
		case <-w.processes[component].exited:
			return component, true
		default:
		}
	}
	return "", false
}

// grace is how long after an error the end of a process may be noticed that
// caused it.
const grace = 250 * time.Millisecond

// foundEnded returns a component whose process was found running and ended
// since.
func (w *watched) foundEnded() (component string, ok bool) {
	var found []string
	for component, p := range w.processes {
		if p.found {
			found = append(found, component)
		}
	}
	deadline := time.After(grace)
	for {
		if component, ok := w.ended(found); ok {
			return component, true
		}
		select {
		case <-deadline:
			return "", false
		case <-time.After(grace / 10):
		}
	}
}

// ended returns an error for the first of the components whose process ended.
func (c *Cluster) ended(components ...string) error {
	if component, ok := c.watched.ended(components); ok {
		return fmt.Errorf("the process %s ended%s", component, c.tail(component))
	}
	return nil
}
