// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes a cluster's keys, certificates and kubeconfigs.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// validity is long because a cluster is thrown away long before.
const validity = 10 * 365 * 24 * time.Hour

// Authority is a certificate authority that keeps its files in a directory.
type Authority struct {
	dir, name string
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
}

// Leaf describes a certificate for both client and server use.
type Leaf struct {
	// Name is the base name of the .crt and .key files.
	Name string
	// CommonName and Organization are the user and group for Kubernetes.
	CommonName, Organization string
	// Hosts are DNS names and IP addresses.
	Hosts []string
}

// OpenAuthority reads the authority name.crt and name.key in dir, or makes it.
func OpenAuthority(dir, name string) (*Authority, error) {
	a := &Authority{dir: dir, name: name}
	certPEM, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if errors.Is(err, os.ErrNotExist) {
		return a, a.create()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the authority %s: %w", name, err)
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		return nil, fmt.Errorf("reading the authority %s: %w", name, err)
	}
	certBlock, _ := pem.Decode(certPEM)
	keyBlock, _ := pem.Decode(keyPEM)
	if certBlock == nil || keyBlock == nil {
		return nil, fmt.Errorf("reading the authority %s: no PEM block in %s", name, dir)
	}
	if a.cert, err = x509.ParseCertificate(certBlock.Bytes); err != nil {
		return nil, fmt.Errorf("reading the authority %s: %w", name, err)
	}
	if a.key, err = x509.ParseECPrivateKey(keyBlock.Bytes); err != nil {
		return nil, fmt.Errorf("reading the authority %s: %w", name, err)
	}
	return a, nil
}

func (a *Authority) create() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the authority %s: %w", a.name, err)
	}
	template, err := newTemplate(pkix.Name{CommonName: "localkube " + a.name})
	if err != nil {
		return err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("making the authority %s: %w", a.name, err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("making the authority %s: %w", a.name, err)
	}
	a.key = key
	return writePair(a.dir, a.name, der, key)
}

// Issue writes the certificate and key of a leaf unless they exist.
func (a *Authority) Issue(l Leaf) error {
	if _, err := os.Stat(filepath.Join(a.dir, l.Name+".crt")); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key %s: %w", l.Name, err)
	}
	subject := pkix.Name{CommonName: l.CommonName}
	if l.Organization != "" {
		subject.Organization = []string{l.Organization}
	}
	template, err := newTemplate(subject)
	if err != nil {
		return err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, h := range l.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return fmt.Errorf("signing the certificate %s: %w", l.Name, err)
	}
	return writePair(a.dir, l.Name, der, key)
}

func newTemplate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
	}, nil
}

// writePair writes the certificate last: where it exists, the key does too.
func writePair(dir, name string, der []byte, key *ecdsa.PrivateKey) error {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key %s: %w", name, err)
	}
	if err := writePEM(filepath.Join(dir, name+".key"), "EC PRIVATE KEY", keyDER, 0o600); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, name+".crt"), "CERTIFICATE", der, 0o644)
}

// WriteSigningKey writes name.key and name.pub in dir, for ServiceAccount
// tokens, unless they exist.
func WriteSigningKey(dir, name string) error {
	public := filepath.Join(dir, name+".pub")
	if _, err := os.Stat(public); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key %s: %w", name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding the key %s: %w", name, err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the key %s: %w", name, err)
	}
	if err := writePEM(filepath.Join(dir, name+".key"), "EC PRIVATE KEY", keyDER, 0o600); err != nil {
		return err
	}
	return writePEM(public, "PUBLIC KEY", publicDER, 0o644)
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	return WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}

// WriteFile writes a file in a way that readers see all of it or nothing, also
// after a crash in the middle.
func WriteFile(path string, content []byte, mode os.FileMode) error {
	if err := os.WriteFile(path+".new", content, mode); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
