// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// ImagePath is the field with the image of a check. A PodTemplate may bring it instead.
const ImagePath = containerPath + ".image"

// ScriptKey is the key of the ConfigMap of spec.k8sJobSpec.scriptRefName that has the script.
const ScriptKey = "script.sh"

const (
	containerPath = "spec.k8sJobSpec.jobContainer"
	templatePath  = "spec.podTemplateNameRef"
	// scriptFile is where the script of a check is mounted, as Soperator has it
	// (docs/contributors/predecessors/soperator-checks.md#pods-of-checks), and scriptVolume the volume with it.
	scriptFile   = "/opt/bin/entrypoint.sh"
	scriptVolume = "check-script"
)

// podTemplate returns the pod of a run, with the user's PodTemplate laid over it.
func (o *Output) podTemplate(in Input) corev1.PodTemplateSpec {
	check := in.Check
	out := corev1.PodTemplateSpec{Spec: o.podSpec(in)}
	var user metav1.ObjectMeta
	if in.Template != nil {
		user = in.Template.Template.ObjectMeta
		merged, err := overlay.PodSpec(out.Spec, &embedded.PodSpec{RawExtension: embedded.From(in.Template.Template.Spec)}, templatePath)
		o.Fail(templatePath, err)
		out.Spec = merged
	}
	// The API server fills in Always where a PodTemplate sets nothing. A run is one try.
	out.Spec.RestartPolicy = corev1.RestartPolicyNever
	out.Labels = identity(check).Labels(user.Labels)
	out.Annotations = label.Merge(user.Annotations, annotations(check), map[string]string{label.DefaultContainer: name(check)})
	for i := range out.Spec.Containers {
		if c := &out.Spec.Containers[i]; c.Name == name(check) && c.Image == "" {
			o.Problems = append(o.Problems, problem.Errorf(ImagePath, nebiusv1alpha1.ReasonInvalidSpec, "must be given"))
		}
	}
	return out
}

// podSpec returns the pod of a run as the check itself describes it. A check may be root in its container, since many write into the jail
// or change to other users, with the capabilities that the container runtime gives by itself. A PodTemplate may ask for less or more.
func (o *Output) podSpec(in Input) corev1.PodSpec {
	check := in.Check
	spec, job := &check.Spec, nebiusv1alpha1.K8sJobSpec{}
	if spec.K8sJobSpec != nil {
		job = *spec.K8sJobSpec
	}
	c := job.JobContainer
	affinity, err := spec.Affinity.Decode()
	o.failIf("spec.affinity", err)
	out := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: new(orDefault(spec.ActiveDeadlineSeconds, defaultDeadline)),
		HostUsers: new(orDefault(spec.HostUsers, false)), AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		Affinity: affinity, NodeSelector: spec.NodeSelector, Tolerations: slices.Clone(spec.Tolerations), ImagePullSecrets: slices.Clone(c.ImagePullSecrets),
		SecurityContext: &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: name(check), Image: c.Image, ImagePullPolicy: orPullPolicy(c.ImagePullPolicy), Command: slices.Clone(c.Command), Args: slices.Clone(c.Args),
			WorkingDir:   c.WorkingDir,
			Env:          list(o, c.Env, containerPath+".env", (*embedded.EnvVar).Decode),
			VolumeMounts: list(o, c.VolumeMounts, containerPath+".volumeMounts", (*embedded.VolumeMount).Decode),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), AppArmorProfile: o.appArmor(c.AppArmorProfile, containerPath+".appArmorProfile"),
			},
			// What the check wrote last is in the status of its pod.
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
		Volumes: list(o, c.Volumes, containerPath+".volumes", (*embedded.Volume).Decode),
	}
	if job.ScriptRefName != "" {
		withScript(&out, job.ScriptRefName)
	}
	if in.Stand != nil {
		out.Containers[0].Image, out.ServiceAccountName, out.AutomountServiceAccountToken = in.Stand.Image, in.Stand.Account, new(true)
	}
	if in.Access != nil {
		withSlurm(&out, *in.Access)
	}
	return out
}

// AsksSlurm reports whether a check of type k8sJob runs Slurm's commands: in Soperator it gets a container of munge for them.
func AsksSlurm(check *nebiusv1alpha1.ActiveCheck) bool {
	return !IsSlurmJob(check) && check.Spec.K8sJobSpec != nil && given(check.Spec.K8sJobSpec.MungeContainer)
}

const (
	// sackdContainer has the name of Soperator's container of munge, and runVolume the socket of sackd.
	sackdContainer = "munge"
	keyVolume      = "slurm-key"
	runVolume      = "slurm-run"
)

// withSlurm adds sackd, from which Slurm's commands in the check have the configuration of the cluster and their credentials. The key of the
// cluster is not in the container of the check.
func withSlurm(spec *corev1.PodSpec, access Access) {
	run := corev1.VolumeMount{Name: runVolume, MountPath: "/run/slurm"}
	spec.Volumes = append(spec.Volumes, pod.Projected(keyVolume, 0o600, pod.SlurmKey(access.Key)...), pod.EmptyDir(runVolume, true))
	spec.Containers[0].VolumeMounts = append(spec.Containers[0].VolumeMounts, run)
	spec.InitContainers = append(spec.InitContainers, corev1.Container{
		Name: sackdContainer, Image: access.Image, RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		Command: []string{"tini", "--", "/usr/local/bin/sackd-entrypoint", "--conf-server", access.Endpoint},
		StartupProbe: &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: pod.BusySeconds, FailureThreshold: 600, ProbeHandler: corev1.ProbeHandler{
			Exec: &corev1.ExecAction{Command: []string{"test", "-S", "/run/slurm/sack.socket"}},
		}},
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false)},
		VolumeMounts:    []corev1.VolumeMount{{Name: keyVolume, MountPath: "/mnt/slurm", ReadOnly: true}, run},
	})
}

// withScript has the container run the script of a ConfigMap instead of its command.
func withScript(spec *corev1.PodSpec, configMap string) {
	source := corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, DefaultMode: new(int32(0o755)),
		Items: []corev1.KeyToPath{{Key: ScriptKey, Path: ScriptKey}},
	}}
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: scriptVolume, VolumeSource: source})
	c := &spec.Containers[0]
	c.Command = []string{"/bin/bash", scriptFile}
	// A single file, so that the image keeps what else it has in that directory.
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: scriptVolume, MountPath: scriptFile, SubPath: ScriptKey, ReadOnly: true})
}

func orPullPolicy(policy corev1.PullPolicy) corev1.PullPolicy {
	if policy == "" {
		return corev1.PullIfNotPresent
	}
	return policy
}

// list decodes what a user wrote as a list of core types.
func list[E, T any](o *Output, items []E, path string, decode func(*E) (*T, error)) []T {
	var out []T
	for i := range items {
		at := path + "[" + strconv.Itoa(i) + "]"
		decoded, err := decode(&items[i])
		switch {
		case err != nil:
			o.failIf(at, err)
		case decoded == nil:
			o.Problems = append(o.Problems, problem.Errorf(at, nebiusv1alpha1.ReasonInvalidSpec, "must not be empty"))
		default:
			out = append(out, *decoded)
		}
	}
	return out
}

// unconfined is the default of the API for the profile of a container.
const unconfined = "unconfined"

// appArmor returns the profile of a container. The default of the API, unconfined, is the container runtime's own.
func (o *Output) appArmor(profile, path string) *corev1.AppArmorProfile {
	local, isLocal := strings.CutPrefix(profile, "localhost/")
	switch {
	case profile == "" || profile == unconfined:
		return nil
	case profile == "runtime/default":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault}
	case isLocal && local != "":
		return &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: &local}
	}
	o.Problems = append(o.Problems, problem.Errorf(path, nebiusv1alpha1.ReasonInvalidSpec, "must be unconfined, runtime/default or localhost/<profile>"))
	return nil
}

// failIf records err, if any, as a mistake of the user.
func (o *Output) failIf(path string, err error) {
	if err != nil {
		o.Problems = append(o.Problems, problem.Errorf(path, nebiusv1alpha1.ReasonInvalidSpec, "%v", err))
	}
}
