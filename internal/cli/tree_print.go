// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// treePrinter turns a Tree into a table.
type treePrinter struct {
	now time.Time
	// wide adds details, and the messages of ready objects.
	wide bool
	// namespaces adds a column with the namespace.
	namespaces bool
	out        table
}

func (p *treePrinter) table(t Tree) table {
	p.out = table{header: []string{"NAME", "READY", "REPLICAS", "SINCE", "REASON"}}
	if p.namespaces {
		p.out.header = append([]string{"NAMESPACE"}, p.out.header...)
	}
	if p.wide {
		p.out.header = append(p.out.header, "DETAILS")
	}
	p.out.header = append(p.out.header, "MESSAGE")
	for _, o := range t.Clusters {
		p.object(o, "", "")
	}
	return p.out
}

// line is one row.
type line struct {
	namespace, name          string
	ready, replicas          cell
	since                    *metav1.Time
	reason, details, message string
}

func (p *treePrinter) add(l line) {
	row := []cell{{text: l.name}, l.ready, l.replicas, {text: age(l.since, p.now)}, {text: oneLine(l.reason)}}
	if p.namespaces {
		row = append([]cell{{text: l.namespace}}, row...)
	}
	if p.wide {
		row = append(row, cell{text: oneLine(l.details)})
	}
	p.out.rows = append(p.out.rows, append(row, cell{text: oneLine(l.message)}))
}

// object adds an object and what belongs to it. branch stands before its own name, and trunk before those below.
func (p *treePrinter) object(o Object, branch, trunk string) {
	l := line{namespace: o.Namespace, name: branch + o.Kind + "/" + o.Name, ready: readyCell(o.Ready.Status), since: o.Ready.Since, details: o.Details}
	if o.Replicas != nil {
		l.replicas = cell{text: fmt.Sprintf("%d/%d", o.Replicas.Ready, o.Replicas.Wanted)}
		if o.Replicas.Ready < o.Replicas.Wanted {
			l.replicas.colour = yellow
		}
	}
	if p.wide || o.Ready.Status != metav1.ConditionTrue || !usual(o.Ready.Reason) {
		l.reason = o.Ready.Reason
	}
	if p.wide || o.Ready.Status != metav1.ConditionTrue {
		l.message = o.Ready.Message
	}
	p.add(l)
	left := len(o.Findings) + len(o.OutOfService) + len(o.Components)
	next := func() (branch, below string) {
		left--
		if left == 0 {
			return trunk + "└─", trunk + "  "
		}
		return trunk + "├─", trunk + "│ "
	}
	for _, f := range o.Findings {
		branch, _ := next()
		p.add(line{
			namespace: o.Namespace, name: branch + "condition " + f.Type, ready: cell{text: string(f.Status), colour: yellow},
			since: f.Since, reason: f.Reason, message: f.Message,
		})
	}
	for _, s := range o.OutOfService {
		branch, _ := next()
		p.add(line{
			namespace: o.Namespace, name: fmt.Sprintf("%s%d out of service", branch, s.Count), since: s.Since, reason: s.Reason, message: s.Nodes,
		})
	}
	for _, c := range o.Components {
		branch, below := next()
		p.object(c, branch, below)
	}
}

// usual reports whether a reason is one of a ready object about which nothing else is to be shown.
func usual(reason string) bool {
	return reason == slinkyv1beta1.ReasonAvailable || reason == nebiusv1.ReasonSucceeded
}

func readyCell(status metav1.ConditionStatus) cell {
	out := cell{text: string(status), colour: red}
	switch status {
	case metav1.ConditionTrue:
		out.colour = green
	case metav1.ConditionUnknown:
		out.colour = yellow
	case metav1.ConditionFalse:
	}
	return out
}
