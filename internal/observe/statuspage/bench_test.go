// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// maxPageBytes is how large a page of 10,000 nodes may be before it is compressed.
const maxPageBytes = 1_500_000

// page returns the whole page of facts, as a browser gets it.
func page(t testing.TB, templates templates, f Facts) string {
	t.Helper()
	r, err := templates.render(NewPage(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	main, err := templates.main(r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := templates.writePage(&out, f.Cluster.String(), main, "/ui/slurm/demo/events?since=1"); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAPageOf10000NodesIsSmall(t *testing.T) {
	got := len(page(t, newTemplates(), example(10000)))
	if got > maxPageBytes {
		t.Errorf("it has %d bytes, more than %d", got, maxPageBytes)
	}
}

func BenchmarkPage(b *testing.B) {
	templates := newTemplates()
	for _, nodes := range []int{20, 1000, 10000} {
		f := example(nodes)
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			b.ReportAllocs()
			var size int
			for b.Loop() {
				size = len(page(b, templates, f))
			}
			b.ReportMetric(float64(size), "bytes/page")
			var compressed bytes.Buffer
			if err := compress(&compressed, []byte(page(b, templates, f))); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(compressed.Len()), "gzip-bytes/page")
		})
	}
}

// BenchmarkUpdate renders a page again after one node has changed.
func BenchmarkUpdate(b *testing.B) {
	templates := newTemplates()
	for _, nodes := range []int{20, 1000, 10000} {
		f := example(nodes)
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			board := newBoard("b")
			if err := board.refresh(templates, f); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			sent, states := 0, [][]string{{"IDLE", "DRAIN"}, {"IDLE"}}
			for i := 0; b.Loop(); i++ {
				before := board.position()
				f.Nodes[7].State = node.Parse(states[i%2])
				if err := board.refresh(templates, f); err != nil {
					b.Fatal(err)
				}
				u, err := board.since(templates, before)
				if err != nil {
					b.Fatal(err)
				}
				sent = 0
				for _, html := range u.fragments {
					sent += len(html)
				}
			}
			b.ReportMetric(float64(sent), "bytes/update")
		})
	}
}
