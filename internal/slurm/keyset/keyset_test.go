// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package keyset_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/keyset"
)

// fromTheManual is the example of https://slurm.schedmd.com/authentication.html.
const fromTheManual = `{"keys": [
  {"alg": "HS256", "kty": "oct", "kid": "key-identifier", "k": "VGhlIGtleSBiZWxvdyBtZSBuZXZlciBsaWVz", "exp": 1718200800},
  {"alg": "HS256", "kty": "oct", "kid": "key-identifier-2", "k": "VGhlIGtleSBhYm92ZSBtZSBhbHdheXMgbGllcw==", "use": "default"}]}`

func TestCheck(t *testing.T) {
	replaced := func(old, other string) string { return strings.Replace(fromTheManual, old, other, 1) }
	for name, tt := range map[string]struct{ text, want string }{
		"the manual's example":     {fromTheManual, ""},
		"the other alphabet":       {replaced("VGhlIGtleSBiZWxvdyBtZSBuZXZlciBsaWVz", "-_hlIGtleSBiZWxvdyBtZSBuZXZlciBsaWVz"), ""},
		"no JSON":                  {"c2VjcmV0", "it is not a JSON object with a list of keys"},
		"a key of another type":    {`{"keys": "secret"}`, "it is not a JSON object with a list of keys"},
		"no keys":                  {`{}`, "it has no keys"},
		"another algorithm":        {replaced("HS256", "RS256"), "keys[0]: alg must be HS256"},
		"another family":           {replaced("oct", "RSA"), "keys[0]: kty must be oct"},
		"no id":                    {replaced(`"key-identifier"`, `""`), "keys[0]: kid must not be empty"},
		"an id twice":              {replaced("identifier-2", "identifier"), "keys[1]: its kid is that of another key"},
		"a key that is no base64":  {replaced("VGhlIGtleSBiZWxvdyBtZSBuZXZlciBsaWVz", "a secret"), "keys[0]: k must be base64"},
		"a key that is too short":  {replaced("VGhlIGtleSBiZWxvdyBtZSBuZXZlciBsaWVz", "VGhlIGtleSBiZWxvdyBtZQ=="), "keys[0]: k must have more than 16 bytes"},
		"no default":               {replaced(`"use": "default"`, `"x": 1`), `0 keys have "use": "default" and exactly one must`},
		"two defaults":             {replaced(`"exp": 1718200800`, `"use": "default"`), `2 keys have "use": "default" and exactly one must`},
		"another use of the other": {replaced(`"exp": 1718200800`, `"use": "sig"`), "keys[0]: use must be default or left out"},
	} {
		got := ""
		if err := keyset.Check([]byte(tt.text)); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestASetOfOneKey(t *testing.T) {
	secret := bytes.Repeat([]byte{0xfb, 0xff}, 512)
	one, err := keyset.New(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := keyset.Check(one); err != nil {
		t.Error(err)
	}
	again, _ := keyset.New(secret)
	other, _ := keyset.New(append(secret, 0))
	if !bytes.Equal(one, again) || bytes.Equal(one[:80], other[:80]) {
		t.Error("the id of a key does not follow from the key")
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(fromTheManual))
	f.Add([]byte(`{"keys":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := keyset.Check(text); err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("the error quotes the text: %v", err)
		}
	})
}
