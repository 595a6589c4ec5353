// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"testing"
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

func BenchmarkDecode10000Nodes(b *testing.B) {
	body := manyNodes(b, 10000)
	b.Run("Nodes", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			list, errs, err := decodeNodes(newReader(newScanner(bytes.NewReader(body), 1<<30)), false)
			if err != nil || len(errs) > 0 || len(list.Nodes) != 10000 {
				b.Fatal(len(list.Nodes), errs, err)
			}
		}
	})
	b.Run("json.Valid", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			if !json.Valid(body) {
				b.Fatal("not valid")
			}
		}
	})
}
