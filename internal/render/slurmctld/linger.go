// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	appsv1 "k8s.io/api/apps/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// ReadLive reads the slurm.conf among the files of a Controller's ConfigMap; nil when there is none.
func ReadLive(files map[string]string) *conf.Document {
	text, ok := files[slurmConfFile]
	if !ok {
		return nil
	}
	d, _ := conf.Parse(conf.Slurm, text) // the operator has written it
	return d
}

// linger keeps the partitions and nodes of the present slurm.conf in the new one, until no job needs them or a user lets their jobs
// end. Those in an included file are not gone: slurmctld ends if one stands twice.
func (out *Output) linger(in Input, doc *conf.Document) {
	if doc == nil || in.Live == nil || in.Controller.Spec.External {
		return
	}
	if in.Controller.Annotations[slinkyv1beta1.AnnotationEndJobs] == out.ConfigDigest {
		return
	}
	out.EditWaits.Digest = out.ConfigDigest
	flight := preflight{in: in}
	included, nodes, names := map[string]bool{}, map[string]bool{}, flight.included(doc)
	for _, f := range in.Files.Config {
		if kind, ok := kindOf(f.Name, names); ok && kind == conf.Slurm {
			file := flight.parsed(f, kind).Document
			for _, name := range file.Partitions() {
				included[name] = true
			}
			for _, name := range file.Nodes() {
				nodes[name] = true
			}
		}
	}
	out.EditWaits.Nodes = doc.LingerNodes(in.Live, func(name string) bool { return in.FreeNodes[name] || nodes[name] })
	out.EditWaits.Partitions = doc.Linger(in.Live, func(name string) bool { return in.Free[name] || included[name] }, flight.registersItself)
	out.LingeringLines = out.lingeringLines(doc)
}

// maxLingeringBytes is how much an annotation keeps of what lingers; annotations of an object have 256 KiB together.
const maxLingeringBytes = 128 << 10

// lingeringLines are the lines of slurm.conf that linger, as ReadLingering reads them; empty when there are none, or more than are kept.
func (out *Output) lingeringLines(doc *conf.Document) string {
	lines := conf.New(conf.Slurm)
	others := func(names []string) func(string) bool {
		of := map[string]bool{}
		for _, name := range names {
			of[name] = true
		}
		return func(name string) bool { return !of[name] }
	}
	lines.LingerNodes(doc, others(out.EditWaits.Nodes))
	lines.Linger(doc, others(out.EditWaits.Partitions), func(string) bool { return true })
	text, err := lines.Bytes()
	if err != nil || len(text) > maxLingeringBytes {
		return ""
	}
	return string(text)
}

// ReadLingering reads what lingered from the StatefulSet of slurmctld, which is nil when there is none, for when slurm.conf is lost. It
// returns nil when nothing lingered.
func ReadLingering(set *appsv1.StatefulSet) *conf.Document {
	if set == nil || set.Annotations[slinkyv1beta1.AnnotationLingering] == "" {
		return nil
	}
	d, _ := conf.Parse(conf.Slurm, set.Annotations[slinkyv1beta1.AnnotationLingering]) // the operator has written it
	return d
}
