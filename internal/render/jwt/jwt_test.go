// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jwt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/jwt"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func key(t testing.TB, secret string) *slurmtoken.Key {
	t.Helper()
	k, err := slurmtoken.NewHS256([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func input(t testing.TB, spec string) jwt.Input {
	return jwt.Input{
		Token: manifest.Parse[slinkyv1beta1.Token](t, "metadata: {name: demo, namespace: ns1, labels: {team: a}, annotations: {note: b}}\nspec: "+spec),
		Key:   key(t, "the key"), ID: "new", Now: noon,
	}
}

const alice = `{jwtKeyRef: {name: jwt, key: jwt.key}, username: alice, lifetime: 100s}`

// stored lets the Secret hold a token that was issued as in would have it at that time.
func stored(in jwt.Input, at time.Time) jwt.Input {
	in.Now, in.Stored, in.ID = at, "", "old"
	secret := jwt.Render(in).Objects[0].(*corev1.Secret)
	in.Stored = string(secret.Data[in.Token.TokenRef().Key])
	in.Sealed = *secret.Immutable
	in.Now, in.ID = noon, "new"
	return in
}

func TestSecret(t *testing.T) {
	for name, tt := range map[string]struct {
		spec, secret, key string
		sealed            bool
		again             time.Duration
	}{
		"named after Token and user":    {alice, "demo-jwt-alice", "SLURM_JWT", false, 80 * time.Second},
		"of a user who is left out":     {`{username: ""}`, "demo-jwt-nobody", "SLURM_JWT", false, 12 * time.Minute},
		"as the spec names it":          {`{username: a_b, secretRef: {name: mine, key: token}}`, "mine", "token", false, 12 * time.Minute},
		"sealed when it is not renewed": {`{username: alice, refresh: false, lifetime: 1h}`, "demo-jwt-alice", "SLURM_JWT", true, time.Hour},
		"of a second":                   {`{username: alice, lifetime: 1s}`, "demo-jwt-alice", "SLURM_JWT", false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, tt.spec)
			out := jwt.Render(in)
			if len(out.Problems) > 0 || len(out.Objects) != 1 {
				t.Fatal(out.Objects, out.Problems.Message())
			}
			got := out.Objects[0].(*corev1.Secret)
			claims, err := in.Key.Read(string(got.Data[tt.key]))
			if err != nil {
				t.Fatal(err)
			}
			want := slurmtoken.Claims{ID: "new", Issuer: "slurm-operator", User: in.Token.User(), IssuedAt: noon, Expiry: noon.Add(in.Token.Lifetime())}
			if diff := cmp.Diff(want, claims); diff != "" {
				t.Error(diff)
			}
			if got.Name != tt.secret || got.Namespace != "ns1" || *got.Immutable != tt.sealed || got.Type != corev1.SecretTypeOpaque || !out.Again.Equal(noon.Add(tt.again)) {
				t.Errorf("%s/%s of type %s, immutable %t, again at %s", got.Namespace, got.Name, got.Type, *got.Immutable, out.Again)
			}
			if got.Labels["team"] != "a" || got.Annotations["note"] != "b" || got.Labels["app.kubernetes.io/managed-by"] != "coxswain" {
				t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
			}
		})
	}
}

func TestATokenIsKeptWhileItIsGood(t *testing.T) {
	good := stored(input(t, alice), noon)
	for name, tt := range map[string]struct {
		change func(in *jwt.Input)
		keep   bool
	}{
		"is kept at once":                                {func(*jwt.Input) {}, true},
		"is kept before four fifths of its life":         {func(in *jwt.Input) { in.Now = noon.Add(80*time.Second - 1) }, true},
		"is replaced at four fifths of its life":         {func(in *jwt.Input) { in.Now = noon.Add(80 * time.Second) }, false},
		"is replaced when it has expired":                {func(in *jwt.Input) { in.Now = noon.Add(time.Hour) }, false},
		"is kept when the clock is a little behind":      {func(in *jwt.Input) { in.Now = noon.Add(-time.Minute) }, true},
		"is replaced when it comes from the future":      {func(in *jwt.Input) { in.Now = noon.Add(-time.Minute - 1) }, false},
		"is replaced when the key has changed":           {func(in *jwt.Input) { in.Key = key(t, "another") }, false},
		"is replaced when somebody overwrote it":         {func(in *jwt.Input) { in.Stored = "x" }, false},
		"is replaced when it is gone":                    {func(in *jwt.Input) { in.Stored = "" }, false},
		"is replaced when another lifetime is asked for": {func(in *jwt.Input) { in.Token.Spec.Lifetime.Duration = time.Hour }, false},
		"is replaced when it speaks for somebody else": {func(in *jwt.Input) {
			in.Stored = stored(input(t, strings.Replace(alice, "alice", "bob", 1)), noon).Stored
		}, false},
		"is replaced when somebody else with the key made it": {func(in *jwt.Input) { in.Stored = foreign(t, in.Key) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := good
			in.Token = good.Token.DeepCopy()
			tt.change(&in)
			out := jwt.Render(in)
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			if kept := out.Claims.ID == "old"; kept != tt.keep {
				t.Errorf("the token was kept: %t", kept)
			}
			if value := string(out.Objects[0].(*corev1.Secret).Data["SLURM_JWT"]); tt.keep != (value == in.Stored) {
				t.Error("the Secret does not hold what was decided")
			}
			if !out.Again.After(in.Now) {
				t.Errorf("to be decided again at %s, which is not after %s", out.Again, in.Now)
			}
		})
	}
}

func foreign(t *testing.T, key *slurmtoken.Key) string {
	t.Helper()
	text, err := key.Sign(slurmtoken.Claims{ID: "x", Issuer: "scontrol", User: "alice", IssuedAt: noon, Expiry: noon.Add(100 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestASealedSecretIsNotFoughtOver(t *testing.T) {
	sealed := stored(input(t, strings.Replace(alice, "alice", "alice, refresh: false", 1)), noon)
	if !sealed.Sealed {
		t.Fatal("a token that is not refreshed is not sealed")
	}
	for name, tt := range map[string]struct {
		change func(in *jwt.Input)
		want   string
	}{
		"good": {func(in *jwt.Input) { in.Now = noon.Add(99 * time.Second) }, ""},
		"expired": {func(in *jwt.Input) { in.Now = noon.Add(100 * time.Second) },
			"spec.refresh: the token in Secret demo-jwt-alice expired at 2026-11-20T12:01:40Z and is not refreshed; delete the Secret to get another token"},
		"another key": {func(in *jwt.Input) { in.Key = key(t, "another") },
			"spec.refresh: Secret demo-jwt-alice cannot be changed and its token was not signed with the key; delete the Secret to get another token"},
		"to be refreshed from now on": {func(in *jwt.Input) { in.Token.Spec.Refresh = new(true) },
			"spec.refresh: Secret demo-jwt-alice cannot be changed and its token cannot be refreshed there; delete the Secret to get another token"},
	} {
		t.Run(name, func(t *testing.T) {
			in := sealed
			in.Token = sealed.Token.DeepCopy()
			tt.change(&in)
			out := jwt.Render(in)
			if got := out.Problems.Message(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if tt.want == "" && out.Claims.ID != "old" {
				t.Error("a good token was replaced")
			}
		})
	}
}

// Whatever happens, the token in the Secret is valid for its user, and the next look comes before it expires.
func TestTheSecretNeverHoldsABadToken(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		in := input(t, alice)
		now := noon
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(int64(-2*time.Minute), int64(5*time.Minute)).Draw(r, "passed")))
			in.Now, in.ID = now, rapid.StringMatching("[a-z]{4}").Draw(r, "id")
			in.Token.Spec.Lifetime.Duration = time.Duration(rapid.IntRange(1, 300).Draw(r, "lifetime")) * time.Second
			if rapid.Bool().Draw(r, "tampered") {
				in.Stored = rapid.SampledFrom([]string{"", "x", "a.b.c", in.Stored + "x"}).Draw(r, "stored")
			}
			out := jwt.Render(in)
			in.Stored = string(out.Objects[0].(*corev1.Secret).Data["SLURM_JWT"])
			claims, err := in.Key.Read(in.Stored)
			if err != nil || claims != out.Claims || claims.User != "alice" || !claims.Expiry.After(now) || claims.Lifetime() != in.Token.Lifetime() {
				r.Fatalf("%+v (%v) at %s", claims, err, now)
			}
			if !out.Again.After(now) || out.Again.After(claims.Expiry) {
				r.Fatalf("again at %s; now %s, expiry %s", out.Again, now, claims.Expiry)
			}
		}
	})
}
