// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

const (
	// readTimeout is how long one log, or one answer of Slurm, may take.
	readTimeout = 30 * time.Second
	// maxLogBytes bounds one log.
	maxLogBytes = 32 << 20
)

// logs reads the log of each container, and that of the one before where a container was restarted.
func (b *bundle) logs(ctx context.Context) error {
	pods := withLogs(b.pods, int(b.options.workers))
	for i, p := range pods {
		for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
			b.progress.say("the logs of pod %s, %d of %d", p.Name, i+1, len(pods))
			if status.State.Waiting != nil && status.RestartCount == 0 {
				continue // it has not started
			}
			if err := b.log(ctx, p.Name, status.Name, false); err != nil {
				return err
			}
			if status.RestartCount > 0 {
				if err := b.log(ctx, p.Name, status.Name, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// withLogs returns the pods whose logs are read: all but workers, and so many workers, those first that are not ready.
func withLogs(pods []corev1.Pod, most int) []corev1.Pod {
	var workers, out []corev1.Pod
	for _, p := range pods {
		if p.Labels[labelName] == slinkyv1beta1.NameSlurmd {
			workers = append(workers, p)
		} else {
			out = append(out, p)
		}
	}
	rank := func(p corev1.Pod) int {
		if c := workerpod.Condition(&p, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(workers, func(a, b corev1.Pod) int { return cmp.Or(rank(a)-rank(b), cmp.Compare(a.Name, b.Name)) })
	return append(out, workers[:min(max(most, 0), len(workers))]...)
}

// log adds the log of a container.
func (b *bundle) log(ctx context.Context, pod, container string, previous bool) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	name := "logs/" + pod + "/" + container
	if previous {
		name += ".previous"
	}
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &b.options.tail, Timestamps: true}
	stream, err := b.clientset.CoreV1().Pods(b.namespace).GetLogs(pod, options).Stream(ctx)
	if err != nil {
		b.fail(name, err)
		return nil
	}
	defer stream.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(stream, maxLogBytes))
	if err != nil {
		b.fail(name, err)
	}
	return b.add(name+".log", text)
}

// questions are asked in each slurmctld.
func questions() [][]string {
	return [][]string{
		{"scontrol", "ping"}, {"scontrol", "show", "nodes"}, {"scontrol", "show", "partitions"}, {"scontrol", "show", "reservations"},
		{"scontrol", "show", "config"}, {"sdiag"}, {"squeue", "--all", "--long"}, {"sinfo", "--all", "--list-reasons"},
	}
}

// slurm asks the slurmctlds in charge.
func (b *bundle) slurm(ctx context.Context) error {
	for i := range b.pods {
		p := &b.pods[i]
		if p.Labels[labelName] != slinkyv1beta1.NameSlurmctld || p.Status.Phase != corev1.PodRunning || !b.inCharge(p) {
			continue
		}
		for _, question := range questions() {
			b.progress.say("what %s says in pod %s", question[0], p.Name)
			name := fmt.Sprintf("slurm/%s/%s.txt", p.Labels[labelInstance], strings.ReplaceAll(strings.Join(question, "-"), "---", "-"))
			answer, err := b.ask(ctx, p, question)
			if err != nil {
				b.fail(name, err)
			}
			if len(answer) == 0 {
				continue
			}
			if err := b.add(name, answer); err != nil {
				return err
			}
		}
	}
	return nil
}

// inCharge reports whether a slurmctld is the active one of its Controller, or none is known to be.
func (b *bundle) inCharge(p *corev1.Pod) bool {
	active := func(o corev1.Pod) bool {
		return o.Labels[labelInstance] == p.Labels[labelInstance] && o.Labels[slinkyv1beta1.LabelControllerActive] == "true"
	}
	return active(*p) || !slices.ContainsFunc(b.pods, active)
}

func (b *bundle) ask(ctx context.Context, p *corev1.Pod, question []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return capture(ctx, b.connection, p, slinkyv1beta1.NameSlurmctld, question...)
}
