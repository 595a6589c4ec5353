// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// includeKey is the word that starts an Include line; it is the Key of such an entry.
const includeKey = "include"

// Option is one Key=Value behind the first of a line, such as Nodes=ALL behind PartitionName=main.
type Option struct {
	Key, Value string
}

// Entry is one line of a document.
type Entry struct {
	Kind Kind
	// Key as it was first written. Keys are compared without regard to case. Empty for Section and Comment.
	Key string
	// Value is the plain value, without quotes or escapes. For a Set it is the items joined by commas, for an Include it is
	// the file, and for Section and Comment the text.
	Value string
	// Options of a Repeated entry, in order.
	Options []Option
	// Line is where the entry stood in the parsed text, counted from 1; 0 if it was made by Add.
	Line int
}

// name is equal for two entries of which one replaces the other.
func (e Entry) name() string {
	return strconv.Itoa(int(e.Kind)) + "\x00" + strings.ToLower(e.Key) + "\x00" + e.Value
}

// statement is equal for two entries that mean the same. No key or value has a NUL.
func (e Entry) statement() string {
	var b strings.Builder
	b.WriteString(e.name())
	for _, o := range e.Options {
		b.WriteString("\x00" + strings.ToLower(o.Key) + "\x00" + o.Value)
	}
	return b.String()
}

// Document is a configuration file as an ordered list of entries. Scalars and sets stand once per key. Make one with New
// or Parse.
type Document struct {
	file    File
	entries []Entry
	// places are where the scalars and sets stand among the entries.
	places map[place]int
	// banner is the section that the next entry opens; one without entries is never written.
	banner string
}

// place identifies a scalar or a set: its kind, and its key in lower case.
type place struct {
	kind Kind
	key  string
}

// New makes an empty document.
func New(file File) *Document { return &Document{file: file, places: map[place]int{}} }

// Clone makes an independent copy.
func (d *Document) Clone() *Document {
	c := &Document{file: d.file, entries: slices.Clone(d.entries), places: maps.Clone(d.places), banner: d.banner}
	for i := range c.entries {
		c.entries[i].Options = slices.Clone(c.entries[i].Options)
	}
	return c
}

// File is the kind of file that the document was made for.
func (d *Document) File() File { return d.file }

// Entries returns a copy of the list of entries.
func (d *Document) Entries() []Entry { return d.Clone().entries }

// Section starts a part of the file with a banner comment. Nothing is written for a section that stays empty.
func (d *Document) Section(name string) { d.banner = strings.TrimSpace(name) }

// Comment adds a comment, one entry per line of text. Empty lines are left out.
func (d *Document) Comment(text string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			d.push(Entry{Kind: Comment, Value: line})
		}
	}
}

// Add puts Key=Value into the document in the way that belongs to the key. A scalar replaces the present one, and the items of a set
// join the present ones. A repeated line is appended with its options. An empty set is left out. Whether key and value can be written
// at all is checked by Bytes.
func (d *Document) Add(key, value string, options ...Option) {
	d.add(Entry{Key: key, Value: value, Options: options})
}

// add is Add for an entry whose kind is still to be found.
func (d *Document) add(e Entry) {
	e.Kind = d.file.trait(e.Key).kind
	if len(e.Options) > 0 && e.Kind == Scalar {
		e.Kind = Repeated
	}
	switch e.Kind {
	case Set:
		d.unite(e)
	case Include:
		e.Key = includeKey
		d.push(e)
	case Scalar:
		if i := d.index(Scalar, e.Key); i >= 0 {
			d.entries[i].Value, d.entries[i].Line = e.Value, e.Line
			return
		}
		d.push(e)
	default:
		d.push(e)
	}
}

// unite joins the items of e, a Set, with the present ones.
func (d *Document) unite(e Entry) {
	if i := d.index(Set, e.Key); i >= 0 {
		old := &d.entries[i]
		old.Value = joinItems(union(e.Key, splitItems(old.Value), splitItems(e.Value)))
		old.Line = e.Line
		return
	}
	if e.Value = joinItems(union(e.Key, nil, splitItems(e.Value))); e.Value != "" {
		d.push(e)
	}
}

// push appends an entry, below the banner of its section if it is the first there.
func (d *Document) push(e Entry) {
	if d.banner != "" {
		d.entries = append(d.entries, Entry{Kind: Section, Value: d.banner})
		d.banner = ""
	}
	if e.Kind == Scalar || e.Kind == Set {
		d.places[place{e.Kind, strings.ToLower(e.Key)}] = len(d.entries)
	}
	d.entries = append(d.entries, e)
}

// index finds the scalar or set of this key; -1 if there is none.
func (d *Document) index(kind Kind, key string) int {
	if i, ok := d.places[place{kind, strings.ToLower(key)}]; ok {
		return i
	}
	return -1
}

// keep drops the entries that keep refuses.
func (d *Document) keep(keep func(i int) bool) {
	entries := d.entries
	d.entries = make([]Entry, 0, len(entries))
	clear(d.places)
	banner := d.banner
	d.banner = ""
	for i, e := range entries {
		if keep(i) {
			d.push(e)
		}
	}
	d.banner = banner
}

// Get returns the value of the first entry with this key; ok is false if there is none.
func (d *Document) Get(key string) (value string, ok bool) {
	for _, e := range d.entries {
		if e.Key != "" && strings.EqualFold(e.Key, key) {
			return e.Value, true
		}
	}
	return "", false
}
