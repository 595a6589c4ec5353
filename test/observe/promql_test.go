// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A selector is a metric in a query, with the labels that the query matches.
type selector struct {
	metric string
	labels []string
}

// token is a string, a name, a number with its unit, or a sign of PromQL.
var token = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[a-zA-Z_:$][a-zA-Z0-9_:$]*|[0-9.]+[a-z]*|[^\s]`)

// word holds the words of PromQL that stand where a metric could, and grouping those that are followed by labels in parentheses.
var (
	word     = []string{"and", "or", "unless", "bool", "offset", "inf", "nan"}
	grouping = []string{"by", "without", "on", "ignoring", "group_left", "group_right"}
	name     = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)
)

// selectors returns the metrics of a query. What they are not is left to Prometheus, which gets every query in another test.
func selectors(query string) []selector {
	tokens := token.FindAllString(query, -1)
	var out []selector
	for i := 0; i < len(tokens); i++ {
		next := func(ahead int) string {
			if i+ahead < len(tokens) {
				return tokens[i+ahead]
			}
			return ""
		}
		switch lower := strings.ToLower(tokens[i]); {
		case tokens[i] == "[":
			i = skip(tokens, i, "]")
		case slices.Contains(grouping, lower):
			if next(1) == "(" {
				i = skip(tokens, i, ")")
			}
		case !name.MatchString(tokens[i]) || slices.Contains(word, lower) || next(1) == "(":
		case slices.Contains(grouping, strings.ToLower(next(1))) && next(2) == "(" && isAggregation(lower):
		default:
			s := selector{metric: tokens[i]}
			if next(1) == "{" {
				end := skip(tokens, i, "}")
				s.labels = matched(tokens[i+2 : max(i+2, end)])
				i = end
			}
			out = append(out, s)
		}
	}
	return out
}

// isAggregation reports whether a name may stand before "by (…)".
func isAggregation(name string) bool {
	return slices.Contains([]string{"sum", "count", "max", "min", "avg", "group", "topk", "bottomk", "quantile", "stddev", "stdvar", "count_values"}, name)
}

// skip returns where a sign is next, or the last token.
func skip(tokens []string, from int, sign string) int {
	for i := from; i < len(tokens); i++ {
		if tokens[i] == sign {
			return i
		}
	}
	return len(tokens) - 1
}

// matched returns the labels in what stands between { and }.
func matched(tokens []string) []string {
	var out []string
	for i, t := range tokens {
		if name.MatchString(t) && (i == 0 || tokens[i-1] == ",") {
			out = append(out, t)
		}
	}
	return out
}

func TestMetricsOfAQuery(t *testing.T) {
	tests := []struct {
		name, query string
		want        []selector
	}{
		{name: "a metric by itself", query: "up", want: []selector{{metric: "up"}}},
		{name: "labels are told from what they match", query: `a{b="c", d=~"e{f}, g=1"}`, want: []selector{{"a", []string{"b", "d"}}}},
		{name: "a range has no metric", query: "rate(a[5m:1m] offset 1h)", want: []selector{{metric: "a"}}},
		{name: "a range may be a variable of Grafana", query: `rate(a{b="$c"}[$__rate_interval])`, want: []selector{{"a", []string{"b"}}}},
		{name: "an offset may be a variable of Grafana", query: "a offset $__range or a * 0", want: []selector{{metric: "a"}, {metric: "a"}}},
		{name: "labels that are grouped by are no metrics", query: "sum by (b, c) (a) / on (b) group_left (d) count(e) by (f)", want: []selector{{metric: "a"}, {metric: "e"}}},
		{name: "operators are no metrics", query: "a and b unless c > bool 1e3 or -Inf", want: []selector{{metric: "a"}, {metric: "b"}, {metric: "c"}}},
		{name: "a string is no metric", query: `label_replace(a, "b", "$1", 'c', "d\"e")`, want: []selector{{metric: "a"}}},
		{name: "a metric may be called like an aggregation", query: "sum + count", want: []selector{{metric: "sum"}, {metric: "count"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, selectors(test.query), cmp.AllowUnexported(selector{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.query, diff)
			}
		})
	}
}

// FuzzSelectors checks that whatever the query, what is found has the form of a metric, and is in the query.
func FuzzSelectors(f *testing.F) {
	f.Add(`sum by (a) (rate(b{c="d"}[5m])) > 0`)
	f.Add(`a{`)
	f.Add(`by [`)
	f.Fuzz(func(t *testing.T, query string) {
		for _, s := range selectors(query) {
			for _, n := range append(s.labels, s.metric) {
				if !name.MatchString(n) || !strings.Contains(query, n) {
					t.Errorf("%q has %q", query, n)
				}
			}
		}
	})
}
