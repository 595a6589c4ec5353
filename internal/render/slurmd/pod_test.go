// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func input(t testing.TB, spec string) slurmd.Input {
	t.Helper()
	return slurmd.Input{
		NodeSet:    manifest.Parse[slinkyv1beta1.NodeSet](t, "metadata: {name: demo-gpu, namespace: ns1}\nspec: "+spec),
		Controller: manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}}`),
		Images:     image.Set{Registry: "example.com/coxswain", Tag: "26.05"}, ClusterDomain: "cluster.local",
	}
}

func TestPod(t *testing.T) {
	tests := []struct {
		name, file, spec string
		ordinal          int
		node, hostname   string
	}{
		{"the smallest spec: the pod's name is the node's", "minimal.yaml", `{controllerRef: {name: demo}}`, 0, "", ""},
		{"the example of the contract: a prefix for host names, and extraConf", "example.yaml",
			`{controllerRef: {name: demo, namespace: ns1}, template: {spec: {hostname: gpu-}}, extraConf: "Gres=gpu:8 Weight=10"}`, 1, "", ""},
		{"ordinals with zeros in front", "padding.yaml", `{controllerRef: {name: demo}, ordinalPadding: 3}`, 7, "", ""},
		{"limits tell slurmd what it has", "limits.yaml",
			`{controllerRef: {name: demo}, slurmd: {resources: {limits: {cpu: 7500m, memory: 16Gi, nvidia.com/gpu: 1}}, env: [{name: POD_CPUS, value: "6"}]}}`, 0, "", ""},
		{"limits of the pod hold, too, where they are lower", "pod-limits.yaml", `{controllerRef: {name: demo}, slurmd: {resources: {limits: {cpu: 2, memory: 16Gi}}},
			template: {spec: {resources: {limits: {cpu: 4, memory: 8Gi}}}}}`, 0, "", ""},
		{"limits of the container may be in the template", "template-limits.yaml", `{controllerRef: {name: demo},
			template: {spec: {containers: [{name: slurmd, resources: {limits: {cpu: 3}}}]}}}`, 0, "", ""},
		{"a place in the network that the user gives", "topology.yaml", `{controllerRef: {name: demo}, extraConf: "topology=default:leaf1"}`, 0, "", ""},
		{"claims of each ordinal, in the place of a volume of that name", "claims.yaml",
			`{controllerRef: {name: demo}, template: {spec: {volumes: [{name: scratch, emptyDir: {}}]}}, volumeClaimTemplates: [
			{metadata: {name: scratch, labels: {tier: fast}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Ti}}}},
			{metadata: {name: home}, spec: {storageClassName: nfs}}]}`, 2, "", ""},
		{"another port for slurmd", "port.yaml", `{controllerRef: {name: demo}, extraConf: "port=7000"}`, 0, "", ""},
		{"several workers on one Kubernetes node", "oversubscribe.yaml", `{controllerRef: {name: demo}, oversubscribeNode: true}`, 0, "", ""},
		{"Slurm powers the workers", "power-saving.yaml", `{controllerRef: {name: demo}, powerSaving: {initial: 0}}`, 3, "", ""},
		{"the host's network", "host-network.yaml", `{controllerRef: {name: demo}, template: {spec: {hostNetwork: true, nodeName: pinned}}}`, 0, "", ""},
		{"the host's network, and the DNS servers that the user chooses", "host-network-dns.yaml",
			`{controllerRef: {name: demo}, template: {spec: {hostNetwork: true, dnsPolicy: Default}}}`, 0, "", ""},
		{"one worker runs on each Kubernetes node", "daemon.yaml", `{controllerRef: {name: demo}, scalingMode: DaemonSet, volumeClaimTemplates: [{metadata: {name: scratch}, spec: {}}],
			template: {spec: {hostname: gpu-, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
			{matchExpressions: [{key: gpu, operator: Exists}]}, {matchExpressions: [{key: accelerator, operator: In, values: [a]}]}]}}}}}}`, 0, "node-1.example.com", "node-1"},
		{"logins over ssh, for the users of a directory", "ssh.yaml",
			`{controllerRef: {name: demo}, ssh: {enabled: true, extraSshdConfig: "Match User root\n  PermitRootLogin no", sssdConfRef: {name: sssd, key: conf}}}`, 0, "", ""},
		{"a jail: what is mounted in it is mounted beside it first", "jail.yaml", `{controllerRef: {name: demo}, jail: {volumeSource: {persistentVolumeClaim: {claimName: jail}}}, ssh: {enabled: true},
			slurmd: {volumeMounts: [{name: data, mountPath: /mnt/jail/data/}, {name: data, mountPath: /mnt/jail.upper/more}, {name: data, mountPath: /mnt/jails}]},
			template: {spec: {volumes: [{name: data, emptyDir: {}}]}}}`, 0, "", ""},
		{"munged for programs of jobs", "munge.yaml", `{controllerRef: {name: demo}, munge: {keyRef: {name: demo-munge, key: munge.key}, container: {image: "example.com/munge:1"}}}`, 0, "", ""},
		{"an ordinal that comes back to its Kubernetes node", "pinned.yaml", `{controllerRef: {name: demo}, pinToNode: true, ordinalPadding: 2}`, 4, "node-2", ""},
		{"everything that can be laid over", "overlays.yaml", `
  controllerRef: {name: demo}
  extraConf: feature=a100,nvme
  slurmd: {image: "example.com/slurmd:1", args: [-v], securityContext: {privileged: false}}
  logfile: {image: busybox}
  template:
    metadata: {labels: {team: a, app.kubernetes.io/name: stolen}, annotations: {note: b}}
    spec: {tolerations: [{key: gpu, operator: Exists}], containers: [{name: slurmd, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, emptyDir: {}}]}
`, 0, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.spec)
			if err := slurmd.Check(in); err != nil {
				t.Fatal(err)
			}
			id := workerpod.Place{Ordinal: tt.ordinal, Node: tt.node, Hostname: tt.hostname}
			pod, err := slurmd.Pod(in, id, "0123456789")
			if err != nil {
				t.Fatal(err)
			}
			claims, err := slurmd.Claims(in.NodeSet, id)
			if err != nil {
				t.Fatal(err)
			}
			objects := []render.Object{pod}
			for _, c := range claims {
				objects = append(objects, c)
			}
			if in.NodeSet.Spec.SSH.Enabled {
				objects = append(objects, slurmd.SSHConfig(in))
			}
			golden.Check(t, tt.file, manifest.YAML(t, objects...))
		})
	}
}

func TestTheSshdConfigOfAUser(t *testing.T) {
	in := input(t, `{controllerRef: {name: demo}, ssh: {enabled: true, sshdConfigRef: {name: own, key: sshd_config}}}`)
	in.SshdConfig = "MaxSessions 3\n"
	pod, err := slurmd.Pod(in, workerpod.Place{}, "0123456789")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "sshd-config.yaml", manifest.YAML(t, []render.Object{pod, slurmd.SSHConfig(in)}...))

	before := revision(t, in)
	if in.SshdConfig = "MaxSessions 4\n"; revision(t, in) == before {
		t.Error("workers with another content of their sshd_config have the same revision")
	}
}

func TestSharedObjects(t *testing.T) {
	in := input(t, `{controllerRef: {name: demo}}`)
	golden.Check(t, "shared.yaml", manifest.YAML(t, []render.Object{slurmd.Service(in.NodeSet), slurmd.DisruptionBudget(in.NodeSet)}...))
	other := input(t, `{controllerRef: {name: demo}, replicas: 7, ordinalPadding: 2}`)
	other.NodeSet.Name, other.NodeSet.Labels = "other", map[string]string{"a": "b"}
	if diff := cmp.Diff(slurmd.Service(in.NodeSet), slurmd.Service(other.NodeSet)); diff != "" {
		t.Errorf("two NodeSets of a cluster would fight over the Service:\n%s", diff)
	}
	if diff := cmp.Diff(slurmd.DisruptionBudget(in.NodeSet), slurmd.DisruptionBudget(other.NodeSet)); diff != "" {
		t.Errorf("two NodeSets of a cluster would fight over the PodDisruptionBudget:\n%s", diff)
	}
}

func revision(t testing.TB, in slurmd.Input) string {
	t.Helper()
	data, err := slurmd.RevisionData(in)
	if err != nil {
		t.Fatal(err)
	}
	return slurmd.RevisionHash(data, 0)
}

const detailed = `
  controllerRef: {name: demo}
  replicas: 3
  slurmd: {image: "example.com/slurmd:1", resources: {limits: {cpu: "8"}}}
  extraConf: Gres=gpu:8
  template: {metadata: {labels: {a: b, c: d}}, spec: {hostname: gpu-, nodeSelector: {disk: ssd}}}
  volumeClaimTemplates: [{metadata: {name: scratch}, spec: {resources: {requests: {storage: 1Ti}}}}]
`

// TestRevisionOutlivesTheOperator has the digests as they were when they were first made. If this test fails, an upgrade of the
// operator replaces every worker of every cluster: find another way.
func TestRevisionOutlivesTheOperator(t *testing.T) {
	for spec, want := range map[string]string{
		`{controllerRef: {name: demo}}`: "minimal",
		detailed:                        "detailed",
	} {
		golden.Check(t, "revision-"+want+".txt", []byte(revision(t, input(t, spec))+"\n"))
	}
}

func TestRevisionIgnoresOrderAndWhatWorkersDoNotShow(t *testing.T) {
	want := revision(t, input(t, detailed))
	for name, change := range map[string]func(*slurmd.Input){
		"the order of what a user wrote": func(in *slurmd.Input) {
			in.NodeSet.Spec.Slurmd.Raw = []byte(`{"resources": {"limits": {"cpu": "8"}},` + "\n" + ` "image": "example.com/slurmd:1"}`)
			in.NodeSet.Spec.Template.Spec.Raw = []byte(`{"nodeSelector":{"disk":"ssd"},"hostname":"gpu-"}`)
			in.NodeSet.Spec.Template.Metadata.Labels = map[string]string{"c": "d", "a": "b"}
		},
		"what a client writes who means nothing by it": func(in *slurmd.Input) {
			in.NodeSet.Spec.Slurmd.Raw = []byte(`{"name":"","args":[],"env":null,"image":"example.com/slurmd:1","resources":{"limits":{"cpu":"8"},"requests":null}}`)
			in.NodeSet.Spec.Logfile = container(`{"name":"","resources":{}}`)
			in.NodeSet.Spec.Template.Spec.Raw = []byte(`{"containers":null,"hostname":"gpu-","nodeSelector":{"disk":"ssd"},"tolerations":[],"affinity":{}}`)
		},
		"the number of replicas": func(in *slurmd.Input) { in.NodeSet.Spec.Replicas = new(int32(9)) },
		"a partition":            func(in *slurmd.Input) { in.NodeSet.Spec.Partition.Enabled = true },
		"labels of the NodeSet":  func(in *slurmd.Input) { in.NodeSet.Labels = map[string]string{"helm": "v2"} },
		"the strategy":           func(in *slurmd.Input) { in.NodeSet.Spec.UpdateStrategy.Type = slinkyv1beta1.UpdateOnDelete },
		"the default image, when the user names one": func(in *slurmd.Input) {
			in.Images.Tag = "99.01"
		},
	} {
		in := input(t, detailed)
		change(&in)
		if got := revision(t, in); got != want {
			t.Errorf("%s changes the revision", name)
		}
	}
}

// TestAStoredRevisionWithEmptyFieldsIsStillThatOfItsWorkers: an operator that reads empty fields as not set replaces no worker of an
// operator that did not.
func TestAStoredRevisionWithEmptyFieldsIsStillThatOfItsWorkers(t *testing.T) {
	const written = `{controllerRef: {name: demo}, slurmd: {env: [], resources: {}}, template: {spec: {tolerations: [], initContainers: null}}}`
	in := input(t, written)
	stored, err := json.Marshal(map[string]any{
		"Template": in.NodeSet.Spec.Template, "Slurmd": in.NodeSet.Spec.Slurmd, "Logfile": nil, "ExtraConf": "", "SSH": in.NodeSet.Spec.SSH,
		"OrdinalPadding": 0, "Oversubscribe": false, "Image": in.Images.Slurmd(), "Endpoint": in.Controller.Endpoint(),
		"Key": in.Controller.AuthSlurmRef().Name + "/" + in.Controller.AuthSlurmRef().Key, "Claims": nil,
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := slurmd.RevisionData(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(data), string(slurmd.Canonical(stored))); diff != "" {
		t.Errorf("the stored revision is another one (-now +stored):\n%s", diff)
	}
	if plain := revision(t, input(t, `{controllerRef: {name: demo}}`)); plain != slurmd.RevisionHash(data, 0) {
		t.Error("empty fields make another revision")
	}
}

func TestRevisionCoversWhatWorkersAreMadeOf(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*slurmd.Input){
		"nothing":       func(*slurmd.Input) {},
		"the image":     func(in *slurmd.Input) { in.Images.Tag = "99.01" },
		"the container": func(in *slurmd.Input) { in.NodeSet.Spec.Slurmd = container(`{"args":["-v"]}`) },
		"the sidecar":   func(in *slurmd.Input) { in.NodeSet.Spec.Logfile = container(`{"image":"busybox"}`) },
		"the template":  func(in *slurmd.Input) { in.NodeSet.Spec.Template.Metadata.Labels = map[string]string{"a": "b"} },
		"extraConf":     func(in *slurmd.Input) { in.NodeSet.Spec.ExtraConf = "Weight=1" },
		"the padding":   func(in *slurmd.Input) { in.NodeSet.Spec.OrdinalPadding = 3 },
		"the node":      func(in *slurmd.Input) { in.NodeSet.Spec.OversubscribeNode = true },
		"power saving":  func(in *slurmd.Input) { in.NodeSet.Spec.PowerSaving = &slinkyv1beta1.NodeSetPowerSaving{} },
		"munge": func(in *slurmd.Input) {
			in.NodeSet.Spec.Munge = munge(t, `{keyRef: {name: k, key: k}}`)
		},
		"another munge key": func(in *slurmd.Input) { in.NodeSet.Spec.Munge = munge(t, `{keyRef: {name: k, key: other}}`) },
		"another munged": func(in *slurmd.Input) {
			in.NodeSet.Spec.Munge = munge(t, `{keyRef: {name: k, key: k}, container: {image: m}}`)
		},
		"the port": func(in *slurmd.Input) { in.Controller.Spec.Service.Port = 7817 },
		"the key": func(in *slurmd.Input) {
			in.Controller = manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo, namespace: ns1}, spec: {slurmKeyRef: {name: other, key: k}}}`)
		},
		"a claim": func(in *slurmd.Input) {
			in.NodeSet.Spec.VolumeClaimTemplates = []embedded.PersistentVolumeClaim{{}}
			in.NodeSet.Spec.VolumeClaimTemplates[0].Raw = []byte(`{"metadata":{"name":"x"}}`)
		},
	} {
		in := input(t, `{controllerRef: {name: demo}}`)
		change(&in)
		got := revision(t, in)
		if other, taken := seen[got]; taken {
			t.Errorf("%s and %s have the same revision", name, other)
		}
		seen[got] = name
	}
}

func munge(t testing.TB, spec string) *slinkyv1beta1.Munge {
	t.Helper()
	return manifest.Parse[slinkyv1beta1.Munge](t, spec)
}

// TestARevisionKnowsTheImageOfMungedOnlyWhereNobodyNamesOne: another release of the operator brings another image of its own.
func TestARevisionKnowsTheImageOfMungedOnlyWhereNobodyNamesOne(t *testing.T) {
	for name, tt := range map[string]struct {
		spec string
		same bool
	}{
		"the user names no image of munged":     {`{keyRef: {name: k, key: k}, container: {env: []}}`, false},
		"the user names no container of munged": {`{keyRef: {name: k, key: k}}`, false},
		"the user names the image of munged":    {`{keyRef: {name: k, key: k}, container: {image: m}}`, true},
	} {
		in := input(t, `{controllerRef: {name: demo}, slurmd: {image: s}}`)
		in.NodeSet.Spec.Munge = munge(t, tt.spec)
		before := revision(t, in)
		in.Images.Tag = "99.01"
		if same := before == revision(t, in); same != tt.same {
			t.Errorf("%s: the revision is the same: %t", name, same)
		}
	}
	written, plain := input(t, `{controllerRef: {name: demo}}`), input(t, `{controllerRef: {name: demo}}`)
	written.NodeSet.Spec.Munge, plain.NodeSet.Spec.Munge = munge(t, `{keyRef: {name: k, key: k}, container: {env: [], resources: {}}}`), munge(t, `{keyRef: {name: k, key: k}}`)
	if revision(t, written) != revision(t, plain) {
		t.Error("empty fields make another revision")
	}
}

func container(raw string) *embedded.Container {
	c := &embedded.Container{}
	c.Raw = []byte(raw)
	return c
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		name, spec string
		want       []string
	}{
		{"extraConf that is none", `{extraConf: "Gres=gpu:8 Weight"}`, []string{`spec.extraConf: line 1: "Weight" is not Key=Value`}},
		{"extraConf that leaves its quotes", `{extraConf: "Gres=gpu:8'; reboot; '"}`, []string{
			`spec.extraConf: line 1: "'" is not Key=Value`,
			`spec.extraConf: line 1: "reboot;" is not Key=Value`,
			`spec.extraConf: line 1: Gres: the value has the character '\'', which cannot be passed to slurmd safely`,
		}},
		{"a name for the node", `{extraConf: "NodeName=mine"}`, []string{
			"spec.extraConf: NodeName: it is set by the operator and cannot be set to something else; remove the line",
		}},
		{"a prefix that is no host name", `{template: {spec: {hostname: "gpu 'x'"}}}`, []string{
			`spec.template.spec.hostname: host name "gpu 'x'" has ' ' at position 4: letters, digits, '-', '_' and '.' are allowed`,
		}},
		{"a partition line that is none", `{partition: {enabled: true, config: "Default"}}`, []string{`spec.partition.config: "Default": this is not Key=Value`}},
		{"a claim without a name", `{volumeClaimTemplates: [{spec: {}}, {metadata: {name: a}, spex: {}}]}`, []string{
			"spec.volumeClaimTemplates[0].metadata.name: is the name of the volume and must not be empty",
			`spec.volumeClaimTemplates[1]: unknown field "spex"`,
		}},
		{"a jail without a volume", `{jail: {volumeSource: {}}}`, []string{
			"spec.jail.volumeSource: must have exactly one member that says what the volume is, such as persistentVolumeClaim or nfs; it has 0",
		}},
		{"a jail that is mistyped", `{jail: {volumeSource: {persistentVolumeClaims: {}}}}`, []string{`spec.jail.volumeSource: unknown field "persistentVolumeClaims"`}},
		{"another volume called jail", `{jail: {volumeSource: {emptyDir: {}}}, template: {spec: {volumes: [{name: jail, emptyDir: {}}]}}}`, []string{
			"spec.template.spec.volumes[jail]: is the name of the volume of spec.jail; choose another one",
		}},
		{"something else where the jail is", `{jail: {volumeSource: {emptyDir: {}}}, slurmd: {volumeMounts: [{name: a, mountPath: /mnt/jail/}]}}`, []string{
			"spec.jail: volume a is mounted at /mnt/jail as well; leave that mount out",
		}},
		{"power saving where names follow from machines", `{powerSaving: {}, template: {spec: {hostNetwork: true}}}`, []string{
			"spec.powerSaving: cannot be used with template.spec.hostNetwork: the names of nodes that are powered down have to follow from ordinals",
		}},
		{"a state for a node that registers drained", `{requiredChecks: [disk], extraConf: "State=IDLE Weight=2"}`, []string{
			"spec.extraConf: State cannot be used with spec.requiredChecks, for which the node registers drained",
		}},
		{"mistyped fields everywhere", `{slurmd: {a: 1}, logfile: {b: 1}, munge: {keyRef: {name: k, key: k}, container: {d: 1}}, template: {spec: {c: 1}}}`, []string{
			`spec.logfile: unknown field "b"`, `spec.munge.container: unknown field "d"`, `spec.slurmd: unknown field "a"`, `spec.template.spec: unknown field "c"`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			problems, rest := problem.FromError(slurmd.Check(input(t, tt.spec)))
			if rest != nil {
				t.Errorf("not a problem: %v", rest)
			}
			var got []string
			for _, p := range problems.Sorted() {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzNodeConf checks that nothing a user writes leaves the one argument in single quotes that a shell will see.
func FuzzNodeConf(f *testing.F) {
	f.Add("Gres=gpu:8 Weight=10", "gpu-")
	f.Add("a='b $(reboot)`x`", "x'; y")
	f.Add("Features=a\nGres=b", "$(X)")
	f.Fuzz(func(t *testing.T, extra, hostname string) {
		in := input(t, `{controllerRef: {name: demo}, template: {spec: {hostname: x}}}`)
		in.NodeSet.Spec.ExtraConf = extra
		in.NodeSet.Spec.Template.Spec.Raw = manifestOf(t, map[string]string{"hostname": hostname})
		if slurmd.Check(in) != nil {
			return
		}
		pod, err := slurmd.Pod(in, workerpod.Place{}, "r")
		if err != nil {
			t.Fatal(err)
		}
		args := pod.Spec.Containers[0].Args
		if len(args) != 5 || args[3] != "--conf" {
			t.Fatalf("arguments %q", args)
		}
		inner, quoted := strings.CutPrefix(args[4], "'")
		inner, ends := strings.CutSuffix(inner, "'")
		inner = strings.TrimSuffix(inner, ` Topology='"$SLINKY_TOPOLOGY"'`) // the one variable that a shell is to see
		if !quoted || !ends || strings.ContainsAny(inner, "'\n\r$`\\\"") {
			t.Errorf("the argument is %s", args[4])
		}
		for pair := range strings.FieldsSeq(inner) {
			if key, value, ok := strings.Cut(pair, "="); !ok || key == "" || value == "" || strings.EqualFold(key, "NodeName") {
				t.Errorf("%q in %s", pair, args[4])
			}
		}
	})
}

func manifestOf(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
