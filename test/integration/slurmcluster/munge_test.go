// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// TestTheKeyOfMungeIsMadeOnceAndStays follows a cluster that asks for munge, and then does not any more.
func TestTheKeyOfMungeIsMadeOnceAndStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := demoSpec()
	spec.SlurmNodes.Controller.Munge.Image = "cr.eu-north1.nebius.cloud/soperator/munge:1.22.1-noble-slurm25.05.4"
	c := w.cluster("demo", spec)
	controller := &slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")}
	w.exists(controller)
	secret := &corev1.Secret{ObjectMeta: w.meta("demo-munge")}
	if err := w.user.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("Soperator's image has a key made: %v", err)
	}

	munge := func(wanted bool) {
		t.Helper()
		await(w, controller, func(c *slinkyv1beta1.Controller) error {
			if got := c.Spec.Munge != nil; got != wanted {
				return fmt.Errorf("munge of slurmctld: %t, want %t", got, wanted)
			}
			return nil
		})
	}
	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Controller.Munge.Image = "example.com/munge:1" })
	munge(true)
	await(w, secret, func(s *corev1.Secret) error {
		if len(s.Data[slinkyv1beta1.MungeKeyName]) != 1024 || len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != c.UID {
			return errors.New("the key is not one of 1024 bytes that belongs to the SlurmCluster")
		}
		return nil
	})
	key := secret.Data[slinkyv1beta1.MungeKeyName]

	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Controller.Munge.Image = "" })
	munge(false)
	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Controller.Munge.Image = "example.com/munge:2" })
	munge(true)
	await(w, secret, func(s *corev1.Secret) error {
		if !bytes.Equal(s.Data[slinkyv1beta1.MungeKeyName], key) {
			return errors.New("the key is another one")
		}
		return nil
	})
	quiet(w, c, func(*nebiusv1.SlurmCluster) error { return nil })
}
