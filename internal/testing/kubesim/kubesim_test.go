// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kubesim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/kubesim"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// play is a client with a namespace, and what it was answered.
type play struct {
	t         *testing.T
	client    client.WithWatch
	namespace string
	log       []string
}

// say records an answer: how it was refused, or the part of the object that concerns the client.
func (p *play) say(what string, err error, obj client.Object) {
	p.t.Helper()
	if err != nil {
		p.log = append(p.log, fmt.Sprintf("%s: refused as %s, %d", what, apierrors.ReasonForError(err), code(err)))
		return
	}
	line := fmt.Sprintf("%s: generation %d, labels %v, annotations %v, finalizers %v, leaving %t", what, obj.GetGeneration(), obj.GetLabels(),
		obj.GetAnnotations(), obj.GetFinalizers(), obj.GetDeletionTimestamp() != nil)
	switch o := obj.(type) {
	case *corev1.ConfigMap:
		line += fmt.Sprintf(", data %v", o.Data)
	case *corev1.Pod:
		line += fmt.Sprintf(", phase %s, node %s, conditions %s, containers %v", o.Status.Phase, o.Spec.NodeName, conditions(o.Status.Conditions), images(o))
	}
	var managers []string
	for _, m := range obj.GetManagedFields() {
		managers = append(managers, fmt.Sprintf("%s/%s%s", m.Manager, m.Operation, m.Subresource))
	}
	slices.Sort(managers)
	p.log = append(p.log, line+fmt.Sprintf(", managed by %v", managers))
}

func code(err error) int32 {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Code
	}
	return 0
}

func conditions(list []corev1.PodCondition) string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s=%s", c.Type, c.Status))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func images(p *corev1.Pod) []string {
	var out []string
	for _, c := range p.Spec.Containers {
		out = append(out, c.Name+"="+c.Image)
	}
	return out
}

// apply is server-side apply of a manifest, and reads the object afterwards.
func (p *play) apply(what, manager, text string, edit func(*unstructured.Unstructured), force, status bool) {
	p.t.Helper()
	u := &unstructured.Unstructured{Object: *manifest.Parse[map[string]any](p.t, text)}
	u.SetNamespace(p.namespace)
	if edit != nil {
		edit(u)
	}
	gvk, name := u.GroupVersionKind(), u.GetName()
	var err error
	switch config := client.ApplyConfigurationFromUnstructured(u); {
	case status && force:
		err = p.client.Status().Apply(p.t.Context(), config, client.FieldOwner(manager), client.ForceOwnership)
	case status:
		err = p.client.Status().Apply(p.t.Context(), config, client.FieldOwner(manager))
	case force:
		err = p.client.Apply(p.t.Context(), config, client.FieldOwner(manager), client.ForceOwnership)
	default:
		err = p.client.Apply(p.t.Context(), config, client.FieldOwner(manager))
	}
	if err != nil {
		p.say(what, err, nil)
		return
	}
	if gvk.Kind == "Pod" {
		p.say(what, nil, read[corev1.Pod](p, name))
	} else {
		p.say(what, nil, read[corev1.ConfigMap](p, name))
	}
}

func read[T any, P interface {
	*T
	client.Object
}](p *play, name string) P {
	p.t.Helper()
	var obj P = new(T)
	if err := p.client.Get(p.t.Context(), client.ObjectKey{Namespace: p.namespace, Name: name}, obj); err != nil {
		p.t.Fatalf("reading %s: %v", name, err)
	}
	return obj
}

func parse[T any, P interface {
	*T
	client.Object
}](p *play, text string) P {
	var obj P = manifest.Parse[T](p.t, text)
	obj.SetNamespace(p.namespace)
	return obj
}

const aPod = `{metadata: {name: p, labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}`

func (p *play) configMaps() {
	ctx := p.t.Context()
	cm := parse[corev1.ConfigMap](p, `{metadata: {name: a, labels: {l: "1"}}, data: {k: v, gone: x}}`)
	p.say("create", p.client.Create(ctx, cm, client.FieldOwner("me")), cm)
	p.say("create again", p.client.Create(ctx, parse[corev1.ConfigMap](p, `{metadata: {name: a}}`)), nil)
	stale := cm.DeepCopy()
	cm.Data["k"] = "w"
	p.say("update", p.client.Update(ctx, cm, client.FieldOwner("me")), cm)
	p.say("update of an old version", p.client.Update(ctx, stale), nil)
	version := cm.ResourceVersion
	p.say("update that changes nothing", p.client.Update(ctx, cm, client.FieldOwner("me")), cm)
	p.log = append(p.log, fmt.Sprintf("and has the same version: %t", version == cm.ResourceVersion))
	p.say("merge patch", p.client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, []byte(`{"data":{"gone":null,"new":"n"}}`)), client.FieldOwner("me")), cm)
	p.apply("apply of another's field", "other", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: mine}}`, nil, false, false)
	p.apply("forced", "other", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: mine, more: m}}`, nil, true, false)
	p.apply("applied without it", "other", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: mine}}`, nil, true, false)
	p.apply("apply that creates", "other", `{apiVersion: v1, kind: ConfigMap, metadata: {name: b, finalizers: [example.com/f]}, data: {k: mine}}`, nil, false, false)
	p.apply("apply to a UID that is not there", "other", `{apiVersion: v1, kind: ConfigMap, metadata: {name: z}}`,
		func(u *unstructured.Unstructured) { u.SetUID("1") }, true, false)
	p.apply("apply to another UID", "other", `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}`,
		func(u *unstructured.Unstructured) { u.SetUID("1") }, true, false)
	p.apply("apply to an old version", "other", `{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {k: late}}`,
		func(u *unstructured.Unstructured) { u.SetResourceVersion("1") }, true, false)
	other := types.UID("1")
	p.say("delete of another UID", p.client.Delete(ctx, cm, client.Preconditions{UID: &other}), nil)
	b := read[corev1.ConfigMap](p, "b")
	p.say("delete with a finalizer", p.client.Delete(ctx, b), read[corev1.ConfigMap](p, "b"))
	b = read[corev1.ConfigMap](p, "b")
	b.Finalizers = nil
	p.say("end of the finalizer", p.client.Update(ctx, b, client.FieldOwner("me")), b)
	p.say("read of what is gone", p.client.Get(ctx, client.ObjectKeyFromObject(b), b), b)
	p.say("delete of what is gone", p.client.Delete(ctx, b), nil)
	orphaning := parse[corev1.ConfigMap](p, `{metadata: {name: o}}`)
	p.say("create", p.client.Create(ctx, orphaning, client.FieldOwner("me")), orphaning)
	p.say("delete and keep what it owns", p.client.Delete(ctx, orphaning, client.PropagationPolicy(metav1.DeletePropagationOrphan)), read[corev1.ConfigMap](p, "o"))
	p.say("patch of what is gone", p.client.Patch(ctx, b, client.RawPatch(types.MergePatchType, []byte(`{}`))), nil)
}

func (p *play) pods() {
	ctx := p.t.Context()
	pod := parse[corev1.Pod](p, aPod)
	p.say("create", p.client.Create(ctx, pod, client.FieldOwner("me")), pod)
	const applied = `{apiVersion: v1, kind: Pod, metadata: {name: p}, status: {conditions: [{type: %s, status: "%s"}]}}`
	p.apply("a condition", "kubelet", fmt.Sprintf(applied, "Ready", "True"), nil, true, true)
	p.apply("another's", "worker", fmt.Sprintf(applied, "Idle", "True"), nil, true, true)
	p.apply("another's, another one", "worker", fmt.Sprintf(applied, "Busy", "True"), nil, true, true)
	p.apply("no condition", "worker", `{apiVersion: v1, kind: Pod, metadata: {name: p}, status: {}}`, nil, true, true)
	p.apply("a mark", "nodeset", `{apiVersion: v1, kind: Pod, metadata: {name: p, annotations: {a: b}}}`, nil, true, false)
	p.apply("no mark", "nodeset", `{apiVersion: v1, kind: Pod, metadata: {name: p}}`, nil, true, false)
	p.apply("a status where there is no pod", "worker", `{apiVersion: v1, kind: Pod, metadata: {name: z}, status: {}}`, nil, true, true)
	p.say("strategic merge", p.client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}}`)), client.FieldOwner("me")), pod)
	p.say("labels with the status", p.client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"metadata":{"labels":{"with":"status","app":null},"annotations":{"c":"d"}},"status":{"conditions":[{"type":"Idle","status":"True","reason":null,"message":"m"}]}}`)),
		client.FieldOwner("worker")), pod)
	p.say("labels off with the status, and a condition", p.client.Status().Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"metadata":{"labels":{"with":null}},"status":{"conditions":[{"type":"Idle","$patch":"delete"},{"type":"Ready","status":"True"}]}}`)),
		client.FieldOwner("worker")), pod)
	p.say("status of another pod of the name", p.client.Status().Patch(ctx, parse[corev1.Pod](p, aPod), client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"metadata":{"uid":"another"},"status":{"conditions":[{"type":"Idle","status":"True"}]}}`)), client.FieldOwner("worker")), nil)
	p.say("status of another version", p.client.Status().Patch(ctx, parse[corev1.Pod](p, aPod), client.RawPatch(types.StrategicMergePatchType,
		[]byte(`{"metadata":{"resourceVersion":"1"},"status":{"conditions":[{"type":"Idle","status":"True"}]}}`)), client.FieldOwner("worker")), nil)
	p.say("status by the main endpoint", p.client.Patch(ctx, pod, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"labels":{"app":"b"}},"status":{"phase":"Failed"}}`)), client.FieldOwner("me")), pod)
	p.say("delete of an old version", p.client.Delete(ctx, pod, client.Preconditions{ResourceVersion: new("1")}), nil)
	p.say("delete before it is bound", p.client.Delete(ctx, pod), pod)
	p.say("read of what is gone", p.client.Get(ctx, client.ObjectKeyFromObject(pod), pod), nil)
	bound := parse[corev1.Pod](p, `{metadata: {name: q}, spec: {nodeName: n, containers: [{name: c, image: i}]}}`)
	p.say("create a bound one", p.client.Create(ctx, bound, client.FieldOwner("me")), bound)
	p.say("delete it", p.client.Delete(ctx, bound), read[corev1.Pod](p, "q"))
	p.say("which goes on", p.client.Get(ctx, client.ObjectKeyFromObject(bound), bound), bound)
	p.say("until the kubelet ends it", p.client.Delete(ctx, bound, client.GracePeriodSeconds(0)), bound)
	p.say("read of what is gone", p.client.Get(ctx, client.ObjectKeyFromObject(bound), bound), nil)
}

// evictions are asked for with a budget whose status has been written.
func (p *play) evictions() {
	ctx := p.t.Context()
	evict := func(what, name string) {
		err := p.client.SubResource("eviction").Create(ctx, parse[corev1.Pod](p, fmt.Sprintf("{metadata: {name: %s}}", name)), &policyv1.Eviction{})
		p.log = append(p.log, fmt.Sprintf("%s: %s, %d", what, apierrors.ReasonForError(err), code(err)))
	}
	pod := func(name, ready string) {
		obj := parse[corev1.Pod](p, fmt.Sprintf(`{metadata: {name: %s, labels: {app: a}}, spec: {nodeName: n, containers: [{name: c, image: i}]}}`, name))
		p.say("create", p.client.Create(ctx, obj, client.FieldOwner("me")), obj)
		obj.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionStatus(ready)}}}
		p.say("run", p.client.Status().Update(ctx, obj, client.FieldOwner("kubelet")), obj)
	}
	budget := func(name, minimum string, status policyv1.PodDisruptionBudgetStatus) {
		obj := parse[policyv1.PodDisruptionBudget](p, fmt.Sprintf(`{metadata: {name: %s}, spec: {minAvailable: %s, selector: {matchLabels: {app: a}}}}`, name, minimum))
		p.say("create a budget", p.client.Create(ctx, obj, client.FieldOwner("me")), obj)
		status.ObservedGeneration = obj.Generation
		obj.Status = status
		p.say("write the status of a budget", p.client.Status().Update(ctx, obj, client.FieldOwner("controller")), obj)
	}
	evict("eviction of what is not there", "z")
	pending := parse[corev1.Pod](p, aPod)
	p.say("create", p.client.Create(ctx, pending, client.FieldOwner("me")), pending)
	pod("r", "True")
	pod("u", "False")
	pod("v", "True")
	budget("b", "2147483647", policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 2147483647, CurrentHealthy: 2, ExpectedPods: 3})
	evict("eviction of a pod that does not run", "p")
	p.say("which is gone", p.client.Get(ctx, client.ObjectKeyFromObject(pending), pending), pending)
	evict("eviction of one that runs", "r")
	evict("eviction of one that is not ready", "u")
	budget("c", "1", policyv1.PodDisruptionBudgetStatus{DesiredHealthy: 1, CurrentHealthy: 2, ExpectedPods: 3, DisruptionsAllowed: 1})
	evict("eviction of one with two budgets", "r")
	p.say("delete the first", p.client.Delete(ctx, parse[policyv1.PodDisruptionBudget](p, "{metadata: {name: b}}")), &policyv1.PodDisruptionBudget{})
	evict("eviction of an unready one while there are enough", "u")
	p.say("which goes", nil, read[corev1.Pod](p, "u"))
	evict("eviction that is allowed", "r")
	p.say("which goes", nil, read[corev1.Pod](p, "r"))
	p.log = append(p.log, fmt.Sprintf("and %d are left", read[policyv1.PodDisruptionBudget](p, "c").Status.DisruptionsAllowed))
	evict("eviction of the next pod", "v")
	evict("eviction of a pod that goes already", "r")
	p.say("without the label", p.client.Patch(ctx, read[corev1.Pod](p, "v"),
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":null}}}`)), client.FieldOwner("me")), read[corev1.Pod](p, "v"))
	evict("eviction of a pod of no budget", "v")
}

// watches records what a watch with a label selector sees of objects that come under it and leave it.
func (p *play) watches() {
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	for name, label := range map[string]string{"in": "1", "out": "2"} {
		if err := p.client.Create(ctx, parse[corev1.ConfigMap](p, fmt.Sprintf(`{metadata: {name: %s, labels: {l: "%s"}}}`, name, label))); err != nil {
			p.t.Fatal(err)
		}
	}
	var list corev1.ConfigMapList
	options := []client.ListOption{client.InNamespace(p.namespace), client.MatchingLabels{"l": "1"}}
	if err := p.client.List(ctx, &list, options...); err != nil || len(list.Items) != 1 {
		p.t.Fatalf("listed %d, %v", len(list.Items), err)
	}
	stream, err := p.client.Watch(ctx, &corev1.ConfigMapList{}, append(options, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})...)
	if err != nil {
		p.t.Fatal(err)
	}
	defer stream.Stop()
	for _, step := range []struct{ name, label string }{{"in", "2"}, {"out", "1"}, {"out", "1"}} {
		cm := read[corev1.ConfigMap](p, step.name)
		cm.Labels["l"] = step.label
		cm.Data = map[string]string{"at": fmt.Sprint(len(cm.Data))}
		if err := p.client.Update(ctx, cm); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := p.client.Delete(ctx, read[corev1.ConfigMap](p, "out")); err != nil {
		p.t.Fatal(err)
	}
	for range 4 {
		e := <-stream.ResultChan()
		cm, ok := e.Object.(*corev1.ConfigMap)
		if !ok {
			p.t.Fatalf("%+v", e)
		}
		p.log = append(p.log, fmt.Sprintf("%s %s %v", e.Type, cm.Name, cm.Labels))
		if e.Type == watch.Deleted && cm.Name == "out" {
			return
		}
	}
}

func TestItAnswersAsKubeAPIServerDoes(t *testing.T) {
	for name, steps := range map[string]func(*play){"ConfigMaps": (*play).configMaps, "Pods": (*play).pods, "evictions": (*play).evictions, "watches": (*play).watches} {
		t.Run(name, func(t *testing.T) {
			server := apiserver.StartBare(t)
			real, err := client.NewWithWatch(server.Config, client.Options{Scheme: clientgoscheme.Scheme})
			if err != nil {
				t.Fatal(err)
			}
			sim := kubesim.New(clientgoscheme.Scheme)
			imitated, err := client.NewWithWatch(sim.Config(nil), client.Options{Scheme: clientgoscheme.Scheme, Mapper: sim.Mapper()})
			if err != nil {
				t.Fatal(err)
			}
			want, got := &play{t: t, client: real, namespace: server.Namespace}, &play{t: t, client: imitated, namespace: "n"}
			steps(want)
			steps(got)
			if diff := cmp.Diff(want.log, got.log); diff != "" {
				t.Errorf("kube-apiserver (-), kubesim (+):\n%s", diff)
			}
		})
	}
}
