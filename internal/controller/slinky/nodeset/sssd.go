// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
)

// maxDigests bounds the number of pairs of Secrets whose digests are kept. Forgetting one costs two reads.
const maxDigests = 1024

// madeOf are the versions of the Secrets that a digest was made from.
type madeOf struct {
	set          types.UID
	key, file    string
	keyIs, value string
}

// sssd returns the digest of the sssd.conf that the spec names. It may hold a password, so its digest is sealed. A NodeSet is looked at
// with every change of a worker: Secrets are read again only when one of them has changed.
func (r *reconciler) sssd(ctx context.Context, n *slinkyv1beta1.NodeSet, c *slinkyv1beta1.Controller) (string, error) {
	ref := n.Spec.SSH.SssdConfRef
	if !n.Spec.SSH.Enabled || ref == nil || ref.Name == "" {
		return "", nil
	}
	of, err := r.versions(ctx, n, c)
	if err != nil {
		return "", err
	}
	if known, ok := r.sealed.Get(of); ok && of.keyIs != "" && of.value != "" {
		if digest, ok := known.(string); ok {
			return digest, nil
		}
	}
	seal, _, err := r.SlurmKey(ctx, n.Namespace, *c.AuthSlurmRef(), "spec.controllerRef")
	if err != nil {
		return "", err
	}
	value, err := r.SecretValue(ctx, n.Namespace, *ref, "spec.ssh.sssdConfRef")
	if err != nil {
		return "", err
	}
	digest := label.Seal(seal, map[string][]byte{ref.Key: value})
	r.sealed.Add(of, digest)
	return digest, nil
}

// versions returns the versions in the cache of metadata. A Secret that is read after that is the same or a newer one, and then an event of
// it follows.
func (r *reconciler) versions(ctx context.Context, n *slinkyv1beta1.NodeSet, c *slinkyv1beta1.Controller) (of madeOf, err error) {
	key, file := c.AuthSlurmRef(), n.Spec.SSH.SssdConfRef
	of = madeOf{set: n.UID, key: key.Key, file: file.Key}
	if of.keyIs, err = r.SecretVersion(ctx, n.Namespace, key.Name); err != nil {
		return of, err
	}
	of.value, err = r.SecretVersion(ctx, n.Namespace, file.Name)
	return of, err
}
