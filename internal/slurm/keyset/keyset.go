// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keyset reads and writes slurm.jwks, the set of keys of auth/slurm, see
// https://slurm.schedmd.com/authentication.html#multi_key_setup. A daemon signs with the default key and accepts those of
// every key in the set, so that a key is replaced without a moment at which two daemons do not understand each other. A
// set that Slurm does not accept ends every daemon that reads it.
//
// Nothing in this package puts a key into an error.
package keyset

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// minKeyBytes is the length that a key must exceed.
const minKeyBytes = 16

type set struct {
	Keys []key `json:"keys"`
}

type key struct {
	Algorithm string `json:"alg"`
	Type      string `json:"kty"`
	ID        string `json:"kid"`
	Value     string `json:"k"`
	Use       string `json:"use,omitempty"`
}

// New returns a set of one key. Its id is made of the key, so that the same key has the same id everywhere.
func New(secret []byte) ([]byte, error) {
	sum := sha256.Sum256(secret)
	text, err := json.Marshal(set{Keys: []key{{
		Algorithm: "HS256", Type: "oct", ID: hex.EncodeToString(sum[:])[:16],
		Value: base64.StdEncoding.EncodeToString(secret), Use: "default",
	}}})
	if err != nil {
		return nil, fmt.Errorf("encoding a key set: %w", err)
	}
	return text, nil
}

// Check returns what Slurm would not accept in a set, or what would leave it without a key to sign with.
func Check(text []byte) error {
	var s set
	if err := json.Unmarshal(text, &s); err != nil {
		return errors.New("it is not a JSON object with a list of keys") // the parser's own error may quote a key
	}
	if len(s.Keys) == 0 {
		return errors.New("it has no keys")
	}
	seen, defaults := map[string]bool{}, 0
	for i, k := range s.Keys {
		if err := k.check(); err != nil {
			return fmt.Errorf("keys[%d]: %w", i, err)
		}
		if seen[k.ID] {
			return fmt.Errorf("keys[%d]: its kid is that of another key", i)
		}
		seen[k.ID] = true
		if k.Use == "default" {
			defaults++
		}
	}
	if defaults != 1 {
		return fmt.Errorf("%d keys have \"use\": \"default\" and exactly one must", defaults)
	}
	return nil
}

func (k key) check() error {
	value, err := decode(k.Value)
	switch {
	case k.Algorithm != "HS256":
		return errors.New("alg must be HS256")
	case k.Type != "oct":
		return errors.New("kty must be oct")
	case k.ID == "":
		return errors.New("kid must not be empty")
	case err != nil:
		return errors.New("k must be base64")
	case len(value) <= minKeyBytes:
		return fmt.Errorf("k must have more than %d bytes", minKeyBytes)
	case k.Use != "" && k.Use != "default":
		return errors.New("use must be default or left out")
	}
	return nil
}

// decode reads both alphabets of base64, with and without padding.
func decode(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	return base64.RawStdEncoding.DecodeString(text)
}
