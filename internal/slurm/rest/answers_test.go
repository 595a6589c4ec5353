// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNodesClassifiesAnswers(t *testing.T) {
	since := time.Unix(1795172000, 0)
	dated := `"last_update":{"set":true,"infinite":false,"number":1795172262}`
	tests := map[string]struct {
		status    int
		body      string
		since     time.Time
		want      error // nil: success
		code      int
		unchanged bool
		nodes     int
	}{
		"a list is a list":                                    {200, `{"nodes":[{"name":"a"},{"name":"b"}],` + dated + `,"errors":[]}`, time.Time{}, nil, 0, false, 2},
		"a list without time is a list":                       {200, `{"nodes":[{"name":"a"}]}`, time.Time{}, nil, 0, false, 1},
		"304 is unchanged":                                    {304, ``, since, nil, 0, true, 0},
		"304 without a since is malformed":                    {304, ``, time.Time{}, Malformed, 0, false, 0},
		"an empty list with a time is no nodes":               {200, `{"nodes":[],` + dated + `,"errors":[]}`, time.Time{}, nil, 0, false, 0},
		"an empty list with a time is no nodes, since or not": {200, `{"nodes":[],` + dated + `}`, since, nil, 0, false, 0},
		"an empty list without a time says nothing":           {200, `{"nodes":[],"last_update":{"set":true,"number":0},"errors":[]}`, time.Time{}, Malformed, 0, false, 0},
		"an empty list without a time is unchanged, if asked": {200, `{"nodes":[],"last_update":{"set":true,"number":0},"errors":[]}`, since, nil, 0, true, 0},
		"no list at all says nothing":                         {200, `{` + dated + `,"errors":[]}`, since, Malformed, 0, false, 0},
		"a null list says nothing":                            {200, `{"nodes":null,` + dated + `}`, since, Malformed, 0, false, 0},
		"an empty object says nothing":                        {200, `{}`, time.Time{}, Malformed, 0, false, 0},
		"null says nothing":                                   {200, `null`, time.Time{}, Malformed, 0, false, 0},
		"an error with 200 is an error":                       {200, `{"nodes":[{"name":"a"}],` + dated + `,` + withError(0, "No error")[1:], time.Time{}, Refused, 0, false, 0},
		"an error with 200 and an empty list is an error":     {200, `{"nodes":[],` + dated + `,` + withError(1800, "down")[1:], time.Time{}, Unavailable, 1800, false, 0},
		"no change as an error is unchanged, if asked":        {500, withError(1900, "No change in data"), since, nil, 0, true, 0},
		"no change as an error is refused, if not asked":      {500, withError(1900, "No change in data"), time.Time{}, Refused, 1900, false, 0},
		"a truncated list is malformed":                       {200, `{"nodes":[{"name":"a"},{"na`, time.Time{}, Malformed, 0, false, 0},
		"a list with a node twice is malformed":               {200, `{"nodes":[{"name":"a"},{"name":"a"}]}`, time.Time{}, Malformed, 0, false, 0},
		"a list with a nameless node is malformed":            {200, `{"nodes":[{"state":["IDLE"]}]}`, time.Time{}, Malformed, 0, false, 0},
		"a node of the wrong type is malformed":               {200, `{"nodes":["a"]}`, time.Time{}, Malformed, 0, false, 0},
		"a null node is malformed":                            {200, `{"nodes":[null]}`, time.Time{}, Malformed, 0, false, 0},
		"a state of the wrong type is malformed":              {200, `{"nodes":[{"name":"a","state":"IDLE"}]}`, time.Time{}, Malformed, 0, false, 0},
		"text instead of JSON is malformed":                   {200, `<html>hello</html>`, time.Time{}, Malformed, 0, false, 0},
		"two answers are malformed":                           {200, `{"nodes":[],` + dated + `}{}`, time.Time{}, Malformed, 0, false, 0},
		"no body is malformed":                                {200, ``, time.Time{}, Malformed, 0, false, 0},
		"no content is malformed":                             {204, ``, time.Time{}, Malformed, 0, false, 0},
		"a redirect is malformed":                             {302, ``, time.Time{}, Malformed, 0, false, 0},
		"no token is unauthorized":                            {401, `Authentication failure`, time.Time{}, Unauthorized, 0, false, 0},
		"a bad token is unauthorized":                         {511, withError(1007, "Protocol authentication error"), time.Time{}, Unauthorized, 1007, false, 0},
		"a bad token without words is unauthorized":           {511, ``, time.Time{}, Unauthorized, 0, false, 0},
		"an authentication error with 500 is unauthorized":    {500, withError(6001, "Token expired"), time.Time{}, Unauthorized, 6001, false, 0},
		"slurmctld out of reach is unavailable":               {502, withError(1800, "Unable to contact slurm controller"), time.Time{}, Unavailable, 1800, false, 0},
		"slurmctld out of reach with 500 is unavailable":      {500, withError(1800, "Unable to contact slurm controller"), time.Time{}, Unavailable, 1800, false, 0},
		"a socket time-out with 500 is unavailable":           {500, withError(5004, "Socket timed out"), time.Time{}, Unavailable, 5004, false, 0},
		"a standby slurmctld is unavailable":                  {500, withError(2027, "standby"), time.Time{}, Unavailable, 2027, false, 0},
		"500 without words is unavailable":                    {500, `oops`, time.Time{}, Unavailable, 0, false, 0},
		"503 is unavailable":                                  {503, ``, time.Time{}, Unavailable, 0, false, 0},
		"429 is unavailable":                                  {429, ``, time.Time{}, Unavailable, 0, false, 0},
		"400 is refused":                                      {400, `Failure during parsing`, time.Time{}, Refused, 0, false, 0},
		"403 is refused":                                      {403, ``, time.Time{}, Refused, 0, false, 0},
		"404 is malformed and never absent":                   {404, `Unable to find requested URL`, time.Time{}, Malformed, 0, false, 0},
		"a strange status is refused":                         {418, `I am a teapot`, time.Time{}, Refused, 0, false, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := serve(t, Options{}, answering(test.status, test.body))
			list, err := client.Nodes(t.Context(), test.since)
			if !errors.Is(err, test.want) || (test.want == nil) != (err == nil) {
				t.Fatalf("error is %v, want %v", err, test.want)
			}
			if list.Unchanged != test.unchanged || len(list.Nodes) != test.nodes {
				t.Errorf("unchanged %t with %d nodes, want %t with %d", list.Unchanged, len(list.Nodes), test.unchanged, test.nodes)
			}
			var e *Error
			if test.want != nil && (!errors.As(err, &e) || e.Code != test.code || e.Status != test.status) {
				t.Errorf("error is %#v, want code %d and status %d", e, test.code, test.status)
			}
		})
	}
}

func TestUpdateAndDeleteClassifyAnswers(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		want   error
		code   int
	}{
		"success":                               {200, `{"errors":[],"warnings":[{"description":"coerced"}]}`, nil, 0},
		"an unknown node on 26.05 is absent":    {422, withError(2018, "Invalid node name specified"), Absent, 2018},
		"an unknown node on 24.11 is absent":    {500, withError(2018, "Invalid node name specified"), Absent, 2018},
		"a user without rights is refused":      {422, withError(2010, "Invalid user id"), Refused, 2010},
		"a busy node is refused":                {422, withError(2016, "Requested nodes are busy"), Refused, 2016},
		"an impossible state is refused":        {422, withError(2180, "Invalid node state transition"), Refused, 2180},
		"an error with 200 is refused":          {200, withError(9, "something"), Refused, 9},
		"an error of number 0 is not absent":    {200, withError(0, "No error"), Refused, 0},
		"a URL that is not served isn't absent": {404, `Unable to find requested URL`, Malformed, 0},
		"an unreadable success is malformed":    {200, `{"errors":`, Malformed, 0},
		"304 is malformed":                      {304, ``, Malformed, 0},
		"503 is unavailable":                    {503, ``, Unavailable, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := serve(t, Options{}, answering(test.status, test.body))
			for _, err := range []error{
				client.UpdateNodes(t.Context(), "a,b", NodeUpdate{State: "DRAIN", Reason: "r"}),
				client.DeleteNodes(t.Context(), "a"),
				client.Reconfigure(t.Context()),
			} {
				if !errors.Is(err, test.want) || (test.want == nil) != (err == nil) {
					t.Fatalf("error is %v, want %v", err, test.want)
				}
				var e *Error
				if errors.As(err, &e) && e.Code != test.code {
					t.Errorf("code is %d, want %d", e.Code, test.code)
				}
			}
		})
	}
}

func TestRecordedAnswers(t *testing.T) {
	tests := map[string]struct {
		file  string
		first Node
		count int
		meta  Meta
	}{
		"26.05.5 in v0.0.45": {"nodes-26.05.5-v0.0.45.json", Node{
			Name: "n0001", Address: "n0001", Hostname: "n0001", State: []string{"IDLE", "EXTERNAL", "DRAIN"},
			Reason: "x", ReasonUser: "slurm", ReasonTime: time.Unix(1795172863, 0),
			Features: []string{"h100", "zone-a"}, ActiveFeatures: []string{"h100", "zone-a"}, Partitions: []string{"main"},
			CPUs: 64, EffectiveCPUs: 64, RealMemory: 512000, FreeMemory: -1, TRES: "cpu=64,mem=500G,billing=64", Gres: "gpu:8",
		}, 4, Meta{"real", "26.05.5"}},
		"26.05.5 in v0.0.42": {"nodes-26.05.5-v0.0.42.json", Node{
			Name: "n0001", Address: "n0001", Hostname: "n0001", State: []string{"IDLE", "DRAIN"},
			Reason: "x", ReasonUser: "slurm", ReasonTime: time.Unix(1795172863, 0),
			Features: []string{"h100", "zone-a"}, ActiveFeatures: []string{"h100", "zone-a"}, Partitions: []string{"main"},
			CPUs: 64, EffectiveCPUs: 64, RealMemory: 512000, FreeMemory: -1, TRES: "cpu=64,mem=500G,billing=64", Gres: "gpu:8",
		}, 2, Meta{"real", "26.05.5"}},
		"24.11.5 in v0.0.42": {"nodes-24.11.5-v0.0.42.json", Node{
			Name: "n0001", Address: "127.0.0.1", Hostname: "n0001", State: []string{"UNKNOWN", "DRAIN", "NOT_RESPONDING"},
			Reason: "x: y", ReasonUser: "slurm", ReasonTime: time.Unix(1795172407, 0),
			Features: []string{"h100", "zone-a"}, ActiveFeatures: []string{"h100", "zone-a"}, Partitions: []string{"main"},
			CPUs: 64, EffectiveCPUs: 64, RealMemory: 512000, FreeMemory: -1, TRES: "cpu=64,mem=500G,billing=64", Gres: "gpu:8",
		}, 4, Meta{"real", "24.11.5"}},
		"24.11.5 in v0.0.41": {"nodes-24.11.5-v0.0.41.json", Node{
			Name: "n0001", Address: "127.0.0.1", Hostname: "n0001", State: []string{"UNKNOWN", "DRAIN", "NOT_RESPONDING"},
			Reason: "x: y", ReasonUser: "slurm", ReasonTime: time.Unix(1795172407, 0),
			Features: []string{"h100", "zone-a"}, ActiveFeatures: []string{"h100", "zone-a"}, Partitions: []string{"main"},
			CPUs: 64, EffectiveCPUs: 64, RealMemory: 512000, FreeMemory: -1, TRES: "cpu=64,mem=500G,billing=64", Gres: "gpu:8",
		}, 2, Meta{"real", "24.11.5"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := serve(t, Options{}, answering(200, recorded(t, test.file)))
			list, err := client.Nodes(t.Context(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list.Nodes) != test.count || list.Meta != test.meta || list.Updated.IsZero() {
				t.Errorf("%d nodes of %+v at %s", len(list.Nodes), list.Meta, list.Updated)
			}
			if diff := cmp.Diff(test.first, *list.Nodes[0]); diff != "" {
				t.Errorf("first node (-want +got):\n%s", diff)
			}
		})
	}
}

func TestJobsKeepsThoseThatOccupyNodes(t *testing.T) {
	client := serve(t, Options{}, answering(200, recorded(t, "jobs-26.05.5-v0.0.45.json")))
	list, err := client.Jobs(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	// Job 1 is cancelled, job 2 runs without a limit, job 3 is held.
	want := []Job{{ID: 2, State: []string{"RUNNING"}, User: "daemon", Nodes: "n0003", Start: time.Unix(1795172858, 0), Unlimited: true}}
	if diff := cmp.Diff(want, list.Jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func TestTheNumbersOfJobsInListsOfStates(t *testing.T) {
	client := serve(t, Options{}, answering(200, `{"jobs": [
		{"job_id": "24_0", "state": ["RUNNING"]}, {"job_id": "18_1", "state": ["PENDING"]}, {"job_id": "22+0", "state": ["PENDING"]},
		{"job_id": "7", "state": ["RUNNING"]}, {"job_id": 8, "job_state": ["RUNNING"]}]}`))
	list, err := client.JobStates(t.Context(), nil)
	want := []JobState{
		{24, []string{"RUNNING"}}, {18, []string{"PENDING"}}, {22, []string{"PENDING"}}, {7, []string{"RUNNING"}}, {8, []string{"RUNNING"}},
	}
	if diff := cmp.Diff(want, list); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	for _, number := range []string{`"x"`, `""`, `"_1"`} {
		client := serve(t, Options{}, answering(200, `{"jobs": [{"job_id": `+number+`, "state": ["RUNNING"]}]}`))
		if list, err := client.JobStates(t.Context(), nil); err == nil {
			t.Errorf("%s is read as %+v", number, list)
		}
	}
}

func TestJobsTellsUnchangedFromNone(t *testing.T) {
	tests := map[string]struct {
		file      string
		since     time.Time
		want      error
		unchanged bool
	}{
		"no jobs, with a time, are no jobs":                 {"jobs-24.11.5-v0.0.42-none.json", time.Time{}, nil, false},
		"no jobs, without a time, are unchanged":            {"jobs-26.05.5-v0.0.45-unchanged.json", time.Unix(1, 0), nil, true},
		"no jobs, without a time, say nothing if not asked": {"jobs-26.05.5-v0.0.45-unchanged.json", time.Time{}, Malformed, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := serve(t, Options{}, answering(200, recorded(t, test.file)))
			list, err := client.Jobs(t.Context(), test.since)
			if !errors.Is(err, test.want) || list.Unchanged != test.unchanged || len(list.Jobs) != 0 {
				t.Errorf("got %+v, %v", list, err)
			}
			if err == nil && list.Unchanged != list.Updated.IsZero() {
				t.Errorf("updated is %s", list.Updated)
			}
		})
	}
}

func TestOccupiesCountsTheUnknown(t *testing.T) {
	tests := map[string]bool{
		"RUNNING": true, "SUSPENDED": true, "COMPLETED,COMPLETING": true, "CANCELLED,COMPLETING": true, "PENDING,CONFIGURING": true,
		"PENDING": false, "PENDING,REQUEUED": false, "COMPLETED": false, "NODE_FAIL": false, "SOMETHING_NEW": true, "": true,
	}
	for states, want := range tests {
		if got := Occupies(strings.Split(states, ",")); got != want {
			t.Errorf("%s occupies nodes: %t, want %t", states, got, want)
		}
	}
}

func TestPingReadsEveryForm(t *testing.T) {
	for _, file := range []string{"ping-24.11.5-v0.0.41.json", "ping-24.11.5-v0.0.42.json", "ping-26.05.5-v0.0.42.json", "ping-26.05.5-v0.0.45.json"} {
		body := recorded(t, file)
		client := serve(t, Options{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		got, err := client.Ping(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []Controller{{Hostname: "vm", Responding: true, Primary: true}}
		if strings.Contains(file, "v0.0.45") {
			want[0].Status = "No error"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestNodeEqualSeesEveryField(t *testing.T) {
	for i := range reflect.TypeFor[Node]().NumField() {
		var a, b Node
		switch field := reflect.ValueOf(&b).Elem().Field(i); v := field.Interface().(type) {
		case string:
			field.SetString("x")
		case []string:
			field.Set(reflect.ValueOf([]string{"x"}))
		case time.Time:
			field.Set(reflect.ValueOf(v.Add(time.Second)))
		case int, int64:
			field.SetInt(1)
		default:
			t.Fatalf("field of type %T", v)
		}
		name := reflect.TypeFor[Node]().Field(i).Name
		if a.Equal(&b) != (name == "FreeMemory") || !b.Equal(&b) {
			t.Errorf("Equal is wrong about %s", name)
		}
	}
}

func TestOneNodeIsAskedAbout(t *testing.T) {
	for name, test := range map[string]struct {
		body string
		want error // nil: success
	}{
		"the node":                             {`{"nodes":[{"name":"a","reason":"x"}],"errors":[]}`, nil},
		"another node":                         {`{"nodes":[{"name":"b"}],"errors":[]}`, Malformed},
		"two nodes":                            {`{"nodes":[{"name":"a"},{"name":"b"}],"errors":[]}`, Malformed},
		"no node":                              {`{"nodes":[],"last_update":{"set":true,"number":1},"errors":[]}`, Malformed},
		"a node that Slurm does not have":      {recorded(t, "error-26.05.5-get-absent.json"), Refused},
		"nothing, because slurmctld is silent": {withError(1800, "Unable to contact slurm controller"), Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			var path string
			client := serve(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
				path = r.URL.Path
				answering(http.StatusOK, test.body)(w, r)
			})
			n, err := client.Node(t.Context(), "a")
			if !errors.Is(err, test.want) || (test.want == nil) != (err == nil && n.Reason == "x") {
				t.Errorf("the answer is %+v, %v, want %v", n, err, test.want)
			}
			if !strings.HasSuffix(path, "/node/a") {
				t.Errorf("asked for %s", path)
			}
		})
	}
}
