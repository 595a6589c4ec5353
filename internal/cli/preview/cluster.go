// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// slurmCluster makes the components of a SlurmCluster, as if the jail were filled and every kind of others installed.
func (m *maker) slurmCluster(ctx context.Context, cluster *nebiusv1.SlurmCluster) error {
	sets, err := reference.NodeSetsOf(ctx, m.live, cluster)
	if err != nil {
		return err
	}
	out := compose.Cluster(compose.Input{
		Cluster: cluster, NodeSets: sets, Images: m.images, Observed: compose.Observed{Installed: compose.AllInstalled()},
	})
	for _, note := range slices.Concat(out.Notes, out.Unresolved) {
		m.note(cluster, "%s", note)
	}
	for _, held := range out.Held {
		for _, p := range held.Problems {
			m.out.Mistakes = append(m.out.Mistakes, "NodeSet/"+held.NodeSet+": "+p.Error())
		}
	}
	if out.Jail.Awaited {
		// They are made once the jail is filled.
		for _, set := range out.Components.NodeSets {
			out.Add(set)
		}
		out.Add(out.Components.LoginSet)
	}
	before := len(m.out.Made)
	if err := m.take(cluster, out.Output); err != nil {
		return err
	}
	m.drop(cluster)
	if len(m.out.Made) == before {
		return nil // it has mistakes
	}
	for _, o := range out.Objects {
		if made, ok := o.(client.Object); ok && o.GetNamespace() == cluster.Namespace {
			if err := m.replace(made); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop drops the components of a SlurmCluster that are there, so that none is left that is no longer composed.
func (m *maker) drop(cluster *nebiusv1.SlurmCluster) {
	m.Objects = slices.DeleteFunc(m.Objects, func(o client.Object) bool {
		switch o.(type) {
		case *slinkyv1beta1.Controller, *slinkyv1beta1.Accounting, *slinkyv1beta1.RestApi, *slinkyv1beta1.LoginSet, *slinkyv1beta1.NodeSet,
			*slinkyv1beta1.Token:
			owner := metav1.GetControllerOf(o)
			return owner != nil && owner.Kind == "SlurmCluster" && owner.Name == cluster.Name && o.GetNamespace() == cluster.Namespace
		}
		return false
	})
}

// nodeConfigurator makes the DaemonSet of a NodeConfigurator.
func (m *maker) nodeConfigurator(n *nebiusv1alpha1.NodeConfigurator) error {
	out := compose.NodeConfigurator(n, m.images)
	for _, note := range out.Notes {
		m.note(n, "%s", note)
	}
	return m.take(n, render.Output{Objects: out.Objects, Problems: out.Problems, Ignored: out.Ignored})
}
