// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// MungeKeyName is the munge key in Secret <cluster>-munge of a SlurmCluster.
const MungeKeyName = "munge.key"

// Munge runs munged beside the daemon of a pod, as a sidecar. It has no root and user 402; its socket is
// /run/munge/munge.socket.2 in both containers.
// More info: https://man7.org/linux/man-pages/man8/munged.8.html
type Munge struct {
	// Container is munged: a core/v1 Container, or a part of one, laid over the generated one as a strategic merge patch. The API
	// server does not look inside; a mistyped field shows as condition Stalled, with its path. Its args are options of munged. A
	// command of your own finds the key at /mnt/munge-key/munge.key, and may write below /etc/munge and /run/munge only. Default
	// image: the operator's; another one needs munged, munge and a shell.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
	// +optional
	Container *embedded.Container `json:"container,omitempty"`

	// KeyRef selects the key that all munged of a cluster share: 1024 random bytes, for example; 32 at least.
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 && size(self.key) > 0",message="name and key must not be empty"
	KeyRef corev1.SecretKeySelector `json:"keyRef"`
}
