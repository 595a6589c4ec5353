// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A text is metrics in Prometheus' text format, version 0.0.4. A client library would keep each of 200,000 series as an object and
// encode it for each scrape.
type text struct {
	b       []byte
	options TextOptions
	family  string
	without []string // labels that are left out of the family
	// families are all that have begun.
	families []family
	series   int // of the family
	total    int
	// dropped are the series of each family that were beyond the limit, and missing the jobs that could not be shown.
	dropped map[string]int
	missing int
	gzip    compression
}

// TextOptions bound what is shown.
type TextOptions struct {
	// MaxSeries is how many series a metric may have; the others are dropped and counted. 0 means no limit.
	MaxSeries int
	// WithoutLabels are labels that are left out, by metric: {"slurm_job_info": {"standard_output"}}.
	WithoutLabels map[string][]string
	// labels come first in every series.
	labels []label
}

// after returns an empty text with room for one that is a little longer than the last one.
func after(last *text, options TextOptions) *text {
	t := &text{options: options}
	if last != nil {
		t.b = make([]byte, 0, len(last.b)+len(last.b)/16)
	}
	return t
}

// A family is where a metric begins in a text, and where its series do.
type family struct {
	name          string
	begin, series int
}

// A label is the name and value of a label of a series.
type label struct{ name, value string }

// start begins a metric. Its series follow until the next one begins; those of one metric have to follow one another.
func (t *text) start(name, kind, help string) {
	t.family, t.series, t.without = name, 0, t.options.WithoutLabels[name]
	begin := len(t.b)
	t.b = append(t.b, "# HELP "...)
	t.b = append(t.b, name...)
	t.b = append(t.b, ' ')
	t.b = append(t.b, help...)
	t.b = append(t.b, "\n# TYPE "...)
	t.b = append(t.b, name...)
	t.b = append(t.b, ' ')
	t.b = append(t.b, kind...)
	t.b = append(t.b, '\n')
	t.families = append(t.families, family{name: name, begin: begin, series: len(t.b)})
}

// admit counts a series of the current metric, and reports whether it may be shown.
func (t *text) admit() bool {
	if t.options.MaxSeries > 0 && t.series >= t.options.MaxSeries {
		if t.dropped == nil {
			t.dropped = map[string]int{}
		}
		t.dropped[t.family]++
		return false
	}
	t.series++
	t.total++
	return true
}

// add writes a series of the current metric.
func (t *text) add(value float64, labels ...label) {
	if t.admit() {
		t.sample("", value, labels...)
	}
}

// sample writes one line: the current metric's name with a suffix, labels and value.
func (t *text) sample(suffix string, value float64, labels ...label) {
	t.b = append(t.b, t.family...)
	t.b = append(t.b, suffix...)
	next := byte('{')
	for _, list := range [][]label{t.options.labels, labels} {
		for _, l := range list {
			if slices.Contains(t.without, l.name) {
				continue
			}
			t.b = append(t.b, next)
			t.b = append(t.b, l.name...)
			t.b = append(t.b, '=', '"')
			t.b = appendEscaped(t.b, l.value)
			t.b = append(t.b, '"')
			next = ','
		}
	}
	if next == ',' {
		t.b = append(t.b, '}')
	}
	t.b = append(t.b, ' ')
	t.b = appendNumber(t.b, value)
	t.b = append(t.b, '\n')
}

// appendEscaped appends the value of a label. What is no UTF-8 is replaced: Prometheus refuses a whole scrape for it.
func appendEscaped(b []byte, value string) []byte {
	if !strings.ContainsAny(value, "\\\"\n") && isASCII(value) {
		return append(b, value...)
	}
	for _, r := range value { // what is no UTF-8 comes as U+FFFD
		switch r {
		case '\\':
			b = append(b, `\\`...)
		case '"':
			b = append(b, `\"`...)
		case '\n':
			b = append(b, `\n`...)
		default:
			b = append(b, string(r)...)
		}
	}
	return b
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func appendNumber(b []byte, value float64) []byte {
	if value == math.Trunc(value) && math.Abs(value) < 1e15 {
		return strconv.AppendInt(b, int64(value), 10)
	}
	switch {
	case math.IsInf(value, 1):
		return append(b, "+Inf"...)
	case math.IsInf(value, -1):
		return append(b, "-Inf"...)
	case math.IsNaN(value):
		return append(b, "NaN"...)
	}
	return strconv.AppendFloat(b, value, 'g', -1, 64)
}
