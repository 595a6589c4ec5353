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

	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
)

// driver does to one Slurm what nobody can do by REST.
type driver interface {
	// Register starts the slurmd of a node, anew if it runs.
	Register(nodes ...fake.Node)
	// Lose ends the slurmds of nodes, which slurmctld notices in its time.
	Lose(names ...string)
	Submit(job fake.Job) int64
	// Finish lets a job end by itself.
	Finish(id int64)
	Cancel(id int64)
	Suspend(id int64)
	Resume(id int64)
	Requeue(id int64)
	Hold(id int64)
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

	// times are those of the reasons, as they were seen last, and set the steps in which they changed.
	times map[string]int64
	set   map[string]int
	step  int
}

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
	Priority number   `json:"priority"`
}

// get reads an answer of slurmrestd as it comes.
func (s *system) get(resource string, into any) error {
	version, err := s.client.Version(s.t.Context())
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://slurm/slurm/"+version+"/"+resource+"/", nil)
	if err != nil {
		return err
	}
	secret, _, err := s.issuer.Token(time.Now())
	if err != nil {
		return err
	}
	request.Header.Set("X-SLURM-USER-TOKEN", secret)
	response, err := s.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // a test
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", resource, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// reported is how much memory a machine has, which is another amount in the fake.
var reported = regexp.MustCompile(`reported:\d+ <`)

// look says in lines what the Slurm shows: a line for each node, and one for each job.
func (s *system) look() (string, error) {
	var nodes struct{ Nodes []nodeRecord }
	var jobs struct{ Jobs []jobRecord }
	if err := s.get("nodes", &nodes); err != nil {
		return "", err
	}
	if err := s.get("jobs", &jobs); err != nil {
		return "", err
	}
	var out strings.Builder
	slices.SortFunc(nodes.Nodes, func(a, b nodeRecord) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range nodes.Nodes {
		fmt.Fprintf(&out, "%s %s", n.Name, strings.Join(n.State, "+"))
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
		fmt.Fprintf(&out, "job %d %s on %q", j.ID, strings.Join(j.State, "+"), j.Nodes)
		if j.Restarts > 0 {
			fmt.Fprintf(&out, " restarts=%d", j.Restarts)
		}
		out.WriteString("\n")
	}
	return out.String(), nil
}

// since is the step in which the reason of a node got its time.
func (s *system) since(n nodeRecord) int {
	if s.times[n.Name] != n.Changed.Number {
		s.times[n.Name], s.set[n.Name] = n.Changed.Number, s.step
	}
	return s.set[n.Name]
}

// update changes nodes by REST; a refusal is told in Slurm's words.
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
