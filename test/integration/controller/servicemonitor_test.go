// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

const serviceMonitorDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, listKind: ServiceMonitorList, plural: servicemonitors, singular: servicemonitor}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func TestServiceMonitorComesWithItsDefinition(t *testing.T) {
	o := operator.Start(t, "controller")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {metrics: {enabled: true, serviceMonitor: {enabled: true, interval: 30s}}}}`)
	message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "FieldsIgnored", metav1.ConditionTrue, "FieldUnsupported")
	if want := "set, but without effect in this version: [spec.metrics.serviceMonitor (the cluster has no CRD servicemonitors.monitoring.coreos.com)]"; message != want {
		t.Errorf("%q, want %q", message, want)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(serviceMonitorDefinition), &definition.Object); err != nil {
		t.Fatal(err)
	}
	if err := o.User.Create(t.Context(), definition); err != nil {
		t.Fatal(err)
	}
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "FieldsIgnored", metav1.ConditionFalse, "AllFieldsUsed")
	monitor := func() (*unstructured.Unstructured, error) {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("monitoring.coreos.com/v1")
		u.SetKind("ServiceMonitor")
		return u, o.User.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "demo-controller"}, u)
	}
	apiserver.Eventually(t, func() error {
		u, err := monitor()
		endpoints, _, _ := unstructured.NestedSlice(u.Object, "spec", "endpoints")
		if len(endpoints) != 4 {
			return errors.Join(err, fmt.Errorf("its endpoints are %v", endpoints))
		}
		return err
	})
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.Metrics.ServiceMonitor.Enabled = false })
	apiserver.Eventually(t, func() error {
		if _, err := monitor(); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is still there, or: %w", errors.Join(errors.New("no error"), err))
		}
		return nil
	})
}
