// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// rules returns a right each, as "verb group/resource".
func rules(rights ...string) (out []rbacv1.PolicyRule) {
	for _, right := range rights {
		verb, resource, _ := strings.Cut(right, " ")
		group, resource, _ := strings.Cut(resource, ":")
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}})
	}
	return out
}

// tokenRights returns the rights that "kubectl slurm token" names.
func tokenRights() []string {
	const group = " slinky.slurm.net:"
	return []string{"list" + group + "controllers", "create" + group + "tokens", "watch" + group + "tokens", "delete" + group + "tokens", "get :secrets"}
}

const signingKey = "0123456789abcdef0123456789abcdef"

// The operator runs, with its controller of Tokens.
func TestATokenIsIssuedByTheOperator(t *testing.T) {
	o := operator.Start(t, "token")
	for _, object := range []client.Object{
		&slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "demo", Namespace: o.Namespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "demo-auth-jwt", Namespace: o.Namespace}, Data: map[string][]byte{"jwt.key": []byte(signingKey)}},
	} {
		if err := o.User.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, as(t, o.Server, "issuer", rules(tokenRights()...)...), o.Namespace)
	key, err := slurmtoken.NewHS256([]byte(signingKey))
	if err != nil {
		t.Fatal(err)
	}
	got := run(t.Context(), t, program(), kubeconfig, "token", "Alice_B", "--lifespan=1h").check(t, 0)
	claims, err := key.Read(strings.TrimSpace(got.out))
	if err != nil || claims.User != "Alice_B" || claims.Lifetime() != time.Hour || got.errors != "" {
		t.Errorf("the claims are %+v, %v, and the errors %q", claims, err, got.errors)
	}
	got = run(t.Context(), t, program(), kubeconfig, "token", "-o", "json").check(t, 0)
	var answer struct {
		Token, Username string
		ExpiresAt       time.Time
	}
	if err := json.Unmarshal([]byte(got.out), &answer); err != nil {
		t.Fatal(err)
	}
	if claims, err = key.Read(answer.Token); err != nil || claims.User != "me" || answer.Username != "me" || !answer.ExpiresAt.Equal(claims.Expiry) {
		t.Errorf("it printed %+v, and the claims are %+v, %v", answer, claims, err)
	}
	refused := run(t.Context(), t, program(), kubeconfig, "token", "root").check(t, 1)
	if !strings.Contains(refused.errors, "PrivilegedUser") || !strings.Contains(refused.errors, slinkyv1beta1.AnnotationAllowPrivilegedTokens) {
		t.Errorf("the errors are %q", refused.errors)
	}
	var left slinkyv1beta1.TokenList
	if err := o.User.List(t.Context(), &left, client.InNamespace(o.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) > 0 {
		t.Errorf("%d Tokens are left", len(left.Items))
	}
}

// Whatever fails, the Token is deleted, and the error names what to do.
func TestATokenThatNobodyIssues(t *testing.T) {
	server := apiserver.Start(t)
	c := server.Client(t, newScheme(t))
	kubeconfig := func(user string, rights ...string) string {
		return "--kubeconfig=" + writeKubeconfig(t, as(t, server, user, rules(rights...)...), server.Namespace)
	}
	all := kubeconfig("all", tokenRights()...)
	fails := func(want string, args ...string) {
		t.Helper()
		if got := run(t.Context(), t, program(), args...).check(t, 1); !strings.Contains(got.errors, want) || got.out != "" {
			t.Errorf("%q: it printed %q and the errors %q, want %q", args, got.out, got.errors, want)
		}
	}
	fails("there is no Controller in namespace "+server.Namespace, all, "token", "alice")
	for _, name := range []string{"a", "b"} {
		if err := c.Create(t.Context(), &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: server.Namespace}}); err != nil {
			t.Fatal(err)
		}
	}
	fails("choose one with --controller: a, b", all, "token", "alice")
	fails("there is no Controller c", all, "token", "alice", "--controller=c")
	fails("no token for alice after 200ms: the operator has not handled it yet", all, "token", "alice", "--controller=a", "--timeout=200ms")
	fails("you lack the right to create tokens.slinky.slurm.net, to delete tokens.slinky.slurm.net, to get secrets. Ask for a Role that allows it, or use --exec",
		kubeconfig("some", tokenRights()[0], tokenRights()[2]), "token", "alice", "--controller=a")
	fails("you lack the right to get pods/exec, to create pods/exec. Ask for a Role that allows it, or leave out --exec",
		kubeconfig("lister", "list :pods"), "token", "alice", "--exec")
	var left slinkyv1beta1.TokenList
	if err := c.List(t.Context(), &left, client.InNamespace(server.Namespace)); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) > 0 {
		t.Errorf("%d Tokens are left", len(left.Items))
	}
}

func TestATokenIsIssuedByScontrol(t *testing.T) {
	server := apiserver.Start(t)
	runPod(t, server, answeringKubelet(t, 0, func(_, _ string, command []string) string {
		return "SLURM_JWT=" + strings.Join(commandOf(command), ",") + "\n"
	}), readyLogin("a-0", "a"))
	runPod(t, server, answeringKubelet(t, 1, func(_, _ string, _ []string) string { return "" }), readyLogin("b-0", "b"))
	runPod(t, server, answeringKubelet(t, 0, func(_, _ string, _ []string) string { return "SLURM_JWT=\n" }), readyLogin("c-0", "c"))
	config := as(t, server, "root", rules("list :pods", "get :pods/exec", "create :pods/exec")...)
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, config, server.Namespace)
	for name, tc := range map[string]struct {
		args []string
		code int
		// out and err are what is printed.
		out, err string
	}{
		"a token":                  {[]string{"alice", "--login=a"}, 0, "scontrol,token,username=alice,lifespan=900\n", ""},
		"with a lifespan":          {[]string{"alice", "--login=a-0", "--lifespan=1m30s"}, 0, "scontrol,token,username=alice,lifespan=90\n", ""},
		"as data":                  {[]string{"alice", "--login=a", "-o", "yaml"}, 0, "expiresAt: \"2026-11-25T12:15:00Z\"\ntoken: scontrol,token,username=alice,lifespan=900\nusername: alice\n", ""},
		"slurmctld refuses":        {[]string{"alice", "--login=b"}, 1, "", "running scontrol in container login of pod " + server.Namespace + "/b-0: command terminated with exit code 1: a complaint"},
		"scontrol prints no token": {[]string{"alice", "--login=c"}, 1, "", "it printed no line SLURM_JWT=…"},
		"of several pods":          {[]string{"alice"}, 1, "", "choose one with --login: a, b, c"},
		"with a Controller":        {[]string{"alice", "--controller=x"}, 1, "", "--controller is for Token objects"},
		"an option as user":        {[]string{"--", "a b"}, 1, "", `user "a b": a user name has only`},
		"less than a second":       {[]string{"alice", "--lifespan=1ms"}, 1, "", "it must be at least 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t.Context(), t, program(), append([]string{kubeconfig, "token", "--exec"}, tc.args...)...).check(t, tc.code)
			if got.out != tc.out || !strings.Contains(got.errors, tc.err) {
				t.Errorf("it printed %q, want %q, and the errors %q, want %q", got.out, tc.out, got.errors, tc.err)
			}
		})
	}
	golden.Check(t, "token/help.txt", run(t.Context(), t, program(), "token", "--help").check(t, 0).golden("token", "--help"))
}
