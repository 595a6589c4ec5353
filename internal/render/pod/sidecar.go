// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	_ "embed"

	corev1 "k8s.io/api/core/v1"
)

// LogDir is where daemons write their log file, a FIFO that the logfile sidecar reads.
const LogDir = "/var/log/slurm"

// LogVolume is the name of the volume at LogDir.
const LogVolume = "slurm-logfile"

//go:embed logfile.sh
var logfileScript string

//go:embed reconfigure.sh
var reconfigureScript string

// Logfile is the sidecar that copies the log file of daemon (slurmctld, slurmd) to its standard output. It is a native one
// (KEP-753): an init container with restartPolicy Always, which starts before the daemon and stops after it.
func Logfile(image, daemon string) corev1.Container {
	return corev1.Container{
		Name:          "logfile",
		Image:         image,
		Command:       []string{"sh", "-c", logfileScript},
		Env:           []corev1.EnvVar{{Name: "SOCKET", Value: LogDir + "/" + daemon + ".log"}},
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		VolumeMounts:  []corev1.VolumeMount{{Name: LogVolume, MountPath: LogDir}},
	}
}

// ReconfigureName is the name of the container that Reconfigure makes. When slurmctld's own tools refuse a configuration, the
// container ends with the digest of it, a colon and their words as its termination message.
const ReconfigureName = "reconfigure"

// Reconfigure is the native sidecar that runs "scontrol reconfigure" when a file below /etc/slurm changed. It needs the
// mounts of slurmctld's configuration and of its authentication socket.
func Reconfigure(image string, mounts []corev1.VolumeMount) corev1.Container {
	return corev1.Container{
		Name:          ReconfigureName,
		Image:         image,
		Command:       []string{"tini", "-g", "--", "bash", "-c", reconfigureScript},
		RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
		VolumeMounts:  mounts,
	}
}

// LogFileVolume is the memory-backed volume that holds the FIFO.
func LogFileVolume() corev1.Volume { return EmptyDir(LogVolume, true) }
