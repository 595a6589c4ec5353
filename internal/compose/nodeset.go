// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// LabelNodeSet on a composed NodeSet names the NodeSet of slurm.nebius.ai that it comes from. The pods of its workers have it, too.
const LabelNodeSet = "slurm.nebius.ai/nodeset"

// OwnerOf returns the name of the SlurmCluster that a NodeSet belongs to; empty if there is none. It is the one that the
// NodeSet names, by spec.clusterName or by the annotation that came before. Else it is the oldest SlurmCluster of the
// namespace: the first generation had neither field nor annotation, and only one cluster in a namespace. The oldest,
// because a further cluster must not take workers away.
func OwnerOf(set *nebiusv1alpha1.NodeSet, clusters []nebiusv1.SlurmCluster) string {
	if name := cmp.Or(set.Spec.ClusterName, set.Annotations[nebiusv1alpha1.AnnotationParentalClusterRef]); name != "" {
		return name
	}
	if len(clusters) == 0 {
		return ""
	}
	oldest := slices.MinFunc(clusters, func(a, b nebiusv1.SlurmCluster) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return oldest.Name
}

// NodeSetOutput is what a NodeSet of slurm.nebius.ai becomes.
type NodeSetOutput struct {
	// Object is always there; with problems it is not to be applied.
	Object *slinkyv1beta1.NodeSet
	// Problems and Ignored have paths in the NodeSet.
	Problems problem.List
	Ignored  []string
	// Notes and Replaced are those of Output.
	Notes, Replaced []string
}

// NodeSetName is the name of the object composed from a NodeSet.
func NodeSetName(cluster, nodeSet string) string { return cluster + "-" + nodeSet }

// maxNodeSetName is the length that the API allows for the name of a composed NodeSet.
const maxNodeSetName = 57

// NodeSet composes one NodeSet of a cluster.
func NodeSet(cluster *nebiusv1.SlurmCluster, set *nebiusv1alpha1.NodeSet) NodeSetOutput {
	c := &composer{cluster: cluster, spec: &cluster.Spec}
	c.readVolumeSources() // the SlurmCluster reports mistakes in them
	return nodeSet(c, set, gresLines(set))
}

// nodeSet composes a NodeSet of the cluster, with findings of its own.
func nodeSet(of *composer, set *nebiusv1alpha1.NodeSet, gres []gresLine) NodeSetOutput {
	cluster := of.cluster
	c := &composer{cluster: cluster, spec: of.spec, sources: of.sources, installed: of.installed}
	c.keepImages = of.keepImages
	spec := &set.Spec
	w := workers{
		object: NodeSetName(cluster.Name, set.Name), name: set.Name, replicas: c.unlessDownscaled(replicas(set)),
		container: c.slurmd(&spec.Slurmd), pod: c.nodeSetPod(spec), annotations: spec.WorkerAnnotations,
		conf: withPort(c.nodeConf(spec), spec.Slurmd.Port), confPath: "spec.nodeConfig",
		maxUnavailable: spec.MaxUnavailable, maxPath: "spec.maxUnavailable", powerSaving: powerSaving(spec),
	}
	if len(w.object) > maxNodeSetName {
		c.fail("metadata.name", "is too long: the names of SlurmCluster and NodeSet together must have at most %d characters", maxNodeSetName-1)
	}
	w.munge = c.nodeSetMunge(&spec.Munge, &w.pod)
	w.container.Env = append(w.container.Env, c.clusterType())
	if spec.GPU.Nvidia.GDRCopyEnabled {
		w.container.Env = append(w.container.Env, gdrCopy())
	}
	w.putOff(spec.WorkerInitRandomDelaySeconds)
	w.addInstance()
	w.addExtra(&c.findings, spec.NodeConfig.Dynamic, "spec.nodeConfig.dynamic", contractVariables(cluster.NodeSetServiceName(), spec.Slurmd.Resources)...)
	w.addGPUs(spec.Slurmd.Resources)
	w.addRealMemory(&c.findings, spec.Slurmd.Resources, "spec.slurmd.customEnv")
	volumes := &spec.Slurmd.Volumes
	c.add(&w.disk, true, c.nodeSetMounts(volumes)...)
	w.jail = c.nodeSetJail(volumes)
	c.addJailMounts(&w.disk, w.jail, true, c.slurmdMounts(volumes.JailSubMounts, "spec.slurmd.volumes.jailSubMounts")...)
	c.addScripts(&w.disk, w.jail)
	w.disk.addSharedMemory(volumes.SharedMemorySize)
	w.disk.addMemory(w.jail, spec.Slurmd.Resources.Memory())
	if policy := volumes.PersistentVolumeClaimRetentionPolicy; policy.WhenDeleted != "" || policy.WhenScaled != "" {
		w.retention = &slinkyv1beta1.PersistentVolumeClaimRetentionPolicy{
			WhenDeleted: slinkyv1beta1.ClaimRetention(policy.WhenDeleted), WhenScaled: slinkyv1beta1.ClaimRetention(policy.WhenScaled),
		}
	}
	for i, line := range gres {
		c.failIf(index("spec.nodeConfig.gresConfig", i), line.err)
	}
	w.limit(&c.findings, spec.Slurmd.Security.LimitsConfig, "spec.slurmd.security.limitsConfig")
	w.useSSHDConfig(&c.findings, spec.ConfigMapRefSSHD, "spec.configMapRefSshd")
	w.addSSSD(&c.findings, spec)
	object := w.build(&c.findings, cluster)
	object.Labels = label.Merge(c.labels("nodeset"), map[string]string{LabelNodeSet: set.Name})
	fabric := spec.Topology.Fabric
	c.ignore(fabric != "" && fabric != defaultFabric && value(c.spec.SlurmConfig.TopologyPlugin) != topologyTree, "spec.topology.fabric (without topology/tree)")
	c.ineffectiveNodeSet(spec)
	c.ineffectiveAutoResume(spec)
	slices.Sort(c.ignored)
	return NodeSetOutput{Object: object, Problems: c.problems.Sorted(), Ignored: slices.Compact(c.ignored), Notes: c.notes, Replaced: c.replaced}
}

// slurmd is the container of slurmd.
func (c *composer) slurmd(s *nebiusv1alpha1.Slurmd) corev1.Container {
	return c.container(nebiusv1.NodeContainer{
		Image: s.Image.Reference(), ImagePullPolicy: s.Image.PullPolicy, Resources: s.Resources, CustomEnv: s.CustomEnv,
		LivenessProbe: s.LivenessProbe, ReadinessProbe: s.ReadinessProbe,
		AppArmorProfile: c.confined(s.Security.AppArmorProfile), ProcMount: s.Security.ProcMount,
	}, "spec.slurmd", sameAsRequests)
}

func (c *composer) nodeSetPod(spec *nebiusv1alpha1.NodeSetSpec) corev1.PodSpec {
	affinity, err := spec.Affinity.Decode()
	c.failIf("spec.affinity", err)
	return corev1.PodSpec{
		PriorityClassName: spec.PriorityClass,
		HostUsers:         new(spec.EnableHostUserNamespace),
		ImagePullSecrets:  spec.ImagePullSecrets,
		InitContainers:    c.initContainers(spec.CustomInitContainers, "spec.customInitContainers"),
		Affinity:          affinity,
		NodeSelector:      spec.NodeSelector,
		Tolerations:       spec.Tolerations,
	}
}

// nodeConf is what the nodes register with. Their state is left to Slurm, as it always was.
func (c *composer) nodeConf(spec *nebiusv1alpha1.NodeSetSpec) conf.NodeConf {
	const at = "spec.nodeConfig.static"
	parsed, mistakes := conf.ParseNodeConf(spec.NodeConfig.Static)
	for _, m := range mistakes {
		m.Line = 0
		c.fail(at, "%s", m.Error())
	}
	// The identity of a node is that of its pod.
	static, refused := conf.NodeConf{}.Merge(parsed, conf.Owned{"NodeName", "NodeHostname", "NodeAddr", "Port", "State"})
	for _, r := range refused {
		if r.Key == "State" {
			c.ignore(true, at+" (State)")
			continue
		}
		c.fail(at, "%s", r.Error())
	}
	for i, feature := range spec.NodeConfig.Features {
		at := index("spec.nodeConfig.features", i)
		if strings.Contains(feature, ",") {
			c.fail(at, "must be one feature; give each an entry of its own")
		} else if err := conf.CheckNodeValue(feature); err != nil {
			c.fail(at, "%v", err)
		} else {
			static.Add("Features", feature)
		}
	}
	return static
}

// nodeSetMounts are the spool directory and the user's mounts in the common form.
func (c *composer) nodeSetMounts(volumes *nebiusv1alpha1.SlurmdVolumes) []mount {
	var out []mount
	if spool := c.nodeSetSpool(volumes.Spool); spool != nil {
		out = append(out, *spool)
	}
	return append(out, c.slurmdMounts(volumes.CustomVolumeMounts, "spec.slurmd.volumes.customVolumeMounts")...)
}

// slurmdMounts turns the mounts of a NodeSet into the common form.
func (c *composer) slurmdMounts(mounts []nebiusv1alpha1.SlurmdVolumeMount, path string) []mount {
	var out []mount
	for i, m := range mounts {
		at := index(path, i)
		next := mount{
			name: m.Name, mountPath: m.MountPath, subPath: m.SubPath, readOnly: m.ReadOnly,
			claim: m.VolumeClaimTemplateSpec, path: at, claimPath: at + ".volumeClaimTemplateSpec",
		}
		if (m.VolumeSource == nil) == (m.VolumeClaimTemplateSpec == nil) {
			c.fail(at, "exactly one of volumeSource and volumeClaimTemplateSpec must be given")
			continue
		}
		if m.VolumeSource != nil {
			if next.source = c.volumeSource(m.VolumeSource, at+".volumeSource"); next.source == nil {
				continue
			}
		}
		out = append(out, next)
	}
	return out
}

// nodeSetSpool is the mount of the spool directory; none without one. The chart of the predecessor writes a template of a
// claim among the members of its volume source, and means a claim for each worker.
func (c *composer) nodeSetSpool(spool *embedded.VolumeSource) *mount {
	const (
		at       = "spec.slurmd.volumes.spool"
		template = "volumeClaimTemplateSpec"
	)
	if spool == nil {
		return nil
	}
	out := &mount{name: "worker-spool", mountPath: spoolDir, path: at}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(spool.Raw, &members); err == nil && members[template] != nil && string(members[template]) != "null" {
		if out.claimPath = at + "." + template; len(members) > 1 {
			c.fail(at, "must have exactly one member; it has volumeClaimTemplateSpec and others")
			return nil
		}
		out.claim = &embedded.PersistentVolumeClaimSpec{}
		out.claim.Raw = members[template]
		return out
	}
	if out.source = c.volumeSource(spool, at); out.source == nil {
		return nil
	}
	return out
}

// replicas is the number of workers of a NodeSet, whose default is one.
func replicas(set *nebiusv1alpha1.NodeSet) int32 {
	if set.Spec.Replicas == nil {
		return 1
	}
	return *set.Spec.Replicas
}
