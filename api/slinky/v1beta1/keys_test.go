// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func ref(name, key string) *corev1.SecretKeySelector {
	return &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: key}
}

func show(s *corev1.SecretKeySelector) string {
	if s == nil {
		return "none"
	}
	return s.Name + ":" + s.Key
}

func TestKeysOfControllerAndAccounting(t *testing.T) {
	for _, tt := range []struct {
		name                       string
		slurm, jwt, hs256          *corev1.SecretKeySelector
		external                   bool
		wantSlurm, wantJwt         string
		wantSlurmMade, wantJwtMade bool
	}{
		{name: "keys that are not given are generated", wantSlurm: "demo-auth-slurm:slurm.key", wantJwt: "demo-auth-jwt:jwt.key", wantSlurmMade: true, wantJwtMade: true},
		{name: "keys of an external daemon are not generated", external: true, wantSlurm: "demo-auth-slurm:slurm.key", wantJwt: "demo-auth-jwt:jwt.key"},
		{name: "keys that are given are used", slurm: ref("a", "b"), jwt: ref("c", "d"), wantSlurm: "a:b", wantJwt: "c:d"},
		{name: "the deprecated reference is used", slurm: ref("a", "b"), hs256: ref("e", "f"), wantSlurm: "a:b", wantJwt: "e:f"},
		{name: "the newer reference wins", slurm: ref("a", "b"), jwt: ref("c", "d"), hs256: ref("e", "f"), wantSlurm: "a:b", wantJwt: "c:d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{ObjectMeta: meta("demo"), Spec: slinkyv1beta1.ControllerSpec{
				SlurmKeyRef: tt.slurm, JwtKeyRef: tt.jwt, JwtHs256KeyRef: tt.hs256, External: tt.external,
			}}
			accounting := &slinkyv1beta1.Accounting{ObjectMeta: meta("demo"), Spec: slinkyv1beta1.AccountingSpec{
				SlurmKeyRef: tt.slurm, JwtKeyRef: tt.jwt, JwtHs256KeyRef: tt.hs256, External: tt.external,
			}}
			type keyed interface {
				AuthSlurmRef() *corev1.SecretKeySelector
				AuthJwtRef() *corev1.SecretKeySelector
				GeneratesSlurmKey() bool
				GeneratesJwtKey() bool
			}
			for _, object := range []keyed{controller, accounting} {
				if got := show(object.AuthSlurmRef()); got != tt.wantSlurm {
					t.Errorf("%T: auth/slurm key %s, want %s", object, got, tt.wantSlurm)
				}
				if got := show(object.AuthJwtRef()); got != tt.wantJwt {
					t.Errorf("%T: JWT key %s, want %s", object, got, tt.wantJwt)
				}
				if got := object.GeneratesSlurmKey(); got != tt.wantSlurmMade {
					t.Errorf("%T: auth/slurm key generated = %t", object, got)
				}
				if got := object.GeneratesJwtKey(); got != tt.wantJwtMade {
					t.Errorf("%T: JWT key generated = %t", object, got)
				}
			}
		})
	}
}

func TestDatabaseOfAccounting(t *testing.T) {
	for _, tt := range []struct {
		name         string
		spec         slinkyv1beta1.AccountingSpec
		wantNone     bool
		want         slinkyv1beta1.StorageConfig
		wantPassword string
	}{
		{name: "an external slurmdbd has none here", spec: slinkyv1beta1.AccountingSpec{External: true}, wantNone: true},
		{
			name:         "an embedded database has a generated password",
			spec:         slinkyv1beta1.AccountingSpec{EmbeddedDatabase: &slinkyv1beta1.EmbeddedDatabase{}},
			want:         slinkyv1beta1.StorageConfig{Host: "demo-database.ns1", Port: 3306, Database: "slurm_acct_db", Username: "slurm"},
			wantPassword: "demo-auth-database:password",
		},
		{
			name:         "an embedded database has the password that is given",
			spec:         slinkyv1beta1.AccountingSpec{EmbeddedDatabase: &slinkyv1beta1.EmbeddedDatabase{PasswordKeyRef: ref("a", "b")}},
			want:         slinkyv1beta1.StorageConfig{Host: "demo-database.ns1", Port: 3306, Database: "slurm_acct_db", Username: "slurm"},
			wantPassword: "a:b",
		},
		{
			name:         "an existing database gets the defaults",
			spec:         slinkyv1beta1.AccountingSpec{StorageConfig: &slinkyv1beta1.StorageConfig{Host: "db", PasswordKeyRef: *ref("a", "b")}},
			want:         slinkyv1beta1.StorageConfig{Host: "db", Port: 3306, Database: "slurm_acct_db", Username: "slurm"},
			wantPassword: "a:b",
		},
		{
			name: "an existing database is used as it is described",
			spec: slinkyv1beta1.AccountingSpec{StorageConfig: &slinkyv1beta1.StorageConfig{
				Host: "db", Port: 3307, Database: "acct", Username: "me", PasswordKeyRef: *ref("a", "b"),
			}},
			want:         slinkyv1beta1.StorageConfig{Host: "db", Port: 3307, Database: "acct", Username: "me"},
			wantPassword: "a:b",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			accounting := &slinkyv1beta1.Accounting{ObjectMeta: meta("demo"), Spec: tt.spec}
			got, ok := accounting.Database()
			if ok == tt.wantNone {
				t.Fatalf("there is a database = %t", ok)
			}
			if tt.wantNone {
				return
			}
			if show(&got.PasswordKeyRef) != tt.wantPassword {
				t.Errorf("password in %s, want %s", show(&got.PasswordKeyRef), tt.wantPassword)
			}
			got.PasswordKeyRef = corev1.SecretKeySelector{}
			if got != tt.want {
				t.Errorf("database = %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestToken(t *testing.T) {
	token := &slinkyv1beta1.Token{ObjectMeta: meta("demo")}
	if got := show(token.AuthJwtRef()); got != "none" {
		t.Errorf("key of a Token without one = %s", got)
	}
	if got := show(token.TokenRef()); got != "demo-jwt-nobody:SLURM_JWT" {
		t.Errorf("Secret of nobody's Token = %s", got)
	}
	token.Spec.SecretRef = ref("", "t")
	if got := show(token.TokenRef()); got != "demo-jwt-nobody:t" {
		t.Errorf("Secret with a key of its own = %s", got)
	}
	token.Spec.SecretRef = ref("s", "t")
	if got := show(token.TokenRef()); got != "s:t" {
		t.Errorf("Secret that is given = %s", got)
	}
	token.Spec.JwtHs256KeyRef = &slinkyv1beta1.JwtSecretKeySelector{SecretKeySelector: *ref("a", "b")}
	if got := show(token.AuthJwtRef()); got != "a:b" {
		t.Errorf("deprecated key = %s", got)
	}
	token.Spec.JwtKeyRef = ref("c", "d")
	if got := show(token.AuthJwtRef()); got != "c:d" {
		t.Errorf("key = %s", got)
	}
}
