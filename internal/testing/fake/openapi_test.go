// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// document is what test/compare keeps of an OpenAPI document that slurmrestd serves.
type document map[string]any

func published(t *testing.T, release string) document {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "openapi-"+release+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func (d document) schema(name string) map[string]any {
	schema, _ := d["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
	return schema
}

// resolve follows a $ref.
func (d document) resolve(schema map[string]any) map[string]any {
	for {
		ref, ok := schema["$ref"].(string)
		if !ok {
			return schema
		}
		schema = d.schema(strings.TrimPrefix(ref, "#/components/schemas/"))
	}
}

// check returns where a value differs from its schema.
func (d document) check(schema map[string]any, value any, path string) (problems []string) {
	schema = d.resolve(schema)
	kind, _ := schema["type"].(string)
	wrong := func() []string { return []string{fmt.Sprintf("%s is %T, the schema says %s", path, value, kind)} }
	switch v := value.(type) {
	case map[string]any:
		if kind != "object" {
			return wrong()
		}
		properties, _ := schema["properties"].(map[string]any)
		for key, member := range v {
			property, ok := properties[key].(map[string]any)
			if !ok {
				problems = append(problems, path+"."+key+" is not in the schema")
				continue
			}
			problems = append(problems, d.check(property, member, path+"."+key)...)
		}
		required, _ := schema["required"].([]any)
		for _, key := range required {
			// "error/code" is member code of member error.
			first, _, _ := strings.Cut(key.(string), "/")
			if _, ok := v[first]; !ok {
				problems = append(problems, path+"."+key.(string)+" is required")
			}
		}
	case []any:
		if kind != "array" {
			return wrong()
		}
		items, _ := schema["items"].(map[string]any)
		for i, member := range v {
			problems = append(problems, d.check(items, member, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case string:
		if kind != "string" {
			return wrong()
		}
		if enum, ok := schema["enum"].([]any); ok && !slices.Contains(enum, any(v)) {
			problems = append(problems, path+" is "+strconv.Quote(v)+", which is none of the values")
		}
	case bool:
		if kind != "boolean" {
			return wrong()
		}
	case float64:
		if kind != "number" && (kind != "integer" || v != float64(int64(v))) {
			return wrong()
		}
	default:
		return wrong()
	}
	return problems
}

// response is the schema of a successful answer.
func (d document) response(t *testing.T, path, method string) map[string]any {
	t.Helper()
	var at any = map[string]any(d)
	for _, step := range []string{"paths", path, method, "responses", "200", "content", "application/json", "schema"} {
		object, ok := at.(map[string]any)[step]
		if !ok {
			t.Fatalf("%s %s is not published: no %s", method, path, step)
		}
		at = object
	}
	return at.(map[string]any)
}

// publications are the versions that are checked, by the release whose document has them.
var publications = []struct{ release, version string }{
	{fake.Slurm2411, "v0.0.42"},
	{fake.Slurm2411, "v0.0.41"},
	{fake.Slurm2605, "v0.0.42"},
	{fake.Slurm2605, "v0.0.43"},
	{fake.Slurm2605, "v0.0.44"},
	{fake.Slurm2605, "v0.0.45"},
}

// An exchange is one call of the test below.
type exchange struct{ method, path, schema, body string }

const aReservation = `{"name":"r","start_time":{"set":true,"number":1795262400},"end_time":{"set":true,"number":1795266000},` +
	`"node_list":["a"],"users":["root"],"flags":["MAINT"]}`

const aJob = `{"job":{"name":"gpu","script":"#!/bin/bash\n","partition":"main","required_nodes":["a"],"minimum_nodes":1,"comment":"c",` +
	`"current_working_directory":"/","environment":["A=b"]}}`

func TestFakeEmitsWhatIsPublished(t *testing.T) {
	for _, p := range publications {
		t.Run(p.release+" "+p.version, func(t *testing.T) {
			doc := published(t, p.release)
			clock := &clock{now: noon}
			s := fake.New(fake.Options{Release: p.release, Now: clock.Now, Completing: time.Minute, Accounting: true})
			s.Register(fake.Node{Name: "a", Features: []string{"x"}, Topology: "default:leaf1", InstanceID: "i-1", Extra: `{"a":1}`},
				fake.Node{Name: "b"}, fake.Node{Name: "c", CPUs: 2}, fake.Node{Name: "d"})
			s.Submit(fake.Job{Nodes: 1, Duration: time.Second})
			s.Submit(fake.Job{Nodes: 1, Limit: time.Hour})
			s.Submit(fake.Job{Nodes: 1, CPUs: 1, Limit: time.Minute})
			s.Submit(fake.Job{Nodes: 99})
			clock.Step(2 * time.Second)
			if err := s.Update("root", "c", "DRAIN", "disk"); err != nil {
				t.Fatal(err)
			}
			s.Lose("d")
			calls := []exchange{
				{"GET", "partitions/", "partitions/", ""}, {"GET", "diag/", "diag/", ""},
				{"GET", "nodes/", "nodes/", ""}, {"GET", "node/a", "node/{node_name}", ""}, {"GET", "jobs/", "jobs/", ""},
				{"POST", "job/submit", "job/submit", aJob}, {"GET", "job/5", "job/{job_id}", ""}, {"DELETE", "jobs/", "jobs/", `{"jobs":["5","99"]}`},
				{"GET", "jobs/?update_time=99999999999", "jobs/", ""}, {"GET", "ping/", "ping/", ""},
				{"GET", "reconfigure/", "reconfigure/", ""},
				{"POST", "nodes/", "nodes/", `{"name":["a"],"state":["DRAIN"],"reason":"r","comment":"c"}`},
				{"POST", "node/a", "node/{node_name}", `{"state":["UNDRAIN"]}`},
				{"DELETE", "node/d", "node/{node_name}", ""},
			}
			if p.version >= "v0.0.43" {
				calls = append(calls, exchange{"POST", "reservation", "reservation", aReservation})
			}
			if p.version >= "v0.0.44" {
				calls = append(calls, exchange{"POST", "new/node/", "new/node/", `{"node_conf":"NodeName=e[1-2] CPUs=4"}`})
			}
			if p.version >= "v0.0.45" {
				calls = append(calls, exchange{"GET", "conf", "conf", ""})
			}
			calls = append(calls, exchange{"GET", "reservations/", "reservations/", ""})
			if p.version >= "v0.0.43" {
				calls = append(calls, exchange{"DELETE", "reservation/r", "reservation/{reservation_name}", ""})
			}
			calls = append(calls, exchange{"GET", "/slurmdb/" + p.version + "/jobs/?start_time=1", "/slurmdb/" + p.version + "/jobs/", ""})
			for _, call := range calls {
				below := "/slurm/" + p.version + "/"
				if strings.HasPrefix(call.path, "/") {
					below = ""
				}
				schema := doc.response(t, below+call.schema, strings.ToLower(call.method))
				request := httptest.NewRequest(call.method, below+call.path, strings.NewReader(call.body))
				request.Header.Set("X-SLURM-USER-TOKEN", "x")
				recorder := httptest.NewRecorder()
				s.ServeHTTP(recorder, request)
				var value any
				if err := json.Unmarshal(recorder.Body.Bytes(), &value); err != nil || recorder.Code != http.StatusOK {
					t.Fatalf("%s %s: %d, %v", call.method, call.path, recorder.Code, err)
				}
				for _, problem := range doc.check(schema, value, call.method+" "+call.path) {
					t.Error(problem)
				}
				if errs := value.(map[string]any)["errors"].([]any); len(errs) > 0 {
					t.Errorf("%s %s: %v", call.method, call.path, errs)
				}
			}
		})
	}
}

// TestClientReadsWhatIsPublished takes the field names out of the client's decoders, so that it cannot fall behind them.
func TestClientReadsWhatIsPublished(t *testing.T) {
	// Fields that only some versions have.
	notIn := map[string][]string{
		"v0.0.41": {"topology", "responding", "primary", "status"},
		"v0.0.42": {"topology", "status"},
		"v0.0.43": {"status"},
		"v0.0.44": {"status"},
		"v0.0.45": {"pinged", "mode"},
	}
	kinds := map[string]string{
		"text": "string", "shared": "string", "bytes": "string", "list": "array", "time": "object", "bool": "boolean",
		"exitCode": "object",
	}
	for _, p := range publications {
		t.Run(p.release+" "+p.version, func(t *testing.T) {
			doc := published(t, p.release)
			for _, decoder := range []struct{ file, function, path, list string }{
				{"node.go", "node", "nodes/", "nodes"},
				{"job.go", "job", "jobs/", "jobs"},
				{"jobrecord.go", "jobRecord", "jobs/", "jobs"},
				{"ping.go", "controller", "ping/", "pings"},
				{"reservation.go", "reservation", "reservations/", "reservations"},
			} {
				answer := doc.resolve(doc.response(t, "/slurm/"+p.version+"/"+decoder.path, "get"))
				list := doc.resolve(answer["properties"].(map[string]any)[decoder.list].(map[string]any))
				entry := doc.resolve(list["items"].(map[string]any))["properties"].(map[string]any)
				fields := decodedFields(t, decoder.file, decoder.function)
				if len(fields) < 5 {
					t.Fatalf("%s has only the fields %v", decoder.function, fields)
				}
				for field, method := range fields {
					property, ok := entry[field].(map[string]any)
					if !ok {
						if !slices.Contains(notIn[p.version], field) {
							t.Errorf("%s reads %s, which %s does not have", decoder.function, field, p.version)
						}
						continue
					}
					kind := doc.resolve(property)["type"]
					want := kinds[method]
					if method == "quantity" && (kind == "integer" || kind == "object") {
						continue
					}
					if kind != want {
						t.Errorf("%s reads %s as %s, the schema says %s", decoder.function, field, method, kind)
					}
				}
			}
		})
	}
}

// decodedFields returns the keys in the switch of a decoder, with the reader's method that reads each.
func decodedFields(t *testing.T, file, function string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../../slurm/rest", file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for _, declaration := range parsed.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Name.Name != function || f.Recv == nil {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			clause, ok := n.(*ast.CaseClause)
			if !ok || len(clause.List) == 0 {
				return true
			}
			key, err := strconv.Unquote(clause.List[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(clause, func(n ast.Node) bool {
				if selector, ok := n.(*ast.SelectorExpr); ok {
					if receiver, ok := selector.X.(*ast.Ident); ok && receiver.Name == "r" {
						fields[key] = selector.Sel.Name
					}
				}
				return true
			})
			return true
		})
	}
	return fields
}
