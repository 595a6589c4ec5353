// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	nebiusnodeset "github.com/coxswain-hpc/coxswain/internal/controller/nebius/nodeset"
	"github.com/coxswain-hpc/coxswain/internal/controller/nebius/slurmcluster"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// world is a server with both controllers running, and somebody who plays the user and the component controllers.
type world struct {
	t        *testing.T
	server   *apiserver.Server
	user     client.Client
	recorder *events.FakeRecorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, nebiusv1.AddToScheme, nebiusv1alpha1.AddToScheme, slinkyv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	server := apiserver.Start(t)
	w := &world{t: t, server: server, user: server.Outsider(t, scheme), recorder: events.NewFakeRecorder(1000)}
	server.Config = server.AsOperator(t)
	server.Manager(t, scheme, func(mgr manager.Manager) error {
		base := reconcile.Base{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Applier: kube.NewApplier(mgr.GetClient(), mgr.GetAPIReader()),
			Recorder: w.recorder, Clock: clock.RealClock{}, Concurrency: 2,
		}
		return errors.Join(
			kube.SetupIndexes(t.Context(), mgr.GetFieldIndexer(), slurmcluster.Prunes()...),
			slurmcluster.Setup(t.Context(), mgr, base),
			nebiusnodeset.Setup(t.Context(), mgr, base),
		)
	})
	return w
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.server.Namespace, Name: name}
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	if err := w.user.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// cluster creates a SlurmCluster.
func (w *world) cluster(name string, spec nebiusv1.SlurmClusterSpec) *nebiusv1.SlurmCluster {
	w.t.Helper()
	c := &nebiusv1.SlurmCluster{ObjectMeta: w.meta(name), Spec: spec}
	w.create(c)
	return c
}

// edit changes an object as the user does.
func edit[T client.Object](w *world, obj T, change func(T)) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		change(obj)
		return w.user.Update(w.t.Context(), obj)
	})
}

// await waits until an object is as ok wants it.
func await[T client.Object](w *world, obj T, ok func(T) error) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		return ok(obj)
	})
}

func (w *world) exists(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		await(w, obj, func(client.Object) error { return nil })
	}
}

func (w *world) gone(objects ...client.Object) {
	w.t.Helper()
	for _, obj := range objects {
		apiserver.Eventually(w.t, func() error {
			err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%T %s is still there: %w", obj, obj.GetName(), err)
		})
	}
}

// reporting is a component object.
type reporting interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions([]metav1.Condition)
}

// report plays the controller of a component: it says of the newest spec that it is ready, or not.
func report[T reporting](w *world, obj T, ready bool, change func(T)) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		condition := metav1.Condition{
			Type: slinkyv1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "PodsNotReady", Message: "0 pods are ready", ObservedGeneration: obj.GetGeneration(),
		}
		if ready {
			condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "Available", "all pods are ready"
		}
		conditions := obj.GetConditions()
		meta.SetStatusCondition(&conditions, condition)
		obj.SetConditions(conditions)
		if change != nil {
			change(obj)
		}
		return w.user.Status().Update(w.t.Context(), obj)
	})
}

// condition checks one condition.
func condition(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason, text string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return fmt.Errorf("there is no condition %s", kind)
	}
	if c.Status != status || c.Reason != reason || !strings.Contains(c.Message, text) {
		return fmt.Errorf("%s is %s, %s: %s", kind, c.Status, c.Reason, c.Message)
	}
	return nil
}

// said waits for an event.
func (w *world) said(text string) {
	w.t.Helper()
	var heard []string
	apiserver.Eventually(w.t, func() error {
		for {
			select {
			case e := <-w.recorder.Events:
				heard = append(heard, e)
				if strings.Contains(e, text) {
					return nil
				}
			default:
				return fmt.Errorf("nobody said %q, but %q", text, heard)
			}
		}
	})
}

// poke changes an object's metadata, which wakes its reconciler.
func (w *world) poke(obj client.Object, n int) {
	w.t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"example.org/poke":"%d"}}}`, n))
	if err := w.user.Patch(w.t.Context(), obj, patch); err != nil {
		w.t.Fatal(err)
	}
}

// quiet wakes an object's reconciler again and again and expects that nothing is written for it.
func quiet[T client.Object](w *world, obj T, settled func(T) error) {
	w.t.Helper()
	await(w, obj, settled)
	pokes := 0
	look := func() {
		w.poke(obj, pokes)
		pokes++
		// Each look takes as long as a reconcile does.
		await(w, obj, settled)
	}
	// What the operator was told of before obj was settled may still be on its way to it.
	for still, before := 0, 0; still < 10; still++ {
		look()
		if n := len(w.server.Writes.All()); n != before {
			still, before = 0, n
		}
		if pokes > 1000 {
			w.t.Fatalf("the operator does not come to rest; its writes: %v", w.server.Writes.All())
		}
	}
	w.server.Writes.Reset()
	for range 30 {
		look()
	}
	w.server.Writes.ExpectNone(w.t)
}

func demoSpec() nebiusv1.SlurmClusterSpec {
	return nebiusv1.SlurmClusterSpec{SlurmNodes: nebiusv1.SlurmNodes{
		Accounting: nebiusv1.Accounting{Enabled: true, EmbeddedDB: &nebiusv1.EmbeddedDB{Enabled: true}},
		Login:      nebiusv1.Login{Size: 1},
		Worker:     &nebiusv1.Worker{Size: 2},
	}}
}

func TestAClusterIsComposedAndRolledUp(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("demo", demoSpec())
	controller := &slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")}
	accounting := &slinkyv1beta1.Accounting{ObjectMeta: w.meta("demo")}
	rest := &slinkyv1beta1.RestApi{ObjectMeta: w.meta("demo")}
	login := &slinkyv1beta1.LoginSet{ObjectMeta: w.meta("demo-login")}
	workers := &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")}
	w.exists(controller, accounting, rest, login, workers)
	for _, name := range []string{"controller", "accounting", "login", "login-headless", "worker"} {
		w.exists(&corev1.Service{ObjectMeta: w.meta("demo-" + name + "-svc")})
	}
	if !metav1.IsControlledBy(workers, c) {
		t.Error("the NodeSet is not owned by the cluster")
	}
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		if c.Status.Phase != nebiusv1.PhaseNotAvailable {
			return fmt.Errorf("phase %q", c.Status.Phase)
		}
		return errors.Join(
			condition(c.Status.Conditions, "CommonAvailable", metav1.ConditionTrue, "Available", ""),
			condition(c.Status.Conditions, "ControllersAvailable", metav1.ConditionFalse, "NotAvailable", "Controller demo: has not reported"),
			condition(c.Status.Conditions, "Ready", metav1.ConditionFalse, "Waiting", "Controller demo"),
			condition(c.Status.Conditions, "Reconciling", metav1.ConditionTrue, "Waiting", ""),
			condition(c.Status.Conditions, "SpecEffective", metav1.ConditionTrue, "AllFieldsEffective", ""),
			condition(c.Status.Conditions, "PopulateJailMode", metav1.ConditionTrue, "none", ""))
	})

	report(w, controller, true, nil)
	report(w, accounting, true, nil)
	report(w, rest, true, nil)
	report(w, login, true, func(l *slinkyv1beta1.LoginSet) { l.Status.ReadyReplicas = 1 })
	report(w, workers, false, func(n *slinkyv1beta1.NodeSet) { n.Status.ReadyReplicas = 1 })
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "ControllersAvailable", metav1.ConditionTrue, "Available", ""),
			condition(c.Status.Conditions, "LoginAvailable", metav1.ConditionTrue, "Available", ""),
			condition(c.Status.Conditions, "AccountingAvailable", metav1.ConditionTrue, "Available", ""),
			condition(c.Status.Conditions, "WorkersAvailable", metav1.ConditionFalse, "NotAvailable", "NodeSet demo-worker: 0 pods are ready"))
	})
	report(w, workers, true, func(n *slinkyv1beta1.NodeSet) { n.Status.ReadyReplicas = 2 })
	available := func(c *nebiusv1.SlurmCluster) error {
		if c.Status.Phase != nebiusv1.PhaseAvailable || *c.Status.ReadyWorkers != 2 || *c.Status.ReadyLogin != 1 || c.Status.ObservedGeneration != c.Generation {
			return fmt.Errorf("status %+v", c.Status)
		}
		return condition(c.Status.Conditions, "Ready", metav1.ConditionTrue, "Available", "")
	}
	await(w, c, available)
	w.said("Normal Available")
	quiet(w, c, available)
}

func TestWhatIsNoLongerWantedGoes(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("demo", demoSpec())
	accounting := &slinkyv1beta1.Accounting{ObjectMeta: w.meta("demo")}
	workers := &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")}
	w.exists(accounting, workers, &corev1.Service{ObjectMeta: w.meta("demo-worker-svc")})
	edit(w, c, func(c *nebiusv1.SlurmCluster) {
		c.Spec.SlurmNodes.Accounting.Enabled = false
		c.Spec.SlurmNodes.Worker = nil
	})
	w.gone(accounting, workers, &corev1.Service{ObjectMeta: w.meta("demo-accounting-svc")}, &corev1.Service{ObjectMeta: w.meta("demo-worker-svc")})
	w.exists(&slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")}, &slinkyv1beta1.LoginSet{ObjectMeta: w.meta("demo-login")})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "AccountingAvailable", metav1.ConditionFalse, "Disabled", ""),
			condition(c.Status.Conditions, "WorkersAvailable", metav1.ConditionFalse, "Disabled", ""))
	})
}

func TestAMistakeChangesNothingButTheStatus(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("demo", demoSpec())
	controller := &slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")}
	w.exists(controller)
	before := controller.Spec.ExtraConf
	edit(w, c, func(c *nebiusv1.SlurmCluster) {
		c.Spec.CustomSlurmConfig = "KillWait=30\nSlurmUser=root\n"
		c.Spec.SlurmNodes.Worker = nil
	})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "InvalidSpec", "spec.customSlurmConfig: line 2: SlurmUser: it is set by the operator"),
			condition(c.Status.Conditions, "Ready", metav1.ConditionFalse, "InvalidSpec", ""),
			condition(c.Status.Conditions, "CommonAvailable", metav1.ConditionFalse, "NotAvailable", ""))
	})
	w.said("Warning InvalidSpec spec.customSlurmConfig: line 2")
	w.exists(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")})
	w.exists(controller)
	if controller.Spec.ExtraConf != before {
		t.Error("a configuration with a mistake was applied in part")
	}
	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.CustomSlurmConfig = "KillWait=30" })
	await(w, controller, func(o *slinkyv1beta1.Controller) error {
		if !strings.Contains(o.Spec.ExtraConf, "KillWait=30\n") {
			return errors.New("the corrected configuration is not applied")
		}
		return nil
	})
	w.gone(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-worker")})
}

func TestNodeSetsJoinTheirCluster(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("demo", nebiusv1.SlurmClusterSpec{PartitionConfiguration: nebiusv1.PartitionConfiguration{
		ConfigType: nebiusv1.PartitionConfigStructured,
		Partitions: []nebiusv1.Partition{{Name: "gpu", NodeSetRefs: []string{"gpu"}}},
	}})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "NodeSetRefsResolved", metav1.ConditionFalse, "NotResolved", "partition gpu: there is no NodeSet gpu of this cluster")
	})
	set := &nebiusv1alpha1.NodeSet{ObjectMeta: w.meta("gpu"), Spec: nebiusv1alpha1.NodeSetSpec{Replicas: new(int32(2))}}
	w.create(set)
	composed := &slinkyv1beta1.NodeSet{ObjectMeta: w.meta("demo-gpu")}
	w.exists(composed)
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "NodeSetRefsResolved", metav1.ConditionTrue, "Resolved", "")
	})
	report(w, composed, true, func(n *slinkyv1beta1.NodeSet) {
		n.Status.Desired, n.Status.UpdatedReplicas, n.Status.ReadyReplicas, n.Status.Selector = 2, 2, 2, "a=b"
	})
	ready := func(s *nebiusv1alpha1.NodeSet) error {
		if s.Status.Phase != nebiusv1alpha1.NodeSetReady || s.Status.Replicas != 2 || s.Status.LabelSelector != "a=b" {
			return fmt.Errorf("status %+v", s.Status)
		}
		return errors.Join(
			condition(s.Status.Conditions, "Ready", metav1.ConditionTrue, "Available", ""),
			condition(s.Status.Conditions, "PodsReady", metav1.ConditionTrue, "NodeSetReady", ""),
			condition(s.Status.Conditions, "StatefulSetUpdated", metav1.ConditionTrue, "NodeSetReady", "2 of 2"),
			condition(s.Status.Conditions, "StatefulSetTerminated", metav1.ConditionFalse, "WorkersEnabled", ""))
	}
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		if *c.Status.ReadyWorkers != 2 {
			return fmt.Errorf("%d workers are ready", *c.Status.ReadyWorkers)
		}
		return nil
	})
	quiet(w, set, ready)

	// A typing error costs nobody a worker.
	edit(w, set, func(s *nebiusv1alpha1.NodeSet) {
		s.Spec.NodeConfig.Static = "oops"
		s.Spec.Replicas = new(int32(1))
	})
	await(w, set, func(s *nebiusv1alpha1.NodeSet) error {
		return condition(s.Status.Conditions, "Stalled", metav1.ConditionTrue, "InvalidSpec", `spec.nodeConfig.static: "oops" is not Key=Value`)
	})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return errors.Join(
			condition(c.Status.Conditions, "WorkersAvailable", metav1.ConditionFalse, "NotAvailable", "NodeSet gpu: spec.nodeConfig.static"),
			condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "InvalidSpec", "NodeSet gpu: spec.nodeConfig.static"))
	})
	w.exists(composed)
	if composed.Replicas() != 2 {
		t.Errorf("a NodeSet with a mistake was scaled to %d", composed.Replicas())
	}

	if err := w.user.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.gone(composed)
}

func TestANodeSetThatNamesNoClusterBelongsToTheOldest(t *testing.T) {
	w := newWorld(t)
	set := &nebiusv1alpha1.NodeSet{ObjectMeta: w.meta("a")}
	w.create(set)
	await(w, set, func(s *nebiusv1alpha1.NodeSet) error {
		return condition(s.Status.Conditions, "Ready", metav1.ConditionFalse, "ReferenceNotFound", "spec.clusterName: must name a SlurmCluster")
	})
	first := w.cluster("b-first", nebiusv1.SlurmClusterSpec{})
	w.exists(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("b-first-a")})
	// Creation times have whole seconds; a cluster of the same second would win by its name.
	apiserver.Eventually(t, func() error {
		if time.Since(first.CreationTimestamp.Time) <= time.Second {
			return errors.New("still the same second")
		}
		return nil
	})
	w.cluster("a-second", nebiusv1.SlurmClusterSpec{})
	w.exists(&slinkyv1beta1.Controller{ObjectMeta: w.meta("a-second")})
	w.gone(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("a-second-a")})
	w.exists(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("b-first-a")})
	if err := w.user.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	w.exists(&slinkyv1beta1.NodeSet{ObjectMeta: w.meta("a-second-a")})
}

func TestADeletedClusterNamesTheClaimsItLeaves(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("demo", nebiusv1.SlurmClusterSpec{})
	w.exists(&slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")})
	for name, labels := range map[string]map[string]string{
		"statesave-demo-controller-0":  {"app.kubernetes.io/name": "slurmctld", "app.kubernetes.io/instance": "demo"},
		"data-demo-database-0":         {"app.kubernetes.io/name": "mariadb", "app.kubernetes.io/instance": "demo"},
		"local-demo-worker-0":          {"app.kubernetes.io/name": "slurmd", "app.kubernetes.io/instance": "demo-worker", "slinky.slurm.net/cluster": "demo"},
		"statesave-other-controller-0": {"app.kubernetes.io/name": "slurmctld", "app.kubernetes.io/instance": "other"},
		"home":                         {},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: w.meta(name), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
		claim.Labels = labels
		w.create(claim)
	}
	if err := w.user.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w.said("Warning PersistentVolumeClaimsKept The data of the cluster is kept in 3 PersistentVolumeClaims, for a new cluster of the same name; " +
		"delete them when it is not needed: data-demo-database-0, local-demo-worker-0, statesave-demo-controller-0")
}

func TestAForeignObjectIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.ConfigMap{ObjectMeta: w.meta("demo-slurm-configs"), Data: map[string]string{"mine": "yes"}})
	c := w.cluster("demo", nebiusv1.SlurmClusterSpec{})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "NameConflict", "demo-slurm-configs")
	})
	config := &corev1.ConfigMap{ObjectMeta: w.meta("demo-slurm-configs")}
	w.exists(config)
	if config.Data["mine"] != "yes" || len(config.Data) != 1 {
		t.Errorf("the foreign ConfigMap was changed: %v", config.Data)
	}
}

func TestAChangeThatTheComponentForbidsIsTold(t *testing.T) {
	w := newWorld(t)
	c := w.cluster("demo", nebiusv1.SlurmClusterSpec{})
	w.exists(&slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")})
	edit(w, c, func(c *nebiusv1.SlurmCluster) {
		source := nebiusv1.VolumeSource{Name: "state"}
		source.Raw = []byte(`{"persistentVolumeClaim": {"claimName": "state"}}`)
		c.Spec.VolumeSources = []nebiusv1.VolumeSource{source}
		c.Spec.SlurmNodes.Controller.Volumes.Spool = &nebiusv1.NodeVolume{VolumeSourceName: "state"}
	})
	await(w, c, func(c *nebiusv1.SlurmCluster) error {
		return condition(c.Status.Conditions, "Stalled", metav1.ConditionTrue, "InvalidSpec", "persistence.existingClaim cannot be changed")
	})
}
