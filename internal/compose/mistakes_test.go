// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

func texts(list problem.List) []string {
	var out []string
	for _, p := range list.Sorted() {
		out = append(out, p.Error())
	}
	return out
}

func TestMistakesOfUsers(t *testing.T) {
	d := load(t)
	for name, test := range map[string]struct {
		spec     string
		nodeSets []string
		// edit turns an object that the API server accepts into one that was stored before the rule existed.
		edit func(*nebiusv1.SlurmCluster)
		want []string
	}{
		"a filter that does not exist": {
			spec: `{slurmNodes: {login: {size: 1}}}`, edit: func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Login.K8sNodeFilterName = "gpu" },
			want: []string{`spec.slurmNodes.login.k8sNodeFilterName: there is no "gpu" in spec.k8sNodeFilters; add it there, or leave this out to run anywhere`},
		},
		"a jail that no source is": {
			spec: `{slurmNodes: {login: {volumes: {jail: {volumeSourceName: gone}}}}}`,
			want: []string{`spec.slurmNodes.login.volumes.jail.volumeSourceName: there is no "gone" in spec.volumeSources`},
		},
		"workers without a jail beside workers with one": {
			spec:     `{}`,
			nodeSets: []string{`a {slurmd: {volumes: {jail: {nfs: {server: s, path: /}}}}}`, "b {}"},
			want:     []string{"spec.volumeSources: workers demo-b have no jail and others do; add a source called jail, or name one in spec.slurmNodes.controller.volumes.jail"},
		},
		"an affinity with a mistyped field": {
			spec: `{k8sNodeFilters: [{name: a, affinity: {nodeAfinity: {}}}], slurmNodes: {controller: {k8sNodeFilterName: a}}}`,
			want: []string{`spec.k8sNodeFilters[a].affinity: unknown field "nodeAfinity"`},
		},
		"a line of customSlurmConfig that is no configuration": {
			spec: `{customSlurmConfig: "KillWait=30\nnonsense\n"}`,
			want: []string{`spec.customSlurmConfig: line 2: "nonsense": this is not Key=Value`},
		},
		"a key of the operator in customSlurmConfig": {
			spec: `{customSlurmConfig: "# mine\nClusterName=other\nSlurmUser=root\n"}`,
			want: []string{
				"spec.customSlurmConfig: line 2: ClusterName: it is set by the operator and cannot be set to something else; remove the line",
				"spec.customSlurmConfig: line 3: SlurmUser: it is set by the operator and cannot be set to something else; remove the line",
			},
		},
		"a key of the operator with the operator's value is fine": {
			spec: `{customSlurmConfig: "ClusterName=demo\nAccountingStorageHost=demo-accounting.slurm\n", slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}}}}`,
		},
		"two keys on a line of customCgroupConfig": {
			spec: `{customCgroupConfig: "ConstrainCores=no ConstrainDevices=no"}`,
			want: []string{"spec.customCgroupConfig: line 1: ConstrainCores: there is more text behind its value; put every key on a line of its own, and quotes around a value with blanks"},
		},
		"a raw partition that hides another key": {
			spec: `{partitionConfiguration: {configType: custom, rawConfig: ["PartitionNames=a", "PartitionName=b Nodes=ALL \"x"]}}`,
			want: []string{
				"spec.partitionConfiguration.rawConfig[0]: must be one line that starts with PartitionName, as in PartitionName=main Nodes=ALL Default=YES",
				"spec.partitionConfiguration.rawConfig[1]: the text behind the value of Nodes is not Key=Value; a value with blanks needs quotes around all of it",
			},
		},
		"partition options that contradict the fields": {
			spec: `{partitionConfiguration: {configType: structured, partitions: [{name: a, isAll: true, config: "Nodes=x"}, {name: b, isAll: true, config: "PartitionName=c"}, {name: c, isAll: true, config: "State"}]}}`,
			want: []string{
				"spec.partitionConfiguration.partitions[a].config: the nodes of the partition are given by isAll and nodeSetRefs; remove Nodes",
				"spec.partitionConfiguration.partitions[b].config: the name of the partition is given by name; remove PartitionName",
				`spec.partitionConfiguration.partitions[c].config: "State": this is not Key=Value`,
			},
		},
		"a volume source that does not exist, and one with two members": {
			spec: `{volumeSources: [{name: a, emptyDir: {}, nfs: {server: s, path: /}}], slurmNodes: {login: {volumes: {customMounts: [{name: home, mountPath: /home, volumeSourceName: home}]}}}}`,
			want: []string{
				`spec.slurmNodes.login.volumes.customMounts[0].volumeSourceName: there is no "home" in spec.volumeSources`,
				"spec.volumeSources[a]: must have exactly one member that says what the volume is, such as persistentVolumeClaim or nfs; it has 2",
			},
		},
		"mounts that Kubernetes would refuse": {
			spec: `{volumeSources: [{name: a, emptyDir: {}}], slurmNodes: {worker: {volumes: {customMounts: [
				{name: Home, mountPath: home, volumeSourceName: a}, {name: b, mountPath: /b, subPath: ../c, volumeSourceName: a},
				{name: c, mountPath: /c, volumeSourceName: a}, {name: c, mountPath: /c, volumeSourceName: a}]}}}}`,
			want: []string{
				"spec.slurmNodes.worker.volumes.customMounts[0].mountPath: must be an absolute path without colons",
				"spec.slurmNodes.worker.volumes.customMounts[0].name: must have at most 63 lower case letters, digits and dashes: it becomes the name of a volume",
				"spec.slurmNodes.worker.volumes.customMounts[1].subPath: must be a relative path without ..",
				"spec.slurmNodes.worker.volumes.customMounts[3].mountPath: something else is mounted at /c",
				`spec.slurmNodes.worker.volumes.customMounts[3].name: another mount of the same pods is called "c", too`,
			},
		},
		"an init container without a name, and a mistyped one": {
			spec: `{slurmNodes: {rest: {customInitContainers: [{image: a}, {name: b, imag: c}]}}}`,
			want: []string{
				"spec.slurmNodes.rest.customInitContainers[0].name: must be given",
				`spec.slurmNodes.rest.customInitContainers[1]: unknown field "imag"`,
			},
		},
		"a mistyped variable and a mistyped probe": {
			spec: `{slurmNodes: {controller: {slurmctld: {customEnv: [{nam: a}], livenessProbe: {tcp: 1}}}}}`,
			want: []string{
				`spec.slurmNodes.controller.slurmctld.customEnv[0]: unknown field "nam"`,
				`spec.slurmNodes.controller.slurmctld.livenessProbe: unknown field "tcp"`,
			},
		},
		"an AppArmor profile that is none": {
			spec: `{slurmNodes: {worker: {size: 1, slurmd: {appArmorProfile: "on"}}}}`,
			want: []string{"spec.slurmNodes.worker.slurmd.appArmorProfile: must be unconfined, runtime/default or localhost/<profile>"},
		},
		"no worker may ever be unavailable": {
			spec: `{slurmNodes: {worker: {size: 1, maxUnavailable: 0}}}`,
			want: []string{"spec.slurmNodes.worker.maxUnavailable: must be a number from 1, or a percentage from 1% to 100%"},
		},
		"a database without a password": {
			spec: `{slurmNodes: {accounting: {enabled: true, externalDB: {enabled: true, host: "a/b", user: "a/b"}}}}`,
			want: []string{
				"spec.slurmNodes.accounting.externalDB.host: must be one host name or IP address",
				"spec.slurmNodes.accounting.externalDB.passwordSecretKeyRef: must name a Secret with the password; to log in by a certificate alone, give tls.serverCASecretRef and tls.clientCertSecretRef",
				"spec.slurmNodes.accounting.externalDB.user: must consist of letters, digits and the characters _ $ . @ % + -",
			},
		},
		"accounting by cgroups that are disabled": {
			spec: `{customCgroupConfig: CgroupPlugin=disabled, slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}, slurmConfig: {jobAcctGatherType: jobacct_gather/cgroup}}}}`,
			want: []string{"spec.slurmNodes.accounting.slurmConfig.jobAcctGatherType: needs cgroups, which spec.customCgroupConfig disables; use jobacct_gather/linux"},
		},
		"workers of the same names twice": {
			spec: `{slurmNodes: {worker: {size: 1}}}`, nodeSets: []string{"worker {}"},
			want: []string{"spec.slurmNodes.worker.size: must be 0: NodeSet worker has workers of the same names"},
		},
		"a plugin with blanks in an argument": {
			spec: `{plugStackConfig: {customPlugins: [{path: a.so, arguments: {k: "v w"}}, {path: "", arguments: {}}]}}`,
			want: []string{
				"spec.plugStackConfig.customPlugins[0].arguments[k]: must be without blanks, quotes and comment signs: Slurm cuts the line at blanks and knows no quotes",
				"spec.plugStackConfig.customPlugins[1].path: must be one word without quotes and comment signs: it becomes part of a line of plugstack.conf",
			},
		},
		"values with line breaks, from before the API refused them": {
			spec: `{}`, edit: func(c *nebiusv1.SlurmCluster) {
				c.Spec.SlurmConfig.Epilog = "/a\nSlurmUser=root"
				c.Spec.SlurmNodes.Login.SSHRootPublicKeys = []string{"ssh-ed25519 A\nssh-ed25519 B"}
				c.Spec.PartitionConfiguration = nebiusv1.PartitionConfiguration{
					ConfigType: "structured", Partitions: []nebiusv1.Partition{{Name: "a\nb", IsAll: true}, {Name: "c d", IsAll: true}},
				}
			},
			want: []string{
				"spec.partitionConfiguration.partitions[a\nb].name: must be one word without commas, quotes, equals and comment signs",
				"spec.partitionConfiguration.partitions[c d].name: must be one word without commas, quotes, equals and comment signs",
				"spec.slurmConfig.epilog: writing slurm.conf: Epilog: the text has the control character U+000A",
				"spec.slurmNodes.login.sshRootPublicKeys[0]: must be one line; give each key an entry of its own",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.cluster(t, test.spec, test.nodeSets...)
			if test.edit != nil {
				test.edit(in.Cluster)
			}
			out := Cluster(in)
			if diff := cmp.Diff(test.want, texts(out.Problems)); diff != "" {
				t.Error(diff)
			}
			for _, p := range out.Problems {
				if p.Reason != "InvalidSpec" || p.Waiting {
					t.Errorf("%s: reason %s, waiting %t", p.Path, p.Reason, p.Waiting)
				}
			}
		})
	}
}

func TestMistakesInNodeSets(t *testing.T) {
	d := load(t)
	for name, test := range map[string]struct {
		nodeSet string
		want    []string
	}{
		"a static line with quotes": {
			nodeSet: `{nodeConfig: {static: 'Reason="a b" Weight=1'}}`,
			want: []string{
				`spec.nodeConfig.static: "b\"" is not Key=Value`,
				"spec.nodeConfig.static: Reason: the value has the character '\"', which cannot be passed to slurmd safely",
			},
		},
		"an address of its own": {
			nodeSet: `{nodeConfig: {static: "NodeAddr=192.0.2.1"}}`,
			want:    []string{"spec.nodeConfig.static: NodeAddr: it is set by the operator and cannot be set to something else; remove the line"},
		},
		"gres lines for other nodes": {
			nodeSet: `{nodeConfig: {gresConfig: ["NodeName=other Name=gpu", "nonsense", "Nodes=ALL"]}}`,
			want: []string{
				"spec.nodeConfig.gresConfig[0]: the line is for the nodes of this NodeSet; remove NodeName",
				`spec.nodeConfig.gresConfig[1]: "nonsense": this is not Key=Value`,
				"spec.nodeConfig.gresConfig[2]: NodeName=n Nodes: NodeName has no option of this name that the operator knows; did you mean Cores?",
			},
		},
		"a feature that a shell would touch": {
			nodeSet: `{nodeConfig: {features: ["$(reboot)"]}}`,
			want:    []string{"spec.nodeConfig.features[0]: the value has the character '$', which cannot be passed to slurmd safely"},
		},
		"a spool directory that is two things": {
			nodeSet: `{slurmd: {volumes: {spool: {volumeClaimTemplateSpec: {}, emptyDir: {}}}}}`,
			want:    []string{"spec.slurmd.volumes.spool: must have exactly one member; it has volumeClaimTemplateSpec and others"},
		},
		"a template of a claim that is none": {
			nodeSet: `{slurmd: {volumes: {spool: {volumeClaimTemplateSpec: {size: 1Gi}}}}}`,
			want:    []string{`spec.slurmd.volumes.spool.volumeClaimTemplateSpec: unknown field "size"`},
		},
		"a volume without a kind": {
			nodeSet: `{slurmd: {volumes: {spool: {}, customVolumeMounts: [{name: a, mountPath: /a, volumeSource: {nfs: {sever: a}}}]}}}`,
			want: []string{
				`spec.slurmd.volumes.customVolumeMounts[0].volumeSource: unknown field "nfs.sever"`,
				"spec.slurmd.volumes.spool: must have exactly one member that says what the volume is, such as persistentVolumeClaim or nfs; it has 0",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.cluster(t, "{}", "a "+test.nodeSet, "b {}")
			out := Cluster(in)
			if len(out.Problems) > 0 {
				t.Errorf("a mistake in one NodeSet stops the cluster: %s", out.Problems.Message())
			}
			if len(out.Held) != 1 || out.Held[0].NodeSet != "a" {
				t.Fatalf("held: %v", out.Held)
			}
			if diff := cmp.Diff(test.want, texts(out.Held[0].Problems)); diff != "" {
				t.Error(diff)
			}
			for _, o := range out.Objects {
				if o.GetName() == "demo-a" {
					t.Error("the NodeSet with a mistake is applied")
				}
			}
		})
	}
}

func TestFieldsWithoutEffect(t *testing.T) {
	d := load(t)
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"nothing set":          {spec: `{}`},
		"defaults written out": {spec: `{plugStackConfig: {pyxis: {required: true}, ncclDebug: {enabled: false, outputToFile: true}}, slurmConfig: {topologyBlockSize: 18, topologyPlugin: topology/tree}, slurmNodes: {controller: {munge: {imagePullPolicy: IfNotPresent}}, exporter: {enabled: false, size: 1}}}`},
		"empty blocks": {
			spec: `{populateJail: {}, sConfigController: {container: {}, node: {}}, plugStackConfig: {pyxis: {}, ncclDebug: {}}, mpiConfig: {}, topology: {}, slurmNodes: {
				controller: {munge: {}, openMetrics: {serviceMonitor: {}}}, login: {munge: {}}, accounting: {munge: {}}, worker: {munge: {}}, exporter: {enabled: true, exporterContainer: {}}}}`,
		},
		"a block topology": {spec: `{slurmConfig: {topologyPlugin: topology/block}, topology: {blockSize: 4}}`},
		"a block topology on 24.11": {
			spec: `{slurmConfig: {topologyPlugin: topology/block, topologyBlockSize: 4}, slurmNodes: {controller: {slurmctld: {image: "slurmctld:24.11.5"}}}}`,
			want: []string{
				"spec.slurmConfig.topologyBlockSize (without topology/block, or beside spec.topology.blockSize)",
				"spec.slurmConfig.topologyPlugin (topology/block with Slurm 24.11, which does not start with it)",
			},
		},
		"blocks of a tree":    {spec: `{topology: {blockSize: 4}}`, want: []string{"spec.topology.blockSize (without topology/block)"}},
		"populating the jail": {spec: `{populateJail: {image: j, overwrite: true}}`, want: []string{"spec.populateJail (image, overwrite)"}},
		"claims of jails, which pods share": {
			spec: `{volumeSources: [{name: jail, nfs: {server: s, path: /}}], slurmNodes: {controller: {volumes: {jail: {volumeClaimTemplateSpec: {}}}}, login: {volumes: {jail: {volumeClaimTemplateSpec: {}}}}}}`,
			want: []string{"spec.slurmNodes.controller.volumes.jail.volumeClaimTemplateSpec", "spec.slurmNodes.login.volumes.jail.volumeClaimTemplateSpec"},
		},
		"mounts in a jail that is not there": {
			spec: `{volumeSources: [{name: s, emptyDir: {}}], slurmNodes: {login: {volumes: {jailSubMounts: [{name: a, mountPath: /a, volumeSourceName: s}]}}}}`,
			want: []string{"spec.slurmNodes.login.volumes.jailSubMounts[0] (without a jail)"},
		},
		"a filter of the config writer that is not there": {spec: `{volumeSources: [{name: jail, nfs: {server: s, path: /}}], sConfigController: {node: {k8sNodeFilterName: system}}}`, want: []string{"spec.sConfigController.node.k8sNodeFilterName"}},
		"the config writer":                           {spec: `{sConfigController: {node: {size: 2}, reconfigureWaitTimeout: 2m, runAsUid: 0}}`, want: []string{"spec.sConfigController (node, reconfigureWaitTimeout, runAsUid)"}},
		"maintenance":                                 {spec: `{maintenance: downscale}`},
		"maintenance without rest":                    {spec: `{maintenance: skipPopulateJail}`},
		"a MariaDB of the mariadb-operator":           {spec: `{slurmNodes: {accounting: {enabled: true, mariadbOperator: {enabled: true}}}}`, want: []string{"spec.slurmNodes.accounting.mariadbOperator (the cluster has no CRD mariadbs.k8s.mariadb.com or grants.k8s.mariadb.com)"}},
		"plugins of the contract":                     {spec: `{plugStackConfig: {pyxis: {useSquashfuse: true}, ncclDebug: {enabled: true, outputToFile: false}, ncclInspectorPreConf: {}}}`},
		"a plugin that is not in our images":          {spec: `{plugStackConfig: {ncclDebug: {enabled: true, required: true}}}`, want: []string{"spec.plugStackConfig.ncclDebug (required, and not in Coxswain's images)"}},
		"a load balancer's fields on another Service": {spec: `{slurmNodes: {login: {sshdServiceNodePort: 30022, sshdServiceLoadBalancerIP: 192.0.2.1, sshdServiceLoadBalancerSourceRanges: [192.0.2.0/24]}}}`, want: []string{"spec.slurmNodes.login.sshdServiceLoadBalancerIP", "spec.slurmNodes.login.sshdServiceLoadBalancerSourceRanges", "spec.slurmNodes.login.sshdServiceNodePort"}},
		"power saving without a program":              {spec: `{slurmConfig: {suspendTime: 300}}`, want: []string{"spec.slurmConfig.suspendTime (without ephemeral nodes, and without SuspendProgram in spec.customSlurmConfig)"}},
		"power saving with a program":                 {spec: `{slurmConfig: {suspendTime: 300}, customSlurmConfig: "SuspendProgram=/bin/off\nResumeProgram=/bin/on"}`},
		"a filter that does not exist, of no pods":    {spec: `{slurmNodes: {worker: {size: 0, k8sNodeFilterName: a}, login: {k8sNodeFilterName: b}, rest: {k8sNodeFilterName: c}}}`, want: []string{"spec.slurmNodes.login.k8sNodeFilterName", "spec.slurmNodes.rest.k8sNodeFilterName", "spec.slurmNodes.worker.k8sNodeFilterName"}},
		"no REST API for the operator":                {spec: `{slurmNodes: {rest: {size: 0}}}`, want: []string{"spec.slurmNodes.rest.size"}},
		"claims of login pods":                        {spec: `{slurmNodes: {login: {volumes: {customMounts: [{name: a, mountPath: /a, volumeClaimTemplateSpec: {}}]}}}}`, want: []string{"spec.slurmNodes.login.volumes.customMounts[0].volumeClaimTemplateSpec"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(d.cluster(t, test.spec))
			if diff := cmp.Diff(test.want, out.Ignored); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFieldsOfNodeSetsWithoutEffect(t *testing.T) {
	d := load(t)
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"nothing set":     {spec: `{}`},
		"ephemeral nodes": {spec: `{ephemeralNodes: true, initialNumberEphemeralNodes: 2}`},
		"all fields without effect": {
			spec: `{munge: {image: {repository: soperator/munge}, security: {limitsConfig: x}}, sssd: {}, docker: {enabled: true}, sssdDebugLevel: 1, initialNumberEphemeralNodes: 2, topology: {fabric: a}, workerInitRandomDelaySeconds: 1,
				configMapRefSshd: a, nodeConfig: {dynamic: x, autoResume: false, static: State=CLOUD}, slurmd: {port: 7000, volumes: {jail: {emptyDir: {}}}, security: {limitsConfig: x}}}`,
			want: []string{
				"spec.docker.enabled", "spec.initialNumberEphemeralNodes (without ephemeralNodes)", "spec.munge (image, security)",
				"spec.nodeConfig.static (State)", "spec.slurmd.security.limitsConfig (line 1, which is none of limits.conf)", "spec.sssd",
				"spec.sssdDebugLevel (without sssdConfSecretRefName)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.cluster(t, "{}", "a "+test.spec)
			out := NodeSet(in.Cluster, &in.NodeSets[0])
			if len(out.Problems) > 0 {
				t.Error(out.Problems.Message())
			}
			if diff := cmp.Diff(test.want, out.Ignored); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAutoResume: autoResume is reported where Slurm would power nodes up in spite of it.
func TestAutoResume(t *testing.T) {
	for name, test := range map[string]struct {
		custom, set string
		want        []string
	}{
		"no worker is powered up":          {set: "{}"},
		"workers are powered down only":    {custom: "SuspendProgram=/bin/s", set: "{}"},
		"a program powers workers up":      {custom: "ResumeProgram=/bin/r", set: "{}", want: []string{"spec.nodeConfig.autoResume (with ResumeProgram in customSlurmConfig of the SlurmCluster)"}},
		"ephemeral workers are powered up": {set: "{ephemeralNodes: true}", want: []string{"spec.nodeConfig.autoResume (with ephemeralNodes)"}},
	} {
		in := load(t).cluster(t, "{customSlurmConfig: "+test.custom+"}", "a "+test.set)
		in.NodeSets[0].Spec.NodeConfig.AutoResume = new(false)
		if diff := cmp.Diff(test.want, NodeSet(in.Cluster, &in.NodeSets[0]).Ignored); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestDriverOfTheJail: GPUs of workers with a jail are reported, since the jail lacks the driver's libraries.
func TestDriverOfTheJail(t *testing.T) {
	const gpu = `a {slurmd: {resources: {cpu: "1", memory: 1Gi, nvidia.com/gpu: 1}}}`
	for _, test := range []struct {
		cluster, set string
		want         bool
	}{
		{`{volumeSources: [{name: jail, nfs: {server: s, path: /}}]}`, gpu, true},
		{`{volumeSources: [{name: jail, nfs: {server: s, path: /}}]}`, `a {}`, false},
		{`{}`, gpu, false},
	} {
		in := load(t).cluster(t, test.cluster, test.set)
		notes := NodeSet(in.Cluster, &in.NodeSets[0]).Notes
		if got := slices.ContainsFunc(notes, func(note string) bool { return strings.HasPrefix(note, "nvidia.com/gpu: ") }); got != test.want {
			t.Errorf("%s, %s: notes are %q", test.cluster, test.set, notes)
		}
	}
}

func TestOwnerOf(t *testing.T) {
	day := func(n int) metav1.Time { return metav1.NewTime(time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC)) }
	cluster := func(name string, created metav1.Time) nebiusv1.SlurmCluster {
		return nebiusv1.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: created}}
	}
	clusters := []nebiusv1.SlurmCluster{cluster("c", day(2)), cluster("b", day(1)), cluster("a", day(2))}
	annotated := map[string]string{nebiusv1alpha1.AnnotationParentalClusterRef: "annotated"}
	for name, test := range map[string]struct {
		set      nebiusv1alpha1.NodeSet
		clusters []nebiusv1.SlurmCluster
		want     string
	}{
		"the cluster it names":                {set: nebiusv1alpha1.NodeSet{ObjectMeta: metav1.ObjectMeta{Annotations: annotated}, Spec: nebiusv1alpha1.NodeSetSpec{ClusterName: "named"}}, clusters: clusters, want: "named"},
		"the one of the annotation":           {set: nebiusv1alpha1.NodeSet{ObjectMeta: metav1.ObjectMeta{Annotations: annotated}}, clusters: clusters, want: "annotated"},
		"the oldest of the namespace":         {clusters: clusters, want: "b"},
		"the first by name among equally old": {clusters: []nebiusv1.SlurmCluster{clusters[0], clusters[2]}, want: "a"},
		"none where there is none":            {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OwnerOf(&test.set, test.clusters); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
