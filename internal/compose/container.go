// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// limits is how the limits of a container follow from its requests.
type limits int

const (
	// withoutCPU: limits equal requests, but CPU is not limited.
	withoutCPU limits = iota
	// sameAsRequests: slurmd, whose jobs must not take more than the node has promised to Slurm.
	sameAsRequests
)

// container returns what a NodeContainer sets, to be laid over the generated container. Ports are not part of it: they belong
// to the Service of the component.
func (f *findings) container(n nebiusv1.NodeContainer, path string, l limits) corev1.Container {
	out := corev1.Container{
		Image:           f.image(n.Image, path+".image"),
		Command:         n.Command,
		Args:            n.Args,
		ImagePullPolicy: n.ImagePullPolicy,
		Resources:       resources(n.Resources, l),
		Env:             f.env(n.CustomEnv, path+".customEnv"),
		LivenessProbe:   f.probe(n.LivenessProbe, path+".livenessProbe"),
		ReadinessProbe:  f.probe(n.ReadinessProbe, path+".readinessProbe"),
		SecurityContext: f.securityContext(n.AppArmorProfile, n.ProcMount, path+".appArmorProfile"),
	}
	// PAM reads limits.conf when it opens a session, and only sshd, which takes the text out before, opens any.
	f.ignore(n.SecurityLimitsConfig != "", path+".securityLimitsConfig")
	return out
}

// resources makes requests and limits from the one list that the API has.
func resources(list corev1.ResourceList, l limits) corev1.ResourceRequirements {
	if len(list) == 0 {
		return corev1.ResourceRequirements{}
	}
	out := corev1.ResourceRequirements{Requests: list.DeepCopy(), Limits: list.DeepCopy()}
	if l == withoutCPU {
		delete(out.Limits, corev1.ResourceCPU)
	}
	if len(out.Limits) == 0 {
		out.Limits = nil
	}
	return out
}

func (f *findings) env(vars []embedded.EnvVar, path string) []corev1.EnvVar {
	var out []corev1.EnvVar
	for i := range vars {
		at := index(path, i)
		decoded, err := vars[i].Decode()
		switch {
		case err != nil:
			f.fail(at, "%v", err)
		case decoded == nil || decoded.Name == "":
			f.fail(at+".name", "must be given")
		default:
			out = append(out, *decoded)
		}
	}
	return out
}

func (f *findings) probe(p *embedded.Probe, path string) *corev1.Probe {
	decoded, err := p.Decode()
	f.failIf(path, err)
	return decoded
}

// securityContext leaves out the profile unconfined, which is the default of the API. The components run with the container
// runtime's own profile, and a component that needs more sets that itself.
func (f *findings) securityContext(appArmor string, procMount corev1.ProcMountType, path string) *corev1.SecurityContext {
	out := &corev1.SecurityContext{}
	if procMount != "" {
		out.ProcMount = new(procMount)
	}
	profile, local := strings.CutPrefix(appArmor, "localhost/")
	switch {
	case appArmor == "" || appArmor == "unconfined":
	case appArmor == "runtime/default":
		out.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case local && profile != "":
		out.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &profile}
	default:
		f.fail(path, "must be unconfined, runtime/default or localhost/<profile>")
	}
	if out.AppArmorProfile == nil && out.ProcMount == nil {
		return nil
	}
	return out
}

// restrict removes privileges from a container that a program of ours does not need.
func restrict(c *corev1.Container) {
	if c.SecurityContext == nil {
		c.SecurityContext = &corev1.SecurityContext{}
	}
	c.SecurityContext.AllowPrivilegeEscalation, c.SecurityContext.ReadOnlyRootFilesystem = new(false), new(true)
	c.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
}

// initContainers decodes the containers that a user adds.
func (f *findings) initContainers(containers []embedded.Container, path string) []corev1.Container {
	var out []corev1.Container
	for i := range containers {
		at := index(path, i)
		decoded, err := containers[i].Decode()
		switch {
		case err != nil:
			f.fail(at, "%v", err)
		case decoded == nil || decoded.Name == "":
			f.fail(at+".name", "must be given")
		case slices.ContainsFunc(out, func(c corev1.Container) bool { return c.Name == decoded.Name }):
			f.fail(at+".name", "another init container is called %q, too", decoded.Name)
		default:
			out = append(out, *decoded)
		}
	}
	return out
}

// addPullSecrets lets a pod pull the image of a sidecar as well.
func addPullSecrets(spec *corev1.PodSpec, secrets []corev1.LocalObjectReference) {
	for _, secret := range secrets {
		if !slices.Contains(spec.ImagePullSecrets, secret) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, secret)
		}
	}
}

// containerOverlay encodes a container for a field of a component; nil if it sets nothing.
func containerOverlay(c corev1.Container) *embedded.Container {
	if raw := overlay(c); raw != nil {
		out := &embedded.Container{}
		out.Raw = raw
		return out
	}
	return nil
}

// overlay encodes a core type without the fields that encoding/json writes although nobody has set them. In a patch they
// would erase what is generated. It is nil if nothing is left.
func overlay(value any) []byte {
	fields := overlayFields(value)
	if len(fields) == 0 {
		return nil
	}
	return embedded.From(fields).Raw
}

func overlayFields(value any) map[string]any {
	fields := fieldsOf(value)
	maps.DeleteFunc(fields, func(_ string, v any) bool {
		m, isMap := v.(map[string]any)
		return v == nil || v == "" || isMap && len(m) == 0
	})
	return fields
}

// fieldsOf are the fields of a struct as JSON has them, without a text in between.
func fieldsOf(value any) map[string]any {
	pointer := reflect.New(reflect.TypeOf(value))
	pointer.Elem().Set(reflect.ValueOf(value))
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pointer.Interface())
	if err != nil {
		panic(fmt.Sprintf("reading the fields of a %T: %v", value, err)) // which no type of an API can bring about
	}
	return fields
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// podSpec returns what the common fields of a component set for its pods.
func (c *composer) podSpec(node nebiusv1.SlurmNode, hostUsers *bool, container nebiusv1.NodeContainer, path string) corev1.PodSpec {
	out := corev1.PodSpec{
		PriorityClassName: node.PriorityClass,
		HostUsers:         hostUsers,
		ImagePullSecrets:  container.ImagePullSecrets,
		InitContainers:    c.initContainers(node.CustomInitContainers, path+".customInitContainers"),
	}
	c.place(&out, node.K8sNodeFilterName, path+".k8sNodeFilterName")
	return out
}

// place applies the node filter of that name.
func (c *composer) place(pod *corev1.PodSpec, name, path string) {
	if name == "" {
		return
	}
	for i := range c.spec.K8sNodeFilters {
		filter := &c.spec.K8sNodeFilters[i]
		if filter.Name != name {
			continue
		}
		pod.Affinity, pod.NodeSelector, pod.Tolerations = c.affinity(filter), filter.NodeSelector, filter.Tolerations
		return
	}
	c.fail(path, "there is no %q in spec.k8sNodeFilters; add it there, or leave this out to run anywhere", name)
}

// affinity decodes the affinity of a node filter.
func (c *composer) affinity(filter *nebiusv1.K8sNodeFilter) *corev1.Affinity {
	if decoded, ok := c.affinities[filter.Name]; ok {
		return decoded
	}
	decoded, err := filter.Affinity.Decode()
	c.failIf("spec.k8sNodeFilters["+filter.Name+"].affinity", err)
	c.affinities[filter.Name] = decoded
	return decoded
}

// dropFilter leaves out the node filter of a component that can do without, as one without pods, if there is no such filter.
// Admission lets any name pass there, as Soperator does.
func (c *composer) dropFilter(unwanted bool, name *string, path string) {
	known := slices.ContainsFunc(c.spec.K8sNodeFilters, func(f nebiusv1.K8sNodeFilter) bool { return f.Name == *name })
	if *name != "" && unwanted && !known {
		c.ignore(true, path+".k8sNodeFilterName")
		*name = ""
	}
}

// podTemplate makes the overlay of a component's pods.
func podTemplate(spec corev1.PodSpec, annotations map[string]string) slinkyv1beta1.PodTemplate {
	out := slinkyv1beta1.PodTemplate{Metadata: slinkyv1beta1.Metadata{Annotations: annotations}}
	if raw := overlay(spec); raw != nil {
		out.Spec = &embedded.PodSpec{}
		out.Spec.Raw = raw
	}
	return out
}
