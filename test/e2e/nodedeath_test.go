// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// mortalLabel is on the Kubernetes node that is going to die.
const mortalLabel = "e2e.coxswain.dev/mortal"

// A Kubernetes node dies in the middle of a first copy into one jail, and in the middle of a batch of files for another one. Both go on
// elsewhere when the node is declared gone. All tests share the nodes: nothing else runs meanwhile.
func TestNodeDeath(t *testing.T) {
	needsTime(t)
	s := newScene(t)
	if !s.Local {
		t.Skip("only of a local Kubernetes can a node be killed")
	}
	node := s.mortal(t)
	s.apply(t, s.manifest(t, "nodedeath.yaml"))
	cluster := s.manifest(t, "nodedeath.yaml")[1]
	s.awaitCondition(t, patient, cluster, "Ready", metav1.ConditionTrue)
	s.awaitCondition(t, soon, cluster, "SConfigControllerAvailable", metav1.ConditionTrue)
	files := s.newGroup(t)
	files.stopAmidChange(t, 2, files.exchanges)
	s.isOn(t, node, "app.kubernetes.io/component", "sconfigcontroller")

	other := newSceneIn(t, s.namespace+"-2")
	other.apply(t, other.manifest(t, "nodedeath.yaml"))
	dir := other.jailVolume(t)
	stopAmid(t, populate, dir, filesIn(dir, 500))
	there := other.isNoJail(t, cluster, dir)
	other.isOn(t, node, "batch.kubernetes.io/job-name", "demo-populate-jail")

	died := time.Now()
	s.killNode(t, node)
	old, now, left, err := files.look(2)
	if t.Logf("%s died with %d of %d files old, %d new, %d names beside them; %d files of the jail were there",
		node, old, manyFiles, now, left, len(there)); err != nil || left == 0 {
		t.Errorf("the batch was over, or files are wrong: %v", err)
	}
	s.awaitMissed(t, node)
	t.Logf("Kubernetes misses it after %.0f s", time.Since(died).Seconds())
	other.isNoJail(t, cluster, dir)
	s.changeNode(t, node, outOfService)
	files.awaitAll(t, 2)
	t.Logf("all files are written after %.0f s", time.Since(died).Seconds())
	other.awaitCondition(t, patient, cluster, "JailPopulated", metav1.ConditionTrue)
	t.Logf("the jail is filled after %.0f s", time.Since(died).Seconds())
	other.isWhole(t, dir)
	keeps(t, dir, there)
	other.awaitCondition(t, patient, cluster, "Ready", metav1.ConditionTrue)
	s.awaitCondition(t, patient, cluster, "Ready", metav1.ConditionTrue)
}

// outOfService marks a Kubernetes node as shut down, so that Kubernetes gives its pods up.
func outOfService(node *corev1.Node) (back func(*corev1.Node)) {
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	node.Spec.Taints = append(node.Spec.Taints, taint)
	return func(node *corev1.Node) {
		var others []corev1.Taint
		for _, of := range node.Spec.Taints {
			if of.Key != taint.Key {
				others = append(others, of)
			}
		}
		node.Spec.Taints = others
	}
}

// mortal chooses a Kubernetes node without the cluster's DNS, sends the operator's pods elsewhere, and labels it until the test ends.
func (s *scene) mortal(t *testing.T) string {
	t.Helper()
	needed, err := s.podsByNode(t.Context(), "kube-system")
	if err != nil {
		t.Fatal(err)
	}
	var all corev1.NodeList
	if err := s.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, node := range all.Items {
		if len(needed[node.Name]) == 0 {
			t.Run("the operator is elsewhere", func(t *testing.T) { s.sendAway(t, node.Name, walk.Operator.Namespace) })
			s.changeNode(t, node.Name, func(node *corev1.Node) func(*corev1.Node) {
				node.Labels[mortalLabel] = "true"
				return func(node *corev1.Node) { delete(node.Labels, mortalLabel) }
			})
			return node.Name
		}
	}
	t.Fatalf("the cluster's DNS is on all of %d nodes", len(all.Items))
	return ""
}

// sendAway deletes the pods of a namespace on a Kubernetes node that takes none meanwhile, and waits until all of it is ready elsewhere. The
// node is cordoned until the test ends.
func (s *scene) sendAway(t *testing.T, node, namespace string) {
	t.Helper()
	s.changeNode(t, node, func(node *corev1.Node) func(*corev1.Node) {
		node.Spec.Unschedulable = true
		return func(node *corev1.Node) { node.Spec.Unschedulable = false }
	})
	pods, err := s.podsByNode(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods[node] {
		if err := s.Delete(t.Context(), &p); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
	eventually(t, patient, "the pods of "+namespace+" to be ready elsewhere", func(ctx context.Context) error {
		pods, err := s.podsByNode(ctx, namespace)
		if err == nil && len(pods[node])+len(pods[""]) > 0 {
			err = fmt.Errorf("there are %d on %s, and %d on no node yet", len(pods[node]), node, len(pods[""]))
		}
		var all appsv1.DeploymentList
		err = errors.Join(err, s.List(ctx, &all, client.InNamespace(namespace)))
		for _, d := range all.Items {
			if d.Status.AvailableReplicas < d.Status.Replicas || d.Status.Replicas == 0 {
				err = errors.Join(err, fmt.Errorf("of Deployment %s %d of %d pods are ready", d.Name, d.Status.AvailableReplicas, d.Status.Replicas))
			}
		}
		return err
	})
}

// podsByNode returns the pods of a namespace by the Kubernetes nodes that they are on.
func (s *scene) podsByNode(ctx context.Context, namespace string) (map[string][]corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.List(ctx, &pods, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", namespace, err)
	}
	out := map[string][]corev1.Pod{}
	for _, p := range pods.Items {
		out[p.Spec.NodeName] = append(out[p.Spec.NodeName], p)
	}
	return out, nil
}

// isOn checks that a running pod with a label is on a node.
func (s *scene) isOn(t *testing.T, node, label, value string) {
	t.Helper()
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{label: value}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == node {
			return
		}
	}
	t.Fatalf("no pod with label %s=%s runs on %s", label, value, node)
}

// killNode ends all that runs on a Kubernetes node, at once. It comes back when the test ends.
func (s *scene) killNode(t *testing.T, name string) {
	t.Helper()
	t.Cleanup(func() {
		if err := s.startNodes(context.WithoutCancel(t.Context()), t); err != nil {
			t.Errorf("starting %s again: %v", name, err)
		}
	})
	s.kill(t, s.processOf(t, name))
}

// startNodes starts the Kubernetes nodes that do not run.
func (s *scene) startNodes(ctx context.Context, t *testing.T) error {
	_, err := walk.StartKubernetes(ctx, stage.repository, walk.NewProgress(logWriter{t}), *nodes, dottedNode)
	return err
}

// processOf returns the process of a Kubernetes node, which ends with all that runs there.
func (s *scene) processOf(t *testing.T, name string) int {
	t.Helper()
	out, err := s.localkube(t.Context(), "status", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var status struct {
		Components []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal([]byte(out), &status); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for _, c := range status.Components {
		if c.Name == name {
			pid = c.PID
		}
	}
	if pid == 0 {
		t.Fatalf("localkube knows no process of %s: %s", name, out)
	}
	return pid
}

// kill ends a process at once.
func (s *scene) kill(t *testing.T, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// awaitMissed waits until Kubernetes does not know the state of a node.
func (s *scene) awaitMissed(t *testing.T, name string) {
	t.Helper()
	eventually(t, patient, "Kubernetes to miss "+name, func(ctx context.Context) error {
		var node corev1.Node
		if err := s.Get(ctx, types.NamespacedName{Name: name}, &node); err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return errors.New("it is said to be ready")
			}
		}
		for _, taint := range node.Spec.Taints {
			if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == corev1.TaintEffectNoExecute {
				return nil
			}
		}
		return fmt.Errorf("its taints are %v", node.Spec.Taints)
	})
}
