// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// Seen is what the composed objects report.
type Seen struct {
	Controller, Accounting, RestAPI, LoginSet, SConfigController, Exporter kube.Part
	// EditWaits is the condition of the Controller; nil when it has none.
	EditWaits *metav1.Condition
	// NodeSets are the workers, in the order of compose.Components.
	NodeSets []kube.Part
	// Database are the objects of the mariadb-operator, if there are any.
	Database []kube.Part
	// ReadyWorkers, ReadyLogin and ReadySConfigController are numbers of pods.
	ReadyWorkers, ReadyLogin, ReadySConfigController int32
}

// observe reads the composed objects from the cache.
func (r *reconciler) observe(ctx context.Context, cluster *nebiusv1.SlurmCluster, _ facts, plan *plan, seen *Seen) (err error) {
	parts := &plan.composed.Components
	slurmctld := parts.Controller.DeepCopy()
	if seen.Controller, err = r.part(ctx, cluster, slurmctld, "Controller"); err != nil {
		return err
	}
	seen.EditWaits = meta.FindStatusCondition(slurmctld.Status.Conditions, slinkyv1beta1.ConditionEditWaits)
	if seen.RestAPI, err = r.part(ctx, cluster, parts.RestAPI.DeepCopy(), "RestApi"); err != nil {
		return err
	}
	if parts.Accounting != nil {
		if seen.Accounting, err = r.part(ctx, cluster, parts.Accounting.DeepCopy(), "Accounting"); err != nil {
			return err
		}
	}
	if seen.Database, err = database(ctx, r.Live, parts.MariaDB, parts.Grant); err != nil {
		return err
	}
	login := parts.LoginSet.DeepCopy()
	if seen.LoginSet, err = r.part(ctx, cluster, login, "LoginSet"); err != nil {
		return err
	}
	seen.ReadyLogin = login.Status.ReadyReplicas
	for _, set := range parts.NodeSets {
		live := set.DeepCopy()
		p, err := r.part(ctx, cluster, live, "NodeSet")
		if err != nil {
			return err
		}
		seen.NodeSets = append(seen.NodeSets, p)
		seen.ReadyWorkers += live.Status.ReadyReplicas
	}
	if writer := parts.SConfigController; writer != nil {
		var workload reconcile.Workload
		seen.SConfigController, workload, err = r.ObserveWorkload(ctx, writer.Namespace, writer.Name, &appsv1.Deployment{}, "Deployment "+writer.Name, *writer.Spec.Replicas)
		seen.ReadySConfigController = workload.Ready
	}
	if exporter := parts.Exporter; exporter != nil && err == nil {
		seen.Exporter, _, err = r.ObserveWorkload(ctx, exporter.Namespace, exporter.Name, &appsv1.Deployment{}, "Deployment "+exporter.Name, *exporter.Spec.Replicas)
	}
	return err
}

// database reads from the server what the mariadb-operator reports of its objects.
func database(ctx context.Context, c client.Reader, objects ...*unstructured.Unstructured) (out []kube.Part, err error) {
	for _, composed := range objects {
		if composed == nil {
			continue
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(composed.GroupVersionKind())
		p := kube.Part{Name: composed.GetKind() + " " + composed.GetName(), Reason: kube.ReasonWaiting, Message: "the mariadb-operator has not reported on it yet"}
		if err := c.Get(ctx, client.ObjectKeyFromObject(composed), live); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading %s: %w", p.Name, err)
		}
		conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
		for _, item := range conditions {
			if condition, _ := item.(map[string]any); condition["type"] == kube.ConditionReady {
				p.Ready = condition["status"] == string(metav1.ConditionTrue)
				p.Message, _ = condition["message"].(string)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// part reads a composed object into obj and returns its readiness as a part. The name of the part is how people find the object.
func (r *reconciler) part(ctx context.Context, cluster *nebiusv1.SlurmCluster, obj reconcile.Object, kind string) (kube.Part, error) {
	name := kind + " " + obj.GetName()
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
		if apierrors.IsNotFound(err) {
			return kube.Part{Name: name, Reason: kube.ReasonWaiting, Message: "is not created yet"}, nil
		}
		return kube.Part{}, fmt.Errorf("reading %s %s: %w", kind, client.ObjectKeyFromObject(obj), err)
	}
	// The cache may lack what this very pass has applied.
	return kube.PartOf(name, r.Applier.Generation(cluster, obj), obj.GetConditions()), nil
}

// status rolls up what is known about a cluster.
type status struct {
	cluster *nebiusv1.SlurmCluster
	// composed is what the spec asks for; problems are those found in composing and in applying it.
	composed compose.Output
	problems problem.List
	// applied reports whether all of it is on the server.
	applied bool
	seen    Seen
	// available reports whether all components that count are available.
	available bool
	report    reconcile.Report
}

func report(cluster *nebiusv1.SlurmCluster, o reconcile.Outcome[facts, *plan, Seen]) reconcile.Report {
	s := status{cluster: cluster, composed: o.Plan.composed, problems: o.Plan.Problems, applied: o.Driven, seen: o.Seen}
	s.jail(o.Now)
	return s.rollUp()
}

// rollUp writes the status of the cluster and returns its conditions.
func (s *status) rollUp() reconcile.Report {
	s.common()
	s.components()
	s.spec()
	s.images()
	s.editWaits()
	status := &s.cluster.Status
	status.ObservedGeneration = s.cluster.Generation
	status.ReadyWorkers, status.ReadyLogin = new(s.seen.ReadyWorkers), new(s.seen.ReadyLogin)
	status.ReadySConfigController = new(s.seen.ReadySConfigController)
	switch {
	case !s.applied && (status.Phase == "" || status.Phase == nebiusv1.PhasePending):
		status.Phase = nebiusv1.PhasePending
	case s.available:
		status.Phase = nebiusv1.PhaseAvailable
	default:
		status.Phase = nebiusv1.PhaseNotAvailable
	}
	s.report.Parts = s.parts()
	return s.report
}

// common writes the condition of what the operator itself puts in place.
func (s *status) common() {
	const kind = nebiusv1.ConditionCommonAvailable
	s.available = len(s.problems) == 0 && !s.cluster.Spec.Maintenance.Downscaled()
	switch {
	case len(s.problems) > 0:
		// What exists goes on running as it was.
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, "the spec cannot be put into effect, see condition Stalled")
	case s.cluster.Spec.Maintenance.Downscaled():
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "spec.maintenance is "+string(s.cluster.Spec.Maintenance))
	case s.applied:
		s.report.SetCondition(kind, metav1.ConditionTrue, nebiusv1.ReasonAvailable, "keys, configuration and component objects are in place")
	case meta.FindStatusCondition(s.cluster.Status.Conditions, kind) == nil:
		s.report.SetCondition(kind, metav1.ConditionUnknown, nebiusv1.ReasonReconciling, "the first pass over the cluster is not complete")
	}
}

// components writes the condition of each component.
func (s *status) components() {
	nodes, rest, atRest := &s.cluster.Spec.SlurmNodes, s.composed.Rest, s.cluster.Spec.Maintenance.Downscaled()
	if atRest {
		s.report.SetCondition(nebiusv1.ConditionControllersAvailable, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, rest.Slurmctld)
	} else {
		s.component(nebiusv1.ConditionControllersAvailable, s.comesBack(s.seen.Controller, rest.Slurmctld))
	}
	switch {
	case s.workers() == 0:
		s.report.SetCondition(nebiusv1.ConditionWorkersAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "the spec asks for no workers")
	case atRest:
		s.report.SetCondition(nebiusv1.ConditionWorkersAvailable, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, rest.Workers)
	default:
		s.component(nebiusv1.ConditionWorkersAvailable, s.workerParts()...)
	}
	switch {
	case nodes.Login.Size == 0:
		s.report.SetCondition(nebiusv1.ConditionLoginAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "spec.slurmNodes.login.size is 0")
	case atRest:
		s.report.SetCondition(nebiusv1.ConditionLoginAvailable, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, "there are no login pods during maintenance")
	default:
		s.component(nebiusv1.ConditionLoginAvailable, s.comesBack(s.awaitsJail(s.seen.LoginSet), rest.Clients))
	}
	switch {
	case nodes.Accounting.Enabled && atRest && rest.Slurmdbd != "":
		s.report.SetCondition(nebiusv1.ConditionAccountingAvailable, metav1.ConditionFalse, nebiusv1.ReasonMaintenance, rest.Slurmdbd)
	case nodes.Accounting.Enabled:
		s.component(nebiusv1.ConditionAccountingAvailable, s.accountingParts()...)
	default:
		s.report.SetCondition(nebiusv1.ConditionAccountingAvailable, metav1.ConditionFalse, nebiusv1.ReasonDisabled, "spec.slurmNodes.accounting.enabled is false")
	}
	s.sConfigController()
	s.exporter()
}

// images reports the images that ours replace, by an event when there is something new.
func (s *status) images() {
	const kind = nebiusv1.ConditionImagesReplaced
	if len(s.composed.Replaced) == 0 {
		s.report.Drop = append(s.report.Drop, kind)
		return
	}
	message := "Soperator's images do not start here; Coxswain's images of the same role run instead: " + strings.Join(s.composed.Replaced, ", ") +
		"; leave these fields empty, name images of your own, or start the operator with --keep-soperator-images"
	if was := meta.FindStatusCondition(s.cluster.Status.Conditions, kind); was == nil || was.Message != message {
		s.report.Events = append(s.report.Events, reconcile.Event{Type: corev1.EventTypeNormal, Reason: kind, Action: "Compose", Note: message})
	}
	s.report.SetCondition(kind, metav1.ConditionTrue, nebiusv1.ReasonSoperatorImages, message)
}

// editWaits copies the condition of the Controller to where users of the cluster look.
func (s *status) editWaits() {
	if waits := s.seen.EditWaits; waits != nil {
		s.report.SetCondition(waits.Type, waits.Status, waits.Reason, waits.Message)
		return
	}
	s.report.Drop = append(s.report.Drop, slinkyv1beta1.ConditionEditWaits)
}

// component writes the condition of a component that the spec asks for.
func (s *status) component(kind string, parts ...kube.Part) {
	var missing []string
	for _, p := range parts {
		if !p.Ready {
			missing = append(missing, p.Name+": "+p.Message)
		}
	}
	if len(missing) > 0 {
		s.available = false
		s.report.SetCondition(kind, metav1.ConditionFalse, nebiusv1.ReasonNotAvailable, strings.Join(missing, "; "))
		return
	}
	messages := make([]string, 0, len(parts))
	for _, p := range parts {
		messages = append(messages, p.Name+": "+p.Message)
	}
	s.report.SetCondition(kind, metav1.ConditionTrue, nebiusv1.ReasonAvailable, strings.Join(messages, "; "))
}

// workers returns the number of workers that the spec asks for when the cluster is not at rest. How many come back is not composed yet.
func (s *status) workers() int {
	if s.cluster.Spec.Maintenance.Downscaled() || s.composed.Rest.Clients != "" {
		return len(s.composed.Components.NodeSets)
	}
	total := 0
	for _, set := range s.composed.Components.NodeSets {
		total += int(set.Replicas())
	}
	return total
}

// workerParts returns the NodeSets, with the mistakes of those that are held.
func (s *status) workerParts() []kube.Part {
	parts := slices.Clone(s.seen.NodeSets)
	for i, set := range s.composed.Components.NodeSets {
		parts[i] = s.comesBack(s.awaitsJail(parts[i]), s.composed.Rest.Clients)
		for _, held := range s.composed.Held {
			if held.Object == set {
				parts[i] = kube.Part{
					Name: "slurm.nebius.ai NodeSet " + held.NodeSet, Stalled: true,
					Reason: nebiusv1.ReasonInvalidSpec, Message: held.Problems.Message(),
				}
			}
		}
	}
	return parts
}

// accountingParts returns slurmdbd and its database, or why there is none although the spec asks for it. A database without replicas is not
// asked whether it is ready.
func (s *status) accountingParts() []kube.Part {
	if s.composed.Components.Accounting != nil {
		if s.cluster.Spec.Maintenance.Downscaled() {
			return []kube.Part{s.seen.Accounting}
		}
		return append(slices.Clone(s.seen.Database), s.seen.Accounting)
	}
	if len(s.problems) > 0 {
		return []kube.Part{{Name: "spec.slurmNodes.accounting", Stalled: true, Reason: nebiusv1.ReasonInvalidSpec, Message: "has mistakes, see condition Stalled"}}
	}
	return []kube.Part{{
		Name: "spec.slurmNodes.accounting.mariadbOperator", Stalled: true, Reason: nebiusv1.ReasonFieldsNotEffective,
		Message: s.composed.NoDatabase + ": install a mariadb-operator whose kinds are those of k8s.mariadb.com/v1alpha1, or use embeddedDB or externalDB",
	}}
}

// comesBack replaces the message of a component that is kept stopped after the maintenance by what it waits for.
func (s *status) comesBack(part kube.Part, waits string) kube.Part {
	if waits == "" || s.cluster.Spec.Maintenance.Downscaled() || !part.Ready {
		return part
	}
	return kube.Part{Name: part.Name, Reason: nebiusv1.ReasonWaiting, Message: waits}
}

// parts returns what has to be ready for the cluster to be ready. A part at rest is ready when it rests.
func (s *status) parts() []kube.Part {
	rest := s.composed.Rest
	parts := []kube.Part{
		s.comesBack(s.seen.Controller, rest.Slurmctld), s.comesBack(s.seen.RestAPI, rest.Slurmctld),
		s.comesBack(s.awaitsJail(s.seen.LoginSet), rest.Clients),
	}
	if s.cluster.Spec.Maintenance.Downscaled() {
		s.report.ReadyReason = nebiusv1.ReasonMaintenance
		if !rest.Reached {
			parts = append(parts, kube.Part{Name: "spec.maintenance", Reason: nebiusv1.ReasonMaintenance, Message: rest.Slurmctld})
		}
	}
	if s.cluster.Spec.SlurmNodes.Accounting.Enabled {
		parts = append(parts, s.accountingParts()...)
	}
	parts = append(append(parts, s.workerParts()...), s.jailPart()...)
	parts = append(parts, s.sConfigControllerPart()...)
	if !s.applied && len(s.problems) == 0 {
		parts = append(parts, kube.Part{Name: "component objects", Reason: nebiusv1.ReasonReconciling, Message: "could not all be applied; the operator tries again"})
	}
	return parts
}

// spec writes the conditions about the spec itself.
func (s *status) spec() {
	switch mode := s.cluster.Spec.Maintenance; mode {
	case nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail:
		// The Job from before goes when the mode begins. Until it has gone, the mode has not begun.
		if s.applied || meta.FindStatusCondition(s.cluster.Status.Conditions, nebiusv1.ConditionPopulateJailMode) == nil {
			s.report.SetCondition(nebiusv1.ConditionPopulateJailMode, metav1.ConditionTrue, string(mode), "")
		}
	case nebiusv1.MaintenanceDownscale:
		s.report.SetCondition(nebiusv1.ConditionPopulateJailMode, metav1.ConditionUnknown, nebiusv1.ReasonUnknown, "the operator does not change the populate-jail Job")
	case "":
		s.report.SetCondition(nebiusv1.ConditionPopulateJailMode, metav1.ConditionTrue, string(nebiusv1.MaintenanceNone), "")
	default:
		s.report.SetCondition(nebiusv1.ConditionPopulateJailMode, metav1.ConditionTrue, string(mode), "")
	}
	const refs = nebiusv1.ConditionNodeSetRefsResolved
	switch {
	case s.cluster.Spec.PartitionConfiguration.ConfigType != nebiusv1.PartitionConfigStructured:
		s.report.Drop = append(s.report.Drop, refs)
	case len(s.composed.Unresolved) > 0:
		s.report.SetCondition(refs, metav1.ConditionFalse, nebiusv1.ReasonNotResolved, strings.Join(s.composed.Unresolved, "; "))
	default:
		s.report.SetCondition(refs, metav1.ConditionTrue, nebiusv1.ReasonResolved, "every partition has workers")
	}
}
