// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package token issues the JSON web tokens with which slurmrestd is asked.
//
// Slurm accepts a token with the claims exp, iat and sun (its user), signed with HS256 and the key of
// AuthAltParameters=jwt_key=…; see https://slurm.schedmd.com/jwt.html. There is no nbf claim: a slurmctld whose clock is
// a second behind ours would refuse every fresh token, and exp already bounds what a stolen one is worth.
//
// Nothing in this package puts a key or a token into an error or a formatted value.
package token

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	// MaxLifetime is the lifetime that no signed token reaches.
	MaxLifetime = 15 * time.Minute
	// DefaultLifetime is the lifetime of a signed token when none is asked for.
	DefaultLifetime = 10 * time.Minute
)

// An Issuer gives out a token that is valid at now, together with the moment at which it stops being valid (zero: not
// known). Issuers are safe for concurrent use and may give out the same token several times.
type Issuer interface {
	Token(now time.Time) (token string, expiry time.Time, err error)
}

// Signed signs tokens itself, with the key that slurmctld verifies them with.
type Signed struct {
	key      []byte
	user     string
	lifetime time.Duration

	mu     sync.Mutex
	token  string
	issued time.Time
	expiry time.Time
}

// NewSigned returns an issuer of HS256 tokens for a Slurm user. The key is the content of jwt_hs256.key, every byte of
// it: Slurm strips no newline either. A lifetime of zero means DefaultLifetime.
func NewSigned(key []byte, user string, lifetime time.Duration) (*Signed, error) {
	if lifetime == 0 {
		lifetime = DefaultLifetime
	}
	switch {
	case len(key) == 0:
		return nil, errors.New("making a token issuer: the key is empty")
	case user == "":
		return nil, errors.New("making a token issuer: the user is empty")
	case lifetime < time.Second || lifetime >= MaxLifetime:
		return nil, fmt.Errorf("making a token issuer: lifetime %s is not between 1s and %s", lifetime, MaxLifetime)
	}
	return &Signed{key: append([]byte(nil), key...), user: user, lifetime: lifetime}, nil
}

// Token returns the current token, or a new one once less than a third of the lifetime is left, so that no request
// carries a token that expires on its way. A clock that went backwards beyond the time of issue also brings a new one.
func (s *Signed) Token(now time.Time) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != "" && !now.Before(s.issued) && s.expiry.Sub(now) > s.lifetime/3 {
		return s.token, s.expiry, nil
	}
	// Claims count whole seconds; rounding down keeps the lifetime below its bound.
	issued := now.Truncate(time.Second)
	expiry := issued.Add(s.lifetime).Truncate(time.Second)
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"exp": expiry.Unix(),
		"iat": issued.Unix(),
		"sun": s.user,
	}).SignedString(s.key)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("signing a token for Slurm user %s: %w", s.user, err)
	}
	s.token, s.issued, s.expiry = signed, issued, expiry
	return s.token, s.expiry, nil
}

// String names the issuer without its key.
func (s *Signed) String() string { return "tokens signed for Slurm user " + s.user }

// GoString is String, so that %#v shows no key either.
func (s *Signed) GoString() string { return s.String() }
