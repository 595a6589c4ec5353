// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// minRSABits is the size in bits below which RFC 7518 section 3.3 forbids RS256.
const minRSABits = 2048

// Claims are the claims of a token that is handed out.
type Claims struct {
	// ID identifies the token (jti).
	ID string
	// Issuer is who made the token (iss).
	Issuer string
	// User is the Slurm user of the token (sun).
	User string
	// IssuedAt is when the token begins to be valid (iat and nbf), and Expiry when it ends (exp), in whole seconds.
	IssuedAt, Expiry time.Time
}

// Lifetime is the time for which the token is valid.
func (c Claims) Lifetime() time.Duration { return c.Expiry.Sub(c.IssuedAt) }

// Key signs tokens and recognises those that it has signed.
type Key struct {
	method       jwt.SigningMethod
	sign, verify any
	// id is the kid in the header, by which slurmctld finds the public key in its jwks; empty with HS256.
	id string
}

// NewHS256 returns the key that slurmctld has by AuthAltParameters=jwt_key=…: every byte of the file, a line break at its end
// included. That is so, too, when the bytes look like something else, such as the PEM text that older instructions made.
func NewHS256(secret []byte) (*Key, error) {
	if len(secret) == 0 {
		return nil, errors.New("reading an HS256 key: it is empty")
	}
	secret = bytes.Clone(secret)
	return &Key{method: jwt.SigningMethodHS256, sign: secret, verify: secret}, nil
}

// NewRS256 returns an RSA private key, in PEM, whose public half slurmctld has by AuthAltParameters=jwks=… under the key
// id. Errors do not quote the key.
func NewRS256(text []byte, id string) (*Key, error) {
	private, err := jwt.ParseRSAPrivateKeyFromPEM(text)
	switch {
	case err != nil:
		return nil, errors.New("reading an RS256 key: it is not an RSA private key in PEM")
	case private.N.BitLen() < minRSABits:
		return nil, fmt.Errorf("reading an RS256 key: it has %d bits and needs at least %d", private.N.BitLen(), minRSABits)
	case id == "":
		return nil, errors.New("reading an RS256 key: the key id is empty")
	}
	return &Key{method: jwt.SigningMethodRS256, sign: private, verify: publicOf(private), id: id}, nil
}

func publicOf(private *rsa.PrivateKey) *rsa.PublicKey { return &private.PublicKey }

// Sign makes a token. Times are cut to whole seconds.
func (k *Key) Sign(c Claims) (string, error) {
	token := jwt.NewWithClaims(k.method, jwt.MapClaims{
		"jti": c.ID, "iss": c.Issuer, "sun": c.User,
		"iat": c.IssuedAt.Unix(), "nbf": c.IssuedAt.Unix(), "exp": c.Expiry.Unix(),
	})
	if k.id != "" {
		token.Header["kid"] = k.id
	}
	signed, err := token.SignedString(k.sign)
	if err != nil {
		return "", fmt.Errorf("signing a token for Slurm user %s: %w", c.User, err)
	}
	return signed, nil
}

// Read returns the claims of a token that this key has signed, whether it has expired or not. Any other text is an error,
// which does not quote it.
func (k *Key) Read(token string) (Claims, error) {
	var claims struct {
		jwt.RegisteredClaims
		User string `json:"sun"`
	}
	parsed, err := jwt.NewParser(jwt.WithValidMethods([]string{k.method.Alg()}), jwt.WithoutClaimsValidation()).
		ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return k.verify, nil })
	if err != nil || claims.IssuedAt == nil || claims.ExpiresAt == nil {
		return Claims{}, errors.New("reading a token: it was not signed with this key")
	}
	if id, _ := parsed.Header["kid"].(string); id != k.id {
		return Claims{}, errors.New("reading a token: its key has another id")
	}
	return Claims{
		ID: claims.ID, Issuer: claims.Issuer, User: claims.User,
		IssuedAt: claims.IssuedAt.UTC(), Expiry: claims.ExpiresAt.UTC(),
	}, nil
}

// String names the kind of key and reveals nothing of the key itself.
func (k *Key) String() string { return "a key for " + k.method.Alg() }

// GoString is String, so that %#v shows no key either.
func (k *Key) GoString() string { return k.String() }

// Privileged reports whether a user may do in Slurm what others may not: root and SlurmUser, which is slurm in every cluster
// that Coxswain runs. Slurm takes a number for a uid, in more than one spelling, so that no number passes as harmless.
func Privileged(user string) bool {
	return strings.EqualFold(user, "root") || strings.EqualFold(user, "slurm") || strings.Trim(user, "+-0123456789") == ""
}
