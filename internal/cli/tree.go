// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Tree is what "status" prints.
type Tree struct {
	// Clusters are SlurmClusters, Controllers that belong to none, and components whose Controller is not there.
	Clusters []Object `json:"clusters"`
}

// Object is a SlurmCluster or a component.
type Object struct {
	// Kind, Namespace and Name are the kind, namespace and name of the object.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready is condition Ready, and Unknown while that is about an earlier spec.
	Ready Finding `json:"ready"`
	// Replicas counts pods; nil where the object has no counts in its status.
	Replicas *Replicas `json:"replicas,omitempty"`
	// Details are other parts of the status, such as the release of slurmctld.
	Details string `json:"details,omitempty"`
	// Findings are other conditions that ask for attention.
	Findings []Finding `json:"findings,omitempty"`
	// OutOfService are the workers that get no new jobs.
	OutOfService []slinkyv1beta1.NodeSetOutOfService `json:"outOfService,omitempty"`
	// Components are the objects that this one is made of.
	Components []Object `json:"components,omitempty"`
}

// Replicas counts pods.
type Replicas struct {
	Ready  int32 `json:"ready"`
	Wanted int32 `json:"wanted"`
}

// Objects are what a Tree is made of.
type Objects struct {
	Clusters    []nebiusv1.SlurmCluster
	Controllers []slinkyv1beta1.Controller
	Accountings []slinkyv1beta1.Accounting
	RestAPIs    []slinkyv1beta1.RestApi
	LoginSets   []slinkyv1beta1.LoginSet
	NodeSets    []slinkyv1beta1.NodeSet
}

// NewTree puts objects into the order of what belongs to what.
func NewTree(in Objects) Tree {
	p := planter{in: in, planted: map[string]bool{}}
	out := Tree{Clusters: []Object{}}
	for i := range in.Clusters {
		out.Clusters = append(out.Clusters, p.cluster(&in.Clusters[i]))
	}
	for i := range in.Controllers {
		if c := &in.Controllers[i]; !p.planted[key("Controller", c.Namespace, c.Name)] {
			out.Clusters = append(out.Clusters, p.controller(c))
		}
	}
	out.Clusters = append(out.Clusters, p.rest()...)
	sortObjects(out.Clusters)
	return out
}

// Named returns the part of the tree whose clusters have the name.
func (t Tree) Named(name string) Tree {
	out := Tree{Clusters: []Object{}}
	for _, o := range t.Clusters {
		if o.Name == name && (o.Kind == "SlurmCluster" || o.Kind == "Controller") {
			out.Clusters = append(out.Clusters, o)
		}
	}
	return out
}

// AllReady reports whether condition Ready of every object is True.
func (t Tree) AllReady() bool { return allReady(t.Clusters) }

func allReady(objects []Object) bool {
	for _, o := range objects {
		if o.Ready.Status != metav1.ConditionTrue || !allReady(o.Components) {
			return false
		}
	}
	return true
}

func sortObjects(objects []Object) {
	slices.SortStableFunc(objects, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func key(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// planter remembers which objects have a place in the tree.
type planter struct {
	in      Objects
	planted map[string]bool
}

func (p *planter) cluster(c *nebiusv1.SlurmCluster) Object {
	out := object("SlurmCluster", c, c.Status.Conditions)
	out.Details = string(c.Status.Phase)
	for i := range p.in.Controllers {
		if ctl := &p.in.Controllers[i]; ctl.Namespace == c.Namespace && ownedBy(ctl, c.Name) {
			out.Components = append(out.Components, p.controller(ctl))
		}
	}
	return out
}

// ownedBy reports whether an object is composed of the SlurmCluster of that name.
func ownedBy(o metav1.Object, cluster string) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.Kind == "SlurmCluster" && r.Name == cluster
	})
}

func (p *planter) controller(c *slinkyv1beta1.Controller) Object {
	out := p.plant("Controller", c, c.Status.Conditions)
	if c.Status.SlurmVersion != "" {
		out.Details = fmt.Sprintf("Slurm %s, cluster %s", c.Status.SlurmVersion, c.Status.ClusterName)
	}
	for i := range p.in.Accountings {
		if a := &p.in.Accountings[i]; c.Spec.AccountingRef != nil && a.Namespace == c.Namespace && a.Name == c.Spec.AccountingRef.Name {
			out.Components = append(out.Components, p.plant("Accounting", a, a.Status.Conditions))
		}
	}
	of := func(o metav1.Object, ref slinkyv1beta1.ObjectReference) bool {
		return o.GetNamespace() == c.Namespace && ref.Name == c.Name
	}
	for i := range p.in.RestAPIs {
		if r := &p.in.RestAPIs[i]; of(r, r.Spec.ControllerRef) {
			out.Components = append(out.Components, p.restAPI(r))
		}
	}
	for i := range p.in.LoginSets {
		if l := &p.in.LoginSets[i]; of(l, l.Spec.ControllerRef) {
			out.Components = append(out.Components, p.loginSet(l))
		}
	}
	for i := range p.in.NodeSets {
		if n := &p.in.NodeSets[i]; of(n, n.Spec.ControllerRef) {
			out.Components = append(out.Components, p.nodeSet(n))
		}
	}
	return out
}

// rest returns the components whose Controller is not there.
func (p *planter) rest() (out []Object) {
	free := func(kind string, o metav1.Object) bool { return !p.planted[key(kind, o.GetNamespace(), o.GetName())] }
	for i := range p.in.Accountings {
		if a := &p.in.Accountings[i]; free("Accounting", a) {
			out = append(out, p.plant("Accounting", a, a.Status.Conditions))
		}
	}
	for i := range p.in.RestAPIs {
		if r := &p.in.RestAPIs[i]; free("RestApi", r) {
			out = append(out, p.restAPI(r))
		}
	}
	for i := range p.in.LoginSets {
		if l := &p.in.LoginSets[i]; free("LoginSet", l) {
			out = append(out, p.loginSet(l))
		}
	}
	for i := range p.in.NodeSets {
		if n := &p.in.NodeSets[i]; free("NodeSet", n) {
			out = append(out, p.nodeSet(n))
		}
	}
	return out
}

func (p *planter) restAPI(r *slinkyv1beta1.RestApi) Object {
	out := p.plant("RestApi", r, r.Status.Conditions)
	out.Replicas = &Replicas{Ready: r.Status.ReadyReplicas, Wanted: r.Replicas()}
	return out
}

func (p *planter) loginSet(l *slinkyv1beta1.LoginSet) Object {
	out := p.plant("LoginSet", l, l.Status.Conditions)
	out.Replicas = &Replicas{Ready: l.Status.ReadyReplicas, Wanted: l.Replicas()}
	return out
}

func (p *planter) nodeSet(n *slinkyv1beta1.NodeSet) Object {
	out := p.plant("NodeSet", n, n.Status.Conditions)
	wanted := n.Status.Desired
	if n.Status.ObservedGeneration == 0 && n.ScalingMode() == slinkyv1beta1.ScalingModeStatefulSet {
		wanted = n.Replicas()
	}
	out.Replicas = &Replicas{Ready: n.Status.ReadyReplicas, Wanted: wanted}
	out.OutOfService = n.Status.OutOfService
	out.Details = fmt.Sprintf("%d idle, %d allocated, %d down, %d drain", n.Status.SlurmIdle, n.Status.SlurmAllocated, n.Status.SlurmDown, n.Status.SlurmDrain)
	if n.Status.UpdatedReplicas < n.Status.Replicas {
		out.Details += fmt.Sprintf(", %d of %d of the newest revision", n.Status.UpdatedReplicas, n.Status.Replicas)
	}
	return out
}

func (p *planter) plant(kind string, o metav1.Object, conditions []metav1.Condition) Object {
	p.planted[key(kind, o.GetNamespace(), o.GetName())] = true
	return object(kind, o, conditions)
}

func object(kind string, o metav1.Object, conditions []metav1.Condition) Object {
	ready := readiness(o.GetGeneration(), conditions)
	return Object{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Ready: ready, Findings: findings(kind, conditions, ready)}
}
