// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

var updateEdits = flag.Bool("update", false, "write the table of docs/users/edits.md anew")

// editedConf is what the edits begin with. All jobs are in partition target, and on node a, which is in NodeSet first; one that is held may
// take partition spare, too.
const editedConf = `SelectTypeParameters=CR_Core
Licenses=lic:4
NodeSet=first Feature=x
NodeSet=second Feature=y
` + targetLine + `
PartitionName=spare Nodes=second MaxTime=INFINITE State=UP
`

const targetLine = "PartitionName=target Nodes=first,second MaxTime=INFINITE State=UP"

// staticConf are the lines of nodes a and b, for the edits of such lines. With the others the nodes register themselves.
const staticConf = nodeLine + "\nNodeName=b CPUs=16 RealMemory=100 NodeAddr=10.9.8.7 Port=17102 Feature=y\n"

const nodeLine = "NodeName=a CPUs=16 RealMemory=100 NodeAddr=10.9.8.7 Port=17101 Feature=x"

// An edit is a change of slurm.conf, and what becomes of jobs by it.
type edit struct {
	// name is the name in the documentation, and pairs are texts with what takes their place.
	name  string
	pairs []string
	// by24 and by26 are what the two releases do.
	by24, by26 effect
}

// An effect is what an edit does.
type effect string

const (
	endsNone   effect = "nothing"
	endsAll    effect = "ends all jobs of the partition, one that is held for `target,spare`, too"
	endsNamed  effect = "ends the jobs that name the node, and queues the others again that run there"
	requeues   effect = "queues the jobs again that run there, and ends those with `--no-requeue`"
	endsOthers effect = "ends all jobs of the partition; one that is held for `target,spare` stays, for `spare`"
	stops      effect = "slurmctld does not serve"
)

// flagged returns the line of the partition with another option.
func flagged(option string) []string { return []string{targetLine, targetLine + " " + option} }

// lined returns the line of node a with something else in it.
func lined(was, is string) []string {
	return []string{nodeLine, strings.Replace(nodeLine, was, is, 1)}
}

// static reports whether the edit is one of the line of a node.
func (e edit) static() bool { return strings.Contains(e.pairs[0], "NodeName=") }

// edits returns those that the documentation lists.
func edits() []edit {
	state := func(s string) []string {
		return []string{targetLine, strings.Replace(targetLine, "State=UP", "State="+s, 1)}
	}
	return []edit{
		{"a partition goes", []string{targetLine + "\n", ""}, endsAll, endsOthers},
		{"a partition is renamed", []string{"PartitionName=target", "PartitionName=other"}, endsAll, endsOthers},
		{"a partition loses the nodes on which the jobs run", []string{"Nodes=first,second", "Nodes=second"}, endsNone, endsNone},
		{"a partition loses all nodes", []string{"Nodes=first,second ", ""}, endsNone, endsNone},
		{"the `NodeSet` of a partition goes", []string{"NodeSet=first Feature=x\n", "", "Nodes=first,second", "Nodes=second"}, endsNone, endsNone},
		{"a `NodeSet` gets another `Feature`", []string{"Feature=x", "Feature=z"}, endsNone, endsNone},
		{"`State=DOWN`", state("DOWN"), endsNone, endsNone},
		{"`State=DRAIN`", state("DRAIN"), endsNone, endsNone},
		{"`State=INACTIVE`", state("INACTIVE"), endsNone, endsNone},
		{"`MaxTime` below what the jobs have", []string{targetLine, strings.Replace(targetLine, "INFINITE", "1", 1)}, endsNone, endsNone},
		{"`MaxNodes=0`", flagged("MaxNodes=0"), endsNone, endsNone},
		{"`AllowAccounts` of others", flagged("AllowAccounts=nobody"), endsNone, endsNone},
		{"`AllowGroups` of others", flagged("AllowGroups=root"), endsNone, endsNone},
		{"`Licenses` go that jobs have", []string{"Licenses=lic:4\n", ""}, endsNone, endsNone},
		{"`GresTypes` go", []string{"GresTypes=gpu\n", ""}, endsNone, endsNone},
		{"`SelectTypeParameters` from `CR_Core` to `CR_Core_Memory`", []string{"CR_Core\n", "CR_Core_Memory\n"}, endsNone, endsNone},
		{"`MaxNodeCount` below the number of nodes", []string{"MaxNodeCount=1024", "MaxNodeCount=2"}, endsNone, endsNone},
		{"`PreemptMode`", []string{"Licenses", "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\nLicenses"}, endsNone, endsNone},
		{"`SelectType` from `select/cons_tres` to `select/linear`, with `MaxNodeCount`", []string{"select/cons_tres", "select/linear", "SelectTypeParameters=CR_Core\n", ""}, stops, stops},
		{"a `NodeName` line goes", []string{nodeLine + "\n", ""}, endsNamed, endsNamed},
		{"a node of a `NodeName` line is renamed", []string{"NodeName=a", "NodeName=c"}, endsNamed, endsNamed},
		{"`NodeName` gets other `CPUs`", lined("CPUs=16", "CPUs=32"), requeues, requeues},
		{"`NodeName` gets `State=DOWN`", lined("Feature=x", "Feature=x State=DOWN"), requeues, requeues},
		{"`NodeName` gets `State=DRAIN`", lined("Feature=x", "Feature=x State=DRAIN"), endsNone, endsNone},
		{"`NodeName` gets another `Feature`", lined("Feature=x", "Feature=z"), endsNone, endsNone},
		{"`NodeName` gets less `RealMemory`", lined("RealMemory=100", "RealMemory=50"), endsNone, endsNone},
		{"`ClusterName`", []string{"ClusterName=box", "ClusterName=other"}, stops, stops},
	}
}

// table returns the edits in the form of the documentation.
func table() string {
	var out strings.Builder
	out.WriteString("| edit | Slurm 24.11 | Slurm 26.05 |\n|---|---|---|\n")
	for _, e := range edits() {
		fmt.Fprintf(&out, "| %s | %s | %s |\n", e.name, e.by24, e.by26)
	}
	return out.String()
}

func TestTheTableOfEditsIsDocumented(t *testing.T) {
	const path = "../../docs/users/edits.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)(^\|.*\n)+`).ReplaceAllLiteralString(string(text), table())
	if *updateEdits {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s (-want +got), run with -update:\n%s", path, diff)
	}
}

// TestWhatEditsDoToJobs is part of "make edits".
func TestWhatEditsDoToJobs(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		for _, e := range edits() {
			for _, restarts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %s, restarted: %t", root.Release, e.name, restarts), func(t *testing.T) {
					t.Parallel()
					c := &edited{t: t, jobs: map[string]string{}}
					if c.static = e.static(); c.static {
						c.box = realslurm.Start(t, root, staticConf+editedConf)
					} else {
						c.box = realslurm.Start(t, root, editedConf)
					}
					t.Cleanup(func() {
						if t.Failed() {
							t.Logf("the jobs are %v", c.states())
						}
					})
					c.submitAll()
					want := e.by26
					if root.Release == "24.11" {
						want = e.by24
					}
					before := c.states()
					c.edit(e.pairs, restarts, want)
					c.expect(before, want)
				})
			}
		}
	}
}

// edited is a cluster whose configuration is edited, with the numbers of its jobs.
type edited struct {
	t    *testing.T
	box  *realslurm.Box
	jobs map[string]string
	// static is true if the nodes have lines.
	static bool
}

// heldForBoth is the job that may take another partition.
const heldForBoth = "held for both"

func (c *edited) submit(name string, args ...string) {
	args = append([]string{"sbatch", "--parsable", "--output=/dev/null", "--time=100", "--partition=target"}, args...)
	c.jobs[name] = c.box.Run(asAlice(append(args, "/mnt/job")...)...)
}

// submitAll submits a job of each kind, and waits until they are in their states.
func (c *edited) submitAll() {
	if c.static {
		c.box.StartStatic("a", 16)
		c.box.StartStatic("b", 16)
	} else {
		c.box.StartSlurmd("a", 16, "RealMemory=100 Feature=x Gres=gpu:0")
		c.box.StartSlurmd("b", 16, "RealMemory=100 Feature=y Gres=gpu:0")
	}
	c.box.Wait("the nodes to be idle", func() bool {
		return strings.Count(c.box.Run("sinfo", "-N", "-h", "-p", "target", "-o", "%T"), "idle") == 2
	})
	if err := os.WriteFile(c.box.Path("job"), []byte("#!/bin/bash\nexec sleep 1000\n"), 0o755); err != nil {
		c.t.Fatal(err)
	}
	const on = "--nodelist=a"
	c.submit("running", on)
	c.submit("not requeued", on, "--no-requeue")
	c.submit("with a license", on, "--licenses=lic:1")
	c.submit("suspended", on)
	c.submit("array", on, "--array=0-1%1")
	c.jobs["array task that waits"] = c.jobs["array"] + "_1"
	c.jobs["array"] += "_0"
	c.submit("heterogeneous", on, "--ntasks=1", ":", "--partition=target", "--nodelist=b", "--ntasks=1")
	for name := range maps.Clone(c.jobs) {
		if name != "array task that waits" {
			c.box.Wait("job "+name+" to run", func() bool { return strings.HasPrefix(c.state(name), "RUNNING") })
		}
	}
	c.submit("heterogeneous that waits", on, "--exclusive", ":", "--partition=target", "--nodelist=b", "--exclusive")
	c.submit("pending", on, "--exclusive")
	c.submit("held", on, "--hold")
	c.submit(heldForBoth, "--hold", "--partition=target,spare")
	c.box.Run("scontrol", "suspend", c.jobs["suspended"])
	c.box.Wait("a job to be suspended", func() bool { return strings.HasPrefix(c.state("suspended"), "SUSPENDED") })
}

// state returns the state of a job, with how often it was requeued; "unknown" when Slurm does not know it.
func (c *edited) state(name string) string {
	out, err := c.box.Try("scontrol", "show", "job", c.jobs[name], "--oneliner")
	if err != nil {
		return "unknown"
	}
	out, _, _ = strings.Cut(out, "\n") // the first component
	fields := regexp.MustCompile(`JobState=(\S+).*Restarts=(\d+)`).FindStringSubmatch(out)
	if fields == nil {
		return "unknown"
	}
	return fields[1] + ", restarts " + fields[2]
}

func (c *edited) states() map[string]string {
	out := map[string]string{}
	for name := range c.jobs {
		out[name] = c.state(name)
	}
	return out
}

// edit changes slurm.conf and has slurmctld read it.
func (c *edited) edit(pairs []string, restarts bool, want effect) {
	path := c.box.Path("etc/slurm/slurm.conf")
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	changed := strings.NewReplacer(pairs...).Replace(string(text))
	if changed == string(text) {
		c.t.Fatal("the edit changes nothing")
	}
	if restarts {
		c.box.StopController()
	}
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		c.t.Fatal(err)
	}
	switch {
	case restarts && want == stops:
		c.box.LaunchController()
	case restarts:
		c.box.StartController()
	default:
		if out, err := c.box.Try("scontrol", "reconfigure"); err != nil && want != stops {
			c.t.Fatalf("scontrol reconfigure: %v, %s", err, out)
		}
	}
}

// watched is how long nothing may happen to jobs.
const watched = 10 * time.Second

// expect fails the test when the edit has another effect.
func (c *edited) expect(before map[string]string, want effect) {
	c.t.Helper()
	if want == requeues {
		c.box.Wait("jobs to be queued again", func() bool {
			return c.state("not requeued") == "NODE_FAIL, restarts 0" && strings.HasSuffix(c.state("running"), ", restarts 1") && strings.HasSuffix(c.state("with a license"), ", restarts 1")
		})
		return
	}
	after := maps.Clone(before)
	for name := range after {
		switch {
		case want == stops:
			after[name] = "unknown"
		case want == endsAll, (want == endsOthers || want == endsNamed) && name != heldForBoth:
			after[name] = "NODE_FAIL, restarts 0"
		}
	}
	if want != endsNone {
		c.box.Wait("the effect of the edit", func() bool { return maps.Equal(c.states(), after) })
	}
	<-time.After(watched)
	if diff := cmp.Diff(after, c.states()); diff != "" {
		c.t.Errorf("an edit that does %s to jobs, of which they become (-want +got):\n%s", want, diff)
	}
}
