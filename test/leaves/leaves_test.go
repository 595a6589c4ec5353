// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leaves_test changes every leaf of every component's spec on a real API server. A change from A to B must end in what a
// fresh B ends in, and a value that is refused must leave what was. A leaf that changes nothing is an error of ours. The table of a
// kind is testdata/KIND.yaml; a new field without a line in it fails the test.
package leaves_test

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// TestEveryLeaf goes through all leaves of a kind at once: five settlements a kind, not five a leaf.
func TestEveryLeaf(t *testing.T) {
	defineServiceMonitors(t)
	for _, kind := range []string{"Accounting", "Controller", "LoginSet", "NodeSet", "RestApi", "Token"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			table := load(t, kind)
			paths := tried(t, covered(t, table))
			o := operator.Start(t)
			surroundings(t, o)

			fresh := settled(t, o, table, paths, func(l leaf) any { return l.B })
			deadAreTold(t, o, table, paths)
			clear(t, o)
			before := settled(t, o, table, paths, func(l leaf) any { return l.A })
			for i, path := range paths {
				l, scene := table.Leaves[path], sceneName(i)
				changed := cmp.Diff(withoutRevisions(before.of(scene)), withoutRevisions(fresh.of(scene))) != ""
				switch {
				case l.Dead+l.Acts == "" && !changed:
					t.Errorf("%s: %v or %v, nothing is rendered differently", path, l.A, l.B)
				case l.Dead+l.Acts != "" && changed:
					t.Errorf("%s is listed as changing nothing (%s), but it changes what is rendered", path, l.Dead+l.Acts)
				}
			}

			if kind != "NodeSet" { // whose leaves mean something to the worker engine, see internal/controller/slinky/nodeset/nodesetplan
				expectEffects(t, kind, o.Namespace, table, paths, before, fresh)
			}

			change(t, o, table, paths, func(l leaf) any { return l.B })
			compare(t, table, paths, "changed from A to B", look(t, o), fresh)
			told(t, o, table, paths)
			invalid(t, o, table, paths)
			change(t, o, table, paths, func(l leaf) any { return l.B })
			compare(t, table, paths, "changed to something invalid and back", look(t, o), fresh)

			o.Writes.Reset()
			o.Restart()
			o.Settle()
			o.Writes.ExpectNone(t)
			t.Logf("%s: %d leaves", kind, len(paths))
		})
	}
}

// covered returns the leaves of the kind in order, and fails the test when the table has others.
func covered(t *testing.T, s scene) []string {
	t.Helper()
	paths := fields(t, s.Plural)
	for _, path := range paths {
		if _, ok := s.Leaves[path]; !ok {
			t.Errorf("%s: add this field to testdata, with two values", path)
		}
	}
	for path := range s.Leaves {
		if !slices.Contains(paths, path) {
			t.Errorf("%s: there is no such field any more; delete it from testdata", path)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return paths
}

// tried returns every leaf, or the first of each COXSWAIN_LEAVES_SHARE leaves. "make unit" tries a third of them: every leaf is
// rendered, written and read several times.
func tried(t *testing.T, paths []string) (out []string) {
	t.Helper()
	text, ok := os.LookupEnv("COXSWAIN_LEAVES_SHARE")
	if !ok {
		return paths
	}
	share, err := strconv.Atoi(text)
	if err != nil || share < 1 {
		t.Fatalf("COXSWAIN_LEAVES_SHARE is %q, want a number from one on", text)
	}
	for i := 0; i < len(paths); i += share {
		out = append(out, paths[i])
	}
	return out
}

// surroundings creates what the scenes refer to.
func surroundings(t *testing.T, o *operator.Operator) {
	t.Helper()
	var s struct {
		Objects []map[string]any `json:"objects"`
	}
	text, err := os.ReadFile("testdata/surroundings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	for _, content := range s.Objects {
		obj := &unstructured.Unstructured{Object: content}
		obj.SetNamespace(o.Namespace)
		if err := o.User.Create(t.Context(), obj); err != nil {
			t.Fatalf("creating %s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
}

// defineServiceMonitors installs the kind of the Prometheus operator.
func defineServiceMonitors(t *testing.T) {
	t.Helper()
	server := apiserver.Start(t)
	c, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	text, err := os.ReadFile("testdata/servicemonitors.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &definition.Object); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	poll(t, func() error {
		monitors := &unstructured.UnstructuredList{}
		monitors.SetAPIVersion("monitoring.coreos.com/v1")
		monitors.SetKind("ServiceMonitor")
		return c.List(t.Context(), monitors)
	})
}

// settled creates all scenes and returns the world when the operator is at rest.
func settled(t *testing.T, o *operator.Operator, s scene, paths []string, value func(leaf) any) world {
	t.Helper()
	for i, path := range paths {
		for _, obj := range slices.Backward(s.objects(t, o.Namespace, sceneName(i), path, value(s.Leaves[path]))) {
			if err := o.User.Create(t.Context(), obj); err != nil {
				t.Errorf("creating %s %s for %s: %v", obj.GetKind(), obj.GetName(), path, err)
			}
		}
	}
	settle(t, o)
	return look(t, o)
}

// settle waits until the operator is at rest while all workloads run.
func settle(t *testing.T, o *operator.Operator) {
	t.Helper()
	o.Settle()
	collect(t, o)
	o.RunWorkloads()
	o.Settle()
}

// change gives every object the value of its leaf and waits until the operator is at rest.
func change(t *testing.T, o *operator.Operator, s scene, paths []string, value func(leaf) any) {
	t.Helper()
	for i, path := range paths {
		l := s.Leaves[path]
		err := write(t, o, s, sceneName(i), path, value(l))
		switch {
		case l.Fixed && err == nil:
			t.Errorf("%s is listed as fixed, but could be changed", path)
		case !l.Fixed && err != nil:
			t.Errorf("changing %s: %v", path, err)
		}
	}
	settle(t, o)
}

func write(t *testing.T, o *operator.Operator, s scene, name, path string, value any) error {
	t.Helper()
	wanted := s.objects(t, o.Namespace, name, path, value)[0]
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		obj := wanted.DeepCopy()
		if err := o.User.Get(t.Context(), client.ObjectKeyFromObject(wanted), obj); err != nil {
			return err
		}
		obj.Object["spec"] = wanted.Object["spec"]
		return o.User.Update(t.Context(), obj)
	})
}

// invalid gives the leaves that have one an invalid value: the server refuses it, or the object shows it in a condition.
func invalid(t *testing.T, o *operator.Operator, s scene, paths []string) {
	t.Helper()
	var accepted []int
	for i, path := range paths {
		l := s.Leaves[path]
		if l.Invalid == nil {
			continue
		}
		switch err := write(t, o, s, sceneName(i), path, l.Invalid); {
		case err == nil:
			accepted = append(accepted, i)
		case !apierrors.IsInvalid(err):
			t.Errorf("%s = %v: %v, want a refusal that says what is wrong", path, l.Invalid, err)
		}
	}
	o.Settle()
	for _, i := range accepted {
		if stalled(t, o, s, i, paths[i]) == "" {
			t.Errorf("%s = %v was neither refused nor told by a condition", paths[i], s.Leaves[paths[i]].Invalid)
		}
	}
}

// told expects that a condition shows the changes that cannot be carried out.
func told(t *testing.T, o *operator.Operator, s scene, paths []string) {
	t.Helper()
	for i, path := range paths {
		if s.Leaves[path].Told != "" && stalled(t, o, s, i, path) == "" {
			t.Errorf("%s: the change was carried out, or not told by a condition", path)
		}
	}
}

// deadAreTold expects that condition FieldsIgnored names the leaves that have no effect.
func deadAreTold(t *testing.T, o *operator.Operator, s scene, paths []string) {
	t.Helper()
	for i, path := range paths {
		l := s.Leaves[path]
		if l.Dead == "" {
			continue
		}
		obj := s.objects(t, o.Namespace, sceneName(i), path, nil)[0]
		if err := o.User.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
		if message := condition(obj, "FieldsIgnored"); !strings.Contains(message, "spec."+path) {
			t.Errorf("%s = %v has no effect (%s), and FieldsIgnored says only %q", path, l.B, l.Dead, message)
		}
	}
}

// condition returns the message of a condition that is True.
func condition(obj *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, item := range conditions {
		if c, _ := item.(map[string]any); c["type"] == kind && c["status"] == "True" {
			message, _ := c["message"].(string)
			return message
		}
	}
	return ""
}

// stalled returns the message of the condition Stalled of a scene's object.
func stalled(t *testing.T, o *operator.Operator, s scene, i int, path string) string {
	t.Helper()
	obj := s.objects(t, o.Namespace, sceneName(i), path, nil)[0]
	if err := o.User.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	return problems(obj)
}

func compare(t *testing.T, s scene, paths []string, what string, got, want world) {
	t.Helper()
	for i, path := range paths {
		if l := s.Leaves[path]; l.Fixed || l.Told != "" {
			continue
		}
		if diff := cmp.Diff(want.forgive().of(sceneName(i)), got.forgive().of(sceneName(i))); diff != "" {
			t.Errorf("%s %s is not what a fresh one is (-fresh +changed):\n%s", path, what, diff)
		}
	}
}

// withoutOurs leaves out Coxswain's own objects: of course their spec differs.
func withoutOurs(objects map[string]string) map[string]string {
	out := map[string]string{}
	for key, text := range objects {
		var content map[string]any
		if err := yaml.Unmarshal([]byte(text), &content); err != nil {
			out[key] = err.Error()
			continue
		}
		if version, _ := content["apiVersion"].(string); strings.HasPrefix(version, "slinky.slurm.net/") {
			continue
		}
		out[key] = text
	}
	return out
}

// withoutRevisions leaves out in addition what a revision of workers is called: it is a digest of fields, with effect or
// without.
func withoutRevisions(objects map[string]string) map[string]string {
	out := map[string]string{}
	for key, text := range withoutOurs(objects) {
		if !strings.HasPrefix(key, "ControllerRevision ") {
			out[key] = revision.ReplaceAllString(text, "")
		}
	}
	return out
}

var revision = regexp.MustCompile(`controller\.kubernetes\.io/hash: .*`)
