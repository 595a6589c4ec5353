// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "github.com/coxswain-hpc/coxswain/api/embedded"

// Where containers have a jail.
const (
	// JailDir is where the jail is mounted. What the pod mounts over it is mounted below this directory, too.
	JailDir = "/mnt/jail"
	// JailUpperDir is where Kubernetes mounts what is to appear in the jail: a mount at JailUpperDir/data appears at /data.
	JailUpperDir = "/mnt/jail.upper"
)

// Jail is a root file system that login pods and workers share: logins and jobs have it as their root. Slurm's programs
// in it are those of the pod's image, and so are /dev, /proc, /run, /tmp, /etc/hosts and /etc/resolv.conf.
type Jail struct {
	// VolumeSource is the volume that holds the root file system: a core/v1 VolumeSource with one member, such as
	// persistentVolumeClaim or nfs. Pods on several Kubernetes nodes mount it, for writing, at the same time. The API
	// server does not look inside; a mistyped field shows as condition Stalled, with its path.
	// More info: https://kubernetes.io/docs/concepts/storage/volumes/
	VolumeSource embedded.VolumeSource `json:"volumeSource"`
}
