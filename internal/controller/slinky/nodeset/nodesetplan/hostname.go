// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// hostname returns the host name of a worker on the node: its annotation's value, or the node's name up to the first dot.
func hostname(node *corev1.Node) string {
	if override := node.Annotations[slinkyv1beta1.AnnotationHostnameOverride]; override != "" {
		return override
	}
	short, _, _ := strings.Cut(node.Name, ".")
	return short
}

// naming gives out host names. A worker that runs keeps its name, whoever asks for it.
type naming struct {
	nodes []KubeNode
	// running is the host name of the worker on each Kubernetes node, and holder the index in nodes of the node that has the name.
	running map[string]string
	holder  map[string]int
	// taken is the Kubernetes node that a name was given to, done which nodes have been looked at.
	taken    map[string]string
	done     []bool
	problems problem.List
}

// NameHosts gives each Kubernetes node that fits the host name of its worker in scaling mode DaemonSet, first to those on which workers
// run. A node that cannot have the name that it asks for is a problem and takes no new worker; its worker, if it has one, keeps its name.
// In the other scaling mode host names follow from ordinals, and those of nodes do not count.
func NameHosts(nodes []KubeNode, pods []workerpod.Pod) problem.List {
	n := naming{nodes: nodes, running: map[string]string{}, holder: map[string]int{}, taken: map[string]string{}, done: make([]bool, len(nodes))}
	for _, p := range pods {
		if p.Daemon && !finished(&p) && (n.running[p.Node] == "" || !p.Terminating) {
			n.running[p.Node] = p.Hostname
		}
	}
	for i, node := range nodes {
		switch running := n.running[node.Name]; {
		case node.Fit == Unfit:
			n.done[i] = true
		case running == "":
		default:
			n.holder[running] = i
		}
	}
	for i, node := range nodes {
		if n.running[node.Name] != "" {
			n.settle(i)
		}
	}
	for i, node := range nodes { // a name of its own comes before one by annotation
		if short, _, _ := strings.Cut(node.Name, "."); short == node.Hostname {
			n.settle(i)
		}
	}
	for i := range nodes {
		n.settle(i)
	}
	return n.problems.Sorted()
}

// settle gives one node its name. The node that has that name now is settled first: it may want another one.
func (n *naming) settle(i int) {
	if n.done[i] {
		return
	}
	n.done[i] = true
	node := &n.nodes[i]
	if h, held := n.holder[node.Hostname]; held {
		n.settle(h) // nodes that exchange their names are all done by now, and none has taken its own
	}
	mistake := n.misnamed(*node)
	if mistake != "" {
		n.problems = append(n.problems, problem.Errorf("Node "+node.Name, slinkyv1beta1.ReasonHostnameConflict, "%s", mistake))
		if node.Hostname = n.running[node.Name]; node.Hostname == "" || n.taken[node.Hostname] != "" {
			node.Fit = Unfit
			return
		}
		node.Fit = min(node.Fit, Stays)
	}
	n.taken[node.Hostname] = node.Name
}

// misnamed returns why a node cannot have the host name that it asks for.
func (n *naming) misnamed(node KubeNode) string {
	const out = "; set another one in its annotation " + slinkyv1beta1.AnnotationHostnameOverride
	if mistakes := validation.IsDNS1123Label(node.Hostname); len(mistakes) > 0 {
		return "host name " + strconv.Quote(node.Hostname) + " cannot be that of a worker: " + mistakes[0] + out
	}
	if other := n.taken[node.Hostname]; other != "" {
		return "host name " + node.Hostname + " is that of the worker on Node " + other + " already" + out
	}
	return ""
}
