// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
)

// remove deletes an object with dry-run, and returns the warnings.
func (s *scene) remove(kind, name string, options ...client.DeleteOption) []string {
	s.t.Helper()
	s.warnings.take()
	must(s.t, s.user.Delete(s.t.Context(), s.object(kind, `{metadata: {name: `+name+`}}`), append(options, client.DryRunAll)...))
	return s.warnings.take()
}

// works writes a status with so many workers, of which some are allocated and some idle.
func (s *scene) works(name string, workers, allocated, idle int32) {
	s.t.Helper()
	set := &slinkyv1beta1.NodeSet{}
	must(s.t, s.user.Get(s.t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, set))
	set.Status.ObservedGeneration, set.Status.Replicas = set.Generation, workers
	set.Status.SlurmAllocated, set.Status.SlurmIdle = allocated, idle
	must(s.t, s.user.Status().Update(s.t.Context(), set))
}

func TestWhoDeletesANodeSetIsToldOfItsJobs(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(
		s.object("Controller", `{metadata: {name: demo}, spec: {}}`),
		s.object("NodeSet", `{metadata: {name: gpu}, spec: {controllerRef: {name: demo}, partition: {enabled: true}}}`),
		s.object("NodeSet", `{metadata: {name: cpu}, spec: {controllerRef: {name: demo}, drainTimeout: 10m}}`),
		s.object("NodeSet", `{metadata: {name: none}, spec: {controllerRef: {name: demo}}}`),
		s.object("NodeSet", `{metadata: {name: unseen}, spec: {controllerRef: {name: demo}}}`),
		s.object("NodeSet", `{metadata: {name: left}, spec: {controllerRef: {name: absent}}}`),
		s.object("Controller", `{metadata: {name: alpha}, spec: {}}`),
		s.object("Controller", `{metadata: {name: mute}, spec: {}}`),
		s.object("NodeSet", `{metadata: {name: mute}, spec: {controllerRef: {name: mute}}}`),
		s.object("SlurmCluster", `{metadata: {name: alpha}, spec: {slurmNodes: {controller: {}, login: {}, rest: {}}}}`),
		s.object("Workers", `{metadata: {name: big}, spec: {slurmClusterRefName: alpha, replicas: 2}}`),
		s.object("NodeSet", `{metadata: {name: `+compose.NodeSetName("alpha", "big")+`}, spec: {controllerRef: {name: alpha}, partition: {enabled: true}}}`),
	)
	config := &corev1.ConfigMap{Data: map[string]string{"slurm.conf": "NodeSet=gpu Feature=gpu\nPartitionName=gpu Nodes=gpu\nPartitionName=gone Nodes=ALL State=DRAIN\n"}}
	config.Name = (&slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}).ConfigName()
	s.create(config)
	s.works("gpu", 4, 3, 1)
	s.works("cpu", 2, 0, 1)
	s.works("none", 0, 0, 0)
	s.works(compose.NodeSetName("alpha", "big"), 2, 1, 1)

	s.works("left", 2, 1, 1)
	s.works("mute", 2, 1, 1)
	mute := &slinkyv1beta1.Controller{}
	must(t, s.user.Get(t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: "mute"}, mute))
	mute.Status.Conditions = []metav1.Condition{{
		Type: slinkyv1beta1.ConditionSlurmReachable, Status: metav1.ConditionFalse, Reason: slinkyv1beta1.ReasonNoRestAPI, LastTransitionTime: metav1.Now(),
	}}
	must(t, s.user.Status().Update(t.Context(), mute))

	const drained = "are drained, and each is deleted when nothing runs there"
	tests := []struct {
		name, kind, object string
		how                metav1.DeletionPropagation
		want               []string
	}{
		{"a NodeSet with workers and a partition tells of both", "NodeSet", "gpu", "", []string{
			"NodeSet gpu: its 4 workers " + drained + "; jobs run on 3 of them, as its status says",
			"Controller demo: when the NodeSet is gone, " + (slurmctld.EditWaits{Partitions: []string{"gpu"}}).Kept() +
				"; condition EditWaits of the Controller then shows how many jobs need them",
		}},
		{"a NodeSet with a drain time-out says that jobs end by it, and of which workers nothing is known", "NodeSet", "cpu", metav1.DeletePropagationBackground, []string{
			"NodeSet cpu: its 2 workers " + drained + ", or after 10m0s (spec.drainTimeout) with its jobs; jobs run on 0 of them, and for 1 it is not known, as its status says",
		}},
		{"a NodeSet without workers and partition says nothing", "NodeSet", "none", "", nil},
		{"a NodeSet that nobody has looked at says that nothing is known", "NodeSet", "unseen", "", []string{
			"NodeSet unseen: its workers " + drained + "; it is not known on how many of them jobs run, because it has no status yet",
		}},
		{"a NodeSet whose Controller is gone says that its jobs end", "NodeSet", "left", "", []string{
			"NodeSet left: its 2 workers are deleted at once, with their jobs: Controller absent does not exist, or is being deleted; jobs run on 1 of them, as its status says",
		}},
		{"a NodeSet whose Slurm nobody can ask says that its jobs end", "NodeSet", "mute", "", []string{
			"NodeSet mute: its 2 workers are deleted at once, with their jobs: there is no RestApi, so Slurm cannot be asked whether jobs run on them; jobs run on 1 of them, as its status says",
		}},
		{"a NodeSet whose pods Kubernetes deletes first says that its jobs end", "NodeSet", "cpu", metav1.DeletePropagationForeground, []string{
			"NodeSet cpu: its 2 workers are deleted at once, with their jobs: Kubernetes deletes the pods first, by --cascade=foreground; jobs run on 0 of them, and for 1 it is not known, as its status says",
		}},
		{"a NodeSet whose pods stay says nothing", "NodeSet", "cpu", metav1.DeletePropagationOrphan, nil},
		{"a NodeSet of a SlurmCluster tells of the workers that are composed", "Workers", "big", "", []string{
			"NodeSet big: its 2 workers " + drained + "; jobs run on 1 of them, as the status of NodeSet alpha-big of slinky.slurm.net says",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var options []client.DeleteOption
			if tt.how != "" {
				options = append(options, client.PropagationPolicy(tt.how))
			}
			if got, want := strings.Join(s.remove(tt.kind, tt.object, options...), "\n"), strings.Join(tt.want, "\n"); got != want {
				t.Errorf("it warns\n%s, want\n%s", got, want)
			}
		})
	}
}

func TestNothingIsInTheWayOfADeletion(t *testing.T) {
	t.Parallel()
	s := start(t)
	var c admissionv1.ValidatingWebhookConfiguration
	must(t, s.user.Get(t.Context(), client.ObjectKey{Name: s.name}, &c))
	found := 0
	for _, hook := range c.Webhooks {
		if hook.ObjectSelector != nil && len(hook.ObjectSelector.MatchLabels) > 0 {
			continue // Secrets that are to be protected
		}
		for _, rule := range hook.Rules {
			for _, operation := range rule.Operations {
				if operation != admissionv1.Delete {
					continue
				}
				if found++; *hook.FailurePolicy != admissionv1.Ignore || *hook.TimeoutSeconds > 5 || len(rule.Operations) > 1 {
					t.Errorf("%s is %s, within %d s, for %v", hook.Name, *hook.FailurePolicy, *hook.TimeoutSeconds, rule.Operations)
				}
			}
		}
	}
	if found != 2 {
		t.Errorf("%d deletions are told of, want those of both NodeSets", found)
	}
	s.create(s.object("NodeSet", `{metadata: {name: gpu}, spec: {controllerRef: {name: demo}}}`))
	s.stop()
	if said := s.remove("NodeSet", "gpu"); len(said) > 0 {
		t.Errorf("who answers? %q", said)
	}
}
