// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// wantedConfig on a slurmctld pod is the digest of the configuration that it should see.
const wantedConfig = "coxswain.dev/wanted-config"

// refreshVolumes stamps the slurmctld pod with the digest of its configuration. A kubelet looks at the volumes of a pod
// again when the pod changes, and otherwise about once a minute, so that this is what makes an edit live in seconds.
func (r *reconciler) refreshVolumes(ctx context.Context, c *slinkyv1beta1.Controller) error {
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.PodName(0)}
	var pod corev1.Pod
	if err := r.Client.Get(ctx, key, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil // a new pod mounts what is there
		}
		return fmt.Errorf("reading Pod %s: %w", key, err)
	}
	if pod.DeletionTimestamp != nil || pod.Annotations[wantedConfig] == c.Status.ConfigDigest {
		return nil
	}
	stamp := corev1ac.Pod(key.Name, key.Namespace).WithUID(pod.UID).
		WithAnnotations(map[string]string{wantedConfig: c.Status.ConfigDigest})
	if err := r.Client.Apply(ctx, stamp, client.FieldOwner(kube.FieldManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("stamping Pod %s: %w", key, client.IgnoreNotFound(err))
	}
	return nil
}
