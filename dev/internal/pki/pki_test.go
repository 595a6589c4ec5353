// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIssuedCertificatesAreTrusted(t *testing.T) {
	dir := t.TempDir()
	ca, err := OpenAuthority(dir, "ca")
	if err != nil {
		t.Fatal(err)
	}
	leaf := Leaf{Name: "server", CommonName: "someone", Organization: "group", Hosts: []string{"localhost", "10.0.0.1"}}
	if err := ca.Issue(leaf); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	for _, host := range leaf.Hosts {
		for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
			o := x509.VerifyOptions{DNSName: host, Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}
			if _, err := pair.Leaf.Verify(o); err != nil {
				t.Errorf("verifying for %s: %v", host, err)
			}
		}
	}
	if s := pair.Leaf.Subject.String(); s != "CN=someone,O=group" {
		t.Errorf("the subject is %q", s)
	}
	if info, err := os.Stat(filepath.Join(dir, "server.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v, %v", info.Mode(), err)
	}
}

func TestWhatExistsIsKept(t *testing.T) {
	dir := t.TempDir()
	make := func() map[string]string {
		ca, err := OpenAuthority(dir, "ca")
		if err != nil {
			t.Fatal(err)
		}
		if err := ca.Issue(Leaf{Name: "admin", CommonName: "admin"}); err != nil {
			t.Fatal(err)
		}
		if err := WriteSigningKey(dir, "sa"); err != nil {
			t.Fatal(err)
		}
		if err := WriteKubeconfig(dir, "test", "admin", "https://127.0.0.1:1", filepath.Join(dir, "kubeconfig")); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			files[e.Name()] = string(b)
		}
		return files
	}
	first := make()
	if len(first) != 7 {
		t.Errorf("made %d files, want 7", len(first))
	}
	for name, content := range make() {
		if first[name] != content {
			t.Errorf("%s changed", name)
		}
	}
}

func TestABrokenAuthorityIsNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ca.crt", "ca.key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenAuthority(dir, "ca"); err == nil || !strings.Contains(err.Error(), "authority ca") {
		t.Errorf("got %v", err)
	}
}
