// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const pollInterval = 50 * time.Millisecond

// poll calls check until it returns nil, the process of one of the components
// ends, or the time is over. The error then holds the last reason and the end of
// the first component's log.
func (c *Cluster) poll(ctx context.Context, what string, timeout time.Duration, check func(context.Context) error, components ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not within %v", timeout))
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if err := c.ended(components...); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		c.progress.Doing("waiting for %s", what)
		select {
		case <-ctx.Done():
			cause := context.Cause(ctx)
			if errors.Is(cause, context.Canceled) {
				return cause
			}
			log := ""
			if len(components) > 0 {
				log = c.tail(components[0])
			}
			return fmt.Errorf("waiting for %s: %w: %w%s", what, cause, err, log)
		case <-time.After(pollInterval):
		}
	}
}

// tail returns the end of a component's log, for an error message.
func (c *Cluster) tail(component string) string {
	const size, lines = 8 << 10, 12
	path := c.Log(component)
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > size {
		if _, err := f.Seek(-size, io.SeekEnd); err != nil {
			return ""
		}
	}
	b, err := io.ReadAll(f)
	if err != nil || len(bytes.TrimSpace(b)) == 0 {
		return fmt.Sprintf("\nIts log %s is empty.", path)
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return fmt.Sprintf("\nThe end of its log %s:\n  %s", path, strings.Join(all[max(0, len(all)-lines):], "\n  "))
}
