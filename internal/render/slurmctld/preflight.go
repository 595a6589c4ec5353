// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"cmp"
	"path"
	"slices"
	"strings"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// preflight collects what slurmctld would object to in the configuration. A slurmctld that reads one that it does not accept ends, also
// when it only reconfigures; so no such configuration may reach it.
type preflight struct {
	in       Input
	user     Texts
	problems problem.List
	// doubts are keys that a newer Slurm may know, and numbers that may be too small.
	doubts problem.List
}

// check checks slurm.conf, which may be nil, and the files beside it that Slurm reads in the same way.
func (p *preflight) check(d *conf.Document) {
	if d != nil {
		p.values(d, p.origin)
		for _, mistake := range slices.Concat(d.CheckNames(), d.CheckPriority()) {
			p.refuse(p.origin(mistake), mistake)
		}
		for _, mistake := range d.MissingNodes(p.registersItself) {
			// A NodeSet may come after the partition that is made of it.
			p.problems = append(p.problems, problem.Waitingf(p.origin(mistake), slinkyv1beta1.ReasonInvalidConfiguration, "%s", mistake.Error()))
		}
		p.paths(d, p.origin)
		p.checkTable(d)
		p.checkHealthCheck(d)
	}
	included := p.included(d)
	for _, f := range p.in.Files.Config {
		if kind, ok := kindOf(f.Name, included); ok {
			p.file(p.parsed(f, kind), kind)
		}
	}
}

// included are the names of the files in /etc/slurm that slurm.conf includes, and those that these include.
func (p *preflight) included(d *conf.Document) []string {
	var names []string
	var add func(d *conf.Document)
	add = func(d *conf.Document) {
		for _, e := range d.Entries() {
			name := inEtc(e.Value)
			if e.Kind != conf.Include || name == "" || slices.Contains(names, name) {
				continue
			}
			names = append(names, name)
			for _, f := range p.in.Files.Config {
				if f.Name == name {
					add(p.parsed(f, conf.Slurm).Document)
				}
			}
		}
	}
	if d != nil {
		add(d)
	}
	return names
}

// kindOf returns as what Slurm reads a file, if it is one of those that are checked.
func kindOf(name string, included []string) (conf.File, bool) {
	switch {
	case name == cgroupConfFile:
		return conf.Cgroup, true
	case name == "gres.conf":
		return conf.Gres, true
	case slices.Contains(included, name):
		return conf.Slurm, true
	}
	return conf.Plain, false
}

// parsed is a file of the user's.
func (p *preflight) parsed(f File, kind conf.File) config.Text {
	if text, ok := p.user.Files[f.Path()]; ok {
		return text
	}
	return config.Read(kind, f.Content, f.Path())
}

// file checks a file of the user's. What slurm.conf includes may not set what the operator owns either.
func (p *preflight) file(text config.Text, kind conf.File) {
	mistakes := text.Mistakes
	if kind == conf.Slurm {
		_, refused := conf.Merge(conf.New(kind), text.Document, ownedKeys)
		mistakes = slices.Concat(mistakes, refused)
	}
	for _, m := range mistakes {
		p.refuse(text.Path, m)
	}
	where := func(conf.Problem) string { return text.Path }
	p.values(text.Document, where)
	if kind == conf.Slurm {
		p.paths(text.Document, where)
	}
}

// values checks keys and values of a document.
func (p *preflight) values(d *conf.Document, where func(conf.Problem) string) {
	for _, mistake := range d.CheckValues(p.release()) {
		p.refuse(where(mistake), mistake)
	}
	for _, unknown := range d.Unknown(p.release()) {
		found := problem.Errorf(where(unknown.Problem), slinkyv1beta1.ReasonInvalidConfiguration, "%s", unknown.Error())
		if p.mayKnow(unknown) {
			p.doubts = append(p.doubts, found)
		} else {
			p.problems = append(p.problems, found)
		}
	}
}

// release is slurmctld's; empty while it is not known.
func (p *preflight) release() string {
	return cmp.Or(p.in.Release, p.in.Controller.Status.SlurmVersion)
}

// mayKnow reports whether slurmctld may know a key that package conf does not: it may be newer, or its release may not be known yet. In
// the latter case a key that is nearly a known one is more likely a typing error. With a key of a newer Slurm the edit may bring that
// Slurm as well.
func (p *preflight) mayKnow(unknown conf.UnknownKey) bool {
	if p.release() == "" {
		return unknown.Meant == ""
	}
	return unknown.Newer && p.in.Release == "" || conf.CompareReleases(p.release(), conf.NewestRelease) > 0
}

// checkHealthCheck reports a HealthCheckTimeout that is too long. The operator sets none itself: slurmds and login nodes, whose images
// may be of an older release, get the same slurm.conf, and end with a key that they do not know.
func (p *preflight) checkHealthCheck(d *conf.Document) {
	release := p.release()
	if release == "" || conf.CompareReleases(release, conf.HealthCheckRelease) < 0 {
		return
	}
	for _, found := range d.CheckHealthCheck() {
		p.doubts = append(p.doubts, problem.Errorf(p.user.ExtraConf.Path, slinkyv1beta1.ReasonHealthCheckTimeoutTooLong, "%s", found.Error()))
	}
}

// paths checks that the files that slurmctld needs from /etc/slurm are there.
func (p *preflight) paths(d *conf.Document, where func(conf.Problem) string) {
	for _, e := range d.Entries() {
		name := ""
		switch {
		case e.Kind == conf.Include:
			name = inEtc(e.Value)
		case strings.EqualFold(e.Key, "PrologSlurmctld"), strings.EqualFold(e.Key, "EpilogSlurmctld"):
			if name = inEtc(e.Value); !path.IsAbs(e.Value) {
				continue
			}
		}
		if name != "" && !p.in.Files.have(name) {
			mistake := conf.Problem{Line: e.Line, Key: e.Key, Message: "no ConfigMap that the spec refers to has a file " + name}
			p.refuse(where(mistake), mistake)
		}
	}
}

// inEtc returns the name of a file in /etc/slurm, where Slurm looks for relative ones; empty for one elsewhere.
func inEtc(file string) string {
	if !path.IsAbs(file) {
		return path.Clean(file)
	}
	if dir, name := path.Split(path.Clean(file)); path.Clean(dir) == pod.EtcSlurm {
		return name
	}
	return ""
}

func (f Files) have(name string) bool {
	return slices.ContainsFunc(f.lists(), func(l list) bool { return has(l.files, name) })
}

func (p *preflight) refuse(where string, mistake conf.Problem) {
	p.problems = append(p.problems, problem.Errorf(where, slinkyv1beta1.ReasonInvalidConfiguration, "%s", mistake.Error()))
}

// origin is the field that an entry of the merged slurm.conf came from. Lines with a number are those of extraConf, and
// partitions without a number are those of NodeSets.
func (p *preflight) origin(mistake conf.Problem) string {
	if mistake.Line > 0 {
		return p.user.ExtraConf.Path
	}
	for _, set := range p.in.NodeSets {
		if strings.HasPrefix(mistake.Key, "PartitionName="+set.SlurmName()+" ") {
			return "NodeSet " + set.Name + ", spec.partition.config"
		}
	}
	return "spec"
}

// registersItself reports whether a node could be a worker of a NodeSet: partitions may name single workers, although
// slurm.conf has no line for them.
func (p *preflight) registersItself(node string) bool {
	return slices.ContainsFunc(p.in.NodeSets, func(set slinkyv1beta1.NodeSet) bool {
		prefix := strings.TrimRight(set.Hostname(0), "0123456789")
		ordinal, ok := strings.CutPrefix(node, prefix)
		return ok && ordinal != "" && strings.Trim(ordinal, "0123456789") == ""
	})
}
