// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import "strings"

// slurmUser is SlurmUser of every cluster that we render: slurmctld signs its own reasons with it.
const slurmUser = "slurm"

// OfRegistration reports whether slurmctld itself has drained the node because its slurmd offered less than the record wants, or something
// else. It joins the mistakes by commas. Each part has to be one of slurmctld's, or the reason counts as a person's.
func (r Reason) OfRegistration() bool {
	if r.SetBy != slurmUser {
		return false
	}
	for part := range strings.SplitSeq(r.withoutSilence(), ", ") {
		if !ofRegistration(part) {
			return false
		}
	}
	return true
}

// ofRegistration reports whether slurmctld writes this reason for a registration, as releases 24.11 and 26.05 do.
func ofRegistration(part string) bool {
	if kind, isGres := strings.CutPrefix(part, "gres/"); isGres {
		return strings.Contains(kind, " count reported lower than configured (") || strings.Contains(kind, " count too low (")
	}
	for _, prefix := range []string{"Low socket*core*thread count", "Low CPUs", "Low RealMemory (reported:", "Low TmpDisk", "CoreSpec differ", "Failed to set topology"} {
		if strings.HasPrefix(part, prefix) {
			return true
		}
	}
	return false
}

// withoutSilence is the text without what slurmctld appends to it when slurmd is silent.
func (r Reason) withoutSilence() string {
	return strings.TrimSuffix(r.Text, " : "+notResponding)
}

// Silent reports whether slurmctld has appended to the reason that slurmd is silent. The reason then has that time.
func (r Reason) Silent() bool { return strings.HasSuffix(r.Text, notResponding) }
