// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package token

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var ofAlice = Claims{ID: "1", Issuer: "slurm-operator", User: "alice", IssuedAt: noon, Expiry: noon.Add(time.Hour)}

// rsaKey makes a private key in PEM.
func rsaKey(t testing.TB, bits int) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestTokenThatIsHandedOutIsWhatSlurmVerifies(t *testing.T) {
	secret := []byte("-----BEGIN RSA PRIVATE KEY-----\nolder instructions make HS256 keys like this\n")
	key, err := NewHS256(secret)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := key.Sign(ofAlice)
	if err != nil {
		t.Fatal(err)
	}
	header, claims := verify(t, signed, secret)
	if diff := cmp.Diff(map[string]any{"alg": "HS256", "typ": "JWT"}, header); diff != "" {
		t.Errorf("header (-want +got):\n%s", diff)
	}
	at := float64(noon.Unix())
	want := map[string]any{"jti": "1", "iss": "slurm-operator", "sun": "alice", "iat": at, "nbf": at, "exp": at + 3600}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

func TestKeyRecognisesItsOwnTokens(t *testing.T) {
	text := rsaKey(t, 2048)
	hmac, _ := NewHS256([]byte("one"))
	other, _ := NewHS256([]byte("two"))
	rs, err := NewRS256(text, "a")
	if err != nil {
		t.Fatal(err)
	}
	renamed, _ := NewRS256(text, "b")
	keys := map[string]*Key{"HS256": hmac, "another HS256 key": other, "RS256": rs, "RS256 under another id": renamed}
	for signer, by := range keys {
		signed, err := by.Sign(ofAlice)
		if err != nil {
			t.Fatal(err)
		}
		for reader, with := range keys {
			got, err := with.Read(signed)
			if own := signer == reader; own != (err == nil) {
				t.Errorf("%s reads what %s signed: %v", reader, signer, err)
			} else if own {
				if diff := cmp.Diff(ofAlice, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", signer, diff)
				}
			}
		}
	}
}

func TestRS256KeysAreLongPrivateAndNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		text     []byte
		id, want string
	}{
		"random bytes":        {[]byte("\x00\x01"), "a", "not an RSA private key in PEM"},
		"an empty text":       {nil, "a", "not an RSA private key in PEM"},
		"a key that is short": {rsaKey(t, 1024), "a", "it has 1024 bits and needs at least 2048"},
		"a key without an id": {rsaKey(t, 2048), "", "the key id is empty"},
	} {
		if _, err := NewRS256(tt.text, tt.id); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if _, err := NewHS256(nil); err == nil {
		t.Error("an empty HS256 key was accepted")
	}
}

func TestKeysDoNotShowThemselves(t *testing.T) {
	key, err := NewHS256([]byte("very-secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(key), fmt.Sprintf("%+v", key), fmt.Sprintf("%#v", key)} {
		if strings.Contains(shown, "very-secret") || strings.Contains(shown, "118 101 114 121") {
			t.Error(shown)
		}
	}
	if _, err := key.Read("very.secret.token"); err == nil || strings.Contains(err.Error(), "very") {
		t.Errorf("the error is %v", err)
	}
}

func TestPrivileged(t *testing.T) {
	for user, want := range map[string]bool{
		"root": true, "slurm": true, "ROOT": true, "Slurm": true, "0": true, "00": true, "401": true, "1000": true, "+0": true, "-0": true,
		"4294967296": true, "": true, "alice": false, "root1": false, "1st": false, "jane@example.org": false, "nobody": false,
	} {
		if got := Privileged(user); got != want {
			t.Errorf("Privileged(%q) is %t", user, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	key, _ := NewHS256([]byte("key"))
	signed, _ := key.Sign(ofAlice)
	f.Add(signed)
	f.Add("")
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, text string) {
		claims, err := key.Read(text)
		if err != nil {
			return
		}
		again, err := key.Sign(claims)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := key.Read(again); err != nil || got != claims {
			t.Errorf("%+v becomes %+v (%v)", claims, got, err)
		}
	})
}
