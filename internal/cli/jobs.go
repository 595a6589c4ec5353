// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

const jobsHelp = `Shows the jobs that run or wait, with the worker pods and Kubernetes nodes on which they run.

PROTECTED is the time until which the job's workers are protected: the latest end of any job on them, from annotation
nodeset.slinky.slurm.net/pod-deadline. Kubernetes does not evict a worker until Slurm reports it as drained; "no" means that Kubernetes
may evict a worker of the job.

For more than four workers only their number is shown; -o wide shows all.

Rights: to list pods, and to get and create pods/exec. squeue runs as root in a login pod.

Exit codes: 0 the jobs are shown, 1 an error.`

const jobsExamples = `  # All jobs
  kubectl slurm jobs

  # Those on one Slurm node
  kubectl slurm jobs --node=worker-3 -o wide`

// JobWorker is a worker on which a job runs.
type JobWorker struct {
	// Node is the Slurm node, Pod its pod and KubernetesNode where that runs. Both are empty when there is no pod.
	Node           string `json:"node"`
	Pod            string `json:"pod,omitempty"`
	KubernetesNode string `json:"kubernetesNode,omitempty"`
	// Protected is true if Kubernetes does not evict the pod.
	Protected bool `json:"protected"`
	// Deadline is when the last job there has to end, as the operator computes it; nil when it has no limit, or none is known.
	Deadline *time.Time `json:"deadline,omitempty"`
}

func (s *session) jobsCommand(ctx context.Context) *cobra.Command {
	var output format
	var node, owner string
	command := &cobra.Command{
		Use: "jobs", Short: "Show jobs with their pods", Long: jobsHelp, Example: jobsExamples, Args: cobra.NoArgs,
		Annotations: map[string]string{remoteAnnotation: ""},
		RunE: func(*cobra.Command, []string) error {
			c, err := s.connect()
			if err != nil {
				return err
			}
			lacks, err := lacking(ctx, c, execRights()...)
			if err != nil {
				return err
			}
			if len(lacks) > 0 {
				return denied("asking Slurm for jobs", c.namespace, lacks, "")
			}
			login, err := s.findLogin(ctx, c)
			if err != nil {
				return err
			}
			jobs, err := askJobs(ctx, c, login)
			if err != nil {
				return err
			}
			pods, err := podsOf(ctx, c, slinkyv1beta1.NameSlurmd, "")
			if err != nil {
				return err
			}
			jobs = withWorkers(jobs, pods)
			jobs = slices.DeleteFunc(jobs, func(j Job) bool {
				return owner != "" && j.User != owner || node != "" && !slices.ContainsFunc(j.Workers, func(w JobWorker) bool { return w.Node == node })
			})
			done, err := writeData(s.Streams.Out, output, map[string]any{"jobs": jobs})
			if err != nil || done {
				return err
			}
			return jobTable(jobs, output == formatWide).write(s.Streams.Out, s.Colour)
		},
	}
	output.addTo(command)
	command.Flags().StringVar(&node, "node", "", "Show the jobs that run on this Slurm node.")
	command.Flags().StringVar(&owner, "of", "", "Show the jobs of this user.")
	_ = command.RegisterFlagCompletionFunc("node", s.complete(ctx, maxArguments, nodeNames()))
	return command
}

// withWorkers adds to each job the workers on which it runs.
func withWorkers(jobs []Job, pods []corev1.Pod) []Job {
	byNode := map[string]*corev1.Pod{}
	for i := range pods {
		byNode[workerpod.SlurmNode(&pods[i])] = &pods[i]
	}
	out := make([]Job, 0, len(jobs))
	for _, job := range jobs {
		for _, name := range job.nodes() {
			worker := JobWorker{Node: name}
			if p := byNode[name]; p != nil {
				worker.Pod, worker.KubernetesNode = p.Name, p.Spec.NodeName
				worker.Protected = p.Labels[slinkyv1beta1.LabelPodProtect] == "true"
				if facts := workerpod.Facts(p); facts.DeadlineKnown && facts.Deadline.Year() != neverEnds {
					worker.Deadline = &facts.Deadline
				}
			}
			job.Workers = append(job.Workers, worker)
		}
		out = append(out, job)
	}
	return out
}

// protection returns until when the workers of a job are protected.
func (j Job) protection() cell {
	var last *time.Time
	for _, w := range j.Workers {
		switch {
		case w.Pod == "":
		case !w.Protected:
			return cell{text: "no", colour: yellow}
		case w.Deadline == nil:
			return cell{text: "until drained"}
		case last == nil || w.Deadline.After(*last):
			last = w.Deadline
		}
	}
	if last == nil {
		return cell{}
	}
	return cell{text: "until " + instant(*last)}
}

// fewWorkers is how many workers of a job are named in a table that is not wide.
const fewWorkers = 4

func jobTable(jobs []Job, wide bool) table {
	out := table{header: []string{"JOB", "USER", "PARTITION", "STATE", "TIME", "LIMIT", "PODS", "KUBERNETES NODES", "PROTECTED", "NAME"}}
	for _, j := range jobs {
		pods, machines := []string{}, []string{}
		for _, w := range j.Workers {
			pods, machines = append(pods, cmp.Or(w.Pod, "("+w.Node+" has no pod)")), append(machines, w.KubernetesNode)
		}
		state := cell{text: oneLine(j.State)}
		if j.State == "PENDING" && j.Reason != "" {
			state.text += " (" + oneLine(j.Reason) + ")"
		}
		row := []cell{{text: oneLine(j.ID)}, {text: oneLine(j.User)}, {text: oneLine(j.Partition)}, state, {text: oneLine(j.Elapsed)}, {text: oneLine(j.Limit)}}
		for _, names := range [][]string{pods, machines} {
			names = distinct(names)
			text := strings.Join(names, ",")
			if len(names) > fewWorkers && !wide {
				text = names[0] + " and " + strconv.Itoa(len(names)-1) + " more"
			}
			row = append(row, cell{text: text})
		}
		out.rows = append(out.rows, append(row, j.protection(), cell{text: oneLine(j.Name)}))
	}
	return out
}

// distinct are names without empty and repeated ones, in their order.
func distinct(names []string) (out []string) {
	for _, name := range names {
		if name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
