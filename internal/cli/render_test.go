// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/cli/lint"
	"github.com/coxswain-hpc/coxswain/internal/cli/preview"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestRender(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"a_slurmcluster":      {[]string{"render", "-f", "../../config/samples/slurmcluster.yaml"}, 0},
		"a_slurmcluster_wide": {[]string{"render", "-f", "../../config/samples/slurmcluster-minimal.yaml", "-o", "wide", "-n", "other"}, 0},
		"components_yaml":     {[]string{"render", "-f", "testdata/preview/components.yaml", "-o", "yaml", "--image-registry=registry.example.com"}, 0},
		"mistakes":            {[]string{"render", "-f", "testdata/manifests"}, 2},
		"no_file":             {[]string{"render"}, 1},
		"help":                {[]string{"render", "--help"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t.Context(), t, program(), tc.args...).check(t, tc.code)
			if strings.Contains(got.out+got.errors, "the-password-of-the-database") {
				t.Error("it shows the value of a Secret")
			}
			golden.Check(t, "render/"+name+".txt", got.golden(tc.args...))
		})
	}
	var list unstructured.UnstructuredList
	got := run(t.Context(), t, program(), "render", "-f", "testdata/preview/components.yaml", "-o", "json").check(t, 0)
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 || list.Items[0].GetName() != "demo-auth-slurm" {
		t.Errorf("the list has %d items: %s", len(list.Items), got.out)
	}
}

// The operator runs with the same manifest. It makes what was rendered, and every ConfigMap has the rendered content.
func TestTheOperatorMakesWhatIsRendered(t *testing.T) {
	o := operator.Start(t, "slurmcluster", "controller", "accounting", "loginset", "restapi", "nodeset")
	text := readFile(t, "../../config/samples/slurmcluster-minimal.yaml")
	objects, problems, err := lint.Read(t.Context(), o.Namespace, []lint.Source{{Name: "sample", Content: []byte(text)}})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	out, err := preview.Make(t.Context(), preview.Input{Objects: objects, Registry: "example.com/coxswain", Tag: "26.05", ClusterDomain: "cluster.local"})
	if err != nil || len(out.Mistakes) > 0 {
		t.Fatal(err, out.Mistakes)
	}
	cluster := manifest.Parse[nebiusv1.SlurmCluster](t, text)
	cluster.Namespace = o.Namespace
	if err := o.User.Create(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	want := map[string]*unstructured.Unstructured{}
	for _, m := range out.Made {
		switch m.Object.GetKind() {
		case "ServiceMonitor", "ControllerRevision": // the CRD is not there; the hash is another one
		default:
			want[m.Object.GetKind()+"/"+m.Object.GetName()] = m.Object
		}
	}
	deadline, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		made := map[string]map[string]string{}
		for _, u := range want {
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(u.GroupVersionKind())
			if err := o.User.Get(t.Context(), client.ObjectKeyFromObject(u), live); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			} else if err == nil {
				data, _, _ := unstructured.NestedStringMap(live.Object, "data")
				made[u.GetKind()+"/"+u.GetName()] = data
			}
		}
		missing := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(name string) bool { _, ok := made[name]; return ok })
		if len(missing) == 0 {
			for name, u := range want {
				said, _, _ := unstructured.NestedStringMap(u.Object, "data")
				if diff := cmp.Diff(said, made[name]); u.GetKind() == "ConfigMap" && diff != "" {
					t.Errorf("%s is not what was said (-said +made):\n%s", name, diff)
				}
			}
			break
		}
		select {
		case <-deadline:
			t.Fatalf("after %s the operator has not made %s", patience, missing)
		case <-tick.C:
		}
	}
	// And nothing else.
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.ServiceList{}, &corev1.SecretList{}, &corev1.PodList{}} {
		partial := &metav1.PartialObjectMetadataList{}
		kinds, _, err := newScheme(t).ObjectKinds(list)
		if err != nil {
			t.Fatal(err)
		}
		partial.SetGroupVersionKind(kinds[0])
		if err := o.User.List(t.Context(), partial, client.InNamespace(o.Namespace)); err != nil {
			t.Fatal(err)
		}
		for _, item := range partial.Items {
			name := fmt.Sprintf("%s/%s", strings.TrimSuffix(kinds[0].Kind, "List"), item.Name)
			if want[name] == nil && item.Name != "kube-root-ca.crt" {
				t.Errorf("%s was made, and is not rendered", name)
			}
		}
	}
}

// Whatever stands in a file, no value of a Secret is shown.
func FuzzRender(f *testing.F) {
	f.Add(readFile(f, "testdata/preview/components.yaml"))
	f.Add(readFile(f, "../../config/samples/slurmcluster-minimal.yaml"))
	f.Fuzz(func(t *testing.T, text string) {
		objects, _, err := lint.Read(t.Context(), "default", []lint.Source{{Name: "FILE", Content: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		out, err := preview.Make(t.Context(), preview.Input{Objects: objects, Registry: "r", Tag: "t", ClusterDomain: "cluster.local"})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Made {
			data, _, _ := unstructured.NestedMap(m.Object.Object, "data")
			for key, value := range data {
				if m.Object.GetKind() == "Secret" && value != preview.Hidden {
					t.Errorf("Secret %s shows key %s", m.Object.GetName(), key)
				}
			}
		}
	})
}
