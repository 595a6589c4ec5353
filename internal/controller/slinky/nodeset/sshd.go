// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// maxConfigs bounds how many sshd_configs are kept. Forgetting one costs a read.
const maxConfigs = 256

// configOf is a version of a ConfigMap that a NodeSet names, and the key in it.
type configOf struct {
	set          types.UID
	version, key string
}

// sshdConfig returns the sshd_config that the spec names; empty for none. A NodeSet is looked at with every change of a worker: the
// ConfigMap is read again only when it has changed.
func (r *reconciler) sshdConfig(ctx context.Context, n *slinkyv1beta1.NodeSet) (string, error) {
	ref := n.Spec.SSH.SshdConfigRef
	if !n.Spec.SSH.Enabled || ref == nil {
		return "", nil
	}
	version, err := r.ConfigMapVersion(ctx, n.Namespace, ref.Name)
	if err != nil {
		return "", err
	}
	of := configOf{set: n.UID, version: version, key: ref.Key}
	if known, ok := r.configs.Get(of); ok && version != "" {
		if text, ok := known.(string); ok {
			return text, nil
		}
	}
	text, err := r.ConfigMapValue(ctx, n.Namespace, *ref, "spec.ssh.sshdConfigRef")
	if err != nil {
		return "", err
	}
	r.configs.Add(of, text)
	return text, nil
}

// hasHostKeys reports whether there is a Secret with the host keys of the workers' sshd. It looks only at the name: the kubelet reports
// missing keys.
func (r *reconciler) hasHostKeys(ctx context.Context, n *slinkyv1beta1.NodeSet) (bool, error) {
	if !n.Spec.SSH.Enabled {
		return false, nil
	}
	version, err := r.SecretVersion(ctx, n.Namespace, n.SSHHostKeysName())
	return version != "", err
}
