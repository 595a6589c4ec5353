// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// What happens to Kubernetes nodes, and to slurmctld while a worker retires, costs no job. Nodes are everybody's: nothing
// else runs meanwhile.
func TestKubernetesNodes(t *testing.T) {
	needsTime(t)
	s := newScene(t)
	if !s.Local {
		t.Skip("only of a local Kubernetes can a kubelet be stopped")
	}
	// All at once: every upgrade takes seconds without any test.
	s.sets(t, "nodeReplacement.enabled=true,"+s.rebooters("nc-rebooter"), "nodeReplacement.enabled=false,"+s.rebooters())
	n := s.stageNodes(t)
	s.components(t, "nodes.yaml")
	alice := s.enterLoginSet(t, "login", "alice")
	for _, chapter := range []struct {
		name string
		is   func(*testing.T, *nodesScene, *user)
	}{
		{"topology and features of the Kubernetes nodes arrive in Slurm", describesNodes},
		{"an announced maintenance drains a worker and costs no job", drainsForMaintenance},
		{"a rebooter drains a Kubernetes node when its job has ended, and gives it back", drainsByRebooter},
		{"the machine of a worker is replaced when its job has ended", replacesMachine},
		{"a frozen kubelet and a drained node cost no job", losesNothing},
		{"a retirement goes on after a restart of slurmctld", retiresThroughRestart},
		{"a worker in the network of a node with a domain registers and stays", staysOnDottedNode},
	} {
		if !t.Run(chapter.name, func(t *testing.T) { chapter.is(t, n, alice) }) {
			break // the next would begin from somewhere else
		}
	}
}

// nodesScene is a scene with parts for two Kubernetes nodes. The steady one has what must go on: cluster DNS, and all of
// Slurm but one worker, which is on the other.
type nodesScene struct {
	*scene
	steady, frozen string
}

// The labels of the steady node, and of both.
const (
	steadyLabel = "e2e.coxswain.dev/steady"
	stagedLabel = "e2e.coxswain.dev/staged"
)

func (s *scene) stageNodes(t *testing.T) *nodesScene {
	t.Helper()
	n := &nodesScene{scene: s}
	var dns corev1.PodList
	if err := s.List(t.Context(), &dns, client.InNamespace("kube-system"), client.MatchingLabels{"k8s-app": "kube-dns"}); err != nil {
		t.Fatalf("looking for the cluster's DNS: %v", err)
	}
	for _, p := range dns.Items {
		n.steady = p.Spec.NodeName
	}
	var nodes corev1.NodeList
	if err := s.List(t.Context(), &nodes); err != nil {
		t.Fatalf("listing nodes: %v", err)
	}
	for _, node := range nodes.Items {
		if node.Name != n.steady && n.frozen != dottedNode {
			n.frozen = node.Name
		}
	}
	if n.steady == "" || n.frozen == "" {
		t.Fatalf("there are no two nodes of which one has the cluster's DNS: %q, %q", n.steady, n.frozen)
	}
	s.changeNode(t, n.steady, func(node *corev1.Node) func(*corev1.Node) {
		node.Labels[steadyLabel] = "true"
		return func(node *corev1.Node) { delete(node.Labels, steadyLabel) }
	})
	n.place(t)
	return n
}

// place labels both Kubernetes nodes with where they are and what they have, until the test ends. Workers go there only: a tree
// has no place for other nodes.
func (s *nodesScene) place(t *testing.T) {
	t.Helper()
	for i, name := range []string{s.frozen, s.steady} {
		s.changeNode(t, name, func(node *corev1.Node) func(*corev1.Node) {
			isPlaced(node, i+1)
			return func(node *corev1.Node) {
				delete(node.Labels, stagedLabel)
				delete(node.Annotations, slinkyv1beta1.AnnotationTopologySpec)
				delete(node.Annotations, slinkyv1beta1.AnnotationFeatures)
			}
		})
	}
}

// isPlaced labels a Kubernetes node with where it is and what it has.
func isPlaced(node *corev1.Node, place int) {
	metav1.SetMetaDataLabel(&node.ObjectMeta, stagedLabel, "true")
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, slinkyv1beta1.AnnotationTopologySpec, fmt.Sprintf("default:leaf%d", place))
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, slinkyv1beta1.AnnotationFeatures, fmt.Sprintf("rack%d, tested", place))
}

func describesNodes(t *testing.T, s *nodesScene, alice *user) {
	worker := s.workerOn(t, s.frozen)
	for _, want := range []string{"Topology=default:", "leaf1", "k8s/rack1", "k8s/tested", `"podName":"` + worker + `"`, `"node":"` + s.frozen + `"`} {
		alice.seesShown(t, worker, want)
	}
	if got := alice.runs(t, "srun --constraint=k8s/rack1 hostname"); got != worker {
		t.Errorf("a job for k8s/rack1 ran on %s, not on %s", got, worker)
	}
	p := s.pod(t, worker)
	if got := p.Annotations[slinkyv1beta1.AnnotationTopologySpec]; got != "default:leaf1" {
		t.Errorf("the pod says that its topology is %q", got)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == slinkyv1beta1.PodConditionNeedsAttention {
			t.Errorf("Slurm shows what it was told in another form, or not: %s", c.Message)
		}
	}
	t.Run("the topology goes with the annotation", func(t *testing.T) {
		s.changeNode(t, s.frozen, func(node *corev1.Node) func(*corev1.Node) {
			was := node.Annotations[slinkyv1beta1.AnnotationTopologySpec]
			delete(node.Annotations, slinkyv1beta1.AnnotationTopologySpec)
			return func(node *corev1.Node) { node.Annotations[slinkyv1beta1.AnnotationTopologySpec] = was }
		})
		eventually(t, soon, "Slurm to forget the topology of "+worker, func(ctx context.Context) error {
			out, err := alice.Run(ctx, "scontrol show node "+worker)
			if err == nil && strings.Contains(out, "leaf1") {
				err = errors.New(out)
			}
			return err
		})
	})
	alice.seesShown(t, worker, "leaf1")
}

func losesNothing(t *testing.T, s *nodesScene, alice *user) {
	frozen, drained := s.workerOn(t, s.frozen), s.workerOn(t, s.steady)
	before, other := s.pod(t, frozen).UID, s.pod(t, drained).UID
	long, release := alice.submitsBlocked(t, "--nodelist="+frozen)

	s.signalKubelet(t, s.frozen, "STOP")
	// Meanwhile, on the other node: kubectl drain waits for a job, even one that the operator cannot have seen yet.
	job, end := alice.submitsBlocked(t, "--nodelist="+drained)
	t.Cleanup(func() { s.kubectl(context.WithoutCancel(t.Context()), "uncordon", s.steady) }) //nolint:errcheck // of a test that failed
	finished := make(chan error, 1)
	go func() {
		_, err := s.kubectl(t.Context(), "drain", s.steady, "--pod-selector=slinky.slurm.net/cluster=slurm", "--ignore-daemonsets",
			"--delete-emptydir-data", "--timeout=120s")
		finished <- err
	}()
	alice.seesNode(t, drained, "draining")
	alice.seesShown(t, drained, "slurm-operator: Node was cordoned")
	select {
	case err := <-finished:
		t.Fatalf("kubectl drain did not wait for job %d: %v", job, err)
	case <-time.After(3 * time.Second): // it tries again every five seconds, and the first try is over
	}
	if got := s.pod(t, drained).UID; got != other {
		t.Fatal("the worker was replaced while its job ran")
	}
	s.staysWhileSuspended(t, alice, drained, job, finished)
	end(t)
	if err := <-finished; err != nil {
		t.Fatalf("kubectl drain: %v", err)
	}
	alice.awaits(t, job, "COMPLETED")
	if _, err := s.kubectl(t.Context(), "uncordon", s.steady); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, drained, other)
	alice.seesNode(t, drained, "idle")

	// Long enough for Kubernetes to give the first node up.
	eventually(t, patient, "Kubernetes to miss "+s.frozen, func(context.Context) error {
		for _, c := range s.pod(t, frozen).Status.Conditions {
			if c.Type == slinkyv1beta1.PodConditionNeedsAttention && c.Reason == slinkyv1beta1.ReasonKubernetesNodeNotReady {
				return nil
			}
		}
		return errors.New("the pod does not say so")
	})
	alice.awaits(t, long, "RUNNING")
	s.signalKubelet(t, s.frozen, "CONT")
	eventually(t, patient, s.frozen+" to be ready again", func(context.Context) error {
		p := s.pod(t, frozen)
		for _, c := range p.Status.Conditions {
			if c.Type == slinkyv1beta1.PodConditionNeedsAttention {
				return fmt.Errorf("the pod says %s", c.Message)
			}
		}
		if p.UID != before || p.DeletionTimestamp != nil {
			t.Fatal("the worker was deleted")
		}
		return nil
	})
	if tasks := alice.awaits(t, long, "RUNNING"); len(tasks) != 1 {
		t.Errorf("the job has %d tasks", len(tasks))
	}
	release(t)
	alice.awaits(t, long, "COMPLETED")
}

func retiresThroughRestart(t *testing.T, s *nodesScene, alice *user) {
	jobs, ends := map[string]int{}, map[string]func(*testing.T){}
	for _, name := range []string{"cpu-0", "cpu-1"} {
		jobs[name], ends[name] = alice.submitsBlocked(t, "--nodelist="+name)
	}
	s.scaleNodeSet(t, 1)
	going, staying := alice.seesOneDrain(t, "cpu-0", "cpu-1")
	slurmctld := s.deletePod(t, "slurm-controller-0")
	s.awaitPod(t, "slurm-controller-0", slurmctld)
	alice.seesNode(t, going, "draining")
	if p := s.pod(t, going); p.DeletionTimestamp != nil {
		t.Fatal("the worker is deleted while its job runs")
	}
	ends[going](t)
	alice.awaits(t, jobs[going], "COMPLETED")
	s.awaitNoPod(t, going)
	alice.awaits(t, jobs[staying], "RUNNING")
	ends[staying](t)
	alice.awaits(t, jobs[staying], "COMPLETED")
}

// seesOneDrain waits until one of two nodes is draining, and returns which. Both have jobs, and which of them ends first by
// what the operator knows so far is not decided by the test.
func (u *user) seesOneDrain(t *testing.T, one, other string) (going, staying string) {
	t.Helper()
	eventually(t, soon, one+" or "+other+" to be draining", func(ctx context.Context) error {
		out, err := u.Run(ctx, "sinfo --noheader --states=draining --format=%N")
		switch going = strings.TrimSpace(out); {
		case err != nil:
			return err
		case going == one:
			staying = other
		case going == other:
			staying = one
		default:
			return fmt.Errorf("sinfo says that %q are", going)
		}
		return nil
	})
	return going, staying
}

// workerOn returns the worker on a Kubernetes node, which is its name in Slurm too.
func (s *scene) workerOn(t *testing.T, kubeNode string) string {
	t.Helper()
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace), client.HasLabels{slinkyv1beta1.LabelCluster}); err != nil {
		t.Fatalf("listing the workers: %v", err)
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName == kubeNode {
			return p.Name
		}
	}
	t.Fatalf("no worker is on %s", kubeNode)
	return ""
}

// seesShown waits until scontrol shows something about a node.
func (u *user) seesShown(t *testing.T, name, want string) {
	t.Helper()
	eventually(t, soon, "scontrol to show "+want+" of node "+name, func(ctx context.Context) error {
		out, err := u.Run(ctx, "scontrol show node "+name)
		if err != nil {
			return err
		}
		if !strings.Contains(out, want) {
			return errors.New(out)
		}
		return nil
	})
}

// changeNode changes a Kubernetes node until the test ends, when what change returned changes it back.
func (s *scene) changeNode(t *testing.T, name string, change func(*corev1.Node) (back func(*corev1.Node))) {
	t.Helper()
	edit := func(ctx context.Context, do func(*corev1.Node)) error {
		var n corev1.Node
		if err := s.Get(ctx, types.NamespacedName{Name: name}, &n); err != nil {
			return fmt.Errorf("reading Node %s: %w", name, err)
		}
		patch := client.MergeFrom(n.DeepCopy())
		do(&n)
		return s.Patch(ctx, &n, patch)
	}
	var back func(*corev1.Node)
	if err := edit(t.Context(), func(n *corev1.Node) { back = change(n) }); err != nil {
		t.Fatalf("changing Node %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := edit(context.WithoutCancel(t.Context()), back); err != nil {
			t.Errorf("changing Node %s back: %v", name, err)
		}
	})
}

func (s *scene) scaleNodeSet(t *testing.T, replicas int32) {
	t.Helper()
	n := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "cpu"}}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec": {"replicas": %d}}`, replicas))
	if err := s.Patch(t.Context(), n, patch); err != nil {
		t.Fatalf("scaling NodeSet cpu: %v", err)
	}
}

// localkube runs a command of the local Kubernetes.
func (s *scene) localkube(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, stage.repository.Path("bin", "localkube"), args...)
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("localkube %s: %w: %s", strings.Join(args, " "), err, errors.String())
	}
	return out.String(), nil
}

func (s *scene) kubectl(ctx context.Context, args ...string) (string, error) {
	return s.localkube(ctx, append([]string{"kubectl"}, args...)...)
}

// signalKubelet stops the kubelet of a node, until the test ends at the latest, or lets it go on.
func (s *scene) signalKubelet(t *testing.T, name, signal string) {
	t.Helper()
	const kubelet = `for p in /proc/[0-9]*; do if [ "$(cat $p/comm)" = kubelet ]; then kill -%s ${p#/proc/}; exit; fi; done; exit 1`
	send := func(ctx context.Context, signal string) error {
		_, err := s.localkube(ctx, "shell", name, "sh", "-c", fmt.Sprintf(kubelet, signal))
		return err
	}
	if err := send(t.Context(), signal); err != nil {
		t.Fatal(err)
	}
	if signal == "STOP" {
		t.Cleanup(func() {
			if err := send(context.WithoutCancel(t.Context()), "CONT"); err != nil {
				t.Error(err)
			}
		})
	}
}
