// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/queue"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// Facts are what the page of a cluster is made of.
type Facts struct {
	// Now is when they were gathered.
	Now time.Time
	// Cluster is the Controller.
	Cluster slurmcache.Key
	// Waiting is true if this process waits for the lease, and another one has the Slurm caches.
	Waiting bool
	Slurm   Slurm
	// Objects are the Controller, the SlurmCluster of its name and its NodeSets, in the order in which the page shows them.
	Objects []Object
	// NodeSets are the NodeSets of the cluster, by name.
	NodeSets []NodeSet
	// Nodes are the workers, and the Slurm nodes behind which there is none, in any order.
	Nodes []Node
	// Partitions is how many nodes Slurm has in each partition.
	Partitions map[string]int
	// Queue is Slurm's answer about jobs when the page was last looked at.
	Queue Queue
}

// Slurm is what is known of a Slurm cluster.
type Slurm struct {
	// Connected is true if there is a Slurm cache; without one the rest is empty.
	Connected bool
	// Trust, Since, Taken and Why are the fields of the snapshot.
	Trust slurmcache.Trust
	Since time.Time
	Taken time.Time
	Why   string
	// Name is Slurm's name of the cluster, Release the release of slurmrestd; both may be unknown.
	Name    string
	Release string
	// Ahead is how far slurmctld's clock is ahead of ours.
	Ahead time.Duration
}

// Queue is what is known of jobs. The zero value belongs to a page that was not looked at yet.
type Queue struct {
	// Taken is when Slurm was asked for the jobs; zero when it has not answered yet.
	Taken time.Time
	// Why is what went wrong when it was asked last; empty if nothing did.
	Why string
	// Missing is the number of jobs of which only the state is known. They are not part of the summary.
	Missing int
	Summary queue.Summary
}

// Object is an object of Kubernetes with its conditions.
type Object struct {
	Kind       string
	Name       string
	Conditions []metav1.Condition
}

// NodeSet is a kind of worker.
type NodeSet struct {
	Name string
	// DryRun is true if its plan is not carried out.
	DryRun bool
	Status slinkyv1beta1.NodeSetStatus
}

// Node is a worker, or a Slurm node without one.
type Node struct {
	// Name is the name of the Slurm node.
	Name string
	// NodeSet is empty when no worker stands behind the node.
	NodeSet string
	// Registered is whether Slurm has the node; Yes also if it had it when it last answered. State is from that answer.
	Registered node.Answer
	State      node.State
	// Reason is Slurm's reason for this state.
	Reason node.Reason
	// OutOfService, Attention and Plan are from the worker pod: its line of the ledger, what a person has to look at,
	// and what is going to happen to it. They are empty when there is none.
	OutOfService string
	Attention    string
	Plan         string
}
