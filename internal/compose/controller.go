// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

const controllerPath = "spec.slurmNodes.controller"

// stateVolume is the volume of slurmctld's state in the pod that the Controller makes.
const stateVolume = "statesave"

// controller composes slurmctld and the configuration of the whole cluster.
func (c *composer) controller(accounting *slinkyv1beta1.Accounting, files *corev1.ConfigMap, docs documents) *slinkyv1beta1.Controller {
	node := &c.spec.SlurmNodes.Controller
	container := c.container(node.Slurmctld, controllerPath+".slurmctld", withoutCPU)
	pod := c.podSpec(node.SlurmNode, node.HostUsers, node.Slurmctld, controllerPath)
	if node.ServiceAccountName != "" {
		pod.ServiceAccountName = node.ServiceAccountName
		// A user who names a ServiceAccount has programs in the pod that use it.
		pod.AutomountServiceAccountToken = new(true)
	}
	var disk storage
	c.add(&disk, false, c.clusterMounts(node.Volumes.CustomMounts, controllerPath+".volumes.customMounts")...)
	pod.Volumes, container.VolumeMounts = disk.volumes, disk.mounts
	munge := c.munge(node.Munge, controllerPath+".munge", &pod)

	out := &slinkyv1beta1.Controller{
		ObjectMeta: c.meta(c.cluster.ControllerName(), "controller"),
		Spec: slinkyv1beta1.ControllerSpec{
			ClusterName: c.cluster.Name,
			Slurmctld:   containerOverlay(container),
			Jail:        c.shared,
			Munge:       munge,
			// A changed configuration must not cost a restart of slurmctld.
			InplaceReconfigure: true,
			ConfigFileRefs:     []slinkyv1beta1.ObjectReference{{Name: files.Name}},
			Service:            slinkyv1beta1.ServiceSpec{Port: node.Slurmctld.Port},
			Metrics:            c.metrics(),
		},
	}
	if digest := c.cluster.Annotations[slinkyv1beta1.AnnotationEndJobs]; digest != "" {
		out.Annotations = map[string]string{slinkyv1beta1.AnnotationEndJobs: digest}
	}
	if accounting != nil {
		out.Spec.AccountingRef = &slinkyv1beta1.ObjectReference{Name: accounting.Name}
	}
	fields := overlayFields(pod)
	c.persistence(out, node.Volumes.Spool, fields)
	if len(fields) > 0 {
		out.Spec.Template.Spec = &embedded.PodSpec{RawExtension: embedded.From(fields)}
	}
	out.Spec.ExtraConf = c.slurmConf(out, accounting, docs)
	return out
}

// persistence sets where slurmctld keeps its state: on a claim of its own, on a claim of the user's, or on another volume.
// The latter takes the place of the generated one in fields, the overlay of the pod.
func (c *composer) persistence(out *slinkyv1beta1.Controller, spool *nebiusv1.NodeVolume, fields map[string]any) {
	const at = controllerPath + ".volumes.spool"
	mounts := c.spool(spool, stateVolume, "/", at)
	if len(mounts) == 0 {
		return
	}
	if claim := mounts[0].claim; claim != nil {
		spec, err := claim.Decode()
		c.failIf(at+".volumeClaimTemplateSpec", err)
		if spec != nil {
			out.Spec.Persistence = &slinkyv1beta1.ControllerPersistence{Enabled: new(true), PersistentVolumeClaimSpec: *spec}
		}
		return
	}
	source := mounts[0].source
	if claim := source.PersistentVolumeClaim; claim != nil {
		out.Spec.Persistence = &slinkyv1beta1.ControllerPersistence{Enabled: new(true), ExistingClaim: claim.ClaimName}
		return
	}
	out.Spec.Persistence = &slinkyv1beta1.ControllerPersistence{Enabled: new(false)}
	if source.EmptyDir != nil {
		return
	}
	volume := map[string]any{"name": stateVolume, "emptyDir": nil}
	maps.Copy(volume, fieldsOf(*source))
	volumes, _ := fields["volumes"].([]any)
	fields["volumes"] = append(volumes, volume)
}
