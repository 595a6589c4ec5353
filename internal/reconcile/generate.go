// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/slurm/keyset"
)

// keyBytes is the size of generated keys; Slurm's documentation uses as many.
const keyBytes = 1024

// generate makes the content of a Secret with generated keys.
func generate(ctx context.Context, s render.Secret) (map[string][]byte, error) {
	switch s.Content {
	case render.RandomBytes:
		return map[string][]byte{s.Key: randomBytes()}, nil
	case render.RandomText:
		return map[string][]byte{s.Key: []byte(rand.Text())}, nil
	case render.SlurmKey:
		key := randomBytes()
		// A slurmd that was started without a set of keys does not learn to use one, so it is there from the beginning.
		set, err := keyset.New(key)
		return map[string][]byte{s.Key: key, s.Set: set}, err
	case render.SSHHostKeys:
		return hostKeys(ctx)
	default:
		return nil, fmt.Errorf("nobody knows how to generate %q", s.Content)
	}
}

// randomBytes never fails: the program ends when the system has no randomness (crypto/rand.Read).
func randomBytes() []byte {
	value := make([]byte, keyBytes)
	_, _ = rand.Read(value)
	return value
}
