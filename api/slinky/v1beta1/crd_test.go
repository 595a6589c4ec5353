// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"

	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

func TestAllKindsHaveADefinition(t *testing.T) {
	crds := loadCRDs(t)
	for _, kind := range []string{"Accounting", "Controller", "LoginSet", "NodeSet", "RestApi", "Token"} {
		if crds[kind] == nil {
			t.Errorf("helm/coxswain-crds/crd has no %s", kind)
		}
	}
	if len(crds) != 6 {
		t.Errorf("helm/coxswain-crds/crd has %d definitions of this group, want 6", len(crds))
	}
}

// The API server accepts the definitions: structure, defaults, rules that compile and the cost that it estimates.
func TestTheAPIServerAcceptsTheDefinitions(t *testing.T) {
	for kind, crd := range loadCRDs(t) {
		t.Run(kind, func(t *testing.T) {
			for _, err := range crd.Problems(t.Context()) {
				t.Error(err)
			}
		})
	}
}

// "kubectl apply" keeps the whole definition, as JSON, in an annotation, and annotations end at 256 KiB.
func TestDefinitionsFitIntoTheAnnotationOfKubectlApply(t *testing.T) {
	const limit = 256 << 10
	for kind, crd := range loadCRDs(t) {
		size := len(crd.JSON(t))
		t.Logf("%s: %d bytes", kind, size)
		if size > limit/2 {
			t.Errorf("%s has %d bytes, more than half of what fits", kind, size)
		}
	}
}

// "kubectl explain" has something to say about each field.
func TestEveryFieldIsDescribed(t *testing.T) {
	for kind, crd := range loadCRDs(t) {
		for _, name := range []string{"spec", "status"} {
			property := crd.Schema.Properties[name]
			crdcheck.Walk(kind+"."+name, &property, func(path string, s *apiextensions.JSONSchemaProps) {
				if strings.TrimSpace(s.Description) == "" {
					t.Errorf("%s has no description", path)
				}
			})
		}
	}
}

// "kubectl explain" does not show defaults, so the text of a field has to.
func TestDescriptionsNameTheDefault(t *testing.T) {
	for kind, crd := range loadCRDs(t) {
		spec := crd.Schema.Properties["spec"]
		crdcheck.Walk(kind+".spec", &spec, func(path string, s *apiextensions.JSONSchemaProps) {
			if s.Default == nil || s.Type == "object" || *s.Default == "" {
				return
			}
			want := fmt.Sprintf("Default: %v", *s.Default)
			if text := strings.Join(strings.Fields(s.Description), " "); !strings.Contains(text, want) {
				t.Errorf("%s: the description does not say %q", path, want)
			}
		})
	}
}

// "kubectl get" answers whether it is up, and why not; the other columns are those of Slinky:
// docs/contributors/predecessors/slinky-objects.md#columns-of-kubectl-get.
func TestColumnsSayWhetherItIsUp(t *testing.T) {
	const (
		ready  = `READY .status.conditions[?(@.type=="Ready")].status`
		reason = `REASON .status.conditions[?(@.type=="Ready")].reason`
		age    = "AGE .metadata.creationTimestamp"
	)
	want := map[string][]string{
		"Accounting": {ready, reason, age},
		"Controller": {ready, reason, "CLUSTER .status.clusterName", age},
		"LoginSet":   {"REPLICAS .status.replicas", ready, reason, age},
		"NodeSet": {"DESIRED .status.desired", "REPLICAS .status.replicas", "UPDATED .status.updatedReplicas", "READY .status.readyReplicas", reason,
			age},
		"RestApi": {ready, reason, "REPLICAS .status.replicas", age},
		"Token":   {"USER .spec.username", "IAT .status.issuedAt", ready, reason, age},
	}
	for kind, crd := range loadCRDs(t) {
		if diff := cmp.Diff(want[kind], crd.Columns()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
}
