// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodesetplan

import (
	"bytes"
	"cmp"
	"slices"
)

// Revision is a ControllerRevision of a NodeSet: what its workers were made from at one time.
type Revision struct {
	// Name is the object's name, Hash the value of label controller.kubernetes.io/hash on it and on its workers.
	Name, Hash string
	// Number grows with each change; the newest revision has the greatest.
	Number int64
	// Data is what workers are made of, in its canonical form.
	Data []byte
	// Ours reports whether the NodeSet controls it already.
	Ours bool
}

// History is what to do about the revisions of a NodeSet.
type History struct {
	// Hash is the hash of the revision that new workers are made from, and Collisions how many other revisions had the hashes that were tried
	// before.
	Hash       string
	Collisions int32
	// Create reports whether the revision of this hash is to be created. It gets Number.
	Create bool
	// Renumber is the name of an earlier revision that is the newest again, as after a rollback; it gets Number.
	Renumber string
	Number   int64
	// Adopt are names of revisions without an owner, Delete those of revisions that are no longer kept.
	Adopt, Delete []string
}

// Keep decides about the revisions. hash gives the hash of data for a number of collisions; used are the hashes of the existing workers,
// whose revisions are kept besides the limit.
func Keep(revisions []Revision, data []byte, collisions int32, hash func(collisions int32) string, used map[string]bool, limit int) History {
	h := History{Collisions: collisions}
	byHash := map[string]Revision{}
	var newest int64
	for _, r := range revisions {
		byHash[r.Hash] = r
		newest = max(newest, r.Number)
		if !r.Ours {
			h.Adopt = append(h.Adopt, r.Name)
		}
	}
	for {
		h.Hash = hash(h.Collisions)
		r, taken := byHash[h.Hash]
		if !taken {
			h.Create, h.Number = true, newest+1
			break
		}
		if bytes.Equal(r.Data, data) {
			if h.Number = r.Number; r.Number < newest {
				h.Renumber, h.Number = r.Name, newest+1
			}
			break
		}
		h.Collisions++
	}
	var old []Revision
	for _, r := range revisions {
		if r.Hash != h.Hash && !used[r.Hash] {
			old = append(old, r)
		}
	}
	slices.SortFunc(old, func(a, b Revision) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Name, b.Name)) })
	for _, r := range old[:max(0, len(old)-limit)] {
		h.Delete = append(h.Delete, r.Name)
	}
	slices.Sort(h.Adopt)
	h.Adopt = slices.DeleteFunc(h.Adopt, func(name string) bool { return slices.Contains(h.Delete, name) })
	return h
}
