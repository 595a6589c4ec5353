// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestLoginsToWorkers(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, `ssh: {enabled: true, extraSshdConfig: "Banner none"}, updateStrategy: {type: OnDelete}`)
	if c := operator.Get[corev1.ConfigMap](o, "w-ssh-config"); !strings.Contains(c.Data["sshd_config"], "### EXTRA CONFIG ###\nBanner none\nUsePAM yes\n") {
		t.Errorf("the ConfigMap is %+v", c)
	}
	keys := operator.Get[corev1.Secret](o, "w-ssh-host-keys")
	if len(keys.Data) != 6 || len(keys.OwnerReferences) != 1 || keys.OwnerReferences[0].Name != "w" {
		t.Errorf("the Secret of the host keys has %d keys and owners %+v", len(keys.Data), keys.OwnerReferences)
	}
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.SSH.SssdConfRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "sssd"}, Key: "sssd.conf"}
	})
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionFalse, "KeyMissing")
	operator.Create[corev1.Secret](o, `{metadata: {name: sssd}, stringData: {sssd.conf: "[sssd]"}}`)
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionTrue, "Available")
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.SSH.SshdConfigRef = &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "sshd"}, Key: "sshd_config"}
	})
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "w", "Ready", metav1.ConditionFalse, "ReferenceNotFound")
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: sshd}, data: {sshd_config: MaxSessions 6}}`)
	hashes := map[string]bool{operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.NodeSetHash: true}
	another := func(text string) {
		apiserver.Eventually(t, func() error {
			hash := operator.Get[slinkyv1beta1.NodeSet](o, "w").Status.NodeSetHash
			if own := operator.Get[corev1.ConfigMap](o, "w-ssh-config").Data["sshd_config.own"]; own != text || hashes[hash] {
				return fmt.Errorf("revision %s has %q as the user's sshd_config", hash, own)
			}
			hashes[hash] = true
			return nil
		})
	}
	another("MaxSessions 6\n")
	operator.Change(o, "sshd", func(c *corev1.ConfigMap) { c.Data["sshd_config"] = "MaxSessions 7\n" })
	another("MaxSessions 7\n")
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.SSH = slinkyv1beta1.NodeSetSSH{} })
	operator.ExpectGone[corev1.ConfigMap](o, "w-ssh-config")
	if after := operator.Get[corev1.Secret](o, "w-ssh-host-keys"); !maps.EqualFunc(after.Data, keys.Data, bytes.Equal) {
		t.Error("the workers have got other host keys, of which ssh clients warn")
	}
}
