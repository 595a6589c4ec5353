// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// Observed is what exists of a SlurmCluster when it is composed. With the zero value nothing is known, and nothing is deleted.
type Observed struct {
	// NodeSets are the composed NodeSets that exist.
	NodeSets []ObservedNodeSet
	// Populate is about the Job that fills the jail.
	Populate ObservedPopulate
	// Rest is about maintenance.
	Rest ObservedRest
	// Workers are those that exist. They are read only for a cluster that FollowsNetwork.
	Workers []ObservedWorker
	// Installed are the kinds of other operators that the API server has.
	Installed Installed
}

// Installed has the kinds of other operators that the API server has. A field that needs a missing kind, or a foreign one of the same
// name, is reported.
type Installed struct {
	// ServiceMonitors are those of the Prometheus operator.
	ServiceMonitors foreignkind.Fit
	// PodMonitors are those of the Prometheus operator.
	PodMonitors foreignkind.Fit
	// MariaDB are both kinds of the mariadb-operator that a database needs.
	MariaDB foreignkind.Fit
	// AppArmorProfiles are those of the security-profiles-operator.
	AppArmorProfiles foreignkind.Fit
}

// AllInstalled is for callers that do not know what is installed, and must not warn of what may be there.
func AllInstalled() Installed {
	there := foreignkind.Fit{Installed: true}
	return Installed{ServiceMonitors: there, PodMonitors: there, MariaDB: there, AppArmorProfiles: there}
}

// ObservedNodeSet is a composed NodeSet that exists.
type ObservedNodeSet struct {
	Object *slinkyv1beta1.NodeSet
	// SourceGone reports whether the NodeSet of slurm.nebius.ai that it was composed of no longer belongs to the cluster. Only the API
	// server can answer that: a cache may be old, and with the composed NodeSet go its workers and their jobs.
	SourceGone node.Answer
}

// kept returns the NodeSets that exist, are not composed any more, and stay all the same: it is not known that their source is
// gone. One without a source comes from slurmNodes.worker, and the SlurmCluster itself no longer asks for it.
func (o *Observed) kept(composed []*slinkyv1beta1.NodeSet) []*slinkyv1beta1.NodeSet {
	var out []*slinkyv1beta1.NodeSet
	for _, observed := range o.NodeSets {
		_, sourced := observed.Object.Labels[LabelNodeSet]
		wanted := slices.ContainsFunc(composed, func(set *slinkyv1beta1.NodeSet) bool { return set.Name == observed.Object.Name })
		if sourced && !wanted && observed.SourceGone != node.Yes {
			out = append(out, observed.Object)
		}
	}
	return out
}
