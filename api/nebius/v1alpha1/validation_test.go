// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

// line is the API server's error for a text with a line break.
const line = " in body should match '^[^\\r\\n\\x00]*$'"

type validationCase struct {
	name string // metadata.name, demo if empty
	spec string
	want []string
}

func validate(t *testing.T, kind string, cases map[string]validationCase) {
	t.Helper()
	crd := load(t, kind)
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{
				"apiVersion": "slurm.nebius.ai/v1alpha1", "kind": kind,
				"metadata": map[string]any{"name": "demo", "namespace": "default"},
				"spec":     crdcheck.Parse(t, test.spec),
			}
			if test.name != "" {
				object["metadata"].(map[string]any)["name"] = test.name
			}
			var got []string
			for _, err := range crd.Create(t.Context(), object) {
				got = append(got, strings.Replace(err.Error(), `Invalid value: "object": `, "Invalid value: ", 1))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the API server says something else (-want +got):\n%s", diff)
			}
			if test.want == nil {
				crdcheck.Decode(t, object, newObject(t, kind))
			}
		})
	}
}

func TestNodeSetValidation(t *testing.T) {
	const tooMany = `spec.maxUnavailable: Invalid value: maxUnavailable must resolve to no more than 500 workers`
	validate(t, "NodeSet", map[string]validationCase{
		"an empty spec has defaults for everything": {spec: `{}`},
		"a NodeSet of the first generation is accepted": {spec: `
replicas: 2
maxUnavailable: 20%
munge: {image: {repository: r.example.org/munge, tag: "1"}, resources: {cpu: 100m, memory: 128Mi}}
slurmd:
  cgroupVersion: v2
  image: {repository: r.example.org/slurmd, tag: "1"}
  resources: {cpu: 4, memory: 32Gi, nvidia.com/gpu: 8}
  volumes:
    jail: {persistentVolumeClaim: {claimName: jail}}
    spool: {emptyDir: {}}
    jailSubMounts: [{name: data, mountPath: /data, volumeClaimTemplateSpec: {accessModes: [ReadWriteOnce]}}]
nodeConfig: {static: "Gres=gpu:8"}
gpu: {enabled: true, nvidia: {gdrCopyEnabled: true}}
`},
		"a NodeSet of the newest generation is accepted": {spec: `
clusterName: demo
replicas: 2000
maxUnavailable: 25%
updateStrategy: slurmAwareRollingUpdate
ephemeralNodes: true
initialNumberEphemeralNodes: 0
munge: {image: {repository: r.example.org/munge}, resources: {}}
sssd: {image: {repository: r.example.org/sssd}, resources: {}, security: {procMount: Default}}
docker: {enabled: false}
topology: {fabric: fabric-7}
slurmd:
  image: {repository: r.example.org/slurmd}
  resources: {cpu: 4, memory: 32Gi}
  customEnv: [{name: A, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
  volumes: {jail: {hostPath: {path: /jail}}, spool: {emptyDir: {}}, persistentVolumeClaimRetentionPolicy: {whenScaled: Retain}}
nodeConfig: {features: [h100, ib], gresConfig: ["Name=gpu File=/dev/nvidia[0-7]"], autoResume: false}
`},
		"more than 500 at a time are refused": {spec: `{maxUnavailable: 501}`, want: []string{tooMany}},
		"none at a time is refused":           {spec: `{maxUnavailable: 0}`, want: []string{tooMany}},
		"a share that is more than 500 workers is refused": {
			spec: `{replicas: 2000, maxUnavailable: 26%}`, want: []string{tooMany},
		},
		"a share that is no percentage is refused": {spec: `{maxUnavailable: "20"}`, want: []string{tooMany}},
		"a mount without a source is refused": {
			spec: `{slurmd: {volumes: {customVolumeMounts: [{name: a, mountPath: /a}]}}}`,
			want: []string{`spec.slurmd.volumes.customVolumeMounts[0]: Invalid value: exactly one of volumeSource and volumeClaimTemplateSpec must be given`},
		},
		"a name with a dot is refused": {
			name: "a.b", spec: `{}`,
			want: []string{`<nil>: Invalid value: metadata.name must have at most 52 lower case letters, digits and dashes: the names of Slurm nodes and Services are made of it`},
		},
		"a line break in the options of a node is refused": {
			spec: `{nodeConfig: {static: "Weight=1\nSlurmUser=root", dynamic: "a\nb", gresConfig: ["Name=gpu\nName=evil"]}}`,
			want: []string{
				`spec.nodeConfig.dynamic: Invalid value: "a\nb": spec.nodeConfig.dynamic` + line,
				`spec.nodeConfig.gresConfig[0]: Invalid value: "Name=gpu\nName=evil": spec.nodeConfig.gresConfig[0]` + line,
				`spec.nodeConfig.static: Invalid value: "Weight=1\nSlurmUser=root": spec.nodeConfig.static` + line,
			},
		},
		"a further option behind a feature is refused": {
			spec: `{nodeConfig: {features: ["a Weight=1"]}}`,
			want: []string{`spec.nodeConfig.features[0]: Invalid value: "a Weight=1": spec.nodeConfig.features[0] in body should match '^[^\s,=#"'\\\x00]+$'`},
		},
		"a further option behind a fabric is refused": {
			spec: `{topology: {fabric: "a Nodes=ALL"}}`,
			want: []string{`spec.topology.fabric: Invalid value: "a Nodes=ALL": spec.topology.fabric in body should match '^[^\s,=#"'\\\x00]*$'`},
		},
	})
}

func TestNodeConfiguratorValidation(t *testing.T) {
	const either = `spec: Invalid value: Either rebooter or nodeConfigurator must be enabled, but not both simultaneously.`
	validate(t, "NodeConfigurator", map[string]validationCase{
		"an empty spec runs the rebooter": {spec: `{}`},
		"a NodeConfigurator of the first generation is accepted": {
			spec: `{rebooter: {enabled: false}, nodeConfigurator: {enabled: true, image: {repository: busybox}, resources: {requests: {cpu: 10m}}}}`,
		},
		"a NodeConfigurator of the newest generation is accepted": {
			spec: `{rebooter: {enabled: true, name: r, command: [/r]}, customContainer: {enabled: true, name: c}, hostIPC: true, hostNetwork: false}`,
		},
		"rebooter and nodeConfigurator at once are refused": {
			spec: `{nodeConfigurator: {enabled: true}}`, want: []string{either},
		},
		"a spec with neither rebooter nor nodeConfigurator is refused": {
			spec: `{rebooter: {enabled: false}, nodeConfigurator: {enabled: false}}`, want: []string{either},
		},
		"a container of the user instead of the rebooter is accepted": {spec: `{rebooter: {enabled: false}, customContainer: {enabled: true}}`},
		"a spec with neither rebooter nor customContainer is refused": {
			spec: `{rebooter: {enabled: false}, customContainer: {enabled: false}}`,
			want: []string{`spec: Invalid value: nothing is enabled: set enabled of rebooter or of customContainer`},
		},
		"nothing at all is refused": {
			spec: `{rebooter: {enabled: false}}`, want: []string{`spec: Invalid value: nothing is enabled: set enabled of rebooter or of customContainer`},
		},
		"a drain by other means than evictions is refused": {
			spec: `{rebooter: {enabled: true, evictionMethod: drain}}`, want: []string{`spec.rebooter.evictionMethod: Unsupported value: "drain": supported values: "", "evict"`},
		},
		"a block under both of its names is refused": {
			spec: `{rebooter: {enabled: false}, nodeConfigurator: {enabled: true}, customContainer: {enabled: true}}`,
			want: []string{`spec.nodeConfigurator: Invalid value: nodeConfigurator is the former name of customContainer: give only customContainer`},
		},
	})
}

func TestJailedConfigValidation(t *testing.T) {
	const absolute = "must be an absolute path of a file, without . and .. as parts"
	validate(t, "JailedConfig", map[string]validationCase{
		"a file with its mode is accepted": {
			spec: `{configMap: {name: a}, items: [{key: b, path: /etc/slurm/..b.conf, mode: 493}], updateActions: [Reconfigure]}`,
		},
		"a relative path is refused": {
			spec: `{configMap: {name: a}, items: [{key: b, path: etc/b}]}`,
			want: []string{`spec.items[0].path: Invalid value: "etc/b": ` + absolute},
		},
		"a path that climbs is refused": {
			spec: `{configMap: {name: a}, items: [{key: b, path: /etc/../../b}]}`,
			want: []string{`spec.items[0].path: Invalid value: "/etc/../../b": ` + absolute},
		},
		"a directory is refused": {
			spec: `{configMap: {name: a}, items: [{key: b, path: /etc/.}, {key: b, path: /etc/}]}`,
			want: []string{
				`spec.items[0].path: Invalid value: "/etc/.": ` + absolute,
				`spec.items[1].path: Invalid value: "/etc/": ` + absolute,
			},
		},
		"another action is refused": {
			spec: `{configMap: {name: a}, updateActions: [Restart]}`,
			want: []string{`spec.updateActions[0]: Unsupported value: "Restart": supported values: "Reconfigure"`},
		},
	})
}

func TestActiveCheckValidation(t *testing.T) {
	validate(t, "ActiveCheck", map[string]validationCase{
		"a check needs a cluster": {
			spec: `{}`,
			want: []string{`spec.slurmClusterRefName: Required value`},
		},
		"reactions of the first generation are accepted": {
			spec: `{slurmClusterRefName: demo, name: a, failureReactions: {drainSlurmNode: true, commentSlurmNode: false, setCondition: true, addReservation: {prefix: suspicious}}, reactions: {drainSlurmNode: true}}`,
		},
		"reactions of the newest generation are accepted": {
			spec: `{slurmClusterRefName: demo, checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/sh\ntrue\n"}, failureReactions: {drainSlurmNode: {drainReasonPrefix: "[node_problem]"}, commentSlurmNode: {commentPrefix: c}}}`,
		},
		"a required check of Kubernetes Jobs is accepted": {
			spec: `{slurmClusterRefName: demo, requiredBeforeJobs: true, k8sJobSpec: {jobContainer: {image: check}}}`,
		},
		"a required check of Slurm jobs is refused": {
			spec: `{slurmClusterRefName: demo, requiredBeforeJobs: true, checkType: slurmJob}`,
			want: []string{`spec.requiredBeforeJobs: Invalid value: only checks of type k8sJob can be required: the node drains until then, and no Slurm job starts there`},
		},
		"a required check with a name that is too long is refused": {
			name: strings.Repeat("a", 53), spec: `{slurmClusterRefName: demo, requiredBeforeJobs: true}`,
			want: []string{`<nil>: Invalid value: metadata.name of a check with requiredBeforeJobs must have at most 52 characters: an annotation of pods is made of it`},
		},
		"a name that is no name of a container is refused": {
			spec: `{slurmClusterRefName: demo, name: "a b"}`,
			want: []string{`spec.name: Invalid value: "a b": spec.name in body should match '^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$'`},
		},
		"a further option behind the name of a reservation is refused": {
			spec: `{slurmClusterRefName: demo, successReactions: {removeReservation: {prefix: "a b"}}}`,
			want: []string{`spec.successReactions.removeReservation.prefix: Invalid value: "a b": spec.successReactions.removeReservation.prefix in body should match '^[^\s,=#"'\\\x00]*$'`},
		},
	})
}

func TestNodeSetPowerStateValidation(t *testing.T) {
	validate(t, "NodeSetPowerState", map[string]validationCase{
		"ordinals are accepted": {spec: `{nodeSetRef: a, activeNodes: [0, 7]}`},
		"an ordinal twice is refused": {
			spec: `{nodeSetRef: a, activeNodes: [7, 7]}`,
			want: []string{`spec.activeNodes[1]: Duplicate value: 7`},
		},
		"a negative ordinal is refused": {
			spec: `{nodeSetRef: a, activeNodes: [-1]}`,
			want: []string{`spec.activeNodes[0]: Invalid value: -1: spec.activeNodes[0] in body should be greater than or equal to 0`},
		},
	})
}
