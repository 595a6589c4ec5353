// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/login"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func input(t testing.TB, spec string) login.Input {
	t.Helper()
	return login.Input{
		LoginSet:   manifest.Parse[slinkyv1beta1.LoginSet](t, "metadata: {name: demo-login, namespace: ns1}\nspec: "+spec),
		Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}}`),
		Images:     image.Set{Registry: "example.com/coxswain", Tag: "26.05"}, ClusterDomain: "cluster.local",
		SlurmKeyDigest: "digest-of-slurm-key", HostKeysDigest: "digest-of-host-keys", SssdDigest: "digest-of-sssd",
	}
}

const users = `[{name: bob, uid: 1001, gecos: "Bob B., lab 7", groups: [{name: lab, gid: 5000}], sshAuthorizedKeys: ["ssh-ed25519 AAAAbob bob@home"]},
  {name: alice, uid: 1000, gid: 5000, shell: /bin/zsh, home: /work/alice, groups: [{name: lab, gid: 5000}, {name: wheel, gid: 10}], sshAuthorizedKeys: ["ssh-rsa AAAAone", "ssh-rsa AAAAtwo"]}]`

func TestRender(t *testing.T) {
	tests := []struct{ name, file, spec string }{
		{"the smallest spec", "minimal.yaml", `{controllerRef: {name: demo}}`},
		{"users without a directory", "users.yaml", `{controllerRef: {name: demo}, replicas: 2, users: ` + users + `}`},
		{"users of a directory", "sssd.yaml", `{controllerRef: {name: demo}, sssdConfRef: {name: sssd, key: sssd.conf}, rootSshAuthorizedKeys: "ssh-rsa AAAAroot admin"}`},
		{"pods with fixed names", "statefulset.yaml", `{controllerRef: {name: demo}, workload: StatefulSet, replicas: 3, template: {metadata: {annotations: {note: a}}}}`},
		{"a jail", "jail.yaml", `{controllerRef: {name: demo}, jail: {volumeSource: {nfs: {server: nas, path: /jail}}}, users: ` + users + `,
			login: {volumeMounts: [{name: scratch, mountPath: /mnt/jail/scratch}]}}`},
		{"munged for programs of users, also in a jail", "munge.yaml", `{controllerRef: {name: demo}, jail: {volumeSource: {nfs: {server: nas, path: /jail}}},
			munge: {keyRef: {name: keys, key: munge}, container: {args: [--max-ttl=60]}}}`},
		{"another image for initconf runs as root, whatever its own user", "initconf.yaml",
			`{controllerRef: {name: demo}, initconf: {image: busybox, securityContext: {readOnlyRootFilesystem: true}}}`},
		{"everything that can be laid over", "overlays.yaml", `
  controllerRef: {name: demo}
  strategy: {type: Recreate}
  login: {image: "example.com/login:1", env: [{name: SACKD_OPTIONS, value: "-v"}, {name: A, value: b}]}
  initconf: {resources: {limits: {memory: 32Mi}}}
  template: {metadata: {labels: {team: a}}, spec: {dnsConfig: {searches: [example.org]}, containers: [{name: login, tty: true}]}}
  extraSshdConfig: |
    X11Forwarding no
    Match User root
      PermitRootLogin no
  service: {port: 2222, nodePort: 30022, spec: {type: LoadBalancer}}
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := login.Render(input(t, tt.spec))
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			golden.Check(t, tt.file, manifest.YAML(t, out.Objects...))
		})
	}
}

func TestTheSshdConfigOfAUser(t *testing.T) {
	in := input(t, `{controllerRef: {name: demo}, sshdConfigRef: {name: own, key: sshd_config}, users: `+users+`, jail: {volumeSource: {nfs: {server: nas, path: /jail}}}}`)
	in.SshdConfig = "Port 2222\nMatch User root\n  ChrootDirectory none\n"
	out := login.Render(in)
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	golden.Check(t, "sshd-config.yaml", manifest.YAML(t, out.Objects...))
}

func TestInitconfRunsAsTheUserThatTheSpecNames(t *testing.T) {
	in := input(t, `{controllerRef: {name: demo}, initconf: {image: busybox, securityContext: {runAsUser: 7}}}`)
	for _, o := range login.Render(in).Objects {
		d, ok := o.(*appsv1.Deployment)
		if !ok {
			continue
		}
		c := d.Spec.Template.Spec.InitContainers[0]
		if c.Name != "initconf" || c.SecurityContext == nil || *c.SecurityContext.RunAsUser != 7 {
			t.Errorf("%s runs with %v, want user 7", c.Name, c.SecurityContext)
		}
		return
	}
	t.Fatal("there is no Deployment")
}

func TestSshdConfig(t *testing.T) {
	in := input(t, `{controllerRef: {name: demo}, extraSshdConfig: "X11Forwarding no"}`)
	want := "Include /etc/ssh/sshd_config.d/*.conf\n### EXTRA CONFIG ###\nX11Forwarding no\nUsePAM yes\nX11Forwarding yes\nSubsystem sftp internal-sftp\n"
	if diff := cmp.Diff(want, dataOf(t, in, "demo-login-ssh-config")["sshd_config"]); diff != "" {
		t.Error(diff)
	}
}

// dataOf is the content of a rendered ConfigMap.
func dataOf(t testing.TB, in login.Input, name string) map[string]string {
	t.Helper()
	for _, o := range login.Render(in).Objects {
		if cm, ok := o.(*corev1.ConfigMap); ok && cm.Name == name {
			return cm.Data
		}
	}
	t.Fatalf("there is no ConfigMap %s", name)
	return nil
}

func TestOrderOfUsersDoesNotMatter(t *testing.T) {
	in := input(t, `{controllerRef: {name: demo}, users: `+users+`}`)
	want := dataOf(t, in, "demo-login-users")
	slices.Reverse(in.LoginSet.Spec.Users)
	if diff := cmp.Diff(want, dataOf(t, in, "demo-login-users")); diff != "" {
		t.Error(diff)
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		name, spec string
		want       []string
	}{
		{"two users of one uid", `{users: [{name: a, uid: 1000}, {name: b, uid: 1000}]}`, []string{"spec.users: users a and b have the same uid 1000"}},
		{"a group of two gids", `{users: [{name: a, uid: 1000, groups: [{name: g, gid: 1}]}, {name: b, uid: 1001, groups: [{name: g, gid: 2}]}]}`,
			[]string{"spec.users[b].groups[g].gid: is 2, and 1 with another user; a group has one gid"}},
		{"a user called like a group of another gid", `{users: [{name: a, uid: 1000}, {name: b, uid: 1001, groups: [{name: a, gid: 7}]}]}`,
			[]string{"spec.users[a].gid: is 1000, but a group called a has gid 7; add a group with gid 1000 to its groups"}},
		{"fields that leave their line, stored before there was a rule",
			`{users: [{name: a, uid: 1000, gecos: "x:0:0", home: "/a\nroot::0:0"}, {name: b, uid: 1001, sshAuthorizedKeys: ["ssh-rsa A\nssh-rsa B"]}, {name: c, uid: 1002, groups: [{name: "g:x:0:c\ng", gid: 7}]}]}`,
			[]string{
				`spec.users["a"].gecos: must be one line without a colon; the name of a group has no comma either`,
				`spec.users["b"].sshAuthorizedKeys: must be one line without a colon; the name of a group has no comma either`,
				`spec.users["c"].groups: must be one line without a colon; the name of a group has no comma either`,
			}},
		{"options of sackd from elsewhere", `{login: {env: [{name: SACKD_OPTIONS, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}`,
			[]string{"spec.login.env[SACKD_OPTIONS]: options are added to its value, so it must be given by value and not by valueFrom"}},
		{"mistyped fields everywhere", `{login: {a: 1}, initconf: {b: 1}, template: {spec: {c: 1}}, service: {spec: {d: 1}}}`,
			[]string{`spec.initconf: unknown field "b"`, `spec.login: unknown field "a"`, `spec.service.spec: unknown field "d"`, `spec.template.spec: unknown field "c"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.spec)
			first := login.Render(in).Problems
			var got []string
			for _, p := range first.Sorted() {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for range 20 {
				if again := login.Render(in).Problems; again.Message() != first.Message() {
					t.Fatalf("the message is not stable: %s, then %s", first.Message(), again.Message())
				}
			}
		})
	}
}

func FuzzUserFiles(f *testing.F) {
	f.Add("alice", "Alice", "/home/alice", "/bin/sh", "lab", "ssh-rsa AAAA")
	f.Add("a:b", "x\ny", "", "/bin/\r", "g,h", "k\n")
	f.Fuzz(func(t *testing.T, name, gecos, home, shell, group, key string) {
		in := input(t, `{controllerRef: {name: demo}}`)
		in.LoginSet.Spec.Users = []slinkyv1beta1.User{
			{Name: name, UID: 1000, Gecos: gecos, Home: home, Shell: shell, SSHAuthorizedKeys: []slinkyv1beta1.AuthorizedKey{slinkyv1beta1.AuthorizedKey(key)},
				Groups: []slinkyv1beta1.UserGroup{{Name: group, GID: 5000}}},
			{Name: "last", UID: 1001},
		}
		out := login.Render(in)
		if len(out.Problems) > 0 {
			return
		}
		data := dataOf(t, in, "demo-login-users")
		for file, shape := range map[string][2]int{"passwd": {2, 7}, "shadow": {2, 9}} {
			lines := strings.Split(strings.TrimSuffix(data[file], "\n"), "\n")
			if len(lines) != shape[0] {
				t.Fatalf("%s has %d lines:\n%s", file, len(lines), data[file])
			}
			for _, line := range lines {
				if got := len(strings.Split(line, ":")); got != shape[1] {
					t.Errorf("%s: %d fields in %q", file, got, line)
				}
			}
		}
		for line := range strings.Lines(data["group"]) {
			if got := len(strings.Split(line, ":")); got != 4 {
				t.Errorf("group: %d fields in %q", got, line)
			}
		}
		if got := strings.Count(data["authorized_keys."+name], "\n"); got != 1 {
			t.Errorf("%d lines of keys", got)
		}
	})
}
