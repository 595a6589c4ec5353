// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import "net/url"

// Cluster is a line of the page of all clusters.
type Cluster struct {
	// Title is namespace and name, Path the way to the cluster's page.
	Title string
	Path  string
	Head  Head
	// Counts are the nodes by state, without the states in which there is none.
	Counts []Count
	// Concerns are the conditions that are not as they should be.
	Concerns []Condition
}

// NewClusters makes the lines of clusters.
func NewClusters(all []Facts) []Cluster {
	var out []Cluster
	for _, f := range all {
		c := Cluster{Title: f.Cluster.String(), Path: clusterPath(f.Cluster.Namespace, f.Cluster.Name), Head: head(f)}
		c.Concerns, _ = sortConditions(f.Objects)
		c.Counts = grid(f.Nodes, false).Counts
		out = append(out, c)
	}
	return out
}

// clusterPath returns the path of a cluster's page.
func clusterPath(namespace, name string) string {
	return Root + "/" + url.PathEscape(namespace) + "/" + url.PathEscape(name)
}
