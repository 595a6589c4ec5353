// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// A reply is what goes back over HTTP.
type reply struct {
	status int
	body   []byte
	text   bool // the body is text, not JSON
	// late makes the body instead, when the lock is free again, as slurmrestd does with slurmctld's answer.
	late func() []byte
	// stream writes the body instead, when it would be too long to hold.
	stream func(io.Writer)
}

// maxBody bounds the body of a request.
const maxBody = 16 << 20

// ServeHTTP answers as slurmrestd does, but for the fault that SetFault's function finds.
func (s *Slurm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	fault := s.faultFor(r)
	if fault.Hold != nil {
		select {
		case <-fault.Hold:
		case <-r.Context().Done():
			return
		}
	}
	if fault.Latency > 0 {
		timer := time.NewTimer(fault.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	replaced := fault.Cut || fault.Status != 0 || fault.Error != nil
	var answer reply
	if !replaced || fault.Apply {
		answer = s.respond(r, body, fault)
	}
	switch {
	case fault.Status != 0:
		answer = reply{status: fault.Status, body: []byte(fault.Body), text: true}
	case fault.Error != nil:
		answer = s.result("v0.0.42", http.StatusOK, fault.Error)
	}
	if answer.late != nil {
		answer.body = answer.late()
	}
	if fault.Cut {
		s.count(r, len(body), reply{}, 0)
		panic(http.ErrAbortHandler) // net/http's way to close the connection
	}
	w.Header().Set("Content-Type", map[bool]string{true: "text/plain", false: "application/json"}[answer.text])
	if answer.status >= 400 {
		w.Header().Set("Connection", "close")
	}
	if answer.stream != nil {
		counted := &countingWriter{to: w}
		w.WriteHeader(answer.status)
		answer.stream(counted)
		s.count(r, len(body), answer, counted.n)
		return
	}
	s.count(r, len(body), answer, int64(len(answer.body)))
	if answer.status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(answer.body)))
	}
	w.WriteHeader(answer.status)
	_, _ = w.Write(answer.body) // a client that is gone has nothing to complain about
}

// countingWriter counts what is written, and forgives a client that is gone.
type countingWriter struct {
	to   io.Writer
	n    int64
	gone bool
}

// Write is part of io.Writer.
func (c *countingWriter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	if !c.gone {
		_, err := c.to.Write(p)
		c.gone = err != nil
	}
	return len(p), nil
}

func (s *Slurm) faultFor(r *http.Request) Fault {
	s.mu.Lock()
	find := s.fault
	s.mu.Unlock()
	if find != nil {
		if fault := find(r); fault != nil {
			return *fault
		}
	}
	return Fault{}
}

func (s *Slurm) count(r *http.Request, received int, answer reply, sent int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, resource, name := route(r.URL.Path)
	if resource == "jobs" && name != "" {
		resource += "/" + name
	}
	if _, found := routeAccounting(r.URL.Path); found {
		resource = accountingJobs
	}
	if s.counters.Calls == nil {
		s.counters.Calls = map[string]int{}
	}
	s.counters.Calls[r.Method+" "+resource]++
	s.counters.Received += int64(received)
	s.counters.Sent += sent
	if answer.status == http.StatusNotModified {
		s.counters.Unchanged++
	}
}

// route takes /slurm/v0.0.45/node/worker-0 apart.
func route(path string) (version, resource, name string) {
	parts := strings.SplitN(strings.TrimPrefix(path, "/slurm/"), "/", 3)
	parts = append(parts, "", "")
	return parts[0], parts[1], strings.TrimSuffix(parts[2], "/")
}

// respond carries a request out.
func (s *Slurm) respond(r *http.Request, body []byte, fault Fault) reply {
	defer s.lock()()
	secret := r.Header.Get("X-Slurm-User-Token")
	if secret == "" {
		return reply{status: http.StatusUnauthorized, body: []byte("Authentication failure"), text: true}
	}
	if version, found := routeAccounting(r.URL.Path); found && s.options.Accounting && slices.Contains(s.versions, version) {
		return s.getAccountingJobs(s.shape(version), r.URL.Query())
	}
	version, resource, name := route(r.URL.Path)
	if !strings.HasPrefix(r.URL.Path, "/slurm/") || !slices.Contains(s.versions, version) {
		return s.unknownURL()
	}
	user, good := s.authenticate(secret)
	shape := s.shape(version)
	if r.Method+" "+resource == "GET ping" {
		shape.pingAnswer(s.pings(good))
		return reply{status: http.StatusOK, body: shape.b}
	}
	if first := s.served(r.Method + " " + resource); first == "" || version < first {
		return s.unknownURL()
	}
	if s.down {
		return s.result(version, http.StatusBadGateway,
			&Error{1800, "Failure to query " + resource, "Unable to contact slurm controller (connect failure)"})
	}
	if !good {
		return s.result(version, http.StatusNetworkAuthenticationRequired,
			&Error{1007, "Failure to query " + resource, "Protocol authentication error"})
	}
	switch r.Method + " " + resource {
	case "POST nodes", "POST node":
		return s.post(version, user, name, body)
	case "POST new":
		return s.create(version, user, body)
	case "DELETE node":
		return s.deleteNodes(version, user, name)
	case "POST reservation":
		return s.putReservation(shape, user, body)
	case "DELETE reservation":
		return s.deleteReservation(shape, user, name)
	case "DELETE partition":
		return s.deletePartition(shape, user, name)
	case "POST job":
		return s.submit(shape, user, body)
	case "GET job":
		return s.getJob(shape, name)
	case "DELETE jobs":
		return s.cancelJobs(shape, user, body)
	case "GET jobs":
		return s.getJobs(shape, name, r.URL.Query())
	}
	return s.get(shape, resource, name, r.URL.Query().Get("update_time"), user, fault)
}

// served is the first version of the API that has a call, or nothing when this release has it in none.
func (s *Slurm) served(call string) string {
	switch call {
	case "GET nodes", "POST nodes", "GET node", "POST node", "DELETE node", "GET jobs", "GET reconfigure", "GET partitions",
		"GET reservations", "GET diag", "POST job", "GET job", "DELETE jobs":
		return "v0.0.40"
	case "DELETE reservation":
		if s.old() {
			return ""
		}
		return "v0.0.42"
	case "POST reservation":
		return "v0.0.43"
	case "POST new":
		return "v0.0.44"
	case "GET conf", "DELETE partition":
		return "v0.0.45"
	}
	return ""
}

func (s *Slurm) shape(version string) *shape {
	return &shape{writer: &writer{compact: s.options.Compact}, slurm: s, version: version}
}

func (s *Slurm) get(w *shape, resource, name, since, user string, fault Fault) reply {
	switch resource {
	case "nodes":
		switch {
		case since != "" && w.version == "v0.0.41":
			return s.refuse(w.version, "Parsing of "+since+" for timestamp failed", &Error{Number: 9202, Text: "Unable to convert Data type"})
		case unchanged(since, s.nodeTime):
			return reply{status: http.StatusNotModified}
		case s.old() && unchanged(since, s.partTime):
			return s.refuse(w.version, "Unable to query partitions", &Error{Number: -1, Text: "Unspecified error"})
		}
		nodes := make([]shownNode, 0, len(s.order))
		for _, name := range s.order {
			if fault.KeepNode == nil || fault.KeepNode(name) {
				nodes = append(nodes, s.show(s.nodes[name]))
			}
		}
		return w.nodesLater(nodes, s.clock)
	case "node":
		n := s.nodes[name]
		if n == nil {
			return s.result(w.version, http.StatusOK, &Error{0, "Failure to query node " + name, "No error"})
		}
		return w.nodesLater([]shownNode{s.show(n)}, s.clock)
	case "partitions":
		w.partitionsAnswer(s.clock)
	case "reservations":
		var list []*Reservation
		for _, name := range slices.Sorted(maps.Keys(s.reservations)) {
			list = append(list, s.reservations[name])
		}
		w.reservationsAnswer(list, s.resvTime)
	case "diag":
		w.diagAnswer(s.clock)
	case "conf":
		w.confAnswer(s.parameters)
	case "reconfigure":
		if user != "slurm" && user != "root" {
			return s.refuse(w.version, "slurm_reconfigure() failed", &Error{Number: 2010, Text: "Invalid user id"})
		}
		s.partTime = s.clock
		s.miss()
		s.registerAll()
		s.startAnew()
		s.writes = append(s.writes, Write{Time: s.clock, User: user, Verb: "reconfigure"})
		w.result()
	}
	return reply{status: http.StatusOK, body: w.b}
}

// getJobs lists jobs, or their states only. A long list is not held: the jobs are copied, and written when the lock is
// free again.
func (s *Slurm) getJobs(w *shape, name string, query url.Values) reply {
	since := query.Get("update_time")
	if name == "state" {
		w.jobStatesAnswer(query["job_id"])
		return reply{status: http.StatusOK, body: w.b}
	}
	if unchanged(since, s.jobTime) {
		w.jobsAnswer(nil, s.clock, true)
		return reply{status: http.StatusOK, body: w.b}
	}
	jobs := make([]job, 0, len(s.jobs))
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		jobs = append(jobs, s.shown(s.jobs[id]))
	}
	now := s.clock
	return reply{status: http.StatusOK, stream: func(to io.Writer) {
		w.out = to
		w.jobsAnswer(jobs, now, false)
		w.flush()
	}}
}

// unchanged compares as slurmctld does, in whole seconds: a change within the second of since counts.
func unchanged(since string, changed time.Time) bool {
	seconds, err := strconv.ParseInt(since, 10, 64)
	return err == nil && seconds-1 >= changed.Unix()
}

// refuse answers with Slurm's error; the status for it changed between the releases.
func (s *Slurm) refuse(version, description string, e *Error) reply {
	status := http.StatusUnprocessableEntity
	if s.old() {
		status = http.StatusInternalServerError
	}
	return s.result(version, status, &Error{e.Number, description, e.Text})
}

func (s *Slurm) result(version string, status int, e *Error) reply {
	w := s.shape(version)
	if e != nil {
		w.result(*e)
	} else {
		w.result()
	}
	return reply{status: status, body: w.b}
}

func (s *Slurm) unknownURL() reply {
	text := "Unable to find requested URL endpoint. Please query the '/openapi/v3' endpoint or visit " +
		"'https://slurm.schedmd.com/rest_api.html' for the OpenAPI specification which includes a list of all possible slurmrestd endpoints."
	if s.old() {
		text = "Unable find requested URL. Please view /openapi/v3 for API reference."
	}
	return reply{status: http.StatusNotFound, body: []byte(text), text: true}
}

// authenticate returns the user of a token, and whether slurmctld accepts it.
func (s *Slurm) authenticate(secret string) (user string, good bool) {
	claims := jwt.MapClaims{}
	user = "slurm"
	if s.key == nil {
		if _, _, err := jwt.NewParser().ParseUnverified(secret, claims); err == nil {
			user, _ = claims["sun"].(string)
		}
		return user, true
	}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"HS256"}), jwt.WithExpirationRequired(), jwt.WithTimeFunc(s.options.Now))
	_, err := parser.ParseWithClaims(secret, claims, func(*jwt.Token) (any, error) { return s.key, nil })
	user, _ = claims["sun"].(string)
	return user, err == nil && user != ""
}
