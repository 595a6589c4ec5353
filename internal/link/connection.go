// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// callTimeout bounds one call to slurmrestd; listing 10,000 nodes took 2.2 s.
const callTimeout = time.Minute

// A connection has the client for the current endpoint of slurmrestd, and knows how long slurmrestd worked for it.
type connection struct {
	issuer issuer
	// checks makes the tokens of ChecksUser. checksUID is the uid of that user by a job of it; 0 is not known yet.
	checks    atomic.Pointer[token.Issuer]
	checksUID atomic.Int64

	mu       sync.Mutex
	endpoint string
	client   *rest.Client
	work     map[string]time.Duration // of slurmrestd, for the last answer to each call
}

// issuer is the current token issuer; clients hold on to it across changes of key.
type issuer struct{ current atomic.Pointer[token.Issuer] }

// Token asks the current issuer.
func (i *issuer) Token(now time.Time) (string, time.Time, error) {
	return (*i.current.Load()).Token(now)
}

// get returns the client in use. Another one takes its place when the endpoint changes.
func (c *connection) get() *rest.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// leadsTo says whether the endpoint is the one in use.
func (c *connection) leadsTo(endpoint string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client != nil && c.endpoint == endpoint
}

// replace puts the client of another endpoint in the place of the one before, which ends.
func (c *connection) replace(endpoint string, client *rest.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		c.client.Close()
	}
	c.endpoint, c.client = endpoint, client
}

// worked notes how long slurmrestd worked for a call.
func (c *connection) worked(o rest.Observation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.work == nil {
		c.work = map[string]time.Duration{}
	}
	c.work[o.Call] = o.Worked
}

// lastWork is how long slurmrestd worked for its last answer to a call.
func (c *connection) lastWork(call string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.work[call]
}
