// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Operator is where Helm puts the operator: the namespace and the name of the Deployment and the ServiceAccount.
//
//nolint:gochecknoglobals // a constant
var Operator = types.NamespacedName{Namespace: "coxswain-system", Name: "coxswain"}

// OperatorUser is who the operator is in the audit log.
const OperatorUser = "system:serviceaccount:coxswain-system:coxswain"

const operatorTimeout = 2 * time.Minute

// InstallOperator installs or updates both charts with Helm and waits until the operator and its webhook are available.
func InstallOperator(ctx context.Context, r Repository, p *Progress, k *Kubernetes, i Images) error {
	before, err := k.RestartsIn(ctx, Operator.Namespace)
	if err != nil {
		return err
	}
	if err := r.helm(ctx, p, k, "coxswain-crds"); err != nil {
		return err
	}
	if err := established(ctx, k, p); err != nil {
		return err
	}
	p.Say("  the definitions of SlurmCluster and its kin are established")
	values := []string{
		"--set-string", "image.repository=" + i.Registry + "/operator", "--set-string", "image.tag=" + i.Tag,
		"--set-string", "slurmImages.registry=" + i.Registry, "--set-string", "slurmImages.tag=" + i.Tag,
	}
	if digest := i.operatorDigest(); digest != "" {
		// The tag stays the same from build to build; this is what makes Kubernetes replace the pod.
		values = append(values, "--set-string", "podAnnotations.coxswain-build="+digest)
	}
	if err := r.helm(ctx, p, k, "coxswain", values...); err != nil {
		return err
	}
	p.Waiting("the operator")
	if err := operatorAvailable(ctx, k); err != nil {
		return errors.Join(err, k.Report(ctx, Operator.Namespace))
	}
	// A program that the image lacks, or one that crashes, does not keep another Deployment from being available.
	p.Waiting("the pods of the operator")
	if err := k.AwaitSound(ctx, before, operatorTimeout, Operator.Namespace); err != nil {
		return err
	}
	p.Say("  the operator and its webhook are available")
	return nil
}

func (r Repository) helm(ctx context.Context, p *Progress, k *Kubernetes, chart string, args ...string) error {
	p.Waiting("Helm")
	all := []string{"upgrade", "--install", chart, r.Path("helm", chart), "--kubeconfig", k.Kubeconfig,
		"--namespace", Operator.Namespace, "--create-namespace", "--history-max", "3"}
	_, err := r.run(ctx, nil, "bin/helm", append(all, args...)...)
	return err
}

// established waits until the API server serves every kind of the chart.
func established(ctx context.Context, k *Kubernetes, p *Progress) error {
	p.Waiting("the API server to serve the new kinds")
	return Poll(ctx, time.Minute, 100*time.Millisecond, "the custom resource definitions", func(ctx context.Context) error {
		for _, name := range []string{"slurmclusters.slurm.nebius.ai", "controllers.slinky.slurm.net", "nodesets.slinky.slurm.net"} {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := k.Get(ctx, types.NamespacedName{Name: name}, &crd); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
			if !isEstablished(&crd) {
				return fmt.Errorf("%s is not established", name)
			}
		}
		return nil
	})
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// operatorAvailable waits until all Deployments of the chart are rolled out.
func operatorAvailable(ctx context.Context, k *Kubernetes) error {
	return Poll(ctx, operatorTimeout, 200*time.Millisecond, "the operator", func(ctx context.Context) error {
		var deployments appsv1.DeploymentList
		if err := k.List(ctx, &deployments, client.InNamespace(Operator.Namespace)); err != nil {
			return fmt.Errorf("listing the Deployments of %s: %w", Operator.Namespace, err)
		}
		if len(deployments.Items) == 0 {
			return fmt.Errorf("there are no Deployments in %s", Operator.Namespace)
		}
		var errs []error
		for _, d := range deployments.Items {
			errs = append(errs, rolledOut(&d))
		}
		return errors.Join(errs...)
	})
}

func rolledOut(d *appsv1.Deployment) error {
	if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < *d.Spec.Replicas || d.Status.Replicas > d.Status.UpdatedReplicas {
		return fmt.Errorf("deployment %s is being rolled out", d.Name)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return fmt.Errorf("deployment %s is not available", d.Name)
}
