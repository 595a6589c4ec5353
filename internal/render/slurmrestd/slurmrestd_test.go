// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmrestd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func input(t testing.TB, spec, controller string) slurmrestd.Input {
	t.Helper()
	return slurmrestd.Input{
		RestAPI:        manifest.Parse[slinkyv1beta1.RestApi](t, "metadata: {name: demo, namespace: ns1}\nspec: "+spec),
		Controller:     manifest.Parse[slinkyv1beta1.Controller](t, "metadata: {name: ctl, namespace: ns1}\nspec: "+controller),
		SlurmKeyDigest: "digest-of-slurm-key", ConnectionDigest: "digest-of-connection", OperatorNamespace: "coxswain-system", Images: image.Set{Registry: "example.com/coxswain", Tag: "26.05"},
	}
}

func TestRender(t *testing.T) {
	tests := []struct{ name, file, spec, controller string }{
		{"the smallest spec", "minimal.yaml", `{controllerRef: {name: ctl}}`, `{}`},
		{"everything that can be laid over", "overlays.yaml", `
  controllerRef: {name: ctl}
  replicas: 2
  slurmrestd: {image: "example.com/restd:1", args: [-vv], env: [{name: SLURM_JWT, value: mine}]}
  template: {metadata: {labels: {team: a}}, spec: {priorityClassName: high}}
  service: {port: 80, nodePort: 30080, spec: {type: NodePort}}
`, `{accountingRef: {name: acc}, slurmKeyRef: {name: keys, key: k}}`},
		{"clients from outside of the cluster", "from.yaml", `{controllerRef: {name: ctl}, networkPolicy: {from: [{ipBlock: {cidr: 192.0.2.0/24}}]}}`, `{}`},
		{"with the users of a jail", "jail.yaml", `{controllerRef: {name: ctl}}`, `{jail: {volumeSource: {persistentVolumeClaim: {claimName: jail}}}}`},
		{"with the users of a directory", "sssd.yaml", `{controllerRef: {name: ctl}}`, `{sssd: {confRef: {name: directory, key: sssd.conf}}}`},
		{"open to everybody", "open.yaml", `{controllerRef: {name: ctl}, networkPolicy: {enabled: false}}`, `{}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := slurmrestd.Render(input(t, tt.spec, tt.controller))
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			golden.Check(t, tt.file, manifest.YAML(t, out.Objects...))
		})
	}
}

func TestUsersOfLoginSets(t *testing.T) {
	const jail = `{jail: {volumeSource: {persistentVolumeClaim: {claimName: jail}}}}`
	login := func(name, users string) slinkyv1beta1.LoginSet {
		return *manifest.Parse[slinkyv1beta1.LoginSet](t, "metadata: {name: "+name+", namespace: ns1}\nspec: {controllerRef: {name: ctl}, users: "+users+"}")
	}
	sets := []slinkyv1beta1.LoginSet{login("login-b", `[{name: bob, uid: 2001}]`), login("login-0", `[]`), login("login-a", `[{name: alice, uid: 2000}]`)}
	for _, tt := range []struct {
		name, file, controller string
		sets                   []slinkyv1beta1.LoginSet
	}{
		{"without a jail", "users.yaml", `{}`, sets},
		{"with a jail", "users-jail.yaml", jail, sets},
		{"no LoginSet has users, and there is no jail", "minimal.yaml", `{}`, sets[1:2]},
		{"no LoginSet has users, and there is a jail", "jail.yaml", jail, sets[1:2]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, `{controllerRef: {name: ctl}}`, tt.controller)
			in.LoginSets = tt.sets
			out := slurmrestd.Render(in)
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			golden.Check(t, tt.file, manifest.YAML(t, out.Objects...))
		})
	}
}

func TestOtherUsersReplaceNoPods(t *testing.T) {
	var templates []string
	for _, users := range []string{`[{name: alice, uid: 2000}]`, `[{name: bob, uid: 2001, gid: 100}, {name: carol, uid: 2002}]`} {
		in := input(t, `{controllerRef: {name: ctl}}`, `{}`)
		in.LoginSets = []slinkyv1beta1.LoginSet{*manifest.Parse[slinkyv1beta1.LoginSet](t, "metadata: {name: login}\nspec: {users: "+users+"}")}
		templates = append(templates, string(manifest.YAML(t, slurmrestd.Render(in).Objects...)))
	}
	if diff := cmp.Diff(templates[0], templates[1]); diff != "" {
		t.Error(diff)
	}
}

func TestAnOperatorOutsideOfTheClusterIsNotShutOut(t *testing.T) {
	in := input(t, `{controllerRef: {name: ctl}}`, `{}`)
	in.OperatorNamespace = ""
	for _, o := range slurmrestd.Render(in).Objects {
		if _, ok := o.(*networkingv1.NetworkPolicy); ok {
			t.Error("there is a NetworkPolicy, which cannot admit the operator")
		}
	}
}

func TestConnectionDigest(t *testing.T) {
	const base = "ClusterName=a\nSlurmctldHost=a(b)\nAccountingStorageHost=dbd\nAuthType=auth/slurm\n"
	for _, tt := range []struct {
		name, conf string
		changes    bool
	}{
		{"partitions and nodes do not matter", base + "NodeSet=x Feature=x\nPartitionName=x Nodes=x\n", false},
		{"comments and blanks do not matter", "# a\n\n" + base, false},
		{"scheduling does not matter", base + "SchedulerParameters=bf_max_job_test=1\n", false},
		{"another slurmdbd matters", strings.Replace(base, "dbd", "other", 1), true},
		{"another port of slurmdbd matters", base + "AccountingStoragePort=1\n", true},
		{"what is accounted does not matter", base + "AccountingStorageTRES=gres/gpu\n", false},
		{"a second slurmctld matters", base + "SlurmctldHost=c\n", true},
		{"another way to prove oneself matters", base + "AuthInfo=use_client_ids\n", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := slurmrestd.ConnectionDigest(tt.conf) != slurmrestd.ConnectionDigest(base); got != tt.changes {
				t.Errorf("restarts slurmrestd: %t, want %t", got, tt.changes)
			}
		})
	}
}

// TestArguments has the lists that the predecessor's end-to-end test asserts:
// docs/contributors/predecessors/slinky-objects.md#arguments-of-slurmrestd.
func TestArguments(t *testing.T) {
	tests := []struct {
		name, spec, controller string
		want                   []string
	}{
		{"without accounting only slurmctld's part of the API is loaded", `{}`, `{}`, []string{"-s", "openapi/slurmctld", "0.0.0.0:6820"}},
		{"with accounting all of it is", `{}`, `{accountingRef: {name: a}}`, []string{"0.0.0.0:6820"}},
		{"the user's arguments stand before the address", `{slurmrestd: {args: [-v, -t, "8"]}}`, `{}`, []string{"-s", "openapi/slurmctld", "-v", "-t", "8", "0.0.0.0:6820"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := slurmrestd.Render(input(t, tt.spec, tt.controller))
			deployment, ok := out.Objects[1].(*appsv1.Deployment)
			if !ok {
				t.Fatalf("%T comes second", out.Objects[1])
			}
			if diff := cmp.Diff(tt.want, deployment.Spec.Template.Spec.Containers[0].Args); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	out := slurmrestd.Render(input(t, `{slurmrestd: {a: 1}, template: {spec: {b: 1}}, service: {spec: {c: 1}}}`, `{}`))
	var got []string
	for _, p := range out.Problems.Sorted() {
		got = append(got, p.Error())
	}
	want := []string{`spec.service.spec: unknown field "c"`, `spec.slurmrestd: unknown field "a"`, `spec.template.spec: unknown field "b"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
