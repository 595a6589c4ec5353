// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tres reads Slurm's lists of resources: trackable ones (TRES in slurm.conf(5)) and generic ones (Gres).
package tres

import (
	"math"
	"strconv"
	"strings"
)

// Amount returns how much of a trackable resource a list has, such as "cpu=16,mem=191356M,billing=16,gres/gpu=1"; 0 if it has none, or
// none that can be read. Memory is in bytes.
func Amount(list, name string) float64 {
	for entry := range strings.SplitSeq(list, ",") {
		if key, value, ok := strings.Cut(entry, "="); ok && key == name {
			if name == "mem" {
				return bytesOf(value)
			}
			if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 && !math.IsInf(n, 0) {
				return n
			}
		}
	}
	return 0
}

// Generic returns how many of a generic resource a list has, such as "gpu:h100:8(S:0-1),gpu:a100:2,shard:8". A resource without a
// number counts as one.
func Generic(list, name string) float64 {
	total, depth, start := 0., 0, 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i == len(list) || list[i] == ',' && depth == 0:
			entry, _, _ := strings.Cut(list[start:i], "(")
			start = i + 1
			parts := strings.Split(entry, ":")
			if parts[0] != name {
				continue
			}
			last := parts[len(parts)-1]
			if n, err := strconv.ParseUint(last, 10, 32); err == nil {
				total += float64(n)
			} else {
				total++ // "gpu", "gpu:h100"
			}
		case list[i] == '(':
			depth++
		case list[i] == ')':
			depth--
		}
	}
	return total
}

// mebi is the unit of memory without a suffix.
const mebi = 1 << 20

// bytesOf reads memory as Slurm writes it: "191356M", "500G", "1.50T"; without a unit it is in MiB.
func bytesOf(value string) float64 {
	unit := float64(mebi)
	if end := len(value) - 1; end >= 0 {
		if power := strings.IndexByte("KMGTP", value[end]); power >= 0 {
			unit, value = math.Pow(1024, float64(power+1)), value[:end]
		}
	}
	n, err := strconv.ParseFloat(value, 64)
	if n *= unit; err != nil || !(n >= 0) || math.IsInf(n, 0) {
		return 0
	}
	return n
}
