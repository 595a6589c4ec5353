// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestJobsOccupyNodesInTheirTime(t *testing.T) {
	c := start(t, fake.Slurm2605)
	c.Register(fake.Node{Name: "n1", CPUs: 4}, fake.Node{Name: "n2", CPUs: 4}, fake.Node{Name: "n3", CPUs: 4})
	c.Submit(fake.Job{Nodes: 2, Duration: time.Minute})                              // 1
	c.Submit(fake.Job{NodeList: []string{"n3"}, CPUs: 1, Limit: 2 * time.Minute})    // 2
	waits := c.Submit(fake.Job{Nodes: 2, Duration: time.Minute, User: "bob"})        // 3
	c.Submit(fake.Job{Nodes: 1, CPUs: 3, Duration: time.Hour, Limit: 2 * time.Hour}) // 4
	look := func(when string, nodes string, jobs string) {
		t.Helper()
		if got := c.states(t); got != nodes {
			t.Errorf("%s: nodes are %s, want %s", when, got, nodes)
		}
		list, err := c.client.Jobs(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range list.Jobs {
			end := "never"
			if !j.Unlimited {
				end = j.End.Sub(noon).String()
			}
			got = append(got, fmt.Sprintf("%d=%s on %s from %s to %s", j.ID, strings.Join(j.State, "+"), j.Nodes, j.Start.Sub(noon), end))
		}
		if strings.Join(got, ", ") != jobs {
			t.Errorf("%s: jobs are %s, want %s", when, strings.Join(got, ", "), jobs)
		}
	}
	look("at first", "n1=ALLOCATED n2=ALLOCATED n3=ALLOCATED",
		"1=RUNNING on n[1-2] from 0s to never, 2=RUNNING on n3 from 0s to 2m0s, 4=RUNNING on n3 from 0s to 2h0m0s")
	c.clock.Step(time.Minute)
	look("when job 1 ended", "n1=IDLE+COMPLETING n2=IDLE+COMPLETING n3=ALLOCATED",
		"1=COMPLETED+COMPLETING on n[1-2] from 0s to never, 2=RUNNING on n3 from 0s to 2m0s, 4=RUNNING on n3 from 0s to 2h0m0s")
	if err := c.client.DeleteNodes(t.Context(), "n1"); !errors.Is(err, rest.Refused) {
		t.Errorf("deleting a completing node: %v", err)
	}
	c.clock.Step(10 * time.Second)
	look("when it completed", "n1=ALLOCATED n2=ALLOCATED n3=ALLOCATED",
		"2=RUNNING on n3 from 0s to 2m0s, 3=RUNNING on n[1-2] from 1m10s to never, 4=RUNNING on n3 from 0s to 2h0m0s")
	c.clock.Step(50 * time.Second)
	look("when job 2 timed out", "n1=ALLOCATED n2=ALLOCATED n3=MIXED+COMPLETING",
		"2=TIMEOUT+COMPLETING on n3 from 0s to 2m0s, 3=RUNNING on n[1-2] from 1m10s to never, 4=RUNNING on n3 from 0s to 2h0m0s")
	if err := c.client.UpdateNodes(t.Context(), "n2", rest.NodeUpdate{State: "DRAIN", Reason: "r"}); err != nil {
		t.Fatal(err)
	}
	c.Lose("n1")
	if status, _ := c.Job(waits); status.Restarts != 1 || status.State[0] != "PENDING" {
		t.Errorf("job of a lost node is %+v", status)
	}
	c.clock.Step(24 * time.Hour)
	look("a day later", "n1=DOWN+NOT_RESPONDING(Not responding by slurm) n2=IDLE+DRAIN(r by slurm) n3=IDLE", "")
	c.Cancel(waits)
	if status, _ := c.Job(waits); status.State[0] != "CANCELLED" {
		t.Errorf("cancelled job is %+v", status)
	}
}

func TestAScriptEndsAsItIsSaid(t *testing.T) {
	c := cluster{clock: &clock{now: noon}}
	c.Slurm = fake.New(fake.Options{Now: c.clock.Now, Script: func(j fake.Job) (time.Duration, int64) {
		return map[string]time.Duration{"good": time.Minute, "bad": 2 * time.Minute}[j.Name], map[string]int64{"bad": 3}[j.Name]
	}})
	server := httptest.NewServer(c.Slurm)
	t.Cleanup(server.Close)
	c.url = server.URL
	client := c.as(t, "slurm", key)
	c.Register(fake.Node{Name: "n1"})
	issuer, err := token.NewSigned(key, "alice", 0)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, name := range []string{"good", "bad", "endless"} {
		id, err := client.SubmitJob(t.Context(), issuer, rest.Submission{Name: name, Script: "#!/bin/sh\n", Directory: "/", Environment: []string{"A=b"}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	expect := func(after time.Duration, want string) {
		t.Helper()
		c.clock.Step(after)
		var got []string
		for _, id := range ids {
			job, err := client.Job(t.Context(), id)
			status, _ := c.Job(id)
			if err != nil || status.User != "alice" {
				t.Fatalf("%v; job %d is of %s", err, id, status.User)
			}
			got = append(got, strings.Join(job.State, "+")+"/"+job.Reason)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("the jobs are %v, want %s", got, want)
		}
	}
	expect(time.Minute, "COMPLETED/None RUNNING/None RUNNING/None")
	expect(time.Minute, "COMPLETED/None FAILED/NonZeroExitCode RUNNING/None")
	expect(time.Hour, "COMPLETED/None FAILED/NonZeroExitCode RUNNING/None")
}
