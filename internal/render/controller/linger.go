// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
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

// linger keeps in slurm.conf the partitions and nodes of the one that is there, until no job needs them or somebody says that their jobs may
// end. Those that a file has which slurm.conf includes are not gone: slurmctld ends with one that stands twice.
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
}
