// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodeconfigurator tests NodeConfigurators in the whole operator, and the controller of rebooter with its rights, against a real
// API server.
package nodeconfigurator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter"
	"github.com/coxswain-hpc/coxswain/internal/controller/rebooter/rebooterplan"
	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// scene is a Kubernetes node with a rebooter.
type scene struct {
	*apiserver.Server
	t    *testing.T
	user client.Client
	// node is the name of the Node.
	node string
	boot string
	// account is the ServiceAccount of the rebooter.
	account string
	stop    func()
	mu      sync.Mutex
	reboots int
}

// start makes a node, gives an account the rights that the chart gives to rebooters, and starts one.
func start(t *testing.T) *scene {
	t.Helper()
	t.Parallel()
	server := apiserver.Start(t)
	s := &scene{Server: server, t: t, user: server.Outsider(t, operator.Scheme()), node: "node-of-" + server.Namespace, boot: "boot-1", account: "nc-rebooter"}
	s.makeNode(s.node)
	s.grant()
	s.run()
	t.Cleanup(func() { s.stop() })
	return s
}

func (s *scene) makeNode(name string) {
	s.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}}}
	if err := s.user.Create(s.t.Context(), n); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.user.Delete(context.Background(), n) })
}

// rights is the chart's file with the rights of rebooters.
type rights struct {
	Rules  []rbacv1.PolicyRule                       `json:"rules"`
	Policy admissionv1.ValidatingAdmissionPolicySpec `json:"policy"`
}

func (s *scene) grant() {
	s.t.Helper()
	text, err := os.ReadFile("../../../helm/coxswain/files/rebooter.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	var r rights
	if err := yaml.UnmarshalStrict(text, &r); err != nil {
		s.t.Fatal(err)
	}
	r.Policy.MatchConditions = []admissionv1.MatchCondition{{Name: "a-rebooter", Expression: fmt.Sprintf("request.userInfo.username in ['%s']", s.username())}}
	meta := metav1.ObjectMeta{Name: "rebooter-" + s.Namespace}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: r.Rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: s.account}},
		},
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: r.Policy},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
	} {
		if err := s.user.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = s.user.Delete(context.Background(), o) })
	}
}

func (s *scene) username() string { return "system:serviceaccount:" + s.Namespace + ":" + s.account }

// config is that of a pod of the rebooter: the API server takes the node from the token of such a pod.
func (s *scene) config() *rest.Config {
	c := rest.CopyConfig(s.Config)
	c.Impersonate = rest.ImpersonationConfig{
		UserName: s.username(), Groups: serviceaccount.MakeGroupNames(s.Namespace),
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {s.node}},
	}
	return c
}

// run starts a rebooter, which knows nothing but what is in the cluster and which boot runs.
func (s *scene) run() {
	s.t.Helper()
	skip := true
	mgr, err := ctrl.NewManager(s.config(), ctrl.Options{
		Scheme: operator.Scheme(), Cache: cache.Options{ByObject: rebooter.Cached(s.node)},
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err == nil {
		err = rebooter.Setup(mgr, rebooter.Options{Node: s.node, Boot: s.boot, Reboot: s.goDown, Clock: clock.RealClock{}})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			s.t.Errorf("running the manager: %v", err)
		}
	}
}

// restart starts another rebooter, which sees a boot.
func (s *scene) restart(boot string) {
	s.t.Helper()
	s.stop()
	s.boot = boot
	s.run()
}

// goDown counts a reboot of the machine.
func (s *scene) goDown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reboots++
	return nil
}

// expectReboots fails the test unless the machine was asked to reboot so often.
func (s *scene) expectReboots(want int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reboots != want {
		s.t.Errorf("the machine was told to reboot %d times, want %d", s.reboots, want)
	}
}

// awaitReboot waits until the machine was asked to reboot: the node shows it before.
func (s *scene) awaitReboot() {
	s.t.Helper()
	apiserver.Eventually(s.t, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.reboots == 0 {
			return errors.New("the machine was not told to reboot")
		}
		return nil
	})
}

func (s *scene) get() *corev1.Node {
	s.t.Helper()
	var n corev1.Node
	if err := s.user.Get(s.t.Context(), client.ObjectKey{Name: s.node}, &n); err != nil {
		s.t.Fatal(err)
	}
	return &n
}

// expect waits until a function finds nothing wrong with the node; it returns what is wrong.
func (s *scene) expect(what func(n rebooterplan.Node) string) {
	s.t.Helper()
	apiserver.Eventually(s.t, func() error {
		n := rebooterplan.NodeOf(s.get())
		if wrong := what(n); wrong != "" {
			return fmt.Errorf("%s: %+v", wrong, n)
		}
		return nil
	})
}

// ask sets a condition of the node, as a program that asks for a drain or a reboot.
func (s *scene) ask(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) {
	s.t.Helper()
	n := s.get()
	before := n.DeepCopy()
	n.Status.Conditions = append(slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == kind }),
		corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()})
	if err := s.user.Status().Patch(s.t.Context(), n, client.StrategicMergeFrom(before)); err != nil {
		s.t.Fatal(err)
	}
}

// cordon is what an administrator does.
func (s *scene) cordon(is bool) {
	s.t.Helper()
	n := s.get()
	before := n.DeepCopy()
	n.Spec.Unschedulable = is
	if err := s.user.Patch(s.t.Context(), n, client.StrategicMergeFrom(before), client.FieldOwner("kubectl-cordon")); err != nil {
		s.t.Fatal(err)
	}
}

// pod makes a running pod on the node.
func (s *scene) pod(name string, edit func(p *corev1.Pod)) {
	s.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: s.node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if edit != nil {
		edit(p)
	}
	if err := s.user.Create(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
	// A budget does not hold a pod that is not ready.
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	if err := s.user.Status().Update(s.t.Context(), p); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.end(name) })
}

// end is what a kubelet does when the containers of a pod have ended.
func (s *scene) end(name string) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	if err := s.user.Delete(context.Background(), p, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		s.t.Errorf("ending Pod %s: %v", name, err)
	}
}

// expectEvicted waits until a pod is being deleted.
func (s *scene) expectEvicted(name string) {
	s.t.Helper()
	apiserver.Eventually(s.t, func() error {
		var p corev1.Pod
		err := s.user.Get(s.t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, &p)
		if err == nil && p.DeletionTimestamp == nil {
			return fmt.Errorf("Pod %s is not evicted", name)
		}
		return client.IgnoreNotFound(err)
	})
}

// budget makes a PodDisruptionBudget of a pod, with as many evictions left as its controller would set.
func (s *scene) budget(name string) {
	s.t.Helper()
	b := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}},
	}
	if err := s.user.Create(s.t.Context(), b); err != nil {
		s.t.Fatal(err)
	}
	s.allow(name, 0)
}

func (s *scene) allow(name string, evictions int32) {
	s.t.Helper()
	var b policyv1.PodDisruptionBudget
	if err := s.user.Get(s.t.Context(), client.ObjectKey{Namespace: s.Namespace, Name: name}, &b); err != nil {
		s.t.Fatal(err)
	}
	b.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: b.Generation, DisruptionsAllowed: evictions, CurrentHealthy: 1 + evictions, DesiredHealthy: 1, ExpectedPods: 1 + evictions,
	}
	if err := s.user.Status().Update(s.t.Context(), &b); err != nil {
		s.t.Fatal(err)
	}
}
