// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// comparesAccounted compares what slurmrestd shows user nobody of a job that has ended and of one that waits, both known to slurmdbd, with
// what the fake shows.
func (s *scene) comparesAccounted(t *testing.T, alice *user, restAPI, controller, node string) {
	t.Helper()
	key := s.secret(t, controller+"-auth-jwt")["jwt.key"]
	ended := alice.completes(t)
	// slurmctld does not report a held job to slurmdbd.
	_, release := alice.submitsBlocked(t, "--exclusive", "--nodelist="+node)
	waits := alice.submits(t, "true\n", "--nodelist="+node)
	alice.seesAccounted(t, ended)
	endpoint := fmt.Sprintf("http://%s:6820", s.clusterIP(t, restAPI+"-restapi"))
	namesUser(t, endpoint, key, int64(waits), "alice")
	like := fake.New(fake.Options{Key: key, Accounting: true})
	like.Register(fake.Node{Name: "a"})
	server := httptest.NewServer(like)
	defer server.Close()
	over := like.Submit(fake.Job{NodeList: []string{"a"}, CPUs: 1})
	like.Finish(over)
	like.Submit(fake.Job{NodeList: []string{"a"}})
	queued := like.Submit(fake.Job{NodeList: []string{"a"}, CPUs: 1})
	played := accounted(t, server.URL, key)
	var real map[int64]rest.JobRecord
	eventually(t, soon, "slurmdbd to know both jobs", func(context.Context) error {
		real = accounted(t, endpoint, key)
		for _, id := range []int{ended, waits} {
			if _, ok := real[int64(id)]; !ok {
				return fmt.Errorf("it does not know job %d", id)
			}
		}
		return nil
	})
	if diff := cmp.Diff(facts(played[over]), facts(real[int64(ended)])); diff != "" {
		t.Errorf("of a job that has ended (-fake +real):\n%s", diff)
	}
	if diff := cmp.Diff(facts(played[queued]), facts(real[int64(waits)])); diff != "" {
		t.Errorf("of a job that waits (-fake +real):\n%s", diff)
	}
	alice.runs(t, fmt.Sprintf("scancel %d", waits))
	release(t)
}

// namesUser waits until slurmrestd has the name of a job's user. Its pod follows the lists of LoginSets within about a minute.
func namesUser(t *testing.T, endpoint string, key []byte, job int64, name string) {
	t.Helper()
	client := asNobody(t, endpoint, key)
	eventually(t, patient, "slurmrestd to name "+name, func(ctx context.Context) error {
		j, err := client.Job(ctx, job)
		if err == nil && j.User != name {
			err = fmt.Errorf("the user of job %d is %q, %d", job, j.User, j.UserID)
		}
		return err
	})
}

// asNobody returns a client of slurmrestd for user nobody, like the exporter.
func asNobody(t *testing.T, endpoint string, key []byte) *rest.Client {
	t.Helper()
	issuer, err := token.NewSigned(key, "nobody", 0)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.NewClient(endpoint, issuer, rest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// accounted returns the jobs of slurmdbd by their numbers.
func accounted(t *testing.T, endpoint string, key []byte) map[int64]rest.JobRecord {
	t.Helper()
	list, err := asNobody(t, endpoint, key).AccountingJobs(t.Context(), time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	out := map[int64]rest.JobRecord{}
	for _, j := range list {
		out[j.ID] = j
	}
	return out
}

// facts returns the facts of a job that do not depend on the cluster.
func facts(j rest.JobRecord) map[string]any {
	return map[string]any{
		"state": j.State, "reason": j.Reason, "uid": j.UserID, "cpus": j.CPUs, "has nodes": j.Nodes != "", "has TRES": j.TRES != "",
		"submitted": !j.Submitted.IsZero(), "started": !j.Start.IsZero(), "ended": !j.End.IsZero(), "exit code": j.ExitCode, "signal": j.Signal,
	}
}
