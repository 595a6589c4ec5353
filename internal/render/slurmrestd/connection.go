// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmrestd

import (
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// ConnectionDigest is the digest of what slurmrestd takes from a slurm.conf when it starts: where slurmctld and slurmdbd are, and how
// it proves itself to them. It does not read the file again, so another digest has to restart it; partitions, nodes and scheduling are
// no reason for that.
func ConnectionDigest(slurmConf string) string {
	doc, _ := conf.Parse(conf.Slurm, slurmConf)
	content := map[string][]byte{}
	for _, e := range doc.Entries() {
		if key := strings.ToLower(e.Key); connects(key) {
			content[key] = append(append(content[key], e.Value...), 0) // there may be several of a key
		}
	}
	return label.Digest(content)
}

func connects(key string) bool {
	exact := []string{
		"accountingstoragetype", "accountingstoragehost", "accountingstoragebackuphost", "accountingstorageport", "accountingstoragepass",
		"accountingstorageuser", "accountingstorageparameters", "clustername", "slurmctldport", "slurmctldaddr", "slurmuser", "credtype", "slurmctldhost", "messagetimeout", "tcptimeout", "dataparserparameters",
	}
	return slices.Contains(exact, key) || slices.ContainsFunc([]string{"auth", "tls", "communication"}, func(prefix string) bool {
		return strings.HasPrefix(key, prefix)
	})
}
