// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// entries is a list that never ends: each entry has its number in it.
type entries struct {
	begin, entry string
	n            int
	left         []byte
}

// Read makes as many entries as fit.
func (e *entries) Read(p []byte) (int, error) {
	if e.n == 0 {
		e.left = []byte(e.begin)
	}
	for len(e.left) < len(p) {
		if e.n > 0 {
			e.left = append(e.left, ',')
		}
		e.left = fmt.Appendf(e.left, e.entry, e.n)
		e.n++
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	return n, nil
}

func TestWhatIsKeptOfAnAnswerIsBounded(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	decodeNodesOf := func(r *reader) error { _, _, err := decodeNodes(r, false); return err }
	decodeJobsOf := func(r *reader) error { _, _, err := decodeJobs(r, false); return err }
	decodeStatesOf := func(r *reader) error { _, _, err := decodeJobStates(r, nil); return err }
	decodeReservationsOf := func(r *reader) error {
		_, _, err := decodeDated(r, "reservations", (*reader).reservation)
		return err
	}
	for name, test := range map[string]struct {
		begin, entry string
		decode       func(*reader) error
		want         Bound
	}{
		"nodes":                    {`{"nodes":[`, `{"name":"n%d"}`, decodeNodesOf, "65536 nodes"},
		"comments of nodes":        {`{"nodes":[`, `{"name":"n%d","comment":"` + long + `"}`, decodeNodesOf, "64 MiB of texts"},
		"partitions of a node":     {`{"nodes":[{"name":"n","partitions":[`, `"p%d"`, decodeNodesOf, "1024 KiB in a list of texts"},
		"partitions of many nodes": {`{"nodes":[`, `{"name":"n%[1]d","partitions":["p%[1]d","` + long + `%[1]d"]}`, decodeNodesOf, "64 MiB of texts"},
		"jobs":                     {`{"jobs":[`, `{"job_id":%d,"job_state":["RUNNING"]}`, decodeJobsOf, "262144 jobs that occupy nodes"},
		"pending jobs":             {`{"jobs":[`, `{"job_id":%d,"job_state":["PENDING"],"comment":"` + long + `"}`, decodeJobsOf, "134217728 bytes"},
		"states":                   {`{"jobs":[`, `{"job_id":%d,"state":["RUNNING"]}`, decodeStatesOf, "1048576 states of jobs"},
		"reservations":             {`{"reservations":[`, `{"name":"r%d"}`, decodeReservationsOf, "16384 reservations"},
		"unknown members":          {`{`, `"m%d":1`, decodeNodesOf, "64 MiB of texts"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(newScanner(&entries{begin: test.begin, entry: test.entry}, 128<<20))
			err := test.decode(r)
			if !errors.Is(err, test.want) || kindOfRead(err) != Malformed {
				t.Errorf("%v, want %v", err, test.want)
			}
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > 400<<20 {
				t.Errorf("%d MiB are in use", m.HeapAlloc>>20)
			}
			runtime.KeepAlive(r)
		})
	}
}

// What a user writes must not keep the operator from knowing the jobs.
func TestALongTextThatIsNotKeptDoesNoHarm(t *testing.T) {
	body := io.MultiReader(strings.NewReader(`{"last_update":1,"jobs":[{"job_id":1,"job_state":["RUNNING"],"comment":"`),
		io.LimitReader(endless('x'), 8<<20), strings.NewReader(`","nodes":"n1"}]}`))
	r := newReader(newScanner(body, DefaultMaxBytes))
	list, _, err := decodeJobs(r, false)
	if err != nil || len(list.Jobs) != 1 || list.Jobs[0].Nodes != "n1" {
		t.Errorf("%+v, %v", list, err)
	}
}
