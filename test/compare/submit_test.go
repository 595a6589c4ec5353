// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// stranger is a user that no slurmctld here can look up.
const stranger = "mallory"

// gpuJob returns a job of node a, which runs until it is asked to end.
func gpuJob(edits ...func(*rest.Submission)) rest.Submission {
	s := rest.Submission{
		Name: "gpu", Script: script, Partition: "main", Nodes: []string{"a"}, Comment: "run 1", TimeLimit: time.Hour, Directory: "/tmp",
		Output: "/dev/null", Environment: []string{"PATH=/usr/bin:/bin", "A=b c"},
	}
	for _, edit := range edits {
		edit(&s)
	}
	return s
}

// submitsByREST submits a job of alice.
func submitsByREST(s rest.Submission) func(*system) string {
	return func(sys *system) string {
		id, err := sys.client.SubmitJob(sys.t.Context(), issuer(sys.t, "alice"), s)
		if err != nil {
			return refusal(err)
		}
		return fmt.Sprintf("job %d", id)
	}
}

// shows waits until a job is in a state, for a reason if one is given, and returns what Slurm shows of it then.
func shows(id int64, state, reason string) func(*system) string {
	return func(s *system) string {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(100 * time.Second); ; <-tick.C {
			j, err := s.client.Job(s.t.Context(), id)
			if err == nil && strings.Join(j.State, "+") == state && (reason == "" || j.Reason == reason) {
				return told(j)
			}
			if time.Now().After(deadline) {
				return fmt.Sprintf("%s: %s, %v", s.name, told(j), err)
			}
		}
	}
}

// told returns a job in one line. Of times it has whether they are known, and their order.
func told(j rest.JobRecord) string {
	times := "waits"
	switch {
	case !j.End.IsZero() && !j.End.Before(j.Start):
		times = "ended"
	case !j.Start.IsZero():
		times = "has a start"
	}
	signal := j.Signal
	if signal == int64(syscall.SIGKILL) && strings.Join(j.State, "+") == "CANCELLED" {
		signal = int64(syscall.SIGTERM) // what Slurm sends first, unless the script has not begun yet
	}
	return fmt.Sprintf("%d %s of %s (%s): %s, %s, on %q, code %d signal %d, %s", j.ID, j.Name, j.User, j.Comment, strings.Join(j.State, "+"), j.Reason,
		j.Nodes, j.ExitCode, signal, times)
}

// states asks for the states of some jobs by one call.
func states(ids ...int64) func(*system) string {
	return func(s *system) string {
		list, err := s.client.StatesOfJobs(s.t.Context(), ids)
		if err != nil {
			return refusal(err)
		}
		var out []string
		for _, j := range list {
			out = append(out, fmt.Sprint(j.ID, " ", strings.Join(j.State, "+")))
		}
		return strings.Join(out, ", ")
	}
}

// finds lists the jobs with a comment.
func finds(comment string) func(*system) string {
	return func(s *system) string {
		list, err := s.client.JobRecords(s.t.Context(), func(j rest.JobRecord) bool { return j.User == "alice" && j.Comment == comment })
		if err != nil {
			return refusal(err)
		}
		var out []string
		for _, j := range list {
			out = append(out, fmt.Sprint(j.ID))
		}
		slices.Sort(out)
		return strings.Join(out, ",")
	}
}

// cancels cancels jobs by REST as Slurm's own user. A user who cancels another one's job is not tried: see rest.CancelJobs.
func cancels(ids ...int64) func(*system) string {
	return func(s *system) string { return s.refused(s.client.CancelJobs(s.t.Context(), ids)) }
}

// looks returns whether a job is there.
func looks(id int64) func(*system) string {
	return func(s *system) string {
		j, err := s.client.Job(s.t.Context(), id)
		if errors.Is(err, rest.Absent) {
			return "absent"
		}
		return fmt.Sprintf("%s, %v", told(j), err)
	}
}

// waitsForNode is why a job waits that must have a node which is drained.
const waitsForNode = "ReqNodeNotAvail"

// submitting returns what becomes of jobs that are submitted by REST.
func submitting() scenario {
	return scenario{name: "jobs by REST", steps: []step{
		{"register", registers(nodeA(), named("b"))},
		{"submit as another user", submitsByREST(gpuJob())},
		{"the job runs", shows(1, "RUNNING", "")},
		{"the job ends well", all(job((driver).Finish, 1), shows(1, "COMPLETED", ""))},
		{"submit a job that is to fail", all(submitsByREST(gpuJob()), shows(2, "RUNNING", ""))},
		{"the job fails", all(func(s *system) string { s.Fail(2, 3); return "" }, shows(2, "FAILED", ""))},
		{"drain the node", updates("a", rest.NodeUpdate{State: "DRAIN", Reason: "disk"})},
		{"submit a job that has to wait", submitsByREST(gpuJob())},
		{"the job waits", shows(3, "PENDING", waitsForNode)},
		{"hold it", all(job((driver).Hold, 3), shows(3, "PENDING", "JobHeldAdmin"))},
		{"cancel it", all(cancels(3), shows(3, "CANCELLED", ""))},
		{"undrain", updates("a", rest.NodeUpdate{State: "UNDRAIN"})},
		{"two of another run", all(submitsByREST(gpuJob(second)), submitsByREST(gpuJob(second, anyNode)), shows(5, "RUNNING", ""))},
		{"find them", all(finds("run 2"), finds("run 1"), finds("run 3"))},
		{"their states by one call", states(1, 4, 5, 99)},
		{"cancel them, one that has ended, and one that is not there", all(cancels(4, 5, 1, 99), shows(4, "CANCELLED", ""), shows(5, "CANCELLED", ""))},
		{"cancel them again", cancels(4, 5)},
		{"look for a job that is not there", all(looks(99), states(99), cancels(99))},
		{"in a partition that is not there", submitsByREST(gpuJob(func(s *rest.Submission) { s.Partition = "nope" }))},
		{"on a node that is not there", submitsByREST(gpuJob(func(s *rest.Submission) { s.Nodes = []string{"c"} }))},
		{"on nodes of which one is not there", submitsByREST(gpuJob(func(s *rest.Submission) { s.Nodes = []string{"a", "c"} }))},
		{"in a reservation that is not there", submitsByREST(gpuJob(func(s *rest.Submission) { s.Reservation = "nope" }))},
		{"with an empty script", emptyScript},
		{"reserve a node", reserves("r", "b", "")},
		{"a job in the reservation", all(submitsByREST(gpuJob(anyNode, func(s *rest.Submission) { s.Reservation = "r" })), shows(7, "RUNNING", ""))},
		{"cancel it", all(cancels(7), shows(7, "CANCELLED", ""))},
		{"as a user whom slurmctld does not know", stranded},
	}}
}

func second(s *rest.Submission) { s.Comment = "run 2" }

func anyNode(s *rest.Submission) { s.Nodes = nil }

// emptyScript submits what the product refuses by itself.
func emptyScript(s *system) string {
	var answer struct {
		Errors []struct {
			Number int `json:"error_number"`
		}
	}
	status, err := s.call("POST", "job/submit", `{"job":{"script":"","current_working_directory":"/tmp","environment":["A=b"]}}`, &answer)
	return fmt.Sprint(status, answer.Errors, err)
}

// stranded submits as a user whom slurmctld cannot look up. 24.11 takes the job; then it is cancelled.
func stranded(s *system) string {
	id, err := s.client.SubmitJob(s.t.Context(), issuer(s.t, stranger), gpuJob())
	if err != nil {
		return refusal(err)
	}
	j, err := s.client.Job(s.t.Context(), id)
	return fmt.Sprintf("job %d of %q, %v, %s", id, j.User, err, cancels(id)(s))
}

// timingOut returns how jobs end that Slurm ends.
func timingOut() scenario {
	short := func(s *rest.Submission) { s.TimeLimit = time.Second }
	return scenario{name: "jobs by REST that Slurm ends", conf: "SlurmdTimeout=10\nMessageTimeout=3", steps: []step{
		{"register", registers(nodeA(), named("b"))},
		{"submit a job that will run too long", all(submitsByREST(gpuJob(short)), shows(1, "RUNNING", ""))},
		{"the job runs too long", shows(1, "TIMEOUT", "")},
		{"submit a job that will lose its node", all(submitsByREST(gpuJob(func(s *rest.Submission) { s.Nodes, s.Requeue = []string{"b"}, new(false) })), shows(2, "RUNNING", ""))},
		{"the node is lost", all(loses("b"), shows(2, "NODE_FAIL", ""))},
	}}
}

// forgetting returns what Slurm answers about jobs that it has forgotten.
func forgetting() scenario {
	return scenario{name: "jobs that slurmctld forgets", conf: "MinJobAge=2", steps: []step{
		{"register", registers(nodeA())},
		{"submit", all(submitsByREST(gpuJob()), shows(1, "RUNNING", ""))},
		{"the job ends and is forgotten", all(job((driver).Finish, 1), shows(1, "COMPLETED", ""), job((driver).ForgetJob, 1))},
		{"the job is not there", all(looks(1), states(1), finds("run 1"), cancels(1))},
	}}
}
