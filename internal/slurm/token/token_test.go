// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// verify checks a token with nothing but the standard library and returns its header and claims.
func verify(t *testing.T, token string, key []byte) (header, claims map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("token has %d parts, want 3", len(parts))
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if want := base64.RawURLEncoding.EncodeToString(mac.Sum(nil)); parts[2] != want {
		t.Fatalf("signature is %s, want %s", parts[2], want)
	}
	for i, into := range []*map[string]any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			t.Fatal(err)
		}
	}
	return header, claims
}

func TestSignedTokenIsWhatSlurmVerifies(t *testing.T) {
	key := []byte("binary\x00key\n")
	issuer, err := NewSigned(key, "slurm", 12*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	token, expiry, err := issuer.Token(noon.Add(300 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	header, claims := verify(t, token, key)
	if diff := cmp.Diff(map[string]any{"alg": "HS256", "typ": "JWT"}, header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	want := map[string]any{"exp": float64(noon.Unix() + 720), "iat": float64(noon.Unix()), "sun": "slurm"}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	if want := noon.Add(12 * time.Minute); !expiry.Equal(want) {
		t.Errorf("expiry is %s, want %s", expiry, want)
	}
}

func TestSignedTokenIsRenewedEarly(t *testing.T) {
	tests := map[string]struct {
		after time.Duration
		renew bool
	}{
		"is kept at once":                               {0, false},
		"is kept while more than a third is left":       {7*time.Minute + 59*time.Second, false},
		"is renewed when a third is left":               {8 * time.Minute, true},
		"is renewed when expired":                       {time.Hour, true},
		"is renewed when the clock went back beyond it": {-time.Second, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			issuer, err := NewSigned([]byte("key"), "slurm", 12*time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			first, _, err := issuer.Token(noon)
			if err != nil {
				t.Fatal(err)
			}
			now := noon.Add(test.after)
			second, expiry, err := issuer.Token(now)
			if err != nil {
				t.Fatal(err)
			}
			if renewed := first != second; renewed != test.renew {
				t.Errorf("renewed: %t, want %t", renewed, test.renew)
			}
			if left := expiry.Sub(now); left < 4*time.Minute || left >= MaxLifetime {
				t.Errorf("%s are left", left)
			}
		})
	}
}

func TestNewSignedRefuses(t *testing.T) {
	key := []byte("secret-key")
	tests := map[string]struct {
		key      []byte
		user     string
		lifetime time.Duration
		want     string
	}{
		"an empty key":                   {nil, "slurm", 0, "the key is empty"},
		"an empty user":                  {key, "", 0, "the user is empty"},
		"a lifetime of fifteen minutes":  {key, "slurm", 15 * time.Minute, "lifetime 15m0s"},
		"a negative lifetime":            {key, "slurm", -time.Minute, "lifetime -1m0s"},
		"a lifetime shorter than claims": {key, "slurm", time.Millisecond, "lifetime 1ms"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := NewSigned(test.key, test.user, test.lifetime)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestNothingPrintsSecrets(t *testing.T) {
	key := []byte("very-secret-key")
	signed, err := NewSigned(key, "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := signed.Token(noon)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%v %+v %#v %s", signed, signed, signed, signed)
	for _, secret := range []string{"very-secret-key", fmt.Sprintf("%d", key), fmt.Sprintf("%#v", key), token, strings.Split(token, ".")[2]} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is printed in %s", secret, text)
		}
	}
}

func TestSignedMayBeSharedAndItsKeyReused(t *testing.T) {
	key := []byte("key")
	issuer, err := NewSigned(key, "slurm", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	original := bytes.Clone(key)
	key[0] = 'X'
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				token, _, err := issuer.Token(noon.Add(time.Duration(i*j) * time.Second))
				if err != nil || token == "" {
					t.Errorf("no token: %v", err)
				}
			}
		})
	}
	wg.Wait()
	token, _, err := issuer.Token(noon.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	verify(t, token, original)
}
