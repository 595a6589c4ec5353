// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"cmp"
	"strconv"
	"strings"
)

// The releases whose keys were compared, with a slurmctld of each: NewestRelease is the newest whose keys this package knows.
const (
	oldestRelease = "24.11"
	NewestRelease = "26.05"
)

// Keys of slurm.conf, and options of its lines, that NewestRelease has and oldestRelease ends with; gone are those where it is the other
// way round. Releases between the two were not tried: none of these is reported as unknown to them.
const (
	newerKeys = `
	CertgenParameters CertgenType CliFilterParameters EpilogTimeout HealthCheckTimeout HttpParserType JobCompPassScript LicenseParameters
	MetricsAuthUsers MetricsParameters MetricsType NamespaceType PowerAction PrologTimeout SlurmctldHttpAuthParameters
	SlurmdHttpAuthParameters UrlParserType`
	newerPartitionOptions = `Exclusive Topology`
	newerNodeOptions      = `GresConf Parameters SuspendTime Topology`

	goneKeys = `AccountingStorageLoc FrontendName`
)

// elsewhere returns why slurmctld of a release would end with a key that this package knows, or an option behind owner; "" if it would
// not. newer is true if a newer release has it. An empty release is any of those known.
func (f File) elsewhere(owner, key, release string) (why string, newer bool) {
	if f != Slurm || release == "" {
		return "", false
	}
	since, until := newerKeys, goneKeys
	switch {
	case strings.EqualFold(owner, "PartitionName"):
		since, until = newerPartitionOptions, ""
	case strings.EqualFold(owner, "NodeName"):
		since, until = newerNodeOptions, ""
	case owner != "":
		return "", false
	}
	switch {
	case CompareReleases(release, oldestRelease) <= 0 && listed(key, since):
		return "Slurm " + oldestRelease + " does not have this, " + NewestRelease + " does", true
	case CompareReleases(release, NewestRelease) >= 0 && listed(key, until):
		return "Slurm " + NewestRelease + " no longer has this; remove it", false
	}
	return "", false
}

// CompareReleases compares the first two numbers of two Slurm releases such as 26.05.5; it is negative when a is the older
// one. Numbers that are missing or no numbers count as zero.
func CompareReleases(a, b string) int {
	ma, na := numbers(a)
	mb, nb := numbers(b)
	return cmp.Or(cmp.Compare(ma, mb), cmp.Compare(na, nb))
}

func numbers(release string) (major, minor int) {
	first, rest, _ := strings.Cut(release, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, _ = strconv.Atoi(first)
	minor, _ = strconv.Atoi(second)
	return major, minor
}
