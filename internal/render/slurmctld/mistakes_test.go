// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// TestTheLastCgroupPluginCounts has a cgroup.conf with two such lines; Slurm takes the last.
func TestTheLastCgroupPluginCounts(t *testing.T) {
	for text, want := range map[string]bool{
		"CgroupPlugin=cgroup/v2\nCgroupPlugin=disabled\n":       true,
		"CgroupPlugin=disabled\nCgroupPlugin=cgroup/v2\n":       false,
		"cgroupplugin = \"Disabled\" # not in our containers\n": true,
	} {
		in := input(t, `{}`)
		in.Files.Config = []slurmctld.File{{ConfigMap: "config", Name: "cgroup.conf", Content: text}}
		if got := strings.Contains(configOf(t, slurmctld.Render(in).Objects), "ProctrackType=proctrack/linuxproc"); got != want {
			t.Errorf("%q: slurm.conf does without cgroups: %v, want %v", text, got, want)
		}
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		name, spec string
		with       func(t testing.TB, in *slurmctld.Input)
		want       []string
	}{
		{name: "a key that the operator owns", spec: `{extraConf: "MaxNodeCount=2048\nClusterName=mine\n"}`,
			want: []string{"spec.extraConf: line 2: ClusterName: it is set by the operator and cannot be set to something else; remove the line"}},
		{name: "an item that the operator owns", spec: `{extraConf: "AuthAltParameters=jwt_key=/tmp/key"}`,
			want: []string{"spec.extraConf: line 1: AuthAltParameters: jwt_key is set by the operator and cannot be set to something else; remove it"}},
		{name: "a line without a value", spec: `{extraConf: "this is not configuration"}`,
			want: []string{`spec.extraConf: line 1: "this is not configuration": this is not Key=Value`}},
		{name: "a value that slurmctld ends with", spec: `{extraConf: "KillWait=30\nSlurmctldTimeout=soon\n"}`,
			want: []string{`spec.extraConf: line 2: SlurmctldTimeout: "soon" is not a number`}},
		{name: "a misspelt key", spec: `{extraConf: "MaxJobCout=5"}`,
			want: []string{"spec.extraConf: line 1: MaxJobCout: slurm.conf has no key of this name that the operator knows; did you mean MaxJobCount?"}},
		{name: "a misspelt key in cgroup.conf, and one that the operator owns in a file that is included",
			spec: `{extraConf: "include more.conf", configFileRefs: [{name: mine}]}`,
			with: func(_ testing.TB, in *slurmctld.Input) {
				in.Files.Config = []slurmctld.File{{"mine", "cgroup.conf", "ConstrainCore=yes"}, {"mine", "more.conf", "KillWait=30\nSlurmUser=root\nMaxJobCount=x"}}
			},
			want: []string{
				"spec.configFileRefs: ConfigMap mine, cgroup.conf: line 1: ConstrainCore: cgroup.conf has no key of this name that the operator knows; did you mean ConstrainCores?",
				`spec.configFileRefs: ConfigMap mine, more.conf: line 2: SlurmUser: it is set by the operator and cannot be set to something else; remove the line`,
				`spec.configFileRefs: ConfigMap mine, more.conf: line 3: MaxJobCount: "x" is not a number`,
			}},
		{name: "a file that one that is included includes, and one that nobody brings",
			spec: `{extraConf: "include more.conf", configFileRefs: [{name: mine}]}`,
			with: func(_ testing.TB, in *slurmctld.Input) {
				in.Files.Config = []slurmctld.File{{"mine", "even.conf", "KillWait=x\ninclude more.conf"}, {"mine", "more.conf", "include even.conf\ninclude most.conf"}}
			},
			want: []string{
				`spec.configFileRefs: ConfigMap mine, even.conf: line 1: KillWait: "x" is not a number`,
				"spec.configFileRefs: ConfigMap mine, more.conf: line 2: include: no ConfigMap that the spec refers to has a file most.conf",
			}},
		{name: "files that nobody brings", spec: `{extraConf: "include more.conf\nPrologSlurmctld=/etc/slurm/start.sh"}`,
			want: []string{
				"spec.extraConf: line 1: include: no ConfigMap that the spec refers to has a file more.conf",
				"spec.extraConf: line 2: PrologSlurmctld: no ConfigMap that the spec refers to has a file start.sh",
			}},
		{name: "a partition of a NodeSet with a misspelt option", spec: `{}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.NodeSets = []slinkyv1beta1.NodeSet{aNodeSet(t, "a", `{partition: {enabled: true, config: "Stat=UP MaxTime=never"}}`)}
			},
			want: []string{
				`NodeSet a, spec.partition.config: PartitionName=a MaxTime: "never" is not a time; write minutes, hours:minutes:seconds, days-hours:minutes:seconds or UNLIMITED`,
				"NodeSet a, spec.partition.config: PartitionName=a Stat: PartitionName has no option of this name that the operator knows; did you mean State?",
			}},
		{name: "a file of the operator's in a ConfigMap", spec: `{configFileRefs: [{name: mine}]}`,
			with: func(_ testing.TB, in *slurmctld.Input) {
				in.Files.Config = []slurmctld.File{{"mine", "slurm.conf", ""}, {"mine", "jwt.key", ""}, {"mine", "jwks.json", ""}}
			},
			want: []string{
				"spec.configFileRefs: ConfigMap mine has a key jwks.json, which the operator writes itself",
				"spec.configFileRefs: ConfigMap mine has a key jwt.key, which the operator writes itself",
				"spec.configFileRefs: ConfigMap mine has a key slurm.conf, which the operator writes itself; use spec.extraConf",
			}},
		{name: "a plugstack.conf that leaves the jail out", spec: `{jail: {volumeSource: {emptyDir: {}}}, configFileRefs: [{name: mine}]}`,
			with: func(_ testing.TB, in *slurmctld.Input) {
				in.Files.Config = []slurmctld.File{{"mine", "plugstack.conf", "optional other.so\n#required chroot.so /mnt/jail\noptional chroot.so /mnt/jail\n"}}
			},
			want: []string{`spec.configFileRefs: ConfigMap mine, plugstack.conf: lacks the line "required chroot.so /mnt/jail", without which jobs would run outside of spec.jail`}},
		{name: "a plugstack.conf with the line of the jail, another path and blanks", spec: `{jail: {volumeSource: {emptyDir: {}}}, configFileRefs: [{name: mine}]}`,
			with: func(_ testing.TB, in *slurmctld.Input) {
				in.Files.Config = []slurmctld.File{{"mine", "plugstack.conf", "optional other.so\n required\t/usr/lib/chroot.so  /mnt/jail\n"}}
			}},
		{name: "the same file in two ConfigMaps", spec: `{configFileRefs: [{name: a}], prologScriptRefs: [{name: b}]}`,
			with: func(_ testing.TB, in *slurmctld.Input) {
				in.Files.Config = []slurmctld.File{{"a", "x", ""}}
				in.Files.Prolog = []slurmctld.File{{"b", "x", ""}}
			},
			want: []string{"spec.prologScriptRefs: ConfigMaps a and b both have a key x"}},
		{name: "cgroup.conf among scripts", spec: `{prologScriptRefs: [{name: b}]}`,
			with: func(_ testing.TB, in *slurmctld.Input) {
				in.Files.Prolog = []slurmctld.File{{"b", "cgroup.conf", ""}}
			},
			want: []string{"spec.prologScriptRefs: ConfigMap b has a key cgroup.conf, which belongs into spec.configFileRefs"}},
		{name: "two NodeSets of one name in Slurm", spec: `{}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.NodeSets = []slinkyv1beta1.NodeSet{aNodeSet(t, "b", `{template: {spec: {hostname: gpu}}}`), aNodeSet(t, "a", `{template: {spec: {hostname: gpu-}}}`)}
			},
			want: []string{"NodeSets a and b are both called gpu in Slurm; give one of them another spec.template.spec.hostname"}},
		{name: "a partition line that is none", spec: `{}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.NodeSets = []slinkyv1beta1.NodeSet{aNodeSet(t, "a", `{partition: {enabled: true, config: "Default"}}`)}
			},
			want: []string{`NodeSet a, spec.partition.config: "Default": this is not Key=Value`}},
		{name: "a partition line that leaves its line", spec: `{}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.NodeSets = []slinkyv1beta1.NodeSet{aNodeSet(t, "a", `{partition: {enabled: true, config: "Default=YES\nAuthType=auth/none"}}`)}
			},
			want: []string{"NodeSet a, spec.partition.config: the options stand on more than one line"}},
		{name: "a NodeSet whose name is a word of Slurm's", spec: `{}`,
			with: func(t testing.TB, in *slurmctld.Input) {
				in.NodeSets = []slinkyv1beta1.NodeSet{aNodeSet(t, "all", `{partition: {enabled: true}}`), aNodeSet(t, "b", `{template: {spec: {hostname: "x y"}}}`)}
			},
			want: []string{
				`NodeSet all, spec.template.spec.hostname: host name "all" is a reserved word of Slurm`,
				`NodeSet b, spec.template.spec.hostname: host name "x y" has ' ' at position 2: letters, digits, '-', '_' and '.' are allowed`,
			}},
		{name: "a mistyped field in a container", spec: `{slurmctld: {imagePulPolicy: Never}}`,
			want: []string{`spec.slurmctld: unknown field "imagePulPolicy"`}},
		{name: "another socket of munged, and others among the ways to prove oneself", spec: `{munge: {keyRef: {name: k, key: k}, container: {e: 1}}, extraConf: "AuthInfo=socket=/tmp/s\nAuthAltTypes=auth/none"}`,
			want: []string{
				`spec.extraConf: line 1: AuthInfo: socket is set by the operator and cannot be set to something else; remove it`,
				`spec.extraConf: line 2: AuthAltTypes: it is set by the operator and cannot be set to something else; remove the line`,
				`spec.munge.container: unknown field "e"`,
			}},
		{name: "another name for the container", spec: `{slurmctld: {name: ctl}}`,
			want: []string{`spec.slurmctld.name: this container is called "slurmctld"; leave the name out (it was "ctl")`}},
		{name: "mistakes in every container and in the pod", spec: `{inplaceReconfigure: true, slurmctld: {a: 1}, logfile: {b: 1}, reconfigure: {c: 1}, template: {spec: {d: 1}}}`,
			want: []string{
				`spec.logfile: unknown field "b"`, `spec.reconfigure: unknown field "c"`,
				`spec.slurmctld: unknown field "a"`, `spec.template.spec: unknown field "d"`,
			}},
		{name: "external IPs", spec: `{service: {spec: {externalIPs: [192.0.2.1]}}}`,
			want: []string{"spec.service.spec.externalIPs: external IPs are not taken over; use a LoadBalancer or a NodePort"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.spec)
			if tt.with != nil {
				tt.with(t, &in)
			}
			out := slurmctld.Render(in)
			var got []string
			for _, p := range out.Problems.Sorted() {
				got = append(got, p.Error())
				if p.Waiting {
					t.Errorf("%s heals by itself, it says", p.Error())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			for _, o := range out.Objects {
				if o.GetName() == "" {
					t.Errorf("there is an object without a name: %T", o)
				}
			}
		})
	}
}

func TestConfigurationThatNoConfigMapHoldsIsRefused(t *testing.T) {
	in := input(t, `{}`)
	in.Controller.Spec.ExtraConf = "Licenses=" + strings.Repeat("x", 1<<20)
	problems := slurmctld.Render(in).Problems
	if want := " and a ConfigMap holds 1032192; move parts of it to configFileRefs"; len(problems) != 1 || !strings.HasSuffix(problems.Message(), want) {
		t.Errorf("%.300s", problems.Message())
	}
}

// Keys of next year pass as long as slurmctld may know them.
func TestUnknownKeys(t *testing.T) {
	for _, tt := range []struct {
		name, release, certain, key string
		refused, doubted            bool
	}{
		{name: "before slurmctld has told its release, a strange key passes with a doubt", key: "KeyOfNextYear", doubted: true},
		{name: "before slurmctld has told its release, a key that is nearly another one is refused", key: "KillWeit", refused: true},
		{name: "a release whose keys are known refuses all others", release: "26.05.3", key: "KeyOfNextYear", refused: true},
		{name: "a newer release may know strange keys", release: "26.11.0", key: "KillWeit", doubted: true},
		{name: "with a key of a newer release that release may come", release: "24.11.5", key: "MetricsType", doubted: true},
		{name: "a key of a newer release is refused if it is certain which release there is", release: "26.05.5", certain: "24.11", key: "MetricsType", refused: true},
		{name: "a key that is gone does not come back", release: "26.05.5", key: "AccountingStorageLoc", refused: true},
		{name: "what is looked at for a release that nobody runs is strict as well", certain: "26.05", key: "CheckpointType", refused: true},
		{name: "what is looked at for a release that is too new to be known passes with a doubt", certain: "27.05", key: "CheckpointType", doubted: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, `{extraConf: "`+tt.key+`=1"}`)
			in.Controller.Status.SlurmVersion, in.Release = tt.release, tt.certain
			out := slurmctld.Render(in)
			if (len(out.Problems) > 0) != tt.refused || (len(out.Doubts) > 0) != tt.doubted {
				t.Errorf("problems %v, doubts %v", out.Problems, out.Doubts)
			}
		})
	}
}

func TestAHealthCheckTimeoutThatIsTooLongIsDoubtful(t *testing.T) {
	for _, tt := range []struct {
		name, release, extra string
		doubted              bool
	}{
		{name: "the default timeout is not less than the interval", release: "26.05.5", extra: "HealthCheckProgram=/h\nHealthCheckInterval=30", doubted: true},
		{name: "a longer interval", release: "26.05.5", extra: "HealthCheckProgram=/h\nHealthCheckInterval=300"},
		{name: "the user sets a timeout that is less", release: "26.05.5", extra: "HealthCheckInterval=30\nHealthCheckTimeout=20"},
		{name: "an older release does not have the timeout", release: "25.11.2", extra: "HealthCheckInterval=30"},
		{name: "nobody knows yet which release it is", extra: "HealthCheckInterval=30"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, `{}`)
			in.Controller.Spec.ExtraConf, in.Controller.Status.SlurmVersion = tt.extra, tt.release
			out := slurmctld.Render(in)
			if len(out.Problems) > 0 || (len(out.Doubts) > 0) != tt.doubted || tt.doubted && out.Doubts[0].Reason != slinkyv1beta1.ReasonHealthCheckTimeoutTooLong {
				t.Errorf("problems %v, doubts %v", out.Problems, out.Doubts)
			}
			// A slurmd of an older release would end with the key.
			if text := configOf(t, out.Objects); strings.Contains(text, "HealthCheckTimeout") != strings.Contains(tt.extra, "HealthCheckTimeout") {
				t.Errorf("slurm.conf is\n%s", text)
			}
		})
	}
}

func TestPartitionsOfNodesThatDoNotExistWait(t *testing.T) {
	in := input(t, `{extraConf: "PartitionName=all Nodes=gpu,cpu-[0-3]"}`)
	out := slurmctld.Render(in)
	want := "spec.extraConf: line 1: PartitionName=all Nodes: there is no node and no NodeSet gpu; give it a NodeName or NodeSet line, or name another one"
	if len(out.Problems) != 1 || !out.Problems[0].Waiting || out.Problems[0].Error() != want {
		t.Errorf("%v", out.Problems)
	}
	in.NodeSets = []slinkyv1beta1.NodeSet{aNodeSet(t, "demo-gpu", `{template: {spec: {hostname: gpu-}}}`), aNodeSet(t, "cpu", `{}`)}
	if out := slurmctld.Render(in); len(out.Problems) > 0 {
		t.Errorf("%v", out.Problems)
	}
}

func TestIgnoredFieldsAreNamed(t *testing.T) {
	out := slurmctld.Render(input(t, `{metrics: {serviceMonitor: {enabled: true}}}`))
	if diff := cmp.Diff([]string{"spec.metrics.serviceMonitor (without spec.metrics.enabled)"}, out.Ignored); diff != "" {
		t.Error(diff)
	}
	external := `{external: true, externalConfig: {host: h, port: 1}, slurmctld: {image: a}, extraConf: "A=1", epilogScriptRefs: [{name: a}], munge: {keyRef: {name: k, key: k}}, metrics: {enabled: true}}`
	want := []string{"spec.extraConf (slurmctld runs elsewhere)", "spec.epilogScriptRefs (slurmctld runs elsewhere)", "spec.munge (slurmctld runs elsewhere)", "spec.metrics (slurmctld runs elsewhere)"}
	if diff := cmp.Diff(want, slurmctld.Render(input(t, external)).Ignored); diff != "" {
		t.Error(diff)
	}
}
