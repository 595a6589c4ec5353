// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// scontrol gives out tokens that "scontrol token" makes; see scontrol(1).
type scontrol struct {
	program, user string
	lifetime      time.Duration

	mu     sync.Mutex
	token  *token.Static
	expiry time.Time
}

const (
	// renewBefore is how long before its end a token is replaced, or at half of its lifetime if that is later.
	renewBefore = 30 * time.Second
	// scontrolTimeout is how long scontrol has.
	scontrolTimeout = 10 * time.Second
)

// Token returns the token that was made last, or another one shortly before that expires.
func (s *scontrol) Token(now time.Time) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == nil || now.Add(min(renewBefore, s.lifetime/2)).After(s.expiry) {
		made, err := s.make()
		if err != nil {
			return "", time.Time{}, fmt.Errorf("making a token with %s: %w", s.program, err)
		}
		s.token, s.expiry = made, now.Add(s.lifetime)
	}
	text, _, err := s.token.Token(now)
	return text, s.expiry, err
}

func (s *scontrol) make() (*token.Static, error) {
	ctx, cancel := context.WithTimeout(context.Background(), scontrolTimeout)
	defer cancel()
	lifespan := strconv.Itoa(int(s.lifetime / time.Second))
	out, err := exec.CommandContext(ctx, s.program, "token", "username="+s.user, "lifespan="+lifespan).Output() //nolint:gosec // whoever starts the program names it
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && len(exit.Stderr) > 0 {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return nil, err
	}
	text, ok := strings.CutPrefix(strings.TrimSpace(string(out)), "SLURM_JWT=")
	if !ok {
		return nil, errors.New("it did not print SLURM_JWT=…")
	}
	return token.NewStatic(text)
}
