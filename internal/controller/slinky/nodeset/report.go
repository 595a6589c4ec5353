// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/health/budget"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func report(n *slinkyv1beta1.NodeSet, o reconcile.Outcome[facts, *plan, observation]) reconcile.Report {
	f, p, s := o.Facts, o.Plan, &n.Status
	s.ObservedGeneration, s.Desired = n.Generation, p.desired
	s.Selector = metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: slurmd.Labels(n).Selector()})
	s.Reservation = o.Seen.reservation
	out := reconcile.Report{Conditions: o.Seen.conditions, Again: p.workers.Again}
	if o.Seen.driven {
		s.NodeSetHash = p.revision
		if p.history.Collisions > 0 {
			s.CollisionCount = &p.history.Collisions
		}
		s.OrdinalToNode = nodesetplan.Pinned(f.workers.Pins)
		s.Plan, s.Planned = p.steps, p.planned
		out.Problems = append(out.Problems, f.unfit...)
		out.Again = workerpod.Sooner(p.workers.Again, o.Seen.again)
	}
	if c, ok := lost(n, f.workers, p.workers); ok {
		out.Conditions = append(out.Conditions, c)
		if c.Status == metav1.ConditionTrue {
			out.Problems = append(out.Problems, problem.Waitingf("workers", slinkyv1beta1.ReasonWorkersUnknown, "%s", c.Message))
		}
	}
	drainsPaused(n, f.drainBudget, &out)
	part := count(n, f.pods, s.NodeSetHash, o.Now)
	if o.Seen.driven && n.Spec.PinToNode && !part.Ready { // else the Kubernetes nodes were not looked at
		part.Message += unscheduled(f.pods, f.workers.Nodes)
	}
	out.Parts = []kube.Part{part}
	return out
}

// count fills in the status from the pods, and returns them as the part that has to be ready. What Slurm reports of their nodes is taken
// from the pods' conditions: a change of those wakes the NodeSet.
func count(n *slinkyv1beta1.NodeSet, pods []corev1.Pod, revision string, now time.Time) kube.Part {
	s := &n.Status
	s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = 0, 0, 0, 0
	s.SlurmIdle, s.SlurmAllocated, s.SlurmDown, s.SlurmDrain = 0, 0, 0, 0
	for i := range pods {
		p := workerpod.Facts(&pods[i])
		s.Replicas++
		if p.Revision == revision && !p.Terminating {
			s.UpdatedReplicas++
		}
		if p.Ready && !p.Terminating {
			s.ReadyReplicas++
			if least := minReady(n); least == 0 || !now.Before(p.ReadySince.Add(least)) {
				s.AvailableReplicas++
			}
		}
		countNode(s, &pods[i])
	}
	s.OutOfService = outOfService(pods)
	s.UnavailableReplicas = max(0, s.Desired-s.AvailableReplicas)

	outdated := s.UpdatedReplicas != s.Replicas && n.UpdateType() == slinkyv1beta1.UpdateRolling
	part := kube.Part{
		Name: "workers", Ready: s.AvailableReplicas >= s.Desired && s.Replicas == s.Desired && !outdated,
		Reason: slinkyv1beta1.ReasonAvailable, Message: fmt.Sprintf("%d of %d workers are available", s.AvailableReplicas, s.Desired),
	}
	switch {
	case part.Ready:
	case s.Replicas != s.Desired || outdated:
		part.Reason = slinkyv1beta1.ReasonRollingOut
		part.Message += fmt.Sprintf(", %d exist, %d are up to date", s.Replicas, s.UpdatedReplicas)
	default:
		part.Reason = slinkyv1beta1.ReasonPodsNotReady
	}
	if !part.Ready {
		part.Message += reconcile.LastWords(pods, slinkyv1beta1.NameSlurmd)
	}
	part.Message += retiring(pods)
	if workerpod.DryRun(n) {
		part.Message += fmt.Sprintf("; annotation %s keeps the operator from every step in status.plan", slinkyv1beta1.AnnotationDryRun)
	}
	return part
}

func minReady(n *slinkyv1beta1.NodeSet) time.Duration {
	return time.Duration(n.Spec.MinReadySeconds) * time.Second
}

func countNode(s *slinkyv1beta1.NodeSetStatus, p *corev1.Pod) {
	if workerpod.ShowsState(p, "Idle") {
		s.SlurmIdle++
	}
	if workerpod.ShowsState(p, "Allocated") || workerpod.ShowsState(p, "Mixed") {
		s.SlurmAllocated++
	}
	if workerpod.ShowsState(p, "Down") {
		s.SlurmDown++
	}
	if workerpod.ShowsState(p, "Drain") && !workerpod.ShowsState(p, "Undrain") {
		s.SlurmDrain++
	}
}

// maxRetiringShown is how many retired workers the message names.
const maxRetiringShown = 3

// retiring returns what the retired workers wait for: "; worker-3 retires: waiting for jobs to end".
func retiring(pods []corev1.Pod) string {
	var b strings.Builder
	told, more := 0, 0
	for i := range pods {
		p := &pods[i]
		c := workerpod.Condition(p, slinkyv1beta1.PodConditionRetiring)
		switch {
		case workerpod.Cause(p.Annotations[slinkyv1beta1.AnnotationRetired]) == "" || p.DeletionTimestamp != nil || c == nil:
		case told < maxRetiringShown:
			fmt.Fprintf(&b, "; %s retires: %s", p.Name, c.Message)
			told++
		default:
			more++
		}
	}
	if more > 0 {
		fmt.Fprintf(&b, "; and %d more", more)
	}
	return b.String()
}

// metrics show how many workers are out of service. They are computed when they are collected: from the statuses of the NodeSets in the
// cache, and from the budgets.
type metrics struct {
	reader       client.Reader
	budgets      *budget.Budgets
	outOfService *prometheus.Desc
	waiting      *prometheus.Desc
	limit        *prometheus.Desc
}

// Metrics returns the metrics of all NodeSets that the reader has.
func Metrics(reader client.Reader, budgets *budget.Budgets) prometheus.Collector {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName("coxswain", "nodes", name), help, append([]string{"namespace", "nodeset"}, labels...), nil)
	}
	return &metrics{
		reader: reader, budgets: budgets,
		outOfService: gauge("out_of_service", "Workers whose Slurm nodes get no new jobs, by the reason of condition coxswain.dev/OutOfService.", "reason"),
		waiting:      gauge("waiting_for_brake", "Workers that checks want out of service, and that wait because of --max-nodes-drained-by-checks."),
		limit:        gauge("drained_by_checks_limit", "Workers that checks may take out of service at the same time."),
	}
}

// Describe is part of prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{m.outOfService, m.waiting, m.limit} {
		to <- desc
	}
}

// Collect is part of prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	var sets slinkyv1beta1.NodeSetList
	if err := m.reader.List(context.Background(), &sets, client.UnsafeDisableDeepCopy); err != nil { // they are only read
		to <- prometheus.NewInvalidMetric(m.outOfService, err)
		return
	}
	for i := range sets.Items {
		n := &sets.Items[i]
		gauge := func(desc *prometheus.Desc, value int, labels ...string) {
			to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), append([]string{n.Namespace, n.Name}, labels...)...)
		}
		for _, o := range n.Status.OutOfService {
			gauge(m.outOfService, int(o.Count), o.Reason)
		}
		gauge(m.waiting, len(m.budgets.Of(client.ObjectKeyFromObject(n)).Waiting))
		gauge(m.limit, m.budgets.Limit(int(n.Status.Replicas)))
	}
}
