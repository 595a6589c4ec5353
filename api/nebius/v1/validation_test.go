// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

// line is the API server's error for a text with a line break.
const line = " in body should match '^[^\\r\\n\\x00]*$'"

func TestSlurmClusterValidation(t *testing.T) {
	crd := slurmCluster(t)
	for name, test := range map[string]struct {
		name string // metadata.name, demo if empty
		spec string
		want []string
	}{
		"an empty spec is a cluster without workers": {spec: `{}`},
		"a name that Slurm's database cannot hold is refused": {
			name: strings.Repeat("a", 41), spec: `{}`,
			want: []string{`<nil>: Invalid value: metadata.name must have at most 40 lower case letters, digits and dashes, and begin with a letter: ClusterName and the names of Services are made of it`},
		},
		"a name with a dot is refused": {
			name: "a.b", spec: `{}`,
			want: []string{`<nil>: Invalid value: metadata.name must have at most 40 lower case letters, digits and dashes, and begin with a letter: ClusterName and the names of Services are made of it`},
		},
		"accounting without a database is refused": {
			spec: `{slurmNodes: {accounting: {enabled: true, externalDB: {enabled: false}}}}`,
			want: []string{`spec.slurmNodes.accounting: Invalid value: accounting needs a database: enable embeddedDB, externalDB or mariadbOperator`},
		},
		"two databases are refused": {
			spec: `{slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}, externalDB: {enabled: true, host: h, user: u}}}}`,
			want: []string{`spec.slurmNodes.accounting.embeddedDB.enabled: Invalid value: embeddedDB cannot be enabled together with externalDB or mariadbOperator`},
		},
		"an external database needs a host": {
			spec: `{slurmNodes: {accounting: {enabled: true, externalDB: {enabled: true}}}}`,
			want: []string{
				`spec.slurmNodes.accounting.externalDB.host: Required value: host is required when externalDB is enabled`,
			},
		},
		"mariadbOperator wins over externalDB as it always did": {
			spec: `{slurmNodes: {accounting: {enabled: true, mariadbOperator: {enabled: true}, externalDB: {enabled: true, host: h, user: u}}}}`,
		},
		"workers beside partitions of NodeSets are refused": {
			spec: `{slurmNodes: {worker: {size: 1}}, partitionConfiguration: {configType: structured, partitions: [{name: main, nodeSetRefs: [a]}]}}`,
			want: []string{`spec.slurmNodes.worker.size: Invalid value: Worker size must be zero when NodeSetRefs are used in partition configuration`},
		},
		"workers beside a partition of all nodes are fine": {
			spec: `{slurmNodes: {worker: {size: 1}}, partitionConfiguration: {configType: structured, partitions: [{name: main, isAll: true}]}}`,
		},
		"no workers beside partitions of NodeSets are fine": {
			spec: `{slurmNodes: {worker: {size: 0}}, partitionConfiguration: {configType: structured, partitions: [{name: main, nodeSetRefs: [a]}]}}`,
		},
		"structured partitions need a partition": {
			spec: `{partitionConfiguration: {configType: structured}}`,
			want: []string{`spec.partitionConfiguration.partitions: Required value: Structured partition configuration requires at least one partition`},
		},
		"a raw partition line must start with PartitionName": {
			spec: `{partitionConfiguration: {configType: custom, rawConfig: ["PartitionName=a Nodes=ALL", "NodeName=evil"]}}`,
			want: []string{`spec.partitionConfiguration.rawConfig: Invalid value: each item of rawConfig must start with PartitionName, as in 'PartitionName=main Nodes=ALL Default=YES'`},
		},
		"raw partition lines do not matter to other types": {
			spec: `{partitionConfiguration: {rawConfig: ["# PartitionName=a"]}}`,
		},
		"two partitions of one name are refused": {
			spec: `{partitionConfiguration: {configType: structured, partitions: [{name: a, isAll: true}, {name: a, isAll: true}]}}`,
			want: []string{`spec.partitionConfiguration.partitions[1]: Duplicate value: {"name":"a"}`},
		},
		"an unknown node filter is refused": {
			spec: `{k8sNodeFilters: [{name: gpu}], slurmNodes: {worker: {size: 1, k8sNodeFilterName: cpu}}}`,
			want: []string{`spec.slurmNodes.worker.k8sNodeFilterName: Invalid value: must be the name of an entry of spec.k8sNodeFilters, or empty`},
		},
		"a node filter is unknown where there are none": {
			spec: `{slurmNodes: {login: {size: 1, k8sNodeFilterName: cpu}, controller: {k8sNodeFilterName: cpu}}}`,
			want: []string{
				`spec.slurmNodes.controller.k8sNodeFilterName: Invalid value: must be the name of an entry of spec.k8sNodeFilters, or empty`,
				`spec.slurmNodes.login.k8sNodeFilterName: Invalid value: must be the name of an entry of spec.k8sNodeFilters, or empty`,
			},
		},
		"an unknown node filter of what is not enabled does not matter": {
			spec: `{slurmNodes: {exporter: {k8sNodeFilterName: cpu}, rest: {k8sNodeFilterName: cpu}, accounting: {k8sNodeFilterName: cpu},
				login: {k8sNodeFilterName: cpu}, worker: {size: 0, k8sNodeFilterName: cpu}}}`,
		},
		"an unknown node filter of what this version does not run does not matter": {
			spec: `{populateJail: {k8sNodeFilterName: cpu}, sConfigController: {node: {k8sNodeFilterName: system}}, slurmNodes: {exporter: {enabled: true, k8sNodeFilterName: cpu}}}`,
		},
		"an empty node filter name is no constraint": {
			spec: `{slurmNodes: {controller: {k8sNodeFilterName: ""}}}`,
		},
		"two node filters of one name are refused": {
			spec: `{k8sNodeFilters: [{name: a}, {name: a}]}`,
			want: []string{`spec.k8sNodeFilters[1]: Duplicate value: {"name":"a"}`},
		},
		"two volume sources of one name are refused": {
			spec: `{volumeSources: [{name: jail, emptyDir: {}}, {name: jail, emptyDir: {}}]}`,
			want: []string{`spec.volumeSources[1]: Duplicate value: {"name":"jail"}`},
		},
		"a volume without a source is refused": {
			spec: `{slurmNodes: {controller: {volumes: {jail: {}, spool: {volumeSourceName: ""}}}}}`,
			want: []string{
				`spec.slurmNodes.controller.volumes.jail: Invalid value: exactly one of volumeSourceName and volumeClaimTemplateSpec must be given`,
				`spec.slurmNodes.controller.volumes.spool: Invalid value: exactly one of volumeSourceName and volumeClaimTemplateSpec must be given`,
			},
		},
		"a mount with two sources is refused": {
			spec: `{slurmNodes: {login: {volumes: {jailSubMounts: [{name: a, mountPath: /a, volumeSourceName: a, volumeClaimTemplateSpec: {}}]}}}}`,
			want: []string{`spec.slurmNodes.login.volumes.jailSubMounts[0]: Invalid value: exactly one of volumeSourceName and volumeClaimTemplateSpec must be given`},
		},
		"waiting for a reconfiguration shorter than its poll interval is refused": {
			spec: `{sConfigController: {reconfigurePollInterval: 1m, reconfigureWaitTimeout: 60s}}`,
			want: []string{`spec.sConfigController: Invalid value: ReconfigureWaitTimeout must be greater than ReconfigurePollInterval`},
		},
		"an ssh service of another type is refused": {
			spec: `{slurmNodes: {login: {sshdServiceType: ExternalName}}}`,
			want: []string{`spec.slurmNodes.login.sshdServiceType: Unsupported value: "ExternalName": supported values: "", "LoadBalancer", "NodePort", "ClusterIP"`},
		},
		"a node port that Kubernetes does not give is refused": {
			spec: `{slurmNodes: {login: {sshdServiceType: NodePort, sshdServiceNodePort: 32768}}}`,
			want: []string{`spec.slurmNodes.login.sshdServiceNodePort: Invalid value: 32768: must be 0 or between 30000 and 32767`},
		},
		"memory bounds may be numbers or texts": {
			spec: `{slurmNodes: {login: {userIsolation: {memoryHigh: 1000, memoryMax: 1Ki}}}}`,
		},
		"memoryHigh above memoryMax is refused": {
			spec: `{slurmNodes: {login: {userIsolation: {memoryHigh: 2Gi, memoryMax: 1Gi}}}}`,
			want: []string{`spec.slurmNodes.login.userIsolation.memoryHigh: Invalid value: memoryHigh must not exceed memoryMax`},
		},
		"looking back no time is refused": {
			spec: `{slurmNodes: {exporter: {accountingJobsLookback: 0s}}}`,
			want: []string{`spec.slurmNodes.exporter.accountingJobsLookback: Invalid value: "0s": accountingJobsLookback must be greater than zero`},
		},
		"a user below 1000 is refused": {
			spec: `{slurmNodes: {login: {users: [{name: alice, uid: 999}]}}}`,
			want: []string{`spec.slurmNodes.login.users[0].uid: Invalid value: 999: spec.slurmNodes.login.users[0].uid in body should be greater than or equal to 1000`},
		},
		"a user whose name is no login name is refused": {
			spec: `{slurmNodes: {login: {users: [{name: "alice:x", uid: 1000}]}}}`,
			want: []string{`spec.slurmNodes.login.users[0].name: Invalid value: "alice:x": spec.slurmNodes.login.users[0].name in body should match '^[a-z_][a-z0-9_-]{0,31}$'`},
		},
		"text of several lines is welcome in custom configuration": {
			spec: `{customSlurmConfig: "A=1\nB=2\n", customCgroupConfig: "A=1\nB=2\n"}`,
		},
		"NUL is not welcome in custom configuration": {
			spec: `{customSlurmConfig: "A=1\0"}`,
			want: []string{`spec.customSlurmConfig: Invalid value: "A=1\x00": spec.customSlurmConfig in body should match '^[^\x00]*$'`},
		},
		"a line break in a health check program is refused": {
			spec: `{healthCheckConfig: {healthCheckInterval: 1, healthCheckNodeState: [{state: ANY}], healthCheckProgram: "/a\nSlurmUser=root"}}`,
			want: []string{`spec.healthCheckConfig.healthCheckProgram: Invalid value: "/a\nSlurmUser=root": spec.healthCheckConfig.healthCheckProgram` + line},
		},
		"a line break in a key of slurm.conf is refused": {
			spec: `{slurmConfig: {prolog: "/a\nSlurmUser=root"}}`,
			want: []string{`spec.slurmConfig.prolog: Invalid value: "/a\nSlurmUser=root": spec.slurmConfig.prolog` + line},
		},
		"a line break in mpi.conf is refused": {
			spec: `{mpiConfig: {pmixEnv: "A=1\nB=2"}}`,
			want: []string{`spec.mpiConfig.pmixEnv: Invalid value: "A=1\nB=2": spec.mpiConfig.pmixEnv` + line},
		},
		"a line break in a raw partition is refused": {
			spec: `{partitionConfiguration: {configType: custom, rawConfig: ["PartitionName=a\nSlurmUser=root"]}}`,
			want: []string{`spec.partitionConfiguration.rawConfig[0]: Invalid value: "PartitionName=a\nSlurmUser=root": spec.partitionConfiguration.rawConfig[0]` + line},
		},
		"a line break in the options of a partition is refused": {
			spec: `{partitionConfiguration: {configType: structured, partitions: [{name: a, config: "State=UP\rSlurmUser=root"}]}}`,
			want: []string{`spec.partitionConfiguration.partitions[0].config: Invalid value: "State=UP\rSlurmUser=root": spec.partitionConfiguration.partitions[0].config` + line},
		},
		"options in the name of a partition are refused": {
			spec: `{partitionConfiguration: {configType: structured, partitions: [{name: "a Nodes=ALL", isAll: true}]}}`,
			want: []string{`spec.partitionConfiguration.partitions[0].name: Invalid value: "a Nodes=ALL": spec.partitionConfiguration.partitions[0].name in body should match '^[^\s,=#"'\\\x00]+$'`},
		},
		"options in the name of a NodeSet are refused": {
			spec: `{partitionConfiguration: {configType: structured, partitions: [{name: a, nodeSetRefs: ["a Hidden=YES"]}]}}`,
			want: []string{`spec.partitionConfiguration.partitions[0].nodeSetRefs[0]: Invalid value: "a Hidden=YES": spec.partitionConfiguration.partitions[0].nodeSetRefs[0] in body should match '^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$'`},
		},
		"options in a host list are refused": {
			spec: `{workerFeatures: [{name: a, hostlistExpr: "worker-[0-3] Feature=b"}]}`,
			want: []string{`spec.workerFeatures[0].hostlistExpr: Invalid value: "worker-[0-3] Feature=b": spec.workerFeatures[0].hostlistExpr in body should match '^[^\s=#"'\\\x00]+$'`},
		},
		"a line break in a plugin's path or argument is refused": {
			spec: `{plugStackConfig: {customPlugins: [{path: "a.so\nrequired b.so"}, {path: c.so, arguments: {a: "b\nc", "d e": f}}]}}`,
			want: []string{
				`spec.plugStackConfig.customPlugins[0].path: Invalid value: "a.so\nrequired b.so": spec.plugStackConfig.customPlugins[0].path in body should match '^[^\s#\x00]*$'`,
				`spec.plugStackConfig.customPlugins[1].arguments.a: Invalid value: "b\nc": spec.plugStackConfig.customPlugins[1].arguments.a` + line,
				`spec.plugStackConfig.customPlugins[1].arguments: Invalid value: each key must consist of letters, digits, dots, dashes and underscores`,
			},
		},
		"a further option behind the database's host is refused": {
			spec: `{slurmNodes: {accounting: {enabled: true, externalDB: {enabled: true, host: "h\nStoragePass=x", user: u}}}}`,
			want: []string{`spec.slurmNodes.accounting.externalDB.host: Invalid value: "h\nStoragePass=x": spec.slurmNodes.accounting.externalDB.host in body should match '^[^\s=#"'\\\x00]*$'`},
		},
		"a further option behind a storage parameter is refused": {
			spec: `{slurmNodes: {accounting: {externalDB: {storageParameters: {SSL_CA: "/a,SSL_KEY=/b"}}}}}`,
			want: []string{`spec.slurmNodes.accounting.externalDB.storageParameters.SSL_CA: Invalid value: "/a,SSL_KEY=/b": spec.slurmNodes.accounting.externalDB.storageParameters.SSL_CA in body should match '^[^,\s#"'\\\x00]*$'`},
		},
		"a line break in the extra text of a node is refused": {
			spec: `{slurmNodes: {worker: {slurmNodeExtra: "a\nb"}}}`,
			want: []string{`spec.slurmNodes.worker.slurmNodeExtra: Invalid value: "a\nb": spec.slurmNodes.worker.slurmNodeExtra` + line},
		},
		"a second line in a key of root is refused": {
			spec: `{slurmNodes: {login: {sshRootPublicKeys: ["ssh-ed25519 AAAA a\n", "ssh-ed25519 AAAA b\nssh-ed25519 AAAA c"]}}}`,
			want: []string{`spec.slurmNodes.login.sshRootPublicKeys[1]: Invalid value: "ssh-ed25519 AAAA b\nssh-ed25519 AAAA c": spec.slurmNodes.login.sshRootPublicKeys[1] in body should match '^[^\r\n\x00]*\n?$'`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := map[string]any{
				"apiVersion": "slurm.nebius.ai/v1", "kind": "SlurmCluster",
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
		})
	}
}
