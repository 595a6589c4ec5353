// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// Not parallel: definitions are there for all tests of the server.
func TestAClusterUsesTheKindsOfOthersWhenTheyCome(t *testing.T) {
	w := newWorld(t)
	w.cluster("demo", demoSpec())
	controller := &slinkyv1beta1.Controller{ObjectMeta: w.meta("demo")}
	await(w, controller, func(c *slinkyv1beta1.Controller) error {
		if c.Spec.Metrics.ServiceMonitor != nil {
			return errors.New("there is a ServiceMonitor without its kind")
		}
		return nil
	})
	w.define("../../leaves/testdata/servicemonitors.yaml")
	await(w, controller, func(c *slinkyv1beta1.Controller) error {
		if m := c.Spec.Metrics.ServiceMonitor; m == nil || !m.Enabled {
			return errors.New("the Controller is not to have a ServiceMonitor")
		}
		return nil
	})
}

// Not parallel, as above.
func TestADatabaseOfTheMariaDBOperator(t *testing.T) {
	w := newWorld(t)
	spec := demoSpec()
	spec.SlurmNodes.Accounting = nebiusv1.Accounting{Enabled: true, MariaDBOperator: &nebiusv1.MariaDBOperator{
		NodeContainer: nebiusv1.NodeContainer{Image: "mariadb:11"}, Enabled: true, ProtectedSecret: true, Storage: &embedded.Object{},
	}}
	spec.SlurmNodes.Accounting.MariaDBOperator.Storage.Raw = []byte(`{"size":"1Gi"}`)
	c := w.cluster("demo", spec)
	available := func(status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		await(w, c, func(c *nebiusv1.SlurmCluster) error {
			return condition(c.Status.Conditions, "AccountingAvailable", status, reason, message)
		})
	}
	available(metav1.ConditionFalse, "NotAvailable", "the cluster has no CRD mariadbs.k8s.mariadb.com or grants.k8s.mariadb.com: install a mariadb-operator")

	w.define("testdata/mariadbs.yaml")
	w.define("testdata/grants.yaml")
	mariadb, grant := w.object(compose.MariaDBKind, "demo-acct-db"), w.object(compose.GrantKind, "demo-acct-db")
	accounting := &slinkyv1beta1.Accounting{ObjectMeta: w.meta("demo")}
	w.exists(mariadb, grant, accounting)
	for _, name := range []string{"mariadb-password", "mariadb-root"} {
		secret := &corev1.Secret{ObjectMeta: w.meta(name)}
		w.exists(secret)
		if len(secret.OwnerReferences) > 0 || secret.Labels["slurm.nebius.ai/webhook"] != "true" || secret.Annotations["slurm.nebius.ai/cluster"] != "demo" || len(secret.Data["password"]) == 0 {
			t.Errorf("Secret %s is not protected, or has no password: %v", name, secret.ObjectMeta)
		}
	}
	report(w, accounting, true, nil)
	available(metav1.ConditionFalse, "NotAvailable", "Grant demo-acct-db: the mariadb-operator has not reported on it yet")
	w.isReady(mariadb)
	w.isReady(grant)
	available(metav1.ConditionTrue, "Available", "")

	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Accounting.MariaDBOperator.Replicas = 2 })
	await(w, mariadb, func(m *unstructured.Unstructured) error {
		if n, _, _ := unstructured.NestedInt64(m.Object, "spec", "replicas"); n != 2 {
			return fmt.Errorf("%d replicas, want 2", n)
		}
		return nil
	})
	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.SlurmNodes.Accounting = nebiusv1.Accounting{} })
	w.gone(mariadb, grant, accounting)
	w.exists(&corev1.Secret{ObjectMeta: w.meta("mariadb-root")})
}

// Not parallel, as above.
func TestAProfileOfTheSecurityProfilesOperator(t *testing.T) {
	w := newWorldWith(t, refuseClusterScoped)
	another := w.define("testdata/clusterscoped.yaml")
	other, spec := w.cluster("other", demoSpec()), demoSpec()
	spec.UseDefaultAppArmorProfile = true
	c, login := w.cluster("demo", spec), &slinkyv1beta1.LoginSet{ObjectMeta: w.meta("demo-login")}
	told := func(c *nebiusv1.SlurmCluster, status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		await(w, c, func(c *nebiusv1.SlurmCluster) error {
			return errors.Join(condition(c.Status.Conditions, "SpecEffective", status, reason, message),
				condition(c.Status.Conditions, "CommonAvailable", metav1.ConditionTrue, "Available", ""))
		})
	}
	confined := func(want bool) {
		t.Helper()
		await(w, login, func(l *slinkyv1beta1.LoginSet) error {
			if has := l.Spec.Login != nil && strings.Contains(string(l.Spec.Login.Raw), c.AppArmorProfileName()); has != want {
				return fmt.Errorf("login pods have the profile: %t, want %t", has, want)
			}
			return nil
		})
	}
	// Another kind with that name stops no cluster, whether it asks for a profile or not, and no pod waits for one.
	told(other, metav1.ConditionTrue, "AllFieldsEffective", "")
	told(c, metav1.ConditionFalse, "FieldsNotEffective",
		"the objects of CRD apparmorprofiles.security-profiles-operator.x-k8s.io are in no namespace; load a profile on the nodes and name it")
	confined(false)

	w.undefine(another, compose.AppArmorProfileKind)
	told(c, metav1.ConditionFalse, "FieldsNotEffective", "install the security-profiles-operator")
	confined(false)

	w.define("testdata/apparmorprofiles.yaml")
	profile := w.object(compose.AppArmorProfileKind, c.AppArmorProfileName())
	w.exists(profile)
	told(c, metav1.ConditionTrue, "AllFieldsEffective", "")
	confined(true)
	edit(w, c, func(c *nebiusv1.SlurmCluster) { c.Spec.UseDefaultAppArmorProfile = false })
	w.gone(profile)
	confined(false)
}

// refuseClusterScoped is what the API server does with the rights of Roles: none of them is about what is in no namespace.
func refuseClusterScoped(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/apis/"+compose.AppArmorProfileKind.Group+"/v1alpha1/apparmorprofiles") {
				return &http.Response{
					StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"apparmorprofiles is forbidden"}`)),
				}, nil
			}
			return next.RoundTrip(r)
		})
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is part of http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// object returns an empty object of a kind of others.
func (w *world) object(kind schema.GroupVersionKind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(w.server.Namespace)
	u.SetName(name)
	return u
}

// isReady does what the mariadb-operator does in the end.
func (w *world) isReady(u *unstructured.Unstructured) {
	w.t.Helper()
	apiserver.Eventually(w.t, func() error {
		if err := w.user.Get(w.t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			return err
		}
		u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Running", "message": "Running"}}}
		return w.user.Status().Update(w.t.Context(), u)
	})
}

// define installs the kind of another operator.
func (w *world) define(file string) client.Object {
	w.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &definition.Object); err != nil {
		w.t.Fatal(err)
	}
	w.create(definition)
	return definition
}

// undefine has the API server forget a kind of others, and waits for the end of its definition.
func (w *world) undefine(definition client.Object, kind schema.GroupVersionKind) {
	w.t.Helper()
	// Once it answers for the kind, its storage is there: the API server (1.37) that finds no storage yet when it deletes a definition
	// tries again with what its cache has, and after a conflict not before the next resynchronization, five minutes later.
	// The client is a new one, since a client remembers which kinds are in a namespace.
	apiserver.Eventually(w.t, func() error {
		c, err := client.New(w.admin, client.Options{})
		if err != nil {
			return err
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		return c.List(w.t.Context(), list)
	})
	if err := w.user.Delete(w.t.Context(), definition); err != nil {
		w.t.Fatal(err)
	}
	w.gone(definition)
}
