// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

const (
	populatePath = "spec.populateJail"
	// populateComponent is the component of the Job that fills the jail, and the name of its container.
	populateComponent = "populate-jail"
	// snapshotDir is where the Job finds a root file system other than its image's.
	snapshotDir = "/jail"
)

// JailClaim is the name of the claim that is the jail of a cluster; empty if its jail is no claim.
func JailClaim(cluster *nebiusv1.SlurmCluster, nodeSets []nebiusv1alpha1.NodeSet, job *batchv1.Job) string {
	c := newComposer(Input{Cluster: cluster, NodeSets: nodeSets, Observed: Observed{Populate: ObservedPopulate{Job: job}}})
	if volume := c.jailVolume(); volume != nil && volume.PersistentVolumeClaim != nil {
		return volume.PersistentVolumeClaim.ClaimName
	}
	return ""
}

// jailVolume is the volume that is filled: that of the cluster, or else that of jailNodeSet. It is nil when nothing has a jail.
func (c *composer) jailVolume() *corev1.VolumeSource {
	if name := c.clusterJail(); name != "" {
		if source, ok := c.sources[name]; ok {
			return &source
		}
		return nil // a source that does not exist is reported where it is named
	}
	_, volume := c.jailNodeSet()
	return volume
}

// jailNodeSet is the NodeSet whose jail is filled and gives slurmctld its users, where the cluster has no jail of its own, with that
// volume. A jail that is filled stays the one. Of several others it is the jail of the oldest NodeSet: a new NodeSet takes no jail
// away, whatever its name. Both are empty without one.
func (c *composer) jailNodeSet() (name string, volume *corev1.VolumeSource) {
	sets := slices.Clone(c.nodeSets)
	slices.SortStableFunc(sets, func(a, b nebiusv1alpha1.NodeSet) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := range sets {
		jail := sets[i].Spec.Slurmd.Volumes.Jail
		if jail == nil {
			continue
		}
		var f findings // its mistakes are the NodeSet's
		source := f.volumeSource(jail, "")
		if source == nil {
			continue
		}
		if digestOf(source) == c.filled {
			return sets[i].Name, source
		}
		if volume == nil {
			name, volume = sets[i].Name, source
		}
	}
	return name, volume
}

// jailMountPoints are the directories of the jail on which pods mount volumes of the spec.
func (c *composer) jailMountPoints() []string {
	var out []string
	add := func(at string) {
		for _, dir := range []string{slinkyv1beta1.JailUpperDir, slinkyv1beta1.JailDir} {
			if below, ok := strings.CutPrefix(at, dir+"/"); ok {
				at = "/" + below
				break
			}
		}
		if at = path.Clean(at); path.IsAbs(at) && at != "/" {
			out = append(out, at)
		}
	}
	inJail := func(mounts []nebiusv1.NodeVolumeMount, custom bool) {
		for _, m := range mounts {
			if !custom || strings.HasPrefix(m.MountPath, slinkyv1beta1.JailDir+"/") || strings.HasPrefix(m.MountPath, slinkyv1beta1.JailUpperDir+"/") {
				add(m.MountPath)
			}
		}
	}
	login := &c.spec.SlurmNodes.Login.Volumes
	inJail(login.JailSubMounts, false)
	inJail(login.CustomMounts, true)
	if worker := c.spec.SlurmNodes.Worker; worker != nil {
		inJail(worker.Volumes.JailSubMounts, false)
		inJail(worker.Volumes.CustomMounts, true)
	}
	add(memoryDir)
	for _, dir := range c.scriptDirs() {
		add(dir)
	}
	for i := range c.nodeSets {
		volumes := &c.nodeSets[i].Spec.Slurmd.Volumes
		for _, m := range volumes.JailSubMounts {
			add(m.MountPath)
		}
		for _, m := range volumes.CustomVolumeMounts {
			if strings.HasPrefix(m.MountPath, slinkyv1beta1.JailDir+"/") || strings.HasPrefix(m.MountPath, slinkyv1beta1.JailUpperDir+"/") {
				add(m.MountPath)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// populatePod is the pod that fills the jail.
func (c *composer) populatePod(spec nebiusv1.PopulateJail, volume corev1.VolumeSource, overwrite bool) corev1.PodSpec {
	name := c.cluster.PopulateJailName()
	container := corev1.Container{
		Name: populateComponent, Image: c.populateImage, ImagePullPolicy: spec.ImagePullPolicy,
		Args: []string{"--job=" + name},
		Env:  []corev1.EnvVar{{Name: "OVERWRITE", Value: "0"}, c.clusterType()},
		// The Job makes files of all users, with their owners, and devices. It does not call mount.
		SecurityContext: c.securityContext(spec.AppArmorProfile, "", populatePath+".appArmorProfile"),
		VolumeMounts:    []corev1.VolumeMount{{Name: pod.JailVolume, MountPath: slinkyv1beta1.JailDir}},
		// What it wrote last is in the status of the pod, from where it gets into the condition.
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	if overwrite {
		container.Env[0].Value = "1"
	}
	for _, point := range c.jailMountPoints() {
		container.Args = append(container.Args, "--mount-point="+point)
	}
	out := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: name,
		HostUsers: spec.HostUsers, PriorityClassName: spec.PriorityClass, ImagePullSecrets: spec.ImagePullSecrets,
		Volumes: []corev1.Volume{{Name: pod.JailVolume, VolumeSource: volume}},
	}
	c.place(&out, spec.K8sNodeFilterName, populatePath+".k8sNodeFilterName")
	if snapshot := spec.JailSnapshotVolume; snapshot != nil {
		at := populatePath + ".jailSnapshotVolume"
		if snapshot.VolumeClaimTemplateSpec != nil {
			c.ignore(true, at+".volumeClaimTemplateSpec") // a claim that is made for the Job would be empty
		} else if source := c.source(snapshot.VolumeSourceName, at+".volumeSourceName"); source != nil {
			const volume = "jail-snapshot"
			out.Volumes = append(out.Volumes, corev1.Volume{Name: volume, VolumeSource: *source})
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: snapshotDir, ReadOnly: true})
		}
	}
	out.Containers = []corev1.Container{container}
	return out
}

// populateJob is the Job for a run. Its template cannot be changed: another run is another Job of the same name.
func (c *composer) populateJob(pod corev1.PodSpec, run populateRun) *batchv1.Job {
	meta := c.meta(c.cluster.PopulateJailName(), populateComponent)
	meta.Annotations = map[string]string{annotationPopulateRun: run.text()}
	labels := c.labels(populateComponent)
	return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		Parallelism: new(int32(1)), Completions: new(int32(1)),
		Template: corev1.PodTemplateSpec{
			// A removed field would not show as a difference of the template.
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{annotationPopulateRun: run.Template}},
			Spec:       pod,
		},
	}}
}

// populateRights let the pod write its progress to its own Job, and nothing else.
func (c *composer) populateRights() {
	name := c.cluster.PopulateJailName()
	c.out.Add(
		&corev1.ServiceAccount{ObjectMeta: c.meta(name, populateComponent)},
		&rbacv1.Role{ObjectMeta: c.meta(name, populateComponent), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, ResourceNames: []string{name}, Verbs: []string{"patch"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: c.meta(name, populateComponent),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: c.cluster.Namespace}},
		},
	)
}
