// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestPluginsOfTheContract are lines of plugstack.conf, and what is told of them.
func TestPluginsOfTheContract(t *testing.T) {
	const (
		pyxis = "optional spank_pyxis.so runtime_path=/run/pyxis execute_entrypoint=0 container_scope=global sbatch_support=1 "
		own   = `slurmNodes: {login: {sshd: {image: "own/login:1"}}, worker: {size: 1, slurmd: {image: "own/slurmd:1"}}}`
	)
	for name, test := range map[string]struct {
		spec, want string
		notes      []string
		ignored    []string
	}{
		"our images have pyxis, at its defaults as well": {spec: `{}`, want: pyxis + "use_squashfuse=0\n"},
		"what images of the user have is not missed":     {spec: `{` + own + `}`},
		"our plugin imports images itself": {
			spec: `{plugStackConfig: {pyxis: {required: false, useSquashfuse: true, importerPath: /opt/mine, containerImageSave: /images/}}}`,
			want: pyxis + "use_squashfuse=1\n",
			ignored: []string{
				"spec.plugStackConfig.pyxis.containerImageSave (Coxswain's plugin imports images itself, and keeps each once for a node)",
				"spec.plugStackConfig.pyxis.importerPath (Coxswain's plugin imports images itself, and keeps each once for a node)",
			},
		},
		"a plugin that our images lack": {
			spec:    `{plugStackConfig: {ncclDebug: {enabled: true, required: true}}}`,
			want:    pyxis + "use_squashfuse=0\noptional spanknccldebug.so enabled=1 log-level=INFO out-file=1 out-dir=/opt/soperator-outputs/local/nccl_logs out-stdout=0\n",
			notes:   []string{"spec.plugStackConfig.ncclDebug: Coxswain's images have no spanknccldebug.so"},
			ignored: []string{"spec.plugStackConfig.ncclDebug (required, and not in Coxswain's images)"},
		},
		"required plugins of the user, one of which our images have": {
			spec:  `{plugStackConfig: {customPlugins: [{path: spank_pbs.so, required: true}, {path: /opt/a.so, required: true}, {path: b.so}]}}`,
			want:  pyxis + "use_squashfuse=0\nrequired spank_pbs.so\nrequired /opt/a.so\noptional b.so\n",
			notes: []string{"spec.plugStackConfig.customPlugins[1].required: Coxswain's images have no /opt/a.so, and no slurmd starts without it"},
		},
		"pyxis of the user's images": {
			spec:  `{plugStackConfig: {pyxis: {useSquashfuse: true, importerPath: ""}}, ` + own + `}`,
			want:  pyxis + "use_squashfuse=1\n",
			notes: []string{"spec.plugStackConfig.pyxis.required: the line is optional"},
		},
		"the order of the contract": {
			spec: `{plugStackConfig: {customPlugins: [{path: a.so}], ncclInspectorPreConf: {dumpVerbose: true}, ncclDebug: {enabled: true, outputToFile: false, logLevel: WARN}}, ` + own + `}`,
			want: "optional spanknccldebug.so enabled=1 log-level=WARN out-file=0 out-dir=/opt/soperator-outputs/local/nccl_logs out-stdout=0\n" +
				"optional spank_nccl_inspector_preconf.so enabled=1 profiler-plugin=/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so " +
				"dump-dir=/opt/soperator-outputs/shared/nccl_profiles/%j/%s dump-verbose=1 dump-thread-interval-microseconds=1000000\noptional a.so\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(load(t).cluster(t, test.spec))
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			if got := out.Objects[0].(*corev1.ConfigMap).Data[plugstackConf]; got != test.want {
				t.Errorf("plugstack.conf is\n%s, want\n%s", got, test.want)
			}
			if diff := cmp.Diff(test.ignored, out.Ignored); diff != "" {
				t.Error(diff)
			}
			var notes []string
			for _, note := range out.Notes {
				if strings.HasPrefix(note, plugstackPath) {
					notes = append(notes, note)
				}
			}
			if len(notes) != len(test.notes) {
				t.Fatalf("notes are %q, want %q", notes, test.notes)
			}
			for i := range notes {
				if !strings.HasPrefix(notes[i], test.notes[i]) {
					t.Errorf("note is %q, want %q", notes[i], test.notes[i])
				}
			}
		})
	}
}

// TestArgumentsOfPluginsAreWords: text that would become further arguments is refused.
func TestArgumentsOfPluginsAreWords(t *testing.T) {
	out := Cluster(load(t).cluster(t, `{plugStackConfig: {ncclDebug: {outputDirectory: "/a required=evil"}}}`))
	if len(out.Problems) != 1 || out.Problems[0].Path != "spec.plugStackConfig.ncclDebug" || !strings.Contains(out.Problems[0].Message, "out-dir must be without blanks") {
		t.Errorf("problems are %v", out.Problems)
	}
}

// TestMPIConf is mpi.conf, which is left out when its only key is empty.
func TestMPIConf(t *testing.T) {
	for spec, want := range map[string]string{
		`{}`: "PMIxEnv=OMPI_MCA_btl_tcp_if_include=eth0\n", `{mpiConfig: {pmixEnv: "A=b c;D=#1"}}`: `PMIxEnv="A=b c;D=\#1"` + "\n", `{mpiConfig: {pmixEnv: ""}}`: "",
	} {
		out := Cluster(load(t).cluster(t, spec))
		if len(out.Problems) > 0 {
			t.Fatal(out.Problems.Message())
		}
		if got := out.Objects[0].(*corev1.ConfigMap).Data[mpiConf]; got != want {
			t.Errorf("%s: mpi.conf is %q, want %q", spec, got, want)
		}
	}
}
