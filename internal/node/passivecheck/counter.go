// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// metric is the name of the counter. Its labels are the context and the name of the check; the latter is empty for errors of the
// program itself.
const metric = "coxswain_check_runner_internal_errors_total"

// maxCounters is how many counters a file holds. Names of checks are few; a file with more was not written by this program.
const maxCounters = 10_000

// Counter is one time series.
type Counter struct {
	Context Context
	Check   string
}

// Counters are how many internal errors there were since the pod of the worker started.
type Counters map[Counter]uint64

var sample = regexp.MustCompile(`^` + metric + `\{context="([a-z_]*)",check=("(?:[^"\\\n]|\\.)*")\} ([0-9]+)$`)

// ParseCounters reads what Text has written. Lines of another form are left out: a broken file begins anew.
func ParseCounters(text string) Counters {
	counters := Counters{}
	for line := range strings.Lines(text) {
		match := sample.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if match == nil || len(counters) == maxCounters {
			continue
		}
		check, err1 := strconv.Unquote(match[2])
		count, err2 := strconv.ParseUint(match[3], 10, 64)
		if err1 == nil && err2 == nil {
			counters[Counter{Context: Context(match[1]), Check: check}] = count
		}
	}
	return counters
}

// Text returns the counters in Prometheus' text format, as its node exporter reads from *.prom files.
func (c Counters) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "# HELP %s Errors of check-runner itself, which let jobs run.\n# TYPE %s counter\n", metric, metric)
	for _, key := range slices.SortedFunc(maps.Keys(c), func(a, b Counter) int {
		return cmp.Or(cmp.Compare(a.Context, b.Context), cmp.Compare(a.Check, b.Check))
	}) {
		escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(key.Check)
		fmt.Fprintf(&out, "%s{context=\"%s\",check=\"%s\"} %d\n", metric, key.Context, escaped, c[key])
	}
	return out.String()
}
