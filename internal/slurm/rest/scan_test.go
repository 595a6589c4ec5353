// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// narrow returns a reader through the smallest window, fed byte by byte, so that everything straddles its border.
func narrow(text string) *reader {
	s := newScanner(iotest.OneByteReader(strings.NewReader(text)), 1<<20)
	s.buf = make([]byte, 1)
	return newReader(s)
}

func wide(text string) *reader { return newReader(newScanner(strings.NewReader(text), 1<<20)) }

func TestScannerAcceptsWhatEncodingJSONAccepts(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, ` [ ] `, `{"a":1}`, `{ "a" : [ 1 , -0.5e+3 , "x" , null , true , false ] }`, `"\"\\\/\b\f\n\r\t\u00e9"`,
		`"\ud83d\ude00"`, `"\ud83d"`, `"\ud83dx"`, `"\ud83d\u0041"`, `0`, `-0`, `10`, `1.5`, `1e9`, `""`, `{"":{"":[[]]}}`,
		``, ` `, `{`, `}`, `[`, `]`, `[1`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{a:1}`, `{"a":1 "b":2}`, `[1 2]`,
		`01`, `-`, `+1`, `.5`, `1.`, `1e`, `1e+`, `--1`, `tru`, `truex`, `nul`, `fals`, `"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`,
		"\"\n\"", "\"\x00\"", `1 1`, `{} {}`, `[]]`, `"a"b`, `[}`, `{]`, `'a'`, `nan`, "\ufeff{}", "\x00",
	} {
		for name, r := range map[string]*reader{"narrow": narrow(text), "wide": wide(text)} {
			r.skip()
			r.finish()
			if got, want := r.err == nil, json.Valid([]byte(text)); got != want {
				t.Errorf("%s: %q is valid: %t (%v), want %t", name, text, got, r.err, want)
			}
			var syntax *syntaxError
			if r.err != nil && !errors.As(r.err, &syntax) {
				t.Errorf("%s: %q fails with %T", name, text, r.err)
			}
		}
	}
}

func TestScannerReadsStringsAsEncodingJSON(t *testing.T) {
	for _, text := range []string{
		`""`, `"plain"`, `"a\"b\\c\/d\be\ff\ng\rh\ti"`, `"\u00e9\u20AC"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\udc00x"`,
		`"` + strings.Repeat("long ", 100) + `"`, `"é€😀"`,
	} {
		var want string
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string]*reader{"narrow": narrow(text), "wide": wide(text)} {
			if got := string(r.bytes()); got != want || r.err != nil {
				t.Errorf("%s: %s is %q (%v), want %q", name, text, got, r.err, want)
			}
		}
	}
}

func TestScannerIsBounded(t *testing.T) {
	deep := newReader(newScanner(strings.NewReader(strings.Repeat("[", 100000)), 1<<20))
	deep.skip()
	if deep.err == nil || !strings.Contains(deep.err.Error(), "nested too deeply") {
		t.Errorf("deep nesting: %v", deep.err)
	}
	long := newReader(newScanner(io.MultiReader(strings.NewReader(`["`), endless('x')), 1<<40))
	long.list()
	if bound := Bound("1024 KiB in one text"); !errors.Is(long.err, bound) {
		t.Errorf("long string: %v", long.err)
	}
	skipped := newReader(newScanner(io.MultiReader(strings.NewReader(`["`), endless('x')), 1<<24))
	skipped.skip()
	if bound := Bound("16777216 bytes"); !errors.Is(skipped.err, bound) || len(skipped.buf) > windowSize {
		t.Errorf("a string that is skipped: %v, %d bytes in the window", skipped.err, len(skipped.buf))
	}
	big := newReader(newScanner(io.MultiReader(strings.NewReader(`[`), endless(' ')), 1<<20))
	big.skip()
	if !errors.Is(big.err, Bound("1048576 bytes")) {
		t.Errorf("long answer: %v", big.err)
	}
	stuck := newReader(newScanner(iotest.ErrReader(io.ErrUnexpectedEOF), 1<<20))
	stuck.skip()
	if !errors.Is(stuck.err, io.ErrUnexpectedEOF) || kindOfRead(stuck.err) != Unavailable {
		t.Errorf("broken stream: %v", stuck.err)
	}
}

// endless is a reader of one byte, for ever.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestQuantitiesComeInTwoForms(t *testing.T) {
	tests := map[string]struct {
		text string
		want quantity
		time time.Time
	}{
		"a number with flags":              {`{"set":true,"infinite":false,"number":1795172262}`, quantity{true, false, 1795172262}, time.Unix(1795172262, 0)},
		"a bare number":                    {`1795172262`, quantity{true, false, 1795172262}, time.Unix(1795172262, 0)},
		"infinite":                         {`{"set":false,"infinite":true,"number":0}`, quantity{false, true, 0}, time.Time{}},
		"a number that is not set":         {`{"set":false,"infinite":false,"number":7}`, quantity{false, false, 7}, time.Time{}},
		"a set zero is no time":            {`{"set":true,"infinite":false,"number":0}`, quantity{true, false, 0}, time.Time{}},
		"null":                             {`null`, quantity{}, time.Time{}},
		"a fraction, and a member unknown": {`{"set":true,"x":[],"number":2.75}`, quantity{true, false, 2}, time.Unix(2, 0)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if r := narrow(test.text); r.quantity() != test.want || r.err != nil {
				t.Errorf("quantity is not %v: %v", test.want, r.err)
			}
			if r := wide(test.text); !r.time().Equal(test.time) || r.err != nil {
				t.Errorf("time is not %v: %v", test.time, r.err)
			}
		})
	}
	for _, text := range []string{`"1"`, `[]`, `{"number":"1"}`, `{"set":1}`, `1e300`, `99999999999999999999`} {
		if r := wide(text); r.quantity() != (quantity{}) && r.err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

// reference decodes an answer to GET nodes with encoding/json, for comparison. It returns false for what decodeNodes may
// refuse although it is JSON.
func reference(body []byte) (nodes []*Node, ok bool) {
	var top map[string]any
	if json.Unmarshal(body, &top) != nil || top == nil {
		return nil, false
	}
	list, ok := top["nodes"].([]any)
	if !ok {
		return nil, false
	}
	text := func(v any) string { s, _ := v.(string); return s }
	texts := func(v any) (out []string) {
		for _, e := range asList(v) {
			out = append(out, text(e))
		}
		return out
	}
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			return nil, false
		}
		nodes = append(nodes, &Node{
			Name: text(m["name"]), Address: text(m["address"]), Hostname: text(m["hostname"]), State: texts(m["state"]),
			Reason: text(m["reason"]), ReasonUser: text(m["reason_set_by_user"]), Comment: text(m["comment"]),
			Extra: text(m["extra"]), InstanceID: text(m["instance_id"]), InstanceType: text(m["instance_type"]),
			Features: texts(m["features"]), ActiveFeatures: texts(m["active_features"]), Partitions: texts(m["partitions"]),
			Reservation: text(m["reservation"]), Topology: text(m["topology"]), Version: text(m["version"]), TRES: text(m["tres"]), Gres: text(m["gres"]),
		})
	}
	return nodes, true
}

func asList(v any) []any { l, _ := v.([]any); return l }

// FuzzNodes compares decodeNodes with encoding/json: what it accepts is valid JSON and has the same values, whatever the size of the
// window.
func FuzzNodes(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"nodes":[{"name":"a\u0041\n","state":["IDLE","\ud83d\ude00"],"cpus":{"set":true,"number":-1e2}}],"last_update":5}`))
	f.Add([]byte(`{"nodes":[{"name":null,"state":null}],"nodes":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		whole := newScanner(bytes.NewReader(body), 1<<20)
		got, errs, err := decodeNodes(newReader(whole), true)
		pieces := newScanner(iotest.HalfReader(bytes.NewReader(body)), 1<<20)
		pieces.buf = make([]byte, 3)
		again, errsAgain, errAgain := decodeNodes(newReader(pieces), true)
		if (err == nil) != (errAgain == nil) || len(errs) != len(errsAgain) || !cmp.Equal(got, again) {
			t.Fatalf("differs by window: %v, %v\n%s", err, errAgain, cmp.Diff(got, again))
		}
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("accepted, but it is no JSON: %q", body)
		}
		want, ok := reference(body)
		if !ok || len(errs) > 0 || !utf8.Valid(body) {
			return
		}
		if len(want) != len(got.Nodes) {
			t.Fatalf("%d nodes, want %d", len(got.Nodes), len(want))
		}
		for i, n := range got.Nodes {
			w := *want[i]
			w.ReasonTime, w.BootTime, w.SlurmdTime = n.ReasonTime, n.BootTime, n.SlurmdTime
			w.CPUs, w.AllocCPUs, w.EffectiveCPUs = n.CPUs, n.AllocCPUs, n.EffectiveCPUs
			w.RealMemory, w.AllocMemory, w.SpecializedMemory = n.RealMemory, n.AllocMemory, n.SpecializedMemory
			if !n.Equal(&w) {
				t.Fatalf("node %d (-want +got):\n%s", i, cmp.Diff(&w, n))
			}
		}
	})
}

func TestFuzzReferenceReadsRealAnswers(t *testing.T) {
	body, err := os.ReadFile("testdata/nodes-26.05.5-v0.0.45.json")
	if err != nil {
		t.Fatal(err)
	}
	nodes, ok := reference(body)
	if !ok || len(nodes) != 4 || !slices.Equal(nodes[0].State, []string{"IDLE", "EXTERNAL", "DRAIN"}) {
		t.Errorf("the reference decoder is wrong: %v", nodes)
	}
}

// FuzzAnswers checks the same of the other decoders: no panic, and nothing accepted that is not JSON.
func FuzzAnswers(f *testing.F) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		open := func() *reader { return newReader(newScanner(bytes.NewReader(body), 1<<20)) }
		_, _, errJobs := decodeJobs(open(), true)
		_, _, _, errPings := decodePings(open())
		_, _, errPartitions := decodeDated(open(), "partitions", (*reader).partition)
		_, _, errReservations := decodeDated(open(), "reservations", (*reader).reservation)
		_, _, errStates := decodeJobStates(open(), nil)
		_, _, errDiag := decodeDiag(open())
		_, _, errConf := decodeConf(open())
		_, _, errHardware := decodeHardware(open())
		list, errResult := decodeResult(open())
		if !json.Valid(body) && (errJobs == nil || errPings == nil || errResult == nil || errPartitions == nil || errReservations == nil ||
			errStates == nil || errDiag == nil || errConf == nil || errHardware == nil) {
			t.Fatalf("accepted, but it is no JSON: %q", body)
		}
		if len(list) > 0 {
			if text := fromSlurm(500, list, "secret").Error(); len(text) > 500 || strings.ContainsAny(text, "\n\x00\x1b") {
				t.Fatalf("error is %q", text)
			}
		}
	})
}
