// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slurmd renders the workers of a NodeSet: one pod with slurmd for each Slurm node. It also renders what the workers
// of all NodeSets of a cluster share: the headless Service that gives them host names, and the disruption budget.
package slurmd

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// Input is a NodeSet and what is known about its surroundings.
type Input struct {
	NodeSet    *slinkyv1beta1.NodeSet
	Controller *slinkyv1beta1.Controller
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	Images        image.Set
	// Protected is true if workers are protected from eviction from the beginning.
	Protected bool
	// SshdConfig is the sshd_config that spec.ssh names in a ConfigMap; empty for none.
	SshdConfig string
	// SssdDigest is the digest of the sssd.conf that spec.ssh names; empty for none.
	SssdDigest string
}

// Labels is the identity of a NodeSet's pods.
func Labels(n *slinkyv1beta1.NodeSet) label.Set {
	return label.Set{Name: slinkyv1beta1.NameSlurmd, Instance: n.Name, Component: "worker"}
}

// Check returns the mistakes of the user's: those that would show in a pod, and those that slurm.conf cannot hold. The
// error joins problem.Problems.
func Check(in Input) error {
	n := in.NodeSet
	p, err := Pod(in, workerpod.Place{}, "")
	errs := []error{err}
	if n.SavesPower() && p.Spec.HostNetwork {
		errs = append(errs, problem.Errorf("spec.powerSaving", slinkyv1beta1.ReasonInvalidSpec,
			"cannot be used with template.spec.hostNetwork: the names of nodes that are powered down have to follow from ordinals"))
	}
	if _, err := conf.ParseOptions(n.Spec.Partition.Config); n.Spec.Partition.Enabled && err != nil {
		errs = append(errs, problem.Errorf("spec.partition.config", slinkyv1beta1.ReasonInvalidSpec, "%v", err))
	}
	return errors.Join(errs...)
}

// Ignore lists what is set in a NodeSet and has no effect.
func Ignore(n *slinkyv1beta1.NodeSet, out *render.Output) {
	out.Ignore(n.SavesPower() && len(n.Spec.RequiredChecks) > 0, "spec.requiredChecks")
	out.Ignore(n.Spec.TaintKubeNodes, "spec.taintKubeNodes") //nolint:staticcheck // whoever sets the deprecated field is told so
	out.IgnoreOptional(n.Spec)
}

// Pod returns a worker of a revision. The error joins problem.Problems.
func Pod(in Input, place workerpod.Place, revision string) (*corev1.Pod, error) {
	n := in.NodeSet
	set := Labels(n)
	spec, specErr := podSpec(in)
	template, templateErr := pod.Template(spec, n.Spec.Template, set, sshDigests(in), "spec.template")
	jailErr := pod.AddJail(&template.Spec, slinkyv1beta1.NameSlurmd, n.Spec.Jail)
	out := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	completeLiveness(&out.Spec)
	limit(&out.Spec)
	addSharedMemory(&out.Spec)
	addHostKeys(n, &out.Spec)
	out.Name, out.Namespace = place.PodName(n), n.Namespace
	daemon := n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet
	if out.Spec.Hostname = place.Hostname; !daemon {
		out.Spec.Hostname = n.Hostname(place.Ordinal)
	}
	out.Spec.Subdomain = n.WorkerServiceName()
	// The scheduler has to act, or priorities and taints would not count.
	out.Spec.NodeName = ""
	maps.Copy(out.Labels, map[string]string{
		slinkyv1beta1.LabelCluster:      n.Spec.ControllerRef.Name,
		slinkyv1beta1.LabelPodName:      out.Name,
		slinkyv1beta1.LabelPodHostname:  out.Spec.Hostname,
		slinkyv1beta1.LabelScalingMode:  string(n.ScalingMode()),
		slinkyv1beta1.LabelRevisionHash: revision,
	})
	if out.Spec.HostNetwork {
		out.Labels[slinkyv1beta1.LabelPodHostname] = "" // it is that of the Kubernetes node, whichever that will be
		useHostNetwork(&out.Spec)
	}
	if NeedsChecks(n) {
		out.Annotations = label.Merge(out.Annotations, map[string]string{slinkyv1beta1.AnnotationRequiredChecks: strings.Join(slices.Sorted(slices.Values(n.Spec.RequiredChecks)), ",")})
	}
	if in.Protected {
		out.Labels[slinkyv1beta1.LabelPodProtect] = "true"
	}
	if !daemon {
		out.Labels[slinkyv1beta1.LabelPodIndex] = n.PaddedOrdinal(place.Ordinal)
	}
	if place.Node != "" {
		out.Annotations = label.Merge(out.Annotations, map[string]string{slinkyv1beta1.AnnotationNode: place.Node})
		pod.Bind(&out.Spec, place.Node)
	}
	claims, claimsErr := Claims(n, place)
	for _, claim := range claims {
		mountClaim(&out.Spec, claim.Labels[claimTemplateLabel], claim.Name)
	}
	return out, errors.Join(specErr, templateErr, jailErr, claimsErr)
}

// Template is the pod spec that all workers have in common, by which they choose their Kubernetes nodes.
func Template(in Input) (*corev1.PodSpec, error) {
	spec, err := podSpec(in)
	if err != nil {
		return nil, err
	}
	template, err := pod.Template(spec, in.NodeSet.Spec.Template, Labels(in.NodeSet), nil, "spec.template")
	return &template.Spec, errors.Join(err, pod.AddJail(&template.Spec, slinkyv1beta1.NameSlurmd, in.NodeSet.Spec.Jail))
}

// claimTemplateLabel on a claim names the template that it was made from, which is also the name of the volume.
const claimTemplateLabel = "coxswain.dev/claim-template"

// Claims returns the claims of a worker, one for each volumeClaimTemplate.
func Claims(n *slinkyv1beta1.NodeSet, place workerpod.Place) ([]*corev1.PersistentVolumeClaim, error) {
	var out []*corev1.PersistentVolumeClaim
	var errs []error
	for i := range n.Spec.VolumeClaimTemplates {
		path := fmt.Sprintf("spec.volumeClaimTemplates[%d]", i)
		template, err := n.Spec.VolumeClaimTemplates[i].Decode()
		switch {
		case err != nil:
			errs = append(errs, problem.Errorf(path, slinkyv1beta1.ReasonInvalidSpec, "%v", err))
			continue
		case template == nil || template.Name == "":
			errs = append(errs, problem.Errorf(path+".metadata.name", slinkyv1beta1.ReasonInvalidSpec, "is the name of the volume and must not be empty"))
			continue
		}
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{
				Name:        template.Name + "-" + place.PodName(n),
				Namespace:   n.Namespace,
				Labels:      label.Merge(Labels(n).Labels(template.Labels), map[string]string{claimTemplateLabel: template.Name}),
				Annotations: template.Annotations,
			},
			Spec: template.Spec,
		}
		out = append(out, claim)
	}
	return out, errors.Join(errs...)
}

// mountClaim puts the claim in the place of the volume of that name, as a StatefulSet does.
func mountClaim(spec *corev1.PodSpec, volume, claim string) {
	source := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == volume {
			spec.Volumes[i].VolumeSource = source
			return
		}
	}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: volume, VolumeSource: source})
}

// shared is the identity of what the workers of all NodeSets of a cluster share.
func shared(n *slinkyv1beta1.NodeSet) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: n.Namespace, Labels: map[string]string{
		label.Name: slinkyv1beta1.NameSlurmd, label.Component: "worker", label.ManagedBy: label.Manager,
		slinkyv1beta1.LabelCluster: n.Spec.ControllerRef.Name,
	}}
}

// Service is the headless Service by which all workers of a cluster find each other, ready or not.
func Service(n *slinkyv1beta1.NodeSet) *corev1.Service {
	s := &corev1.Service{ObjectMeta: shared(n)}
	s.Name = n.WorkerServiceName()
	s.Spec = corev1.ServiceSpec{
		ClusterIP:                corev1.ClusterIPNone,
		PublishNotReadyAddresses: true,
		Selector:                 map[string]string{label.Name: slinkyv1beta1.NameSlurmd, slinkyv1beta1.LabelCluster: n.Spec.ControllerRef.Name},
		Ports: []corev1.ServicePort{{
			Name: slinkyv1beta1.NameSlurmd, Protocol: corev1.ProtocolTCP, Port: slinkyv1beta1.SlurmdPort, TargetPort: intstr.FromString(slinkyv1beta1.NameSlurmd),
		}},
	}
	return s
}

// DisruptionBudget keeps workers with the protect label from being evicted. Its minAvailable is more than there can be.
// Kubernetes counts maxUnavailable from spec.replicas, so that 0 would let it evict every worker beyond that number: all but
// one in scaling mode DaemonSet, and those with jobs that wait for a scale-in.
func DisruptionBudget(n *slinkyv1beta1.NodeSet) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: shared(n)}
	b.Name = n.WorkerDisruptionBudgetName()
	b.Spec = policyv1.PodDisruptionBudgetSpec{
		MinAvailable: new(intstr.FromInt32(math.MaxInt32)),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{
			slinkyv1beta1.LabelPodProtect: "true", slinkyv1beta1.LabelCluster: n.Spec.ControllerRef.Name,
		}},
	}
	return b
}
