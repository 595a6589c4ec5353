// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jwt decides about a Token: whether the token in its Secret is still good, until when, and what the Secret is
// to hold. Time and randomness come in; a token that is good stays as it is.
package jwt

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

const (
	// issuer is the claim iss, which tools that read tokens of this API expect.
	issuer = "slurm-operator"
	// tolerance is how far in the future a token may have been issued, by an operator whose clock was ahead.
	tolerance = time.Minute
	// minRenewalInterval keeps tokens of seconds from being replaced without a pause.
	minRenewalInterval = time.Second
)

// Input is a Token and what is known about its surroundings.
type Input struct {
	Token *slinkyv1beta1.Token
	// Key signs.
	Key *slurmtoken.Key
	// Stored is the token that the Secret holds; empty when there is none. Sealed is true if the Secret is immutable.
	Stored string
	Sealed bool
	// ID is a new random name for a token.
	ID  string
	Now time.Time
}

// Output is the Secret of a Token and the claims of its token.
type Output struct {
	render.Output
	// Claims are those of the token in the Secret.
	Claims slurmtoken.Claims
	// Again is when to decide anew: when the token is due, or expires.
	Again time.Time
}

// Labels is the identity of the Secret of a Token.
func Labels(t *slinkyv1beta1.Token) label.Set {
	return label.Set{Name: slinkyv1beta1.NameToken, Instance: t.Name, Component: "token"}
}

// Render returns the Secret with the token that it holds, or with a new one when that is of no use or due.
func Render(in Input) Output {
	var out Output
	out.IgnoreOptional(in.Token.Spec)
	t, ref := in.Token, in.Token.TokenRef()
	token := in.Stored
	claims, why := judge(in)
	switch {
	case why == "":
	case in.Sealed && claims.User != "" && !in.Now.Before(claims.Expiry):
		out.Problems = append(out.Problems, problem.Errorf("spec.refresh", slinkyv1beta1.ReasonTokenExpired,
			"the token in Secret %s expired at %s and is not refreshed; delete the Secret to get another token", ref.Name, stamp(claims.Expiry)))
		return out
	case in.Sealed:
		out.Problems = append(out.Problems, problem.Errorf("spec.refresh", slinkyv1beta1.ReasonImmutableField,
			"Secret %s cannot be changed and its token %s; delete the Secret to get another token", ref.Name, why))
		return out
	default:
		claims = newClaims(in)
		signed, err := in.Key.Sign(claims)
		if err != nil {
			out.Fail("spec.jwtKeyRef", err)
			return out
		}
		token = signed
	}
	out.Claims, out.Again = claims, claims.Expiry
	if t.Refreshes() {
		out.Again = due(claims)
	}
	out.Add(&corev1.Secret{
		ObjectMeta: pod.ObjectMeta(t, ref.Name, Labels(t)),
		Type:       corev1.SecretTypeOpaque,
		Immutable:  new(!t.Refreshes()),
		Data:       map[string][]byte{ref.Key: []byte(token)},
	})
	return out
}

// judge reads the stored token and returns why it is of no use; nothing when it is good.
func judge(in Input) (claims slurmtoken.Claims, why string) {
	if in.Stored == "" {
		return claims, "is missing"
	}
	claims, err := in.Key.Read(in.Stored)
	if err != nil {
		return slurmtoken.Claims{}, "was not signed with the key"
	}
	// In this order, so that the most important reason is reported.
	for _, verdict := range []struct {
		bad bool
		why string
	}{
		{claims.User != in.Token.User(), "speaks for another user"},
		{claims.Issuer != issuer || claims.ID == "", "was issued by somebody else"},
		{claims.Lifetime() != lifetime(in.Token), "has another lifetime"},
		{claims.IssuedAt.After(in.Now.Add(tolerance)), "was issued in the future"},
		{!in.Now.Before(claims.Expiry), "has expired"},
		{in.Token.Refreshes() && !in.Now.Before(due(claims)), "is due"},
		{in.Token.Refreshes() && in.Sealed, "cannot be refreshed there"},
	} {
		if verdict.bad {
			return claims, verdict.why
		}
	}
	return claims, ""
}

// newClaims are those of a token issued now.
func newClaims(in Input) slurmtoken.Claims {
	issued := in.Now.UTC().Truncate(time.Second)
	return slurmtoken.Claims{
		ID: in.ID, Issuer: issuer, User: in.Token.User(), IssuedAt: issued, Expiry: issued.Add(lifetime(in.Token)),
	}
}

// lifetime is that of the spec in whole seconds, of which claims consist. An object stored before there was a rule may
// have less than one.
func lifetime(t *slinkyv1beta1.Token) time.Duration {
	return max(time.Second, t.Lifetime().Truncate(time.Second))
}

// due is when four fifths of the lifetime are over.
func due(c slurmtoken.Claims) time.Time {
	return c.IssuedAt.Add(max(minRenewalInterval, c.Lifetime()/5*4))
}

// Message returns what the Secret of a Token holds. It names no claim that would help a thief.
func Message(t *slinkyv1beta1.Token, c slurmtoken.Claims) string {
	return fmt.Sprintf("Secret %s holds a token for Slurm user %s until %s", t.TokenRef().Name, c.User, stamp(c.Expiry))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
