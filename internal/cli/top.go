// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

const topHelp = `Shows what jobs use: CPUs, memory and GPUs of each Slurm node, or of each partition, as ALLOCATED/TOTAL, and how many jobs there are.

On a terminal it is refreshed every --interval until Ctrl-C. Otherwise it is shown once, unless --watch is given.

It asks Slurm with scontrol and squeue in a login pod, for which you need the rights to list pods, and to get and create pods/exec. With only
the right to list pods, "top nodes" shows the states that the operator has written on the worker pods, and prints a warning.

Exit codes: 0 it was shown, 1 an error.`

const topExamples = `  # Nodes, until Ctrl-C
  kubectl slurm top

  # Partitions, once
  kubectl slurm top partitions --once

  # For a program
  kubectl slurm top nodes -o json`

// clearScreen moves the cursor of a terminal to its beginning, and clears what is behind it (ECMA-48, CUP and ED).
const clearScreen = "\x1b[H\x1b[J"

// topper shows what jobs use.
type topper struct {
	*session
	*connection
	partitions bool
	output     format
	// fromPods is true if the caller may not ask Slurm.
	fromPods bool
}

func (s *session) topCommand(ctx context.Context) *cobra.Command {
	var output format
	var once, watch bool
	var interval time.Duration
	command := &cobra.Command{
		Use: "top [nodes|partitions]", Short: "Show what jobs use of nodes and partitions", Long: topHelp, Example: topExamples,
		Args:        cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs:   []cobra.Completion{"nodes", "partitions"},
		Annotations: map[string]string{remoteAnnotation: ""},
		RunE: func(_ *cobra.Command, args []string) error {
			if interval < 100*time.Millisecond {
				return fmt.Errorf("--interval=%s: it must be at least 100ms", interval)
			}
			c, err := s.connect()
			if err != nil {
				return err
			}
			t := topper{session: s, connection: c, partitions: slices.Contains(args, "partitions"), output: output}
			if err := t.choose(ctx); err != nil {
				return err
			}
			terminal := isOutputTerminal(s.Streams.Out) && output == formatTable
			if once || !watch && !terminal {
				text, err := t.show(ctx)
				if err != nil {
					return err
				}
				return t.write(text)
			}
			return unlessEnded(ctx, t.follow(ctx, interval, terminal))
		},
	}
	output.addTo(command)
	command.Flags().BoolVar(&once, "once", false, "Show it once, even on a terminal.")
	command.Flags().BoolVarP(&watch, "watch", "w", false, "Refresh until Ctrl-C, even if the output is not a terminal.")
	command.Flags().DurationVar(&interval, "interval", 5*time.Second, "Time between two refreshes, at least 100ms. Each refresh sends two requests to slurmctld.")
	command.MarkFlagsMutuallyExclusive("once", "watch")
	return command
}

func (t *topper) write(text []byte) error {
	if _, err := t.Streams.Out.Write(text); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// follow refreshes it until the context ends.
func (t *topper) follow(ctx context.Context, interval time.Duration, terminal bool) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for first := true; ; first = false {
		text, err := t.show(ctx)
		if err != nil {
			return err
		}
		switch {
		case terminal:
			text = append([]byte(clearScreen), text...)
		case !first && t.output == formatYAML:
			text = append([]byte("---\n"), text...)
		case !first && t.output != formatJSON:
			text = append([]byte("\n"+instant(t.Now())+"\n"), text...)
		}
		if err := t.write(text); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// show returns what is printed once.
func (t *topper) show(ctx context.Context) ([]byte, error) {
	nodes, jobs, err := t.use(ctx)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if t.partitions {
		partitions := partitionsOf(nodes, jobs)
		done, err := writeData(&out, t.output, map[string]any{"partitions": partitions})
		if err == nil && !done {
			err = partitionTable(partitions).write(&out, t.Colour)
		}
		return out.Bytes(), err
	}
	countJobs(nodes, jobs)
	done, err := writeData(&out, t.output, map[string]any{"nodes": nodes})
	if err == nil && !done {
		err = nodeTable(nodes).write(&out, t.Colour)
	}
	return out.Bytes(), err
}

// execRights returns those to run a program in a pod.
func execRights() []right {
	return []right{{"list", "", "pods"}, {"get", "", "pods/exec"}, {"create", "", "pods/exec"}}
}

// choose finds out by the caller's rights whom to ask.
func (t *topper) choose(ctx context.Context) error {
	lacks, err := lacking(ctx, t.connection, execRights()...)
	switch {
	case err != nil || len(lacks) == 0:
		return err
	case t.partitions || slices.Contains(lacks, execRights()[0].String()):
		return denied("asking Slurm", t.namespace, lacks, "")
	}
	t.fromPods = true
	fmt.Fprintf(t.Streams.ErrOut, "Warning: only states of nodes are shown; to ask Slurm, you lack the right to %s\n", strings.Join(lacks, ", to "))
	return nil
}

// use asks Slurm for nodes and jobs, or the worker pods for the nodes.
func (t *topper) use(ctx context.Context) ([]NodeUse, []Job, error) {
	if t.fromPods {
		nodes, err := t.nodesOfPods(ctx)
		return nodes, nil, err
	}
	pod, err := t.findLogin(ctx, t.connection)
	if err != nil {
		return nil, nil, err
	}
	text, err := capture(ctx, t.connection, pod, slinkyv1beta1.NameLogin, "scontrol", "show", "nodes", "--detail", "--oneliner")
	if err != nil {
		return nil, nil, err
	}
	jobs, err := askJobs(ctx, t.connection, pod)
	return parseNodes(string(text)), jobs, err
}

// askJobs returns the jobs that run or wait.
func askJobs(ctx context.Context, c *connection, pod *corev1.Pod) ([]Job, error) {
	mark := rand.Text() + "|"
	text, err := capture(ctx, c, pod, slinkyv1beta1.NameLogin, "squeue", "--all", "--noheader", "--format="+mark+squeueFormat)
	return parseJobs(string(text), mark), err
}

// nodesOfPods returns the nodes of the worker pods, with the states that the operator has written there.
func (t *topper) nodesOfPods(ctx context.Context) ([]NodeUse, error) {
	pods, err := podsOf(ctx, t.connection, slinkyv1beta1.NameSlurmd, "")
	if err != nil {
		return nil, err
	}
	var out []NodeUse
	for _, p := range pods {
		var states []string
		for _, c := range p.Status.Conditions {
			if state, ok := strings.CutPrefix(string(c.Type), node.ConditionPrefix); ok && c.Status == corev1.ConditionTrue {
				states = append(states, strings.ToUpper(state))
			}
		}
		slices.Sort(states)
		out = append(out, NodeUse{Name: workerpod.SlurmNode(&p), State: strings.Join(states, "+"), FromPods: true})
	}
	slices.SortFunc(out, func(a, b NodeUse) int { return hostlist.Compare(a.Name, b.Name) })
	return out, nil
}

// shareOf returns an amount as ALLOCATED/TOTAL; empty when there is nothing.
func shareOf(a Amount) string {
	if a.Total == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", a.Allocated, a.Total)
}

// memoryOf returns an amount of memory in GiB.
func memoryOf(a Amount) string {
	if a.Total == 0 {
		return ""
	}
	const mebi = 1024
	return fmt.Sprintf("%.0f/%.0fGi", float64(a.Allocated)/mebi, float64(a.Total)/mebi)
}

func nodeTable(nodes []NodeUse) table {
	out := table{header: []string{"NODE", "STATE", "CPUS", "MEMORY", "GPUS", "JOBS", "PARTITIONS"}}
	for _, n := range nodes {
		state := cell{text: oneLine(n.State), colour: green}
		if !n.available() {
			state.colour = red
		}
		jobs := strconv.Itoa(n.Jobs)
		if n.FromPods {
			jobs = ""
		}
		out.rows = append(out.rows, []cell{
			{text: oneLine(n.Name)}, state, {text: shareOf(n.CPUs)}, {text: memoryOf(n.MemoryMiB)}, {text: shareOf(n.GPUs)}, {text: jobs},
			{text: oneLine(strings.Join(n.Partitions, ","))},
		})
	}
	return out
}

func partitionTable(partitions []PartitionUse) table {
	out := table{header: []string{"PARTITION", "AVAILABLE", "CPUS", "MEMORY", "GPUS", "RUNNING", "PENDING"}}
	for _, p := range partitions {
		available := cell{text: fmt.Sprintf("%d/%d", p.Available, p.Nodes), colour: green}
		if p.Available < p.Nodes {
			available.colour = yellow
		}
		out.rows = append(out.rows, []cell{
			{text: oneLine(p.Name)}, available, {text: shareOf(p.CPUs)}, {text: memoryOf(p.MemoryMiB)}, {text: shareOf(p.GPUs)},
			{text: strconv.Itoa(p.Running)}, {text: strconv.Itoa(p.Pending)},
		})
	}
	return out
}

// isOutputTerminal reports whether an output is a terminal.
func isOutputTerminal(out io.Writer) bool {
	reader, ok := out.(io.Reader)
	return ok && isTerminal(reader)
}
