// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestImagesOfSoperatorAreReplacedAndTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := demoSpec()
	spec.SlurmNodes.Login.Size = 1
	spec.SlurmNodes.Login.SSHD.Image = "cr.eu-north1.nebius.cloud/soperator/login_sshd:1.22.1-noble-slurm25.05.4"
	c := w.cluster("demo", spec)
	login := &slinkyv1beta1.LoginSet{ObjectMeta: w.meta("demo-login")}
	w.exists(login)
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, nebiusv1.ConditionImagesReplaced, metav1.ConditionTrue, nebiusv1.ReasonSoperatorImages,
			"spec.slurmNodes.login.sshd.image: cr.eu-north1.nebius.cloud/soperator/login_sshd:1.22.1-noble-slurm25.05.4")
	})
	w.said("--keep-soperator-images")
	image := func(want string) {
		t.Helper()
		await(w, login, func(l *slinkyv1beta1.LoginSet) error {
			container, err := l.Spec.Login.Decode()
			if err == nil && (container == nil && want != "" || container != nil && container.Image != want) {
				err = fmt.Errorf("the container is %v, want image %q", container, want)
			}
			return err
		})
	}
	image("")
	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Login.SSHD.Image = "example.com/login:own" })
	image("example.com/login:own")
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		if meta.FindStatusCondition(c.Status.Conditions, nebiusv1.ConditionImagesReplaced) != nil {
			return errors.New("the condition stays")
		}
		return nil
	})
	quiet(w, c, func(*nebiusv1.SlurmCluster) error { return nil })
}
