// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"testing"
	"time"
)

// manyNodes is a list of n nodes, 2.5 kB each, made of the nodes that a real slurmrestd sent.
func manyNodes(tb testing.TB, n int) []byte {
	tb.Helper()
	var top map[string]any
	if err := json.Unmarshal([]byte(recorded(tb, "nodes-26.05.5-v0.0.45.json")), &top); err != nil {
		tb.Fatal(err)
	}
	pattern := top["nodes"].([]any)[0].(map[string]any)
	nodes := make([]any, n)
	for i := range nodes {
		node := maps.Clone(pattern)
		name := fmt.Sprintf("worker-%d", i)
		node["name"], node["hostname"], node["address"] = name, name, fmt.Sprintf("10.0.%d.%d", i/250, i%250)
		node["comment"] = fmt.Sprintf(`{"pod":"slurm/%s","node":"node-%d"}`, name, i)
		nodes[i] = node
	}
	top["nodes"] = nodes
	body, err := json.MarshalIndent(top, "", "  ")
	if err != nil {
		tb.Fatal(err)
	}
	return body
}

func decodeMany(tb testing.TB, body []byte, n int) {
	tb.Helper()
	list, errs, err := decodeNodes(newReader(newScanner(bytes.NewReader(body), 1<<30)), false)
	if err != nil || len(errs) > 0 || len(list.Nodes) != n {
		tb.Fatal(len(list.Nodes), errs, err)
	}
}

// BenchmarkDecode10000Nodes shows what decoding costs, and how that compares with checking the same bytes for being JSON.
func BenchmarkDecode10000Nodes(b *testing.B) {
	body := manyNodes(b, 10000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	var decoding, checking time.Duration
	for b.Loop() {
		began := time.Now()
		decodeMany(b, body, 10000)
		decoding += time.Since(began)
		began = time.Now()
		if !json.Valid(body) {
			b.Fatal("not valid")
		}
		checking += time.Since(began)
	}
	b.ReportMetric(float64(decoding)/float64(checking), "×json.Valid")
	b.ReportMetric(float64(allocated(func() { decodeMany(b, body, 10000) }))/1e6, "MB/list")
}

// allocated is how many bytes are allocated meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestALongListIsDecodedInLittleMemory(t *testing.T) {
	body := manyNodes(t, 10000)
	if n := allocated(func() { decodeMany(t, body, 10000) }); n > 8e6 {
		t.Errorf("a list of 10,000 nodes, %d bytes, took %d bytes of memory", len(body), n)
	}
}
