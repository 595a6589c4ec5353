// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/hostlist"
)

// Amount is how much of a resource jobs have, and how much there is.
type Amount struct {
	Allocated int64 `json:"allocated"`
	Total     int64 `json:"total"`
}

func (a *Amount) add(b Amount) { a.Allocated, a.Total = a.Allocated+b.Allocated, a.Total+b.Total }

// NodeUse is what jobs use of a Slurm node.
type NodeUse struct {
	Name string `json:"name"`
	// State is Slurm's, such as MIXED+DRAIN.
	State      string   `json:"state"`
	Partitions []string `json:"partitions,omitempty"`
	CPUs       Amount   `json:"cpus"`
	// MemoryMiB is in MiB.
	MemoryMiB Amount `json:"memoryMiB"`
	GPUs      Amount `json:"gpus"`
	// Jobs is the number of jobs that run there.
	Jobs int `json:"jobs"`
	// FromPods is true if Slurm was not asked: the state is what the operator has written on the pod, and the rest is not known.
	FromPods bool `json:"fromPods,omitempty"`
}

// available reports whether jobs can run, or are running, on the node.
func (n NodeUse) available() bool {
	return !regexp.MustCompile(`(?i)DOWN|DRAIN|FAIL|NOT_RESPONDING|NORESP|FUTURE|UNKNOWN`).MatchString(n.State)
}

// PartitionUse is what jobs use of a partition.
type PartitionUse struct {
	Name string `json:"name"`
	// Nodes are all nodes, and Available those that are neither down nor drained.
	Nodes     int    `json:"nodes"`
	Available int    `json:"available"`
	CPUs      Amount `json:"cpus"`
	// MemoryMiB is in MiB.
	MemoryMiB Amount `json:"memoryMiB"`
	GPUs      Amount `json:"gpus"`
	// Running and Pending are numbers of jobs.
	Running int `json:"running"`
	Pending int `json:"pending"`
}

// Job is a job that runs or waits.
type Job struct {
	// ID is as squeue writes it, such as 12 or 12_[3-5].
	ID        string `json:"id"`
	Name      string `json:"name"`
	Partition string `json:"partition"`
	User      string `json:"user"`
	// State is Slurm's, such as RUNNING, and Reason why it waits.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Elapsed and Limit are as squeue writes them, DAYS-HOURS:MINUTES:SECONDS.
	Elapsed string `json:"elapsed"`
	Limit   string `json:"limit"`
	// Nodes is the number of nodes that it has or wants, and NodeList those that it has, as a host list.
	Nodes    int    `json:"nodes"`
	NodeList string `json:"nodeList,omitempty"`
	// Workers are the pods of the nodes that it has.
	Workers []JobWorker `json:"workers,omitempty"`
}

// maxJobNodes bounds of how many nodes the names in a host list are made.
const maxJobNodes = 1 << 16

// nodes returns the names of the nodes that the job has.
func (j Job) nodes() []string {
	names, err := hostlist.Expand(j.NodeList, maxJobNodes)
	if err != nil {
		return nil // such as "(null)"
	}
	return names
}

// squeueFormat is the output format of squeue that parseJobs reads, behind a mark. The name comes last: it may have any character.
const squeueFormat = "%i|%P|%u|%T|%M|%l|%D|%N|%r|%j"

// parseJobs reads what squeue prints by squeueFormat. Each line of a job begins with the mark, which no user knows: a line without is
// the rest of a name that has a line break. Lines of another form are left out.
func parseJobs(text, mark string) []Job {
	var out []Job
	for line := range strings.Lines(text) {
		line, marked := strings.CutPrefix(line, mark)
		if !marked {
			continue
		}
		f := strings.SplitN(strings.TrimRight(line, "\r\n"), "|", strings.Count(squeueFormat, "|")+1)
		if len(f) != strings.Count(squeueFormat, "|")+1 {
			continue
		}
		nodes, err := strconv.Atoi(f[6])
		if err != nil {
			continue
		}
		job := Job{ID: f[0], Partition: f[1], User: f[2], State: f[3], Elapsed: f[4], Limit: f[5], Nodes: nodes, NodeList: f[7], Reason: f[8], Name: f[9]}
		if job.Reason == "None" {
			job.Reason = ""
		}
		out = append(out, job)
	}
	return out
}

// peoplesTexts are the fields of a node that people write. scontrol prints them after all that are read here.
var peoplesTexts = regexp.MustCompile(` (Reason|Comment|Extra)=.*`)

// parseNodes reads what "scontrol show nodes --oneliner --detail" prints, see scontrol(1).
func parseNodes(text string) []NodeUse {
	var out []NodeUse
	for line := range strings.Lines(text) {
		fields := peoplesTexts.ReplaceAllString(line, "")
		value := func(key string) string { return valueOf(fields, key) }
		if value("NodeName") == "" {
			continue
		}
		node := NodeUse{
			Name: value("NodeName"), State: value("State"), CPUs: Amount{number(value("CPUAlloc")), number(value("CPUTot"))},
			MemoryMiB: Amount{number(value("AllocMem")), number(value("RealMemory"))}, GPUs: Amount{gpus(value("GresUsed")), gpus(value("Gres"))},
		}
		if partitions := value("Partitions"); partitions != "" {
			node.Partitions = strings.Split(partitions, ",")
		}
		out = append(out, node)
	}
	slices.SortFunc(out, func(a, b NodeUse) int { return hostlist.Compare(a.Name, b.Name) })
	return out
}

// valueOf returns the first value of a key in a line of Key=Value pairs.
func valueOf(line, key string) string {
	for field := range strings.FieldsSeq(line) {
		if value, ok := strings.CutPrefix(field, key+"="); ok {
			return value
		}
	}
	return ""
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0 // such as N/A
	}
	return max(0, n)
}

// gpus returns the number of GPUs in a list of Gres, such as gpu:h100:8(S:0-1),shard:16.
func gpus(gres string) (sum int64) {
	for _, found := range regexp.MustCompile(`(?:^|,)gpu(?::[^:,(]+)?:(\d+)`).FindAllStringSubmatch(gres, -1) {
		sum += number(found[1])
	}
	return sum
}

// countJobs adds to each node how many jobs run there.
func countJobs(nodes []NodeUse, jobs []Job) {
	count := map[string]int{}
	for _, job := range jobs {
		for _, name := range job.nodes() {
			count[name]++
		}
	}
	for i := range nodes {
		nodes[i].Jobs = count[nodes[i].Name]
	}
}

// partitionsOf sums nodes and jobs up by partition. A job that waits for one of several partitions counts in each.
func partitionsOf(nodes []NodeUse, jobs []Job) []PartitionUse {
	of := map[string]*PartitionUse{}
	get := func(name string) *PartitionUse {
		if of[name] == nil {
			of[name] = &PartitionUse{Name: name}
		}
		return of[name]
	}
	for _, node := range nodes {
		for _, name := range node.Partitions {
			p := get(name)
			p.Nodes++
			if node.available() {
				p.Available++
			}
			p.CPUs.add(node.CPUs)
			p.MemoryMiB.add(node.MemoryMiB)
			p.GPUs.add(node.GPUs)
		}
	}
	for _, job := range jobs {
		for name := range strings.SplitSeq(job.Partition, ",") {
			switch p := get(name); job.State {
			case "PENDING":
				p.Pending++
			default:
				p.Running++
			}
		}
	}
	out := make([]PartitionUse, 0, len(of))
	for _, p := range of {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b PartitionUse) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
