// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed web
var web embed.FS

// templates are the templates of all pages and fragments.
type templates struct{ all *template.Template }

func newTemplates() templates {
	return templates{template.Must(template.ParseFS(web, "web/*.tmpl"))} // they are part of the program
}

// fragment is a part of the page of a cluster that is replaced as a whole.
type fragment struct {
	// id is the id of the element whose content it is.
	id   string
	html string
	// cells are those that it was made of; nil for what is not a part of a grid.
	cells []Cell
}

// rendering is the page of a cluster in HTML.
type rendering struct {
	title     string
	fragments []fragment
	sets      []setLayout
}

// setLayout is which fragments the section of a grid has.
type setLayout struct {
	ID, Title string
	Labelled  bool
	Chunks    []string
}

// render makes the fragments of a page. Those of grids that did not change are taken from before, which may be nil.
func (t templates) render(p Page, before *rendering) (*rendering, error) {
	r := &rendering{title: p.Title}
	add := func(id, name string, content any) error {
		html, err := t.execute(name, content)
		r.fragments = append(r.fragments, fragment{id: id, html: html})
		return err
	}
	for _, part := range []struct {
		name    string
		content any
	}{{"head", p.Head}, {"concerns", p.Concerns}, {"legend", p.Legend}, {"jobs", p.Jobs}, {"plan", p.Plan}, {"ledger", p.Ledger}, {"fine", p.Fine}} {
		if err := add(part.name, part.name, part.content); err != nil {
			return nil, err
		}
	}
	known := before.chunks()
	for i, set := range p.Sets {
		layout := setLayout{ID: fmt.Sprintf("set-%d", i), Title: set.Name, Labelled: set.Labelled}
		if layout.Title == "" {
			layout.Title = "Slurm without a worker"
		}
		if err := add(layout.ID, "set", set); err != nil {
			return nil, err
		}
		for j, cells := range set.Chunks {
			id := fmt.Sprintf("%s-%d", layout.ID, j)
			layout.Chunks = append(layout.Chunks, id)
			if old, ok := known[id]; ok && slices.Equal(old.cells, cells) {
				r.fragments = append(r.fragments, old)
				continue
			}
			if err := add(id, "cells", cells); err != nil {
				return nil, err
			}
			r.fragments[len(r.fragments)-1].cells = cells
		}
		r.sets = append(r.sets, layout)
	}
	return r, nil
}

// chunks returns the fragments of grids, by their elements.
func (r *rendering) chunks() map[string]fragment {
	out := map[string]fragment{}
	if r == nil {
		return out
	}
	for _, f := range r.fragments {
		if f.cells != nil {
			out[f.id] = f
		}
	}
	return out
}

// sameLayout reports whether two pages have the same elements, and differ in the content of fragments at most.
func (r *rendering) sameLayout(other *rendering) bool {
	return slices.EqualFunc(r.sets, other.sets, func(a, b setLayout) bool {
		return a.ID == b.ID && a.Title == b.Title && a.Labelled == b.Labelled && len(a.Chunks) == len(b.Chunks)
	})
}

// mainContent is what template main is executed with: the sections of the grids, and the content of every element.
type mainContent struct {
	Sets  []setLayout
	Parts map[string]template.HTML
}

// main returns the whole content of the page's element main.
func (t templates) main(r *rendering) (string, error) {
	content := mainContent{Sets: r.sets, Parts: make(map[string]template.HTML, len(r.fragments))}
	for _, f := range r.fragments {
		content.Parts[f.id] = template.HTML(f.html) //nolint:gosec // a template has made it
	}
	return t.execute("main", content)
}

// writePage writes the page of a cluster; events is the path of its updates.
func (t templates) writePage(w io.Writer, title, main, events string) error {
	return t.write(w, "cluster", struct {
		Title  string
		Main   template.HTML
		Events string
	}{title, template.HTML(main), events}) //nolint:gosec // a template has made it
}

// writeClusters writes the page of all clusters.
func (t templates) writeClusters(w io.Writer, clusters []Cluster) error {
	return t.write(w, "clusters", clusters)
}

func (t templates) execute(name string, content any) (string, error) {
	var out strings.Builder
	err := t.write(&out, name, content)
	return out.String(), err
}

func (t templates) write(w io.Writer, name string, content any) error {
	var out bytes.Buffer
	if err := t.all.ExecuteTemplate(&out, name, content); err != nil {
		return fmt.Errorf("rendering %s of the status page: %w", name, err)
	}
	_, err := w.Write(out.Bytes())
	return err
}
