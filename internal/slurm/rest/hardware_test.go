// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHardwareIsThatOfTheNode(t *testing.T) {
	number := func(n string) string { return `{"set":true,"infinite":false,"number":` + n + `}` }
	body := `{"nodes":[{"name":"a","boards":1,"cpus":8,"sockets":2,"cores":2,"threads":2,"specialized_cores":1,"specialized_memory":100,` +
		`"real_memory":4000,"gres":"gpu:a100:2(S:0-1)","state":["IDLE"],"free_mem":` + number("7") + `}],"errors":[]}`
	for _, tt := range []struct {
		name, node, body string
		want             Hardware
		err              error
	}{
		{"Slurm has the node", "a", body, Hardware{CPUs: 8, Sockets: 2, Cores: 2, Threads: 2, CoreSpecCount: 1, MemSpecLimit: 100, RealMemory: 4000, Gres: "gpu:a100:2(S:0-1)"}, nil},
		{"the answer is about another node", "b", body, Hardware{}, Malformed},
		{"Slurm does not have the node", "a", `{"nodes":[],` + withError(0, "No error")[1:], Hardware{}, Refused},
		{"no list", "a", `{"errors":[]}`, Hardware{}, Malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := serve(t, Options{}, answering(http.StatusOK, tt.body))
			got, err := c.Hardware(t.Context(), tt.node)
			if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, tt.err) {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}
