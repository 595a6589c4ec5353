// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func nodeConfigurator(t testing.TB, spec string) *nebiusv1alpha1.NodeConfigurator {
	t.Helper()
	return manifest.Parse[nebiusv1alpha1.NodeConfigurator](t, "metadata: {name: nc, namespace: slurm}\nspec: "+spec)
}

var configuratorImages = image.Set{Registry: "example.com/coxswain", Tag: "26.05", Operator: "example.com/coxswain/operator:0.1.0"}

func TestNodeConfigurator(t *testing.T) {
	for _, tt := range []struct{ name, file, spec string }{
		{"the smallest spec runs the rebooter", "minimal", `{rebooter: {enabled: true}}`},
		{"a NodeConfigurator of the first generation idles", "idle", `
  rebooter: {enabled: false}
  nodeConfigurator: {enabled: true, image: {repository: busybox, tag: latest}, resources: {requests: {cpu: 10m}}, nodeSelector: {a: b}}
  initContainers: [{name: sysctls, image: busybox, command: [sysctl, -w, net.core.rmem_max=536870912], securityContext: {privileged: true}}]
  hostNetwork: false`},
		{"everything in one pod", "full", `
  rebooter:
    enabled: true
    name: r
    image: {repository: example.com/r, tag: "1", pullPolicy: Always}
    command: [/r]
    env: [{name: A, value: b}]
    resources: {requests: {cpu: 10m, memory: 64Mi}, limits: {memory: 64Mi}}
    livenessProbe: {httpGet: {path: /healthz, port: 8081}}
    readinessProbe: {httpGet: {path: /readyz, port: 8081}}
    affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: Exists}]}]}}}
    nodeSelector: {a: b}
    tolerations: [{key: gpu, operator: Exists}]
    priorityClassName: high
    serviceAccountName: nc-sa
    logLevel: debug
    logFormat: plain
  customContainer: {enabled: true, name: c, command: [/c], nodeSelector: {a: b}}
  hostIPC: true`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := NodeConfigurator(nodeConfigurator(t, tt.spec), configuratorImages)
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			golden.Check(t, "nodeconfigurator/"+tt.file+".golden.yaml", manifest.YAML(t, out.Objects...))
		})
	}
}

func TestMistakesInANodeConfigurator(t *testing.T) {
	for _, tt := range []struct{ name, spec, want string }{
		{"nothing runs", `{rebooter: {enabled: false}}`, "spec: nothing is enabled: set enabled of rebooter or of customContainer"},
		{
			"a user namespace with the rebooter", `{rebooter: {enabled: true, hostUsers: false}}`,
			"spec.rebooter.hostUsers: must be true with the rebooter: root in a user namespace cannot reboot the machine",
		},
		{
			"a user namespace with the host's network", `{rebooter: {enabled: false}, customContainer: {enabled: true, hostUsers: false}}`,
			"spec.customContainer.hostUsers: false needs spec.hostNetwork false",
		},
		{
			"a user namespace with the host's IPC", `{rebooter: {enabled: false}, hostNetwork: false, hostIPC: true, nodeConfigurator: {enabled: true, hostUsers: false}}`,
			"spec.nodeConfigurator.hostUsers: false needs spec.hostIPC false",
		},
		{
			"processes that are shared twice", `{rebooter: {enabled: true}, shareProcessNamespace: true}`,
			"spec.shareProcessNamespace: must be false with the rebooter, which needs the processes of the host",
		},
		{
			"two containers of one name", `{rebooter: {enabled: true, name: a}, customContainer: {enabled: true, name: a}}`,
			"spec.customContainer.name: is also the name of the rebooter's container",
		},
		{
			"two places for one pod", `{rebooter: {enabled: true, nodeSelector: {a: b}}, customContainer: {enabled: true, nodeSelector: {a: c}}}`,
			"spec.customContainer.nodeSelector: differs from that of spec.rebooter, and both containers run in one pod: give it in one of the two",
		},
		{"a variable that is ours", `{rebooter: {enabled: true, env: [{name: REBOOTER_NODE_NAME, value: a}]}}`, "spec.rebooter.env[0].name: REBOOTER_NODE_NAME is set by the operator"},
		{"a mistyped probe", `{rebooter: {enabled: true, livenessProbe: {a: 1}}}`, `spec.rebooter.livenessProbe: unknown field "a"`},
		{"a mistyped affinity", `{rebooter: {enabled: true, affinity: {a: 1}}}`, `spec.rebooter.affinity: unknown field "a"`},
		{"an init container without a name", `{rebooter: {enabled: true}, initContainers: [{image: a}]}`, "spec.initContainers[0].name: must be given"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := NodeConfigurator(nodeConfigurator(t, tt.spec), configuratorImages)
			var got []string
			for _, p := range out.Problems {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	long := nodeConfigurator(t, `{rebooter: {enabled: true}}`)
	long.Name = strings.Repeat("a", 64)
	if got := NodeConfigurator(long, configuratorImages).Problems.Message(); !strings.Contains(got, "metadata.name: must have at most 63 characters") {
		t.Errorf("with a long name: %q", got)
	}
}

func TestAnImageOfSoperatorsRebooterIsReplaced(t *testing.T) {
	n := nodeConfigurator(t, `{rebooter: {enabled: true, image: {repository: cr.eu-north1.nebius.cloud/soperator/rebooter, tag: 5.0.0}}}`)
	out := NodeConfigurator(n, configuratorImages)
	text := string(manifest.YAML(t, out.Objects...))
	if !strings.Contains(text, "image: "+configuratorImages.Operator) || len(out.Notes) != 1 || !strings.Contains(out.Notes[0], "spec.rebooter.image: cr.eu-north1") {
		t.Errorf("%q\n%s", out.Notes, text)
	}
	kept := configuratorImages
	kept.KeepSoperators = true
	if out = NodeConfigurator(n, kept); len(out.Notes) > 0 {
		t.Errorf("it is not kept: %q", out.Notes)
	}
}

// TestEveryFieldOfANodeConfiguratorHasAnEffect changes every field, one at a time, by the CRD.
func TestEveryFieldOfANodeConfiguratorHasAnEffect(t *testing.T) {
	definition := crdcheck.Load(t, "slurm.nebius.ai")["NodeConfigurator"]
	compose := func(path string, object map[string]any) []byte {
		if errs := definition.Create(t.Context(), object); len(errs) > 0 {
			t.Errorf("%s: the API server refuses it: %v", path, errs.ToAggregate())
		}
		n := &nebiusv1alpha1.NodeConfigurator{}
		delete(object, "status")
		crdcheck.Decode(t, object, n)
		n.Namespace = "slurm"
		out := NodeConfigurator(n, configuratorImages)
		if len(out.Problems) > 0 {
			t.Errorf("%s: its value is a mistake, which shows nothing: %s", path, out.Problems.Message())
		}
		return manifest.YAML(t, out.Objects...)
	}
	leaves, last := 0, ""
	crdcheck.Walk("", definition.Schema, func(path string, s *apiextensions.JSONSchemaProps) {
		below, isSpec := strings.CutPrefix(path, ".spec.")
		path = "spec." + below
		if !isSpec || !isLeaf(s) || last != "" && (strings.HasPrefix(path, last+".") || strings.HasPrefix(path, last+"[]")) {
			return
		}
		last = path
		switch {
		case path == "spec.rebooter.evictionMethod", path == "spec.rebooter.hostUsers":
			return // of the first there is one value, and of the second one is refused
		case path == "spec.nodeConfigurator.enabled", strings.Contains(path, ".resources.claims[]"):
			return // the first does not change alone, and no pod here has claims that the second could name
		}
		leaves++
		world := func() map[string]any {
			object := definition.Object()
			object["metadata"] = map[string]any{"name": "nc"}
			object["spec"] = configuratorWorld(path)
			return object
		}
		before, after := world(), world()
		open(before, path)
		open(after, path)
		put(t, after, path, configuratorLeaf(path, s, at(after, path)))
		if is, was := compose(path, after), compose(path, before); bytes.Equal(is, was) {
			t.Errorf("%s changes nothing that is composed", path)
		}
	})
	if leaves < 40 {
		t.Errorf("there are %d fields only", leaves)
	}
}

// configuratorWorld is a spec in which a field matters.
func configuratorWorld(path string) map[string]any {
	switch {
	case path == "spec.customContainer.enabled":
		return fields(`{"rebooter": {"enabled": true}, "customContainer": {"enabled": false}}`)
	case path == "spec.rebooter.enabled":
		return fields(`{"rebooter": {"enabled": false}, "customContainer": {"enabled": true}}`)
	case strings.HasPrefix(path, "spec.customContainer."), path == "spec.shareProcessNamespace":
		return fields(`{"rebooter": {"enabled": false}, "hostNetwork": false, "customContainer": {"enabled": true, "image": {"repository": "a"}}}`)
	case strings.HasPrefix(path, "spec.nodeConfigurator."):
		return fields(`{"rebooter": {"enabled": false}, "hostNetwork": false, "nodeConfigurator": {"enabled": true, "image": {"repository": "a"}}}`)
	}
	return fields(`{"rebooter": {"enabled": true, "image": {"repository": "a"}}}`)
}

func configuratorLeaf(path string, s *apiextensions.JSONSchemaProps, was any) any {
	switch {
	case strings.HasSuffix(path, ".env"):
		return []any{fields(`{"name": "LEAF", "value": "a"}`)}
	case strings.HasSuffix(path, ".tolerations[].operator"):
		return "Exists"
	case path == "spec.initContainers":
		return []any{fields(`{"name": "leaf", "image": "i"}`)}
	case strings.HasSuffix(path, ".resources.limits"), strings.HasSuffix(path, ".resources.requests"):
		return fields(`{"cpu": "3"}`)
	}
	return leafValue("NodeConfigurator", path, s, was)
}
