// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// maxInlinedBytes is how large slurm.conf may become by included files. The other half of the room is for what lingers.
const maxInlinedBytes = maxConfigBytes / 2

// inline puts the files that slurm.conf includes into it, as far as they are the user's. A user's file changes in the pod when its
// kubelet sees that; slurm.conf changes when the operator decides. So partitions and nodes that go from such a file linger as others
// do, and a slurmctld that restarts by itself has them. It reports files whose lines stay out.
func (out *Output) inline(in Input, user Texts, doc *conf.Document) *conf.Document {
	if doc == nil || in.Controller.Spec.External || !doc.Includes() {
		return doc
	}
	flight := preflight{in: in, user: user}
	inlined := doc.Inline(flight.known)
	text, err := inlined.Bytes()
	large := err == nil && len(text) > maxInlinedBytes
	if large {
		inlined = doc
	}
	for _, e := range inlined.Entries() {
		name := inEtc(e.Value)
		switch {
		case e.Kind != conf.Include, name != "" && !in.Files.have(name): // that is refused
		case large && name != "":
			out.doubtInclude(user, e, "slurm.conf has no room for its lines")
		case name == "":
			out.doubtInclude(user, e, "the operator does not know what is in it")
		}
	}
	return inlined
}

// known is the document of a file of the user's that slurm.conf includes; nil for others.
func (p *preflight) known(file string) *conf.Document {
	if name := inEtc(file); name != "" {
		for _, f := range p.in.Files.Config {
			if f.Name == name {
				return p.parsed(f, conf.Slurm).Document
			}
		}
	}
	return nil
}

func (out *Output) doubtInclude(user Texts, e conf.Entry, why string) {
	out.Doubts = append(out.Doubts, problem.Errorf(user.ExtraConf.Path, slinkyv1beta1.ReasonIncludeNotLookedAfter,
		"include %s: %s. If the line of a partition or node is removed from that file, slurmctld ends the jobs that need it", e.Value, why))
}
