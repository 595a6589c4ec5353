// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"math"
	"strconv"
	"strings"
)

// tres returns how much of a trackable resource a list has, such as "cpu=16,mem=191356M,billing=16,gres/gpu=1" (TRES in
// slurm.conf(5)); 0 if it has none, or says nothing that can be read. Memory is in bytes.
func tres(list, name string) float64 {
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

func gpus(list string) float64 { return tres(list, "gres/gpu") }

// mebi is what memory is counted in where nothing else is said.
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
	if err != nil || n < 0 || math.IsInf(n, 0) || math.IsNaN(n) {
		return 0
	}
	return n * unit
}
