// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// post updates the nodes of a body, or the one of the path.
func (s *Slurm) post(version, user, name string, body []byte) reply {
	var message struct {
		Name           []string  `json:"name"`
		State          []string  `json:"state"`
		Reason         string    `json:"reason"`
		Comment        *string   `json:"comment"`
		Extra          *string   `json:"extra"`
		Topology       *string   `json:"topology_str"`
		Features       *[]string `json:"features"`
		FeaturesActive *[]string `json:"features_act"`
		Weight         *struct {
			Number int `json:"number"`
		} `json:"weight"`
	}
	if json.Unmarshal(body, &message) != nil {
		return reply{status: http.StatusBadRequest, body: []byte("Failure during parsing"), text: true}
	}
	lists := message.Name
	if name != "" {
		lists = []string{name}
	}
	c := change{
		reason: message.Reason, comment: message.Comment, extra: message.Extra, topology: message.Topology,
		features: message.Features, active: message.FeaturesActive,
	}
	if message.Weight != nil {
		c.weight = &message.Weight.Number
	}
	if len(message.State) > 0 {
		c.state = strings.Join(message.State, ",")
	}
	before := s.nodeTime
	s.nodeTime = time.Time{}
	e := s.update(user, lists, c)
	touched := !s.nodeTime.IsZero()
	if !touched {
		s.nodeTime = before
	}
	nodes := strings.Join(lists, ",")
	if touched {
		s.writes = append(s.writes, Write{
			Time: s.clock, User: user, Verb: "update", Nodes: nodes, State: c.state, Reason: c.reason, Comment: c.comment,
		})
	}
	if e != nil {
		return s.refuse(version, "Failure to update node "+nodes, e)
	}
	return s.result(version, http.StatusOK, nil)
}

func (s *Slurm) deleteNodes(version, user, list string) reply {
	if user != "slurm" && user != "root" {
		return s.refuse(version, "Failure to delete node "+list, &Error{Number: 2010, Text: "Invalid user id"})
	}
	if e := s.remove(list); e != nil {
		return s.refuse(version, "Failure to delete node "+list, e)
	}
	s.writes = append(s.writes, Write{Time: s.clock, User: user, Verb: "delete", Nodes: list})
	return s.result(version, http.StatusOK, nil)
}

// create makes nodes of a line of slurm.conf. Of its keys NodeName, CPUs, RealMemory, Feature, Gres, Weight, CoreSpecCount, MemSpecLimit
// and State=EXTERNAL or CLOUD are understood.
func (s *Slurm) create(version, user string, body []byte) reply {
	var message struct {
		Line string `json:"node_conf"`
	}
	if json.Unmarshal(body, &message) != nil {
		return reply{status: http.StatusBadRequest, body: []byte("Failure during parsing"), text: true}
	}
	fields := map[string]string{}
	for field := range strings.FieldsSeq(message.Line) {
		key, value, _ := strings.Cut(field, "=")
		fields[key] = value
	}
	names, err := hostlist.Expand(fields["NodeName"], maxNodes)
	if user != "slurm" && user != "root" || err != nil || len(names) == 0 {
		return s.refuse(version, "Failure to create nodes", &Error{Number: 2010, Text: "Invalid user id"})
	}
	for _, name := range names {
		if s.nodes[name] != nil {
			return s.refuse(version, "Failure to create node", &Error{Number: 2168, Text: "Node already exists in the node table"})
		}
		registration := Node{Name: name, external: fields["State"] == "EXTERNAL", cloud: fields["State"] == "CLOUD"}
		registration.CPUs, _ = strconv.Atoi(fields["CPUs"])
		registration.RealMemory, _ = strconv.ParseInt(fields["RealMemory"], 10, 64)
		registration.Weight, _ = strconv.Atoi(fields["Weight"])
		registration.CoreSpecCount, _ = strconv.Atoi(fields["CoreSpecCount"])
		registration.MemSpecLimit, _ = strconv.ParseInt(fields["MemSpecLimit"], 10, 64)
		registration.Gres = fields["Gres"]
		if features := cmp.Or(fields["Feature"], fields["Features"]); features != "" {
			registration.Features = strings.Split(features, ",")
		}
		s.register(registration)
	}
	s.writes = append(s.writes, Write{Time: s.clock, User: user, Verb: "create", Nodes: fields["NodeName"]})
	return s.result(version, http.StatusOK, nil)
}
