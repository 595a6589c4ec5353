// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

const plugstackFile = "plugstack.conf"

// PlugstackLine is the line of plugstack.conf, see spank(7), by which workers move jobs into their jail.
const PlugstackLine = "required chroot.so " + slinkyv1beta1.JailDir

// plugstack writes the line of the jail where the user has no plugstack.conf, and refuses one that lacks it: jobs would run
// outside of the jail.
func (out *Output) plugstack(in Input, files map[string]string) {
	if in.Controller.Spec.Jail == nil {
		return
	}
	i := slices.IndexFunc(in.Files.Config, func(f File) bool { return f.Name == plugstackFile })
	if i < 0 {
		files[plugstackFile] = PlugstackLine + "\n"
		return
	}
	user := in.Files.Config[i]
	if !slices.ContainsFunc(strings.Split(user.Content, "\n"), namesChroot) {
		out.Problems = append(out.Problems, problem.Errorf(user.Path(), config.ReasonInvalid,
			"lacks the line %q, without which jobs would run outside of spec.jail", PlugstackLine))
	}
}

func namesChroot(line string) bool {
	words := strings.Fields(line)
	return len(words) == 3 && words[0] == "required" && strings.HasSuffix("/"+words[1], "/chroot.so") && words[2] == slinkyv1beta1.JailDir
}

// The volume in which slurmctld finds the users of the jail, and where libnss-extrausers looks for them.
const (
	usersVolume = "users"
	usersDir    = "/var/lib/extrausers"
)

// addJail adds a sidecar that shows slurmctld the users of the jail. Slurmctld has no part in the jail itself: who owns that
// tree cannot make it wait or read another file.
func addJail(in Input, spec *corev1.PodSpec) error {
	jail := in.Controller.Spec.Jail
	if jail == nil {
		return nil
	}
	volume, err := pod.Jail(jail)
	if err != nil {
		return err
	}
	slurmctld := &spec.Containers[0]
	slurmctld.VolumeMounts = append(slurmctld.VolumeMounts, corev1.VolumeMount{Name: usersVolume, MountPath: usersDir, ReadOnly: true})
	spec.Volumes = append(spec.Volumes, volume, pod.EmptyDir(usersVolume, true))
	spec.InitContainers = append(spec.InitContainers, corev1.Container{
		Name:            "users",
		Image:           in.Images.Slurmctld(),
		Command:         []string{"jail", "users", "--root", slinkyv1beta1.JailDir, "--extrausers", usersDir},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		SecurityContext: pod.Restricted(pod.SlurmUID),
		VolumeMounts: []corev1.VolumeMount{
			{Name: pod.JailVolume, MountPath: slinkyv1beta1.JailDir, ReadOnly: true},
			{Name: usersVolume, MountPath: usersDir},
		},
	})
	return nil
}
