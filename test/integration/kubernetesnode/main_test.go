// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubernetesnode tests what the operator does about Kubernetes nodes with workers, together with the controller of the rebooter,
// against a real API server. It has a package of its own because the operator has more rights here than elsewhere.
package kubernetesnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter"
	coxswain "github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// rights is a file of the chart with rights, and with what limits them.
type rights struct {
	Rules  []rbacv1.PolicyRule                        `json:"rules"`
	Policy *admissionv1.ValidatingAdmissionPolicySpec `json:"policy"`
}

// grant gives all operators the rights of a file of the chart, and their limits: kubernetes-nodes, or node-replacement. So these tests do not
// run at once.
func grant(t *testing.T, o *operator.Operator, file string) {
	t.Helper()
	text, err := os.ReadFile("../../../helm/coxswain/files/" + file + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var r rights
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: file + "-" + o.Namespace}
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: r.Rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "coxswain:operators"}},
		},
	}
	if r.Policy != nil {
		user := o.AsOperator(t).Impersonate.UserName
		r.Policy.MatchConditions = []admissionv1.MatchCondition{{Name: "the-operator", Expression: fmt.Sprintf("request.userInfo.username == '%s'", user)}}
		objects = append(objects, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: *r.Policy},
			&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			}})
	}
	for _, obj := range objects {
		if err := o.User.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.User.Delete(context.Background(), obj) })
	}
}

// rebooterPod makes the pod of a rebooter on a node, ready for an hour. Nothing runs in it.
func rebooterPod(t *testing.T, o *operator.Operator, node string) {
	t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: "nc", Labels: map[string]string{
			label.Name: nebiusv1alpha1.NameNodeConfigurator, nebiusv1alpha1.LabelNodeConfigurator: "true",
		}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "nc-ds", UID: "a", Controller: new(true)}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "rebooter", Image: "i", Env: []corev1.EnvVar{{Name: nebiusv1alpha1.EnvRebooterNodeName, Value: node}},
		}}},
	}
	if err := o.User.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	o.SetReadySince(p.Name, time.Now().Add(-time.Hour))
}

// runRebooter runs the controller of a rebooter, as an administrator, and returns what ends it.
func runRebooter(t *testing.T, o *operator.Operator, node, boot string, reboot func() error) (stop func()) {
	t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(o.Config, ctrl.Options{
		Scheme: coxswain.Scheme(), Cache: cache.Options{ByObject: rebooter.Cached(node)},
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err == nil {
		err = rebooter.Setup(mgr, rebooter.Options{Node: node, Boot: boot, Reboot: reboot, Clock: clock.RealClock{}})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("running the rebooter: %v", err)
		}
	}
}
