// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

func TestPagesAreAsTheyWere(t *testing.T) {
	stale := example(4)
	stale.Slurm.Trust, stale.Slurm.Taken, stale.Slurm.Why = slurmcache.Stale, noon().Add(-90*time.Second), "Slurm has not answered for 1m30s"
	stale.Nodes = append(stale.Nodes, Node{Name: "login-node", Registered: node.Yes, State: node.Parse([]string{"IDLE"})})
	waiting := Facts{Now: noon(), Cluster: demo(), Waiting: true, Objects: []Object{{Kind: "Controller", Name: "demo"}}}
	dry := example(1)
	dry.NodeSets[0].DryRun = true
	queued, late := example(4), example(4)
	queued.Queue, queued.Partitions = exampleQueue(), map[string]int{"main": 4, "idle": 2}
	late.Queue = exampleQueue()
	late.Queue.Taken, late.Queue.Why, late.Queue.Missing = noon().Add(-10*time.Minute), "listing the states of Slurm jobs: no answer", 17
	for name, f := range map[string]Facts{"twenty": example(20), "stale": stale, "waiting": waiting, "dry-run": dry, "jobs": queued, "old-jobs": late} {
		t.Run(name, func(t *testing.T) { golden.Check(t, name+".html", []byte(page(t, newTemplates(), f))) })
	}
}

func TestThePageOfAllClustersIsAsItWas(t *testing.T) {
	other := Facts{Now: noon(), Cluster: slurmcache.Key{Namespace: "slurm", Name: "other"}}
	for name, all := range map[string][]Facts{"clusters": {example(20), other}, "no-clusters": nil} {
		var out strings.Builder
		if err := newTemplates().writeClusters(&out, NewClusters(all)); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, name+".html", []byte(out.String()))
	}
}

func TestHowOldStatesAre(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "less than 10 s old", -time.Minute: "less than 10 s old", 9 * time.Second: "less than 10 s old", 13 * time.Second: "10 s old",
		119 * time.Second: "115 s old", 2 * time.Minute: "2 min old", 119 * time.Minute: "119 min old", 50 * time.Hour: "50 h old",
	} {
		if got := age(noon(), noon().Add(-d), freshAge); got != want {
			t.Errorf("after %s they are %q, want %q", d, got, want)
		}
	}
	if got := age(noon(), time.Time{}, freshAge); got != "Slurm has not answered yet" {
		t.Errorf("without an answer they are %q", got)
	}
}

func TestNodesAreSortedByTheirNumbers(t *testing.T) {
	var nodes []Node
	for _, name := range []string{"b-2", "a-10", "a-9", "a", "a-09", "7", "a-99999999999999999999999"} {
		nodes = append(nodes, Node{Name: name})
	}
	var got []string
	for _, n := range byName(nodes) {
		got = append(got, n.Name)
	}
	if diff := cmp.Diff([]string{"7", "a", "a-09", "a-9", "a-10", "a-99999999999999999999999", "b-2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsSaidOfANode(t *testing.T) {
	for _, tt := range []struct {
		name string
		node Node
		want string
	}{
		{"Slurm has it", Node{Registered: node.Yes, State: node.Parse([]string{"IDLE"})}, "idle (IDLE)"},
		{"Slurm does not have it", Node{Registered: node.No}, "unknown (Slurm does not have it)"},
		{"nobody has said whether Slurm has it", Node{}, "unknown (it is not known whether Slurm has it)"},
		{"a user is named without a reason", Node{Registered: node.Yes, State: node.Parse([]string{"IDLE"}), Reason: node.Reason{SetBy: "root"}}, "idle (IDLE)"},
		{
			"all lines are there, each on its own",
			Node{
				Registered: node.Yes, State: node.Parse([]string{"IDLE", "DRAIN"}), Reason: node.Reason{Text: "a\nb", SetBy: "root"}, OutOfService: "o", Attention: "n", Plan: "p",
			},
			"drained (IDLE+DRAIN)\nReason: a b [root]\nOut of service: o\nNeeds attention: n\nPlan: p",
		},
		{
			"a long line is cut", Node{Plan: strings.Repeat("ä", maxLine+1)},
			"unknown (it is not known whether Slurm has it)\nPlan: " + strings.Repeat("ä", maxLine) + "…",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.node.Name = "w-0"
			if diff := cmp.Diff("w-0\n"+tt.want, cell(tt.node).Details); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEveryNodeIsInOneCellAndInTheLegend(t *testing.T) {
	for _, nodes := range []int{0, 1, chunkNodes, chunkNodes + 1, 1000} {
		f := example(nodes)
		f.Nodes = append(f.Nodes, Node{Name: "of-a-nodeset-that-is-gone", NodeSet: "gone"})
		p := NewPage(f)
		cells, counted := 0, 0
		for _, set := range p.Sets {
			for _, chunk := range set.Chunks {
				cells += len(chunk)
			}
		}
		for _, c := range p.Legend {
			counted += c.Nodes
		}
		if cells != nodes+1 || counted != nodes+1 || len(p.Legend) != int(states) {
			t.Errorf("%d nodes have %d cells, and the legend counts %d in %d states", nodes+1, cells, counted, len(p.Legend))
		}
	}
}

// What users and Slurm's administrators write never becomes an element of a page.
func FuzzTextStaysText(f *testing.F) {
	for _, seed := range []string{"", "<script>alert(1)</script>", "\" onfocus=alert(1) x=\"", "</i><b>", "' a\n&lt;", "\x00\xff"} {
		f.Add(seed)
	}
	templates := newTemplates()
	tags := func(html string) int { return strings.Count(html, "<") }
	build := func(text string) Facts {
		facts := example(3)
		facts.Nodes = slices.Clone(facts.Nodes)
		facts.Nodes[0].Reason = node.Reason{Text: "x" + text}
		facts.Nodes[0].OutOfService, facts.Nodes[0].Plan = "x"+text, "x"+text
		facts.Objects[1].Conditions[0].Message, facts.Slurm.Why = text, "x"+text
		facts.NodeSets[0].Status.Plan[0].Message = text
		facts.Queue, facts.Partitions = exampleQueue(), map[string]int{"x" + text: 1}
		facts.Queue.Why = "x" + text
		facts.Queue.Summary.Partitions[0].Name, facts.Queue.Summary.Partitions[0].Reasons[0].Text = "y"+text, text
		j := &facts.Queue.Summary.Waiting[0]
		j.Label, j.User, j.Partition, j.State, j.Reason = text, text, text, text, text
		return facts
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, got := tags(page(t, templates, build("plain"))), page(t, templates, build(text))
		if tags(got) != want || strings.Count(got, "title=\"") != 3 {
			t.Errorf("%q makes %d elements where plain text makes %d", text, tags(got), want)
		}
	})
}

func TestAPageAsksForNothingFromElsewhere(t *testing.T) {
	all := page(t, newTemplates(), example(20))
	for _, mark := range []string{"http:", "https:", "src=\"//", "style=", "onclick", "javascript:"} {
		if strings.Contains(all, mark) {
			t.Errorf("the page contains %q", mark)
		}
	}
	if n := strings.Count(all, "<script"); n != 1 {
		t.Errorf("it has %d scripts", n)
	}
	for _, name := range []string{"style.css", "script.js"} {
		content, err := web.ReadFile("web/" + name)
		if err != nil || strings.Contains(string(content), "://") || strings.Contains(string(content), "@import") || strings.Contains(string(content), "url(//") {
			t.Errorf("%s asks for something else: %v", name, err)
		}
		if !strings.Contains(all, fmt.Sprintf("%q", "/ui/"+name)) {
			t.Errorf("the page does not use %s", name)
		}
	}
}
