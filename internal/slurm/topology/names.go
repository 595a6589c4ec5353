// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// Slurm refuses names of switches with 64 characters or more. It reads the number in a name into 64 bits, and a longer one becomes
// another number: a tree with such a name stops slurmctld. DEFAULT and ALL mean something else in its files.
const (
	maxUnitName = 63
	maxDigits   = 18
)

// digestLength is how many characters of a digest keep shortened names apart.
const digestLength = 10

// unitName is a name that Slurm accepts for a switch or a block. A name that it would refuse is changed, and gets a digest of the
// original, so that different names stay different.
func unitName(name string) string {
	var b strings.Builder
	digits := 0
	for i := range len(name) {
		c := name[i]
		switch {
		case c >= '0' && c <= '9':
			if digits++; digits > maxDigits {
				continue
			}
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.':
			digits = 0
		default:
			c, digits = '_', 0
		}
		if i == 0 && (c == '-' || c == '.') {
			c = '_'
		}
		b.WriteByte(c)
	}
	if b.String() == name && len(name) <= maxUnitName && hostlist.CheckName(name) == nil {
		return name
	}
	return withDigest(b.String(), name)
}

// withDigest shortens a name and appends the digest of its origin.
func withDigest(name, origin string) string {
	sum := sha256.Sum256([]byte(origin))
	keep := min(len(name), maxUnitName-digestLength-1)
	return name[:keep] + "_" + hex.EncodeToString(sum[:])[:digestLength]
}

// names gives each unit a name of its own.
type names map[string]bool

// take returns a name that Slurm accepts and that is not taken: wish, where possible. The result depends on the calls before, so units
// ask in a fixed order.
func (n names) take(wish string) string {
	name := unitName(wish)
	for again := 1; n[name]; again++ {
		name = withDigest(unitName(wish), wish+"/"+strconv.Itoa(again))
	}
	n[name] = true
	return name
}
