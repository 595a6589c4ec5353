// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/testing/predecessors"
)

// TestManifestsOfThePredecessorsAreAdmitted takes what both predecessors' charts render, first version and newest, as it is. Only the
// namespace is the test's.
func TestManifestsOfThePredecessorsAreAdmitted(t *testing.T) {
	t.Parallel()
	manifests := predecessors.Manifests(t)
	s := start(t)
	// The charts render objects for the Prometheus operator, too.
	monitors := envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "..", "test", "e2e", "testdata", "monitoring.yaml")}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(s.Config, monitors); err != nil {
		t.Fatal(err)
	}
	for name, objects := range manifests {
		t.Run(name, func(t *testing.T) {
			for _, u := range objects {
				predecessors.Move(u.Object, u.GetNamespace(), s.Namespace)
				u.SetNamespace(s.Namespace)
				s.warnings.take()
				if err := s.user.Create(t.Context(), u, client.DryRunAll); err != nil {
					t.Errorf("%s %s is refused: %v", u.GetKind(), u.GetName(), err)
					continue
				}
				said := s.warnings.take()
				t.Logf("%s %s: %d warnings\n%s", u.GetKind(), u.GetName(), len(said), strings.Join(said, "\n"))
				if u.GetKind() == "SlurmCluster" {
					expectWarnings(t, u, said)
				}
			}
		})
	}
}

// expectWarnings wants one for each field without effect: the API server leaves out what is more than 4 KiB.
func expectWarnings(t *testing.T, u *unstructured.Unstructured, said []string) {
	t.Helper()
	cluster := &nebiusv1.SlurmCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cluster); err != nil {
		t.Fatal(err)
	}
	ignored := compose.Cluster(compose.Input{Cluster: cluster, Observed: compose.Observed{Installed: compose.AllInstalled()}}).Ignored
	if len(ignored) == 0 {
		t.Error("nothing in it is without effect?")
	}
	for _, path := range ignored {
		if want := path + " has no effect in this version"; !slices.ContainsFunc(said, func(text string) bool { return strings.HasSuffix(text, want) }) {
			t.Errorf("nobody is told: %s", want)
		}
	}
}
