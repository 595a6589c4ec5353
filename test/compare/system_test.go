// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// driver does to one Slurm what cannot be done by REST.
type driver interface {
	// Register starts the slurmd of a node, anew if it runs.
	Register(nodes ...fake.Node)
	// Answer lets the slurmds of nodes answer slurmctld.
	Answer(names ...string)
	// Leave ends the slurmds of nodes of which slurmctld wants nothing.
	Leave(names ...string)
	// Late lets ResumeTimeout pass for nodes that are powering up.
	Late(names ...string)
	// Lose ends the slurmds of nodes, which slurmctld notices in its time.
	Lose(names ...string)
	Submit(job fake.Job) int64
	// Finish lets a job end by itself.
	Finish(id int64)
	// Fail lets the script of a job end with a code that is not zero.
	Fail(id, code int64)
	// ForgetJob lets slurmctld forget a job that has ended.
	ForgetJob(id int64)
	Cancel(id int64)
	Suspend(id int64)
	Resume(id int64)
	Requeue(id int64)
	Hold(id int64)
	Release(id int64)
	// Reserve makes a reservation, Unreserve deletes one. Both return "done" or "refused": 24.11 can do neither by REST.
	Reserve(r reservation) string
	Unreserve(name string) string
	// Stop ends slurmctld, Start starts it with what it saved, or without.
	Stop()
	Start(keepState bool)
}

// system is one Slurm, the fake or a real one.
type system struct {
	driver
	t      *testing.T
	name   string
	client *rest.Client
	http   http.Client
	issuer token.Issuer

	// times are the times of the reasons, as they were seen last, and set the steps in which they changed.
	times map[string]int64
	set   map[string]int
	step  int
}

// reservation is a reservation for user alice, of an hour from now on.
type reservation struct{ name, nodes, flags string }

// number is a number of slurmrestd.
type number struct {
	Number int64 `json:"number"`
}

// nodeRecord is what is compared of a node.
type nodeRecord struct {
	Name        string   `json:"name"`
	State       []string `json:"state"`
	Reason      string   `json:"reason"`
	User        string   `json:"reason_set_by_user"`
	Changed     number   `json:"reason_changed_at"`
	CPUs        int      `json:"cpus"`
	AllocCPUs   int      `json:"alloc_cpus"`
	Memory      int64    `json:"real_memory"`
	Weight      int      `json:"weight"`
	Features    []string `json:"features"`
	Active      []string `json:"active_features"`
	Gres        string   `json:"gres"`
	Comment     string   `json:"comment"`
	Extra       string   `json:"extra"`
	Instance    string   `json:"instance_id"`
	Type        string   `json:"instance_type"`
	SpecCores   int      `json:"specialized_cores"`
	SpecMemory  int64    `json:"specialized_memory"`
	Reservation string   `json:"reservation"`
}

// jobRecord is what is compared of a job.
type jobRecord struct {
	ID       int64    `json:"job_id"`
	State    []string `json:"job_state"`
	Nodes    string   `json:"nodes"`
	Restarts int      `json:"restart_cnt"`
}

// reservationRecord is what is compared of a reservation.
type reservationRecord struct {
	Name  string   `json:"name"`
	Nodes string   `json:"node_list"`
	Flags []string `json:"flags"`
	Users string   `json:"users"`
}

// as returns a client with the token of some user.
func (s *system) as(user string) *rest.Client {
	s.t.Helper()
	client, err := rest.NewClient("http://"+strings.ReplaceAll(s.name, " ", "-"), issuer(s.t, user), rest.Options{Transport: s.http.Transport})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// call asks slurmrestd without the client of the product and reads the answer as it comes.
func (s *system) call(method, path, body string, into any) (status int, err error) {
	version, err := s.client.Version(s.t.Context())
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, "http://slurm/slurm/"+version+"/"+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	secret, _, err := s.issuer.Token(time.Now())
	if err != nil {
		return 0, err
	}
	request.Header.Set("X-SLURM-USER-TOKEN", secret)
	request.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // a test
	return response.StatusCode, json.NewDecoder(response.Body).Decode(into)
}

// get reads a list of slurmrestd.
func (s *system) get(resource string, into any) error {
	status, err := s.call(http.MethodGet, resource+"/", "", into)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("GET %s: %d", resource, status)
	}
	return err
}

// post changes node a by a message that the product does not send, and returns the number with which Slurm answers.
func (s *system) post(body string) string {
	var answer struct {
		Errors []struct {
			Number int `json:"error_number"`
		}
	}
	status, err := s.call(http.MethodPost, "node/a", body, &answer)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %v", status, answer.Errors)
}

// reported is how much memory a machine has, which is another amount in the fake.
var reported = regexp.MustCompile(`reported:\d+ <`)

// look returns in lines what Slurm shows: a line for each node, job and reservation.
func (s *system) look() (string, error) {
	var nodes struct{ Nodes []nodeRecord }
	var jobs struct{ Jobs []jobRecord }
	var reservations struct{ Reservations []reservationRecord }
	if err := s.get("nodes", &nodes); err != nil {
		return "", err
	}
	if err := s.get("jobs", &jobs); err != nil {
		return "", err
	}
	if err := s.get("reservations", &reservations); err != nil {
		return "", err
	}
	var out strings.Builder
	slices.SortFunc(nodes.Nodes, func(a, b nodeRecord) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range nodes.Nodes {
		// The backfill scheduler marks nodes as PLANNED for pending jobs, when it has a mind to; it means nothing to us.
		state := slices.DeleteFunc(n.State, func(flag string) bool { return flag == "PLANNED" })
		fmt.Fprintf(&out, "%s %s", n.Name, strings.Join(state, "+"))
		if n.Reason != "" {
			fmt.Fprintf(&out, " (%s by %s in step %d)", reported.ReplaceAllString(n.Reason, "reported:N <"), n.User, s.since(n))
		} else if n.Changed.Number != 0 {
			out.WriteString(" (no reason, but its time)")
		}
		fmt.Fprintf(&out, " cpus=%d/%d memory=%d weight=%d spec=%d,%d", n.AllocCPUs, n.CPUs, n.Memory, n.Weight, n.SpecCores, n.SpecMemory)
		for _, field := range [][2]string{
			{"features", strings.Join(n.Features, ",")}, {"active", strings.Join(n.Active, ",")}, {"gres", n.Gres}, {"comment", n.Comment},
			{"extra", n.Extra}, {"instance", n.Instance}, {"type", n.Type}, {"reservation", n.Reservation},
		} {
			if field[1] != "" {
				fmt.Fprintf(&out, " %s=%s", field[0], field[1])
			}
		}
		out.WriteString("\n")
	}
	for _, j := range jobs.Jobs {
		// 26.05 names the nodes of a job in the order in which it took them, which does not matter here.
		nodes, err := hostlist.Expand(j.Nodes, 10)
		if err != nil {
			return "", err
		}
		slices.Sort(nodes)
		fmt.Fprintf(&out, "job %d %s on %s", j.ID, strings.Join(j.State, "+"), nodes)
		if j.Restarts > 0 {
			fmt.Fprintf(&out, " restarts=%d", j.Restarts)
		}
		out.WriteString("\n")
	}
	for _, r := range reservations.Reservations {
		slices.Sort(r.Flags)
		fmt.Fprintf(&out, "reservation %s of %s for %s: %s\n", r.Name, r.Nodes, r.Users, strings.Join(r.Flags, ","))
	}
	return out.String(), nil
}

// since returns the step in which the reason of a node got its time.
func (s *system) since(n nodeRecord) int {
	if s.times[n.Name] != n.Changed.Number {
		s.times[n.Name], s.set[n.Name] = n.Changed.Number, s.step
	}
	return s.set[n.Name]
}

// update changes nodes by REST; a refusal is returned in Slurm's words.
func (s *system) update(nodes string, u rest.NodeUpdate) string {
	return refusal(s.client.UpdateNodes(s.t.Context(), nodes, u))
}

// refusal is Slurm's error in few words.
func refusal(err error) string {
	if failure, ok := errors.AsType[*rest.Error](err); ok {
		return fmt.Sprintf("%s %d", failure.Kind, failure.Code)
	}
	if err != nil {
		return err.Error()
	}
	return "done"
}

// refused returns a refusal; what the release cannot do at all is refused by the client.
func (s *system) refused(err error) string {
	s.t.Helper()
	if failure, ok := errors.AsType[*rest.Error](err); ok {
		return fmt.Sprintf("%s %d", failure.Kind, failure.Code)
	}
	return doneOrRefused(err)
}
