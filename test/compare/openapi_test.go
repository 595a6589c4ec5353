// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// documentedCalls are the calls of which the tests of the fake keep the schemas of the answers, below /slurm/VERSION/ and /slurmdb/VERSION/.
var documentedCalls = map[string]string{
	"slurm/conf": "get", "slurm/diag/": "get", "slurm/job/submit": "post", "slurm/job/{job_id}": "get", "slurm/jobs/": "get delete",
	"slurm/new/node/": "post", "slurm/node/{node_name}": "get post delete", "slurm/nodes/": "get post", "slurm/partitions/": "get",
	"slurm/ping/": "get", "slurm/reconfigure/": "get", "slurm/reservation": "post", "slurm/reservation/{reservation_name}": "delete",
	"slurm/reservations/": "get", "slurmdb/jobs/": "get",
}

// TestTheDocumentsOfSlurmsAnswersAreThoseOfItsSlurmrestd compares what the fake is held to, internal/testing/fake/testdata/openapi-*.json, with
// the documents of the slurmrestds of both releases.
func TestTheDocumentsOfSlurmsAnswersAreThoseOfItsSlurmrestd(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			got := answersOf(t, document(t, realslurm.Open(t, root, "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageHost=box")))
			file := filepath.Join("..", "..", "internal", "testing", "fake", "testdata", "openapi-"+map[string]string{"24.11": fake.Slurm2411, "26.05": fake.Slurm2605}[root.Release]+".json")
			if *updateEdits {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
				t.Errorf("%s (-want +got), run with -update:\n%s", file, diff)
			}
		})
	}
}

// document returns the OpenAPI document that a slurmrestd serves. slurmrestd asks no other daemon for it.
func document(t *testing.T, box *realslurm.Box) []byte {
	t.Helper()
	transport := box.StartRest("slurmrestd", "openapi/slurmctld,openapi/slurmdbd")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://box/openapi/v3", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-SLURM-USER-TOKEN", "any")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %.200s", answer.Status, err, text)
	}
	return text
}

// operation is what an answer with status 200 is.
type operation struct {
	Responses struct {
		OK struct {
			Content struct {
				JSON struct {
					Schema *schema `json:"schema"`
				} `json:"application/json"`
			} `json:"content"`
		} `json:"200"`
	} `json:"responses"`
}

// schema is what the tests look at of a schema of OpenAPI. Descriptions are left out.
type schema struct {
	Ref        string             `json:"$ref,omitempty"`
	Enum       []any              `json:"enum,omitempty"`
	Items      *schema            `json:"items,omitempty"`
	Properties map[string]*schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Type       string             `json:"type,omitempty"`
}

// answersOf returns what an OpenAPI document has of the answers to the documented calls, a path or a schema on each line.
func answersOf(t *testing.T, text []byte) []byte {
	t.Helper()
	var document struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	schemas := map[string]*schema{}
	for path, methods := range document.Paths {
		plugin, call, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		_, call, _ = strings.Cut(call, "/")
		wanted := strings.Fields(documentedCalls[plugin+"/"+call])
		maps.DeleteFunc(methods, func(method string, o operation) bool {
			if slices.Contains(wanted, method) {
				o.Responses.OK.Content.JSON.Schema.collect(document.Components.Schemas, schemas)
				return false
			}
			return true
		})
	}
	maps.DeleteFunc(document.Paths, func(_ string, methods map[string]operation) bool { return len(methods) == 0 })
	var out bytes.Buffer
	out.WriteString(`{"paths": {` + "\n")
	members(t, &out, document.Paths)
	out.WriteString("\n" + `}, "components": {"schemas": {` + "\n")
	members(t, &out, schemas)
	out.WriteString("\n}}}\n")
	return out.Bytes()
}

// collect adds the schemas that one refers to, and those to which these refer.
func (s *schema) collect(from, to map[string]*schema) {
	if s == nil {
		return
	}
	if name := strings.TrimPrefix(s.Ref, "#/components/schemas/"); name != "" && to[name] == nil {
		to[name] = from[name]
		from[name].collect(from, to)
	}
	s.Items.collect(from, to)
	for _, property := range s.Properties {
		property.collect(from, to)
	}
}

// members writes the members of a JSON object, each on a line.
func members[V any](t *testing.T, out *bytes.Buffer, object map[string]V) {
	t.Helper()
	for i, name := range slices.Sorted(maps.Keys(object)) {
		text, err := json.Marshal(object[name])
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			out.WriteString(",\n")
		}
		fmt.Fprintf(out, "%q:%s", name, text)
	}
}
