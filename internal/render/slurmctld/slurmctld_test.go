// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

var images = image.Set{Registry: "example.com/coxswain", Tag: "26.05"}

// aController is a Controller called demo in namespace ns1 with a spec.
func aController(t testing.TB, spec string) *slinkyv1beta1.Controller {
	t.Helper()
	return manifest.Parse[slinkyv1beta1.Controller](t, "metadata: {name: demo, namespace: ns1}\nspec: "+spec)
}

func aNodeSet(t testing.TB, name, spec string) slinkyv1beta1.NodeSet {
	t.Helper()
	return *manifest.Parse[slinkyv1beta1.NodeSet](t, "metadata: {name: "+name+", namespace: ns1}\nspec: "+spec)
}

func input(t testing.TB, spec string) slurmctld.Input {
	t.Helper()
	return slurmctld.Input{Controller: aController(t, spec), SlurmKeyDigest: "digest-of-slurm-key", JwtKeyDigest: "digest-of-jwt-key", ClusterDomain: "cluster.local", Images: images}
}

// withNodeSets are the NodeSets of docs/contributors/predecessors/slinky-objects.md#the-smallest-cluster and one more.
func withNodeSets(t testing.TB, in *slurmctld.Input) {
	t.Helper()
	in.NodeSets = []slinkyv1beta1.NodeSet{
		aNodeSet(t, "demo-gpu", `{controllerRef: {name: demo}, template: {spec: {hostname: gpu-}}, partition: {enabled: true, config: "Default=YES State=UP"}}`),
		aNodeSet(t, "cpu", `{controllerRef: {name: demo}, partition: {enabled: true}}`),
		aNodeSet(t, "quiet", `{controllerRef: {name: demo}}`),
	}
}

func TestRender(t *testing.T) {
	tests := []struct {
		name, file, spec string
		with             func(t testing.TB, in *slurmctld.Input)
	}{
		{name: "the smallest spec gets everything by default", file: "minimal.yaml", spec: `{}`},
		{name: "an external slurmctld gets a slurm.conf for slurmrestd and nothing else", file: "external.yaml",
			spec: `{external: true, externalConfig: {host: ctl.example.org, port: 7817}, slurmKeyRef: {name: keys, key: slurm.key}, accountingRef: {name: demo}}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.Accounting = manifest.Parse[slinkyv1beta1.Accounting](t, `{metadata: {name: demo, namespace: ns1}, spec: {external: true, externalConfig: {host: dbd.example.org, port: 7819}}}`)
			}},
		{name: "extraConf is merged: scalars replace, sets unite, lines are added", file: "extraconf.yaml", spec: `
  extraConf: |
    ReturnToService=1
    SlurmctldParameters=idle_on_node_suspend
    LaunchParameters=use_interactive_step
    PartitionName=all Nodes=ALL Default=YES
    NewKeyOfNextYear=7
`},
		{name: "NodeSets and partitions", file: "nodesets.yaml", spec: `{}`, with: withNodeSets},
		{name: "generic resources of NodeSets are counted and accounted", file: "gres.yaml", spec: `{accountingRef: {name: demo}, extraConf: "GresTypes=gpu,shard"}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.Accounting = manifest.Parse[slinkyv1beta1.Accounting](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)
				in.NodeSets = []slinkyv1beta1.NodeSet{
					aNodeSet(t, "gpu", `{controllerRef: {name: demo}, extraConf: "Gres=gpu:h100:8 Weight=10"}`),
					aNodeSet(t, "nic", `{controllerRef: {name: demo}, extraConf: "Gres=nic:2,gpu:1"}`),
				}
			}},
		{name: "accounting", file: "accounting.yaml", spec: `{accountingRef: {name: demo}}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.Accounting = manifest.Parse[slinkyv1beta1.Accounting](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)
			}},
		{name: "a cgroup.conf of the user's that disables cgroups changes what depends on them", file: "cgroups-off.yaml",
			spec: `{configFileRefs: [{name: mine}], accountingRef: {name: demo}}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.Files.Config = []slurmctld.File{{ConfigMap: "mine", Name: "cgroup.conf", Content: "# ours\ncgroupplugin = Disabled\n"}}
				in.Accounting = manifest.Parse[slinkyv1beta1.Accounting](t, `{metadata: {name: demo, namespace: ns1}, spec: {}}`)
			}},
		{name: "in-place reconfiguration adds the sidecar and leaves the digest off the pod", file: "inplace.yaml",
			spec: `{inplaceReconfigure: true, reconfigure: {resources: {limits: {memory: 64Mi}}}}`},
		{name: "a jail: its users for slurmctld, and the plugin for the workers", file: "jail.yaml",
			spec: `{jail: {volumeSource: {persistentVolumeClaim: {claimName: jail}}}}`},
		{name: "munged for clients that prove who they are by munge", file: "munge.yaml", spec: `
  inplaceReconfigure: true
  munge: {keyRef: {name: demo-munge, key: munge.key}, container: {image: "example.com/munge:1", resources: {requests: {memory: 64Mi}}, livenessProbe: {periodSeconds: 60}}}
`, with: func(_ testing.TB, in *slurmctld.Input) { in.MungeKeyDigest = "digest-of-munge-key" }},
		{name: "SSSD for groups of a directory", file: "sssd.yaml", spec: `
  munge: {keyRef: {name: demo-munge, key: munge.key}}
  sssd: {confRef: {name: directory, key: sssd.conf}, authoritiesRef: {name: ca}, container: {resources: {requests: {memory: 64Mi}}, env: [{name: SSSD_OPTIONS, value: --debug-level=6}]}}
`, with: func(_ testing.TB, in *slurmctld.Input) { in.SSSDDigest = "digest-of-sssd.conf" }},
		{name: "state on an existing claim", file: "existing-claim.yaml", spec: `{persistence: {enabled: true, existingClaim: old}}`},
		{name: "backups share a claim, have names of their own and keep apart", file: "ha.yaml",
			spec: `{ha: {enabled: true, backups: 2}, persistence: {enabled: true, existingClaim: shared}, inplaceReconfigure: true}`},
		{name: "state that is not kept", file: "not-persistent.yaml", spec: `{persistence: {enabled: false}}`},
		{name: "a claim of the user's size", file: "claim.yaml",
			spec: `{persistence: {enabled: true, storageClassName: fast, accessModes: [ReadWriteMany], resources: {requests: {storage: 20Gi}}}}`},
		{name: "prolog and epilog scripts", file: "scripts.yaml",
			spec: `{prologScriptRefs: [{name: prolog}], epilogScriptRefs: [{name: epilog}], prologSlurmctldScriptRefs: [{name: ctld}], epilogSlurmctldScriptRefs: [{name: ctld-end}], configFileRefs: [{name: a-file}]}`,
			with: func(_ testing.TB, in *slurmctld.Input) {
				in.Files = slurmctld.Files{
					Config: []slurmctld.File{{"a-file", "plugstack.conf", "optional x.so\n"}},
					Prolog: []slurmctld.File{{"prolog", "20-b.sh", "#!/bin/sh\n"}, {"prolog", "10-a.sh", "#!/bin/sh\n"}},
					Epilog: []slurmctld.File{{"epilog", "90-end.sh", "#!/bin/sh\n"}}, PrologSlurmctld: []slurmctld.File{{"ctld", "start.sh", "#!/bin/sh\n"}},
					EpilogSlurmctld: []slurmctld.File{{"ctld-end", "stop.sh", "#!/bin/sh\n"}},
				}
			}},
		{name: "what users lay over: containers, pod, Service, metadata, keys, cluster name, metrics", file: "overlays.yaml", spec: `
  clusterName: big
  slurmKeyRef: {name: keys, key: slurm.key}
  jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key}
  jwksKeyRef: {name: jwks, key: keys.json}
  metrics: {enabled: true}
  slurmctld: {image: "example.com/mine:1", args: [-v], resources: {requests: {cpu: "1"}}, readinessProbe: {tcpSocket: {port: 6817}}}
  logfile: {image: busybox}
  template: {metadata: {labels: {team: a}, annotations: {note: b}}, spec: {nodeSelector: {disk: ssd}, containers: [{name: exporter, image: exporter}]}}
  service: {port: 16817, nodePort: 30817, metadata: {annotations: {lb: internal}}, spec: {type: NodePort, ports: [{name: extra, port: 9}]}}
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.spec)
			if tt.with != nil {
				tt.with(t, &in)
			}
			out := slurmctld.Render(in)
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			golden.Check(t, tt.file, manifest.YAML(t, out.Objects...))
		})
	}
}

// configOf is slurm.conf among the objects.
func configOf(t testing.TB, objects []render.Object) string {
	t.Helper()
	for _, o := range objects {
		if cm, ok := o.(*corev1.ConfigMap); ok {
			return cm.Data["slurm.conf"]
		}
	}
	t.Fatal("there is no ConfigMap")
	return ""
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	base := func() slurmctld.Input {
		in := input(t, `{configFileRefs: [{name: b}, {name: a}], prologScriptRefs: [{name: p}]}`)
		withNodeSets(t, &in)
		in.Files.Config = []slurmctld.File{{"a", "one.conf", "1"}, {"a", "two.conf", "2"}, {"b", "three.conf", "3"}}
		in.Files.Prolog = []slurmctld.File{{"p", "x.sh", "x"}, {"p", "y.sh", "y"}}
		return in
	}
	want := slurmctld.Render(base())
	in := base()
	slices.Reverse(in.NodeSets)
	slices.Reverse(in.Files.Config)
	slices.Reverse(in.Files.Prolog)
	slices.Reverse(in.Controller.Spec.ConfigFileRefs)
	got := slurmctld.Render(in)
	if diff := cmp.Diff(string(manifest.YAML(t, want.Objects...)), string(manifest.YAML(t, got.Objects...))); diff != "" {
		t.Error(diff)
	}
	if want.ConfigDigest != got.ConfigDigest {
		t.Errorf("the digest was %s and is %s", want.ConfigDigest, got.ConfigDigest)
	}
}

func TestDigestCoversEveryFile(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*slurmctld.Input){
		"nothing":              func(*slurmctld.Input) {},
		"extraConf":            func(in *slurmctld.Input) { in.Controller.Spec.ExtraConf = "ReturnToService=0" },
		"a referenced file":    func(in *slurmctld.Input) { in.Files.Config[0].Content = "other" },
		"a script":             func(in *slurmctld.Input) { in.Files.Epilog[0].Content = "other" },
		"the name of a script": func(in *slurmctld.Input) { in.Files.Epilog[0].Name = "other.sh" },
		"another NodeSet": func(in *slurmctld.Input) {
			in.NodeSets = append(in.NodeSets, aNodeSet(t, "x", `{controllerRef: {name: demo}}`))
		},
	} {
		in := input(t, `{}`)
		in.Files = slurmctld.Files{Config: []slurmctld.File{{"a", "a.conf", "1"}}, Epilog: []slurmctld.File{{"e", "e.sh", "1"}}}
		change(&in)
		digest := slurmctld.Render(in).ConfigDigest
		if other, taken := seen[digest]; taken {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[digest] = name
	}
}

func TestStamp(t *testing.T) {
	out := slurmctld.Render(input(t, `{extraConf: "SlurmctldParameters=idle_on_node_suspend"}`))
	doc, _ := conf.Parse(conf.Slurm, configOf(t, out.Objects))
	parameters, _ := doc.Get("SlurmctldParameters")
	if got := slurmctld.Stamp(strings.Split(parameters, ",")); got != out.ConfigDigest || got == "" {
		t.Errorf("the stamp in %s is %q, the digest is %q", parameters, got, out.ConfigDigest)
	}
	if got := slurmctld.Stamp([]string{"enable_configless"}); got != "" {
		t.Errorf("without a stamp it is %q", got)
	}
}

func TestASuspendedSlurmctldKeepsItsConfiguration(t *testing.T) {
	for _, spec := range []string{"", "ha: {enabled: true, backups: 2}, persistence: {enabled: true, existingClaim: shared}"} {
		runs, stopped := slurmctld.Render(input(t, "{"+spec+"}")), slurmctld.Render(input(t, "{suspend: true, "+spec+"}"))
		for i, o := range stopped.Objects {
			if set, ok := o.(*appsv1.StatefulSet); ok {
				if got := *set.Spec.Replicas; got != 0 {
					t.Errorf("%d pods run", got)
				}
				was, ok := runs.Objects[i].(*appsv1.StatefulSet)
				if !ok || *was.Spec.Replicas == 0 {
					t.Fatalf("object %d is no StatefulSet with pods", i)
				}
				set.Spec.Replicas = was.Spec.Replicas
			}
		}
		if diff := cmp.Diff(runs, stopped); diff != "" {
			t.Errorf("something else changes: %s", diff)
		}
	}
	if got := slurmctld.Render(input(t, `{external: true, externalConfig: {host: a, port: 1}, slurmKeyRef: {name: k, key: k}, suspend: true}`)).Ignored; !slices.Contains(got, "spec.suspend (slurmctld runs elsewhere)") {
		t.Errorf("ignored: %v", got)
	}
}

func TestServiceMonitor(t *testing.T) {
	for file, spec := range map[string]string{
		"servicemonitor.yaml": `{metrics: {enabled: true, serviceMonitor: {enabled: true}}}`,
		"servicemonitor-overrides.yaml": `{metrics: {enabled: true, serviceMonitor: {enabled: true, interval: 30s, scrapeTimeout: 25s, labels: {release: prometheus},
			annotations: {note: x}, endpoints: [{path: /metrics/jobs, interval: 10s}, {path: /metrics/nodes, scrapeTimeout: 5s}]}}}`,
	} {
		c := aController(t, spec)
		if !slurmctld.WantsServiceMonitor(c) {
			t.Errorf("%s is not wanted", file)
		}
		golden.Check(t, file, manifest.YAML(t, slurmctld.ServiceMonitor(c)))
	}
}

func TestNothingSecretIsRendered(t *testing.T) {
	out := slurmctld.Render(input(t, `{slurmKeyRef: {name: keys, key: slurm.key}}`))
	text := manifest.YAML(t, out.Objects...)
	if bytes.Contains(text, []byte("kind: Secret")) {
		t.Error("a Secret is rendered")
	}
}

// FuzzSlurmConf checks that all output parses, that what the operator owns is unchanged, and that a partition stays on its line.
func FuzzSlurmConf(f *testing.F) {
	f.Add("ReturnToService=1", "Default=YES", "gpu-", "a.sh")
	f.Add("ClusterName=x\\\nSlurmUser=root", "State=UP\\", "x y", "a b")
	f.Add("include /etc/passwd\nPartitionName=gpu Nodes=ALL", `AllowGroups="a b" # c`, "DEFAULT", "p")
	f.Fuzz(func(t *testing.T, extra, partition, hostname, script string) {
		in := input(t, `{accountingRef: {name: demo}}`)
		in.Accounting = manifest.Parse[slinkyv1beta1.Accounting](t, `{metadata: {name: demo, namespace: ns1}}`)
		in.Controller.Spec.ExtraConf = extra
		set := aNodeSet(t, "set", `{controllerRef: {name: demo}, template: {spec: {hostname: x}}, partition: {enabled: true}}`)
		set.Spec.Partition.Config = partition
		raw, err := json.Marshal(map[string]string{"hostname": hostname})
		if err != nil {
			t.Fatal(err)
		}
		set.Spec.Template.Spec.Raw = raw
		in.NodeSets = []slinkyv1beta1.NodeSet{set}
		in.Files.Prolog = []slurmctld.File{{"p", script, ""}}
		out := slurmctld.Render(in)
		if len(out.Problems) > 0 {
			return
		}
		text := configOf(t, out.Objects)
		doc, problems := conf.Parse(conf.Slurm, text)
		if len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, text)
		}
		for key, want := range map[string]string{
			"ClusterName": "ns1_demo", "SlurmUser": "slurm", "AuthType": "auth/slurm", "SlurmctldPort": "6817",
			"SlurmctldHost": "demo-controller-0(demo-controller.ns1)", "StateSaveLocation": "/var/spool/slurmctld/ns1_demo",
			"AccountingStorageHost": "demo-accounting.ns1",
		} {
			if got, _ := doc.Get(key); got != want {
				t.Errorf("%s is %q, want %q:\n%s", key, got, want, text)
			}
		}
		in.Controller.Spec.ExtraConf, in.NodeSets[0].Spec.Partition.Config = "", ""
		plain := configOf(t, slurmctld.Render(in).Objects)
		if extra == "" && strings.Count(text, "\n") != strings.Count(plain, "\n") {
			t.Errorf("the partition left its line:\n%s", text)
		}
	})
}
