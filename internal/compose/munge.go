// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// wantsMunge reports whether the image of a munge block asks for munged. Soperator's does not: its API requires that it is named
// (docs/decisions/025-munge-beside-auth-slurm.md).
func wantsMunge(reference string) bool { return reference != "" && !isSoperatorsMunge(reference) }

// isSoperatorsMunge reports whether a reference names Soperator's image of munged. Without a tag of Soperator's builds, the name of the
// registry's directory identifies it.
func isSoperatorsMunge(reference string) bool {
	reference, _, _ = strings.Cut(reference, "@")
	slash := strings.LastIndex(reference, "/") + 1
	name, tag, _ := strings.Cut(reference[slash:], ":")
	return name == mungeImage && (soperatorTag.MatchString(tag) || strings.HasSuffix("/"+reference[:slash], "/soperator/"))
}

// mungeImage is the name of Soperator's image of munged, and of ours.
const mungeImage = "munge"

// munge composes munged beside the daemon of a pod; nil where the block does not ask for it, so that its fields have no effect.
func (c *composer) munge(n nebiusv1.NodeContainer, path string, pod *corev1.PodSpec) *slinkyv1beta1.Munge {
	if !wantsMunge(n.Image) {
		c.differs(path, n, defaultContainer())
		return nil
	}
	c.ignore(n.Port != 0, path+".port")
	addPullSecrets(pod, n.ImagePullSecrets)
	return c.munged(c.container(n, path, withoutCPU), path, pod)
}

// accountingMunge is munged of slurmdbd. It has no use where slurmctld has none: only clients that may ask slurmctld by munge ask
// slurmdbd by it.
func (c *composer) accountingMunge(pod *corev1.PodSpec) *slinkyv1beta1.Munge {
	const at = accountingPath + ".munge"
	block := c.spec.SlurmNodes.Accounting.Munge
	if wantsMunge(block.Image) && !wantsMunge(c.spec.SlurmNodes.Controller.Munge.Image) {
		c.ignore(true, at+" (without an image in "+controllerPath+".munge)")
		return nil
	}
	return c.munge(block, at, pod)
}

// nodeSetMunge is munged of a NodeSet's workers.
func (c *composer) nodeSetMunge(s *nebiusv1alpha1.Sidecar, pod *corev1.PodSpec) *slinkyv1beta1.Munge {
	const at = "spec.munge"
	if !wantsMunge(s.Image.Reference()) {
		c.differs(at, *s, nebiusv1alpha1.Sidecar{
			Image: nebiusv1alpha1.Image{PullPolicy: corev1.PullIfNotPresent}, Security: nebiusv1alpha1.ContainerSecurity{AppArmorProfile: unconfined},
		})
		return nil
	}
	c.ignore(s.Security.LimitsConfig != "", at+".security.limitsConfig")
	return c.munged(c.container(nebiusv1.NodeContainer{
		Image: s.Image.Reference(), ImagePullPolicy: s.Image.PullPolicy, Resources: s.Resources,
		LivenessProbe: s.LivenessProbe, ReadinessProbe: s.ReadinessProbe,
		AppArmorProfile: s.Security.AppArmorProfile, ProcMount: s.Security.ProcMount,
	}, at, withoutCPU), at, pod)
}

// munged is a container of munged with the key of the cluster.
func (c *composer) munged(container corev1.Container, path string, spec *corev1.PodSpec) *slinkyv1beta1.Munge {
	if slices.ContainsFunc(spec.InitContainers, func(i corev1.Container) bool { return i.Name == pod.MungeName }) {
		c.fail(path, "an entry of customInitContainers is called %s as well; leave that entry out, or the image here", pod.MungeName)
	}
	key := corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: c.cluster.MungeSecretName()}, Key: slinkyv1beta1.MungeKeyName,
	}
	return &slinkyv1beta1.Munge{Container: containerOverlay(container), KeyRef: key}
}

// mungeKey has the key generated if munged runs anywhere. Like all keys it stays when munged no longer runs.
func (c *composer) mungeKey() {
	parts := &c.out.Components
	wanted := parts.Controller.Spec.Munge != nil || parts.LoginSet.Spec.Munge != nil ||
		slices.ContainsFunc(parts.NodeSets, func(n *slinkyv1beta1.NodeSet) bool { return n.Spec.Munge != nil })
	c.out.Ensure(wanted, render.Secret{Name: c.cluster.MungeSecretName(), Key: slinkyv1beta1.MungeKeyName, Content: render.RandomBytes})
}
