// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// The renewal of the operator's Lease comes before its other requests to the API server.
func TestTheLeaseOfTheOperatorDoesNotWaitForItsOtherWork(t *testing.T) {
	t.Parallel()
	if stage.skip != "" {
		t.Skip(stage.skip)
	}
	schema, err := stage.k.Clientset.FlowcontrolV1().FlowSchemas().Get(t.Context(), walk.Operator.Name+"-leader-election", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range schema.Status.Conditions {
		if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionTrue {
			t.Errorf("the FlowSchema leads nowhere: %s", c.Message)
		}
	}
	config := rest.CopyConfig(stage.k.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + walk.Operator.Namespace + ":" + walk.Operator.Name}
	operator, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, first := range map[string]bool{
		"/apis/coordination.k8s.io/v1/namespaces/" + walk.Operator.Namespace + "/leases/coxswain-manager": true,
		"/api/v1/namespaces/" + walk.Operator.Namespace + "/pods":                                         false,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(config.Host, "/")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := operator.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			t.Errorf("reading %s as the operator: %s", path, answer.Status)
		}
		if got := answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) == string(schema.UID); got != first {
			t.Errorf("%s has the operator's own FlowSchema: %t", path, got)
		}
	}
}
