// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// issuerID is the kid of the key in the cluster's set.
const issuerID = "of-the-test"

// issuesByRSA makes an RSA key: the private half a Secret for Tokens, the public one a ConfigMap that the Controller of the
// manifest trusts beside its own key.
func (s *scene) issuesByRSA(t *testing.T, m walk.Manifest) {
	t.Helper()
	key := newRSAKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "issuer", Annotations: map[string]string{slinkyv1beta1.AnnotationJwtKeyID: issuerID}},
		Data:       map[string][]byte{"private.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})},
	}
	if err := s.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	set, err := json.Marshal(map[string]any{"keys": []map[string]string{{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": issuerID, "n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	public := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "issuers"}, Data: map[string]string{"jwks.json": string(set)}}
	if err := s.Create(t.Context(), public); err != nil {
		t.Fatal(err)
	}
	err = unstructured.SetNestedStringMap(controllerObject(t, m).Object, map[string]string{"name": "issuers", "key": "jwks.json"}, "spec", "jwksKeyRef")
	if err != nil {
		t.Fatal(err)
	}
}

func newRSAKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// usesAsymmetricToken sees a Token that is signed with RS256 accepted, and a forged one of the same kid refused.
func (u *user) usesAsymmetricToken(t *testing.T, s *scene) {
	t.Helper()
	m, err := walk.ParseManifest([]byte("apiVersion: slinky.slurm.net/v1beta1\nkind: Token\nmetadata: {name: asymmetric}\n" +
		"spec: {username: nobody, jwtKeyRef: {name: issuer, key: private.pem}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, m)
	u.usesToken(t, s, "asymmetric-jwt-nobody", false)

	forged := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"sun": "nobody", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()})
	forged.Header["kid"] = issuerID
	signed, err := forged.SignedString(newRSAKey(t))
	if err != nil {
		t.Fatal(err)
	}
	status, err := u.asks(t.Context(), http.MethodGet, "http://rest-restapi:6820/slurm/"+restVersion+"/nodes/", signed, "", nil)
	if err != nil || status == http.StatusOK {
		t.Errorf("a forged token: status %d (%v)", status, err)
	}
}
