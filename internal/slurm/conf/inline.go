// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

// Inline returns a document that has the lines of included files in the place of the lines that include them. file returns the document of
// a file, nil for one that is not known: its line stays, as does one that includes a file a second time. The given documents do not change.
//
// Of a key that stands more than once Slurm takes the latest value, in whatever file, and so does the result; items do not join each other.
func (d *Document) Inline(file func(name string) *Document) *Document {
	out := New(d.file)
	out.banner = d.banner
	out.inline(d, file, map[string]bool{})
	return out
}

// inline appends the entries of a document.
func (d *Document) inline(from *Document, file func(string) *Document, done map[string]bool) {
	for _, e := range from.Entries() {
		switch e.Kind {
		case Include:
			included := file(e.Value)
			if included == nil || done[e.Value] {
				d.push(e)
				continue
			}
			done[e.Value] = true
			d.push(Entry{Kind: Comment, Value: "What follows was included from " + e.Value + "."})
			d.inline(included, file, done)
			d.push(Entry{Kind: Comment, Value: "So much of " + e.Value + "."})
		case Scalar, Set:
			if i := d.index(e.Kind, e.Key); i >= 0 {
				d.entries[i] = e
				continue
			}
			d.push(e)
		default:
			d.push(e)
		}
	}
}

// Includes reports whether a document includes files.
func (d *Document) Includes() bool {
	for _, e := range d.entries {
		if e.Kind == Include {
			return true
		}
	}
	return false
}
