// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const jwtKey = "the-jwt-key-of-at-least-sixteen-bytes"

func TestATokenIsIssuedAndReplacedWhenItIsOfNoUse(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "token")
	operator.Create[slinkyv1beta1.Token](o, operator.AToken)
	missing := operator.ExpectCondition[slinkyv1beta1.Token](o, "ci", "Ready", metav1.ConditionFalse, "KeyMissing")
	if want := "spec.jwtKeyRef: Secret jwt does not exist; create it with the key jwt_hs256.key"; missing != want {
		t.Errorf("%q, want %q", missing, want)
	}
	operator.Create[corev1.Secret](o, operator.JWT)
	message := operator.ExpectCondition[slinkyv1beta1.Token](o, "ci", "Ready", metav1.ConditionTrue, "TokenIssued")
	token := o.ExpectToken("ci-jwt-alice", operator.HS256(t, jwtKey), "")
	claims, err := operator.HS256(t, jwtKey).Read(token)
	if err != nil || claims.User != "alice" || claims.Lifetime() != time.Hour {
		t.Errorf("claims %+v (%v)", claims, err)
	}
	status := operator.Get[slinkyv1beta1.Token](o, "ci").Status
	if !status.IssuedAt.Time.Equal(claims.IssuedAt) || !status.ExpiresAt.Time.Equal(claims.Expiry) ||
		message != "token: Secret ci-jwt-alice holds a token for Slurm user alice until "+claims.Expiry.Format(time.RFC3339) {
		t.Errorf("status %+v, message %q; claims %+v", status, message, claims)
	}
	secret := operator.Get[corev1.Secret](o, "ci-jwt-alice")
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.Kind != "Token" || owner.Name != "ci" {
		t.Errorf("the Secret belongs to %v", owner)
	}

	o.Settle()
	o.Writes.Reset()
	operator.Change(o, "jwt", func(s *corev1.Secret) { s.Labels = map[string]string{"touched": "yes"} })
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)

	// A token that is issued anew within the same second is the same.
	operator.Change(o, "ci-jwt-alice", func(s *corev1.Secret) { s.Data["SLURM_JWT"] = []byte("somebody's") })
	o.ExpectToken("ci-jwt-alice", operator.HS256(t, jwtKey), "")
	operator.Delete[corev1.Secret](o, "ci-jwt-alice")
	o.ExpectToken("ci-jwt-alice", operator.HS256(t, jwtKey), "")
	operator.Change(o, "ci-jwt-alice", func(s *corev1.Secret) { s.Labels, s.Data = nil, nil })
	o.ExpectToken("ci-jwt-alice", operator.HS256(t, jwtKey), "")
	operator.Change(o, "jwt", func(s *corev1.Secret) { s.Data["jwt_hs256.key"] = []byte("another key of sixteen bytes") })
	token = o.ExpectToken("ci-jwt-alice", operator.HS256(t, "another key of sixteen bytes"), "")
	operator.Change(o, "ci", func(s *slinkyv1beta1.Token) { s.Spec.Lifetime = &metav1.Duration{Duration: 2 * time.Hour} })
	last := o.ExpectToken("ci-jwt-alice", operator.HS256(t, "another key of sixteen bytes"), token)
	expectNothingLeaked(t, o, jwtKey, token, last, "another key of sixteen bytes")
}

func TestATokenIsRenewedBeforeItExpires(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "token")
	operator.Create[corev1.Secret](o, operator.JWT)
	operator.Create[slinkyv1beta1.Token](o, `{metadata: {name: ci}, spec: {jwtKeyRef: {name: jwt, key: jwt_hs256.key}, username: alice, lifetime: 15s}}`)
	key := operator.HS256(t, jwtKey)
	token := o.ExpectToken("ci-jwt-alice", key, "")
	for range 2 {
		before, _ := key.Read(token)
		token = o.ExpectToken("ci-jwt-alice", key, token)
		if after, _ := key.Read(token); !after.IssuedAt.Before(before.Expiry) {
			t.Errorf("a token expired at %s, and the next one was issued at %s", before.Expiry, after.IssuedAt)
		}
	}
	for _, w := range o.Writes.All() {
		if strings.HasSuffix(w.Path, "/secrets") {
			t.Errorf("unexpected write %v", w)
		}
	}
}

func TestPrivilegedTokensNeedTheConsentOfTheKeysOwner(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "token")
	operator.Create[corev1.Secret](o, operator.JWT)
	operator.Create[slinkyv1beta1.Token](o, `{metadata: {name: admin}, spec: {jwtKeyRef: {name: jwt, key: jwt_hs256.key}, username: root}}`)
	got := operator.ExpectCondition[slinkyv1beta1.Token](o, "admin", "Stalled", metav1.ConditionTrue, "PrivilegedUser")
	want := "spec.username: a token for root can do everything in Slurm, and Secret jwt does not allow it. To allow it, the owner of the Secret sets annotation coxswain.dev/allow-privileged-tokens=true"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if operator.Exists[corev1.Secret](o, "admin-jwt-root") {
		t.Error("a token was issued")
	}
	operator.Change(o, "jwt", func(s *corev1.Secret) {
		s.Annotations = map[string]string{slinkyv1beta1.AnnotationAllowPrivilegedTokens: "true"}
	})
	operator.ExpectCondition[slinkyv1beta1.Token](o, "admin", "Ready", metav1.ConditionTrue, "TokenIssued")
	o.ExpectToken("admin-jwt-root", operator.HS256(t, jwtKey), "")
}

func TestMistakesOfTokens(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "token")
	operator.Create[corev1.Secret](o, operator.JWT)
	operator.Create[corev1.Secret](o, `{metadata: {name: taken}, stringData: {SLURM_JWT: mine}}`)
	for name, tt := range map[string]struct{ spec, reason, want string }{
		"elsewhere": {`{jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key, namespace: other}, username: a}`, "ReferenceRefused", "spec.jwtHs256KeyRef.namespace: "},
		"taken":     {`{jwtKeyRef: {name: jwt, key: jwt_hs256.key}, username: a, secretRef: {name: taken, key: SLURM_JWT}}`, "NameConflict", "Secret " + o.Namespace + "/taken exists"},
	} {
		operator.Create[slinkyv1beta1.Token](o, fmt.Sprintf("{metadata: {name: %s}, spec: %s}", name, tt.spec))
		got := operator.ExpectCondition[slinkyv1beta1.Token](o, name, "Stalled", metav1.ConditionTrue, tt.reason)
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if status := operator.Get[slinkyv1beta1.Token](o, name).Status; status.IssuedAt != nil {
			t.Errorf("%s: status says that a token was issued at %s", name, status.IssuedAt)
		}
	}
	if got := string(operator.Get[corev1.Secret](o, "taken").Data["SLURM_JWT"]); got != "mine" {
		t.Errorf("somebody's Secret was overwritten with %q", got)
	}
}

func TestRS256TokensComeFromAnAnnotatedKey(t *testing.T) {
	t.Parallel()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
	o := operator.Start(t, "token")
	secret := operator.Create[corev1.Secret](o, `{metadata: {name: rsa, annotations: {coxswain.dev/jwt-key-id: "2026"}}, stringData: {private.pem: "no key"}}`)
	operator.Create[slinkyv1beta1.Token](o, `{metadata: {name: ci}, spec: {jwtKeyRef: {name: rsa, key: private.pem}, username: alice}}`)
	got := operator.ExpectCondition[slinkyv1beta1.Token](o, "ci", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	if want := "spec.jwtKeyRef: key private.pem of Secret rsa cannot be used: reading an RS256 key: it is not an RSA private key in PEM"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	operator.Change(o, secret.Name, func(s *corev1.Secret) { s.Data["private.pem"] = text })
	key, err := slurmtoken.NewRS256(text, "2026")
	if err != nil {
		t.Fatal(err)
	}
	o.ExpectToken("ci-jwt-alice", key, "")
}

func TestATokenThatIsNotRefreshedExpiresForGood(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "token")
	operator.Create[corev1.Secret](o, operator.JWT)
	operator.Create[slinkyv1beta1.Token](o, `{metadata: {name: once}, spec: {jwtKeyRef: {name: jwt, key: jwt_hs256.key}, username: alice, lifetime: 2s, refresh: false}}`)
	token := o.ExpectToken("once-jwt-alice", operator.HS256(t, jwtKey), "")
	if s := operator.Get[corev1.Secret](o, "once-jwt-alice"); s.Immutable == nil || !*s.Immutable {
		t.Error("the Secret is not immutable")
	}
	got := operator.ExpectCondition[slinkyv1beta1.Token](o, "once", "Stalled", metav1.ConditionTrue, "TokenExpired")
	if !strings.HasSuffix(got, "and is not refreshed; delete the Secret to get another token") {
		t.Error(got)
	}
	operator.Delete[corev1.Secret](o, "once-jwt-alice")
	o.ExpectToken("once-jwt-alice", operator.HS256(t, jwtKey), token)
}

// expectNothingLeaked looks for secrets where they must not be.
func expectNothingLeaked(t *testing.T, o *operator.Operator, secrets ...string) {
	t.Helper()
	var events eventsv1.EventList
	var tokens slinkyv1beta1.TokenList
	for _, list := range []client.ObjectList{&events, &tokens} {
		if err := o.User.List(t.Context(), list, client.InNamespace(o.Namespace)); err != nil {
			t.Fatal(err)
		}
	}
	shown := fmt.Sprintf("%+v %+v", events, tokens)
	for _, secret := range secrets {
		if strings.Contains(shown, secret) {
			t.Errorf("a secret is shown in\n%s", shown)
		}
	}
}
