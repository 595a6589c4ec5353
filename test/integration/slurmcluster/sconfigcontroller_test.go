// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/jailedconfig"
	"github.com/coxswain-hpc/coxswain/internal/node/jail"
	"github.com/coxswain-hpc/coxswain/internal/node/jail/batch"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// expects waits for the condition about sconfigcontroller.
func (j *jailed) expects(status metav1.ConditionStatus, reason, text string) {
	j.t.Helper()
	await(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, nebiusv1.ConditionSConfigControllerAvailable, status, reason, text)
	})
}

func TestSconfigcontrollerRunsWhenTheJailIsFilled(t *testing.T) {
	t.Parallel()
	j := newJailed(t)
	j.exists(j.job)
	j.expects(metav1.ConditionFalse, "NotAvailable", "waits for the jail")
	writer := &appsv1.Deployment{ObjectMeta: j.meta("demo-sconfigcontroller")}
	if err := j.user.Get(t.Context(), client.ObjectKeyFromObject(writer), writer); !apierrors.IsNotFound(err) {
		t.Errorf("it is there before the jail (%v)", err)
	}
	j.ends(batchv1.JobComplete)
	j.exists(writer, &rbacv1.Role{ObjectMeta: j.meta("demo-sconfigcontroller-jailedconfigs")}, &rbacv1.RoleBinding{ObjectMeta: j.meta("demo-sconfigcontroller-jailedconfigs")},
		&corev1.ServiceAccount{ObjectMeta: j.meta("demo-sconfigcontroller-sa")})
	j.expects(metav1.ConditionFalse, "NotAvailable", "Deployment demo-sconfigcontroller: 0 of 1 pods are up to date")
	writer.Status = appsv1.DeploymentStatus{ObservedGeneration: writer.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := j.user.Status().Update(t.Context(), writer); err != nil {
		t.Fatal(err)
	}
	j.expects(metav1.ConditionTrue, "Available", "1 of 1 pods are ready")
	quiet(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) error {
		if n := c.Status.ReadySConfigController; n == nil || *n != 1 {
			return fmt.Errorf("readySConfigController is %v", n)
		}
		return nil
	})

	// Its pod has the jail mounted, and ends before the jail is overwritten.
	labels := writer.Spec.Selector.MatchLabels
	pod := j.pod("demo-sconfigcontroller-x", labels, corev1.PodRunning, "")
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Overwrite = true })
	j.says(metav1.ConditionTrue, "Waiting", "demo-worker is to have 2")
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Worker.Size, c.Spec.SlurmNodes.Login.Size = 0, 0 })
	j.says(metav1.ConditionTrue, "Waiting", "pods of sconfigcontroller end before")
	await(j.world, writer, func(d *appsv1.Deployment) error {
		if *d.Spec.Replicas != 0 {
			return errors.New("it goes on writing")
		}
		return nil
	})
	j.expects(metav1.ConditionFalse, "NotAvailable", "while it is overwritten")
	j.same()
	if err := j.user.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	j.poke(j.cluster, 1) // sooner than in ten seconds
	j.another("1")
	j.ends(batchv1.JobComplete)
	await(j.world, writer, func(d *appsv1.Deployment) error {
		if *d.Spec.Replicas != 1 {
			return errors.New("it does not come back")
		}
		return nil
	})
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceDownscale })
	j.expects(metav1.ConditionFalse, "Maintenance", "")
	edit(j.world, j.cluster, func(c *nebiusv1.SlurmCluster) {
		c.Spec.Maintenance, c.Spec.SConfigController.Node.Size = nebiusv1.MaintenanceNone, new(int32(0))
	})
	j.expects(metav1.ConditionFalse, "Disabled", "node.size is 0")
}

// TestTheRightsOfSconfigcontrollerSuffice runs its controller with the Role that the operator has made, and nothing else.
func TestTheRightsOfSconfigcontrollerSuffice(t *testing.T) {
	t.Parallel()
	j := newJailed(t)
	j.ends(batchv1.JobComplete)
	j.exists(&rbacv1.RoleBinding{ObjectMeta: j.meta("demo-sconfigcontroller-jailedconfigs")})
	key := []byte("0123456789abcdef0123456789abcdef")
	secret := &corev1.Secret{ObjectMeta: j.meta("demo-auth-jwt"), Data: map[string][]byte{"key": key}}
	other := &corev1.Secret{ObjectMeta: j.meta("other")}
	for _, o := range []client.Object{secret, other, &corev1.ConfigMap{ObjectMeta: j.meta("files"), Data: map[string]string{"a": "content"}}} {
		j.create(o)
	}
	dir := t.TempDir()
	root, err := jail.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	slurm := fake.New(fake.Options{Key: key})
	j.become("demo-sconfigcontroller-sa")
	j.server.Manager(t, operator.Scheme(), func(mgr manager.Manager) error {
		return jailedconfig.Setup(mgr, jailedconfig.Options{
			Writer: &batch.Writer{Tree: batch.Jail(root), Now: time.Now, Parallel: 1},
			Slurm: func(ctx context.Context) (jailedconfig.Slurm, error) {
				if err := mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(other), &corev1.Secret{}); !apierrors.IsForbidden(err) {
					t.Errorf("it may read another Secret (%v)", err)
				}
				var read corev1.Secret
				if err := mgr.GetAPIReader().Get(ctx, client.ObjectKeyFromObject(secret), &read); err != nil {
					return nil, err
				}
				issuer, err := token.NewSigned(read.Data["key"], "slurm", 0)
				if err != nil {
					return nil, err
				}
				return rest.NewClient("http://slurm", issuer, rest.Options{Transport: slurm.Transport()})
			},
			Wait: time.Minute, Poll: 50 * time.Millisecond, RetryFirst: 20 * time.Millisecond, RetryLast: 100 * time.Millisecond,
			Concurrency: 1, Clock: clock.RealClock{},
		})
	})
	config := &nebiusv1alpha1.JailedConfig{ObjectMeta: j.meta("files"), Spec: nebiusv1alpha1.JailedConfigSpec{
		ConfigMap: nebiusv1alpha1.ConfigMapReference{Name: "files"}, Items: []nebiusv1alpha1.JailedConfigItem{{Key: "a", Path: "/etc/slurm/a"}},
		UpdateActions: []nebiusv1alpha1.UpdateAction{nebiusv1alpha1.UpdateActionReconfigure},
	}}
	j.create(config)
	await(j.world, config, func(c *nebiusv1alpha1.JailedConfig) error {
		return condition(c.Status.Conditions, nebiusv1alpha1.ConditionUpdateActionsCompleted, metav1.ConditionTrue, nebiusv1alpha1.ReasonSuccess, "")
	})
	apiserver.Eventually(t, func() error {
		data, err := os.ReadFile(filepath.Join(dir, "etc/slurm/a"))
		if err == nil && string(data) != "content" {
			err = fmt.Errorf("it is %q", data)
		}
		return err
	})
}
