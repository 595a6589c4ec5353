// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// loginNodes starts the operator with a LoginSet of one user, whose pods run.
func loginNodes(t *testing.T) *operator.Operator {
	t.Helper()
	o := operator.Start(t, "controller", "loginset")
	operator.Create[corev1.Secret](o, operator.Keys)
	operator.Create[corev1.Secret](o, operator.JWT)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {slurmKeyRef: {name: keys, key: slurm.key}, jwtKeyRef: {name: jwt, key: jwt_hs256.key}}}`)
	operator.Create[slinkyv1beta1.LoginSet](o, operator.ALoginSet)
	operator.ExpectExists[appsv1.Deployment](o, "demo-login")
	o.RunWorkloads()
	operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionTrue, "Available")
	return o
}

func TestLoginPodsChangeTheirWorkloadWithoutAGap(t *testing.T) {
	t.Parallel()
	o := loginNodes(t)
	o.Settle()
	before := o.Children()
	for range 2 {
		operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) {
			l.Spec.Workload, l.Spec.Replicas = slinkyv1beta1.LoginWorkloadStatefulSet, new(int32(3))
		})
		operator.ExpectExists[appsv1.StatefulSet](o, "demo-login")
		o.Settle()
		if !operator.Exists[appsv1.Deployment](o, "demo-login") {
			t.Fatal("the Deployment went before the pods of the StatefulSet were ready")
		}
		operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionFalse, "RollingOut")
		o.RunWorkloads()
		operator.ExpectGone[appsv1.Deployment](o, "demo-login")
		operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionTrue, "Available")
		l := operator.Get[slinkyv1beta1.LoginSet](o, "demo-login")
		if l.Status.Replicas != 3 || l.Status.Selector != "app.kubernetes.io/instance=demo-login,app.kubernetes.io/name=login" {
			t.Errorf("status %+v", l.Status)
		}
		if s := operator.Get[corev1.Service](o, "demo-login-headless-svc"); s.Spec.ClusterIP != corev1.ClusterIPNone {
			t.Errorf("the Service of the pods is %v", s)
		}

		operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) {
			l.Spec.Workload, l.Spec.Replicas = "", new(int32(1))
		})
		operator.ExpectExists[appsv1.Deployment](o, "demo-login")
		o.RunWorkloads()
		operator.ExpectGone[appsv1.StatefulSet](o, "demo-login")
		operator.ExpectGone[corev1.Service](o, "demo-login-headless-svc")
	}
	o.RunWorkloads()
	operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionTrue, "Available")
	if diff := cmp.Diff(before, o.Children()); diff != "" {
		t.Errorf("there and back again is not what it was:\n%s", diff)
	}
}

func TestWhyALoginPodEndedIsTold(t *testing.T) {
	t.Parallel()
	o := loginNodes(t)
	operator.Create[corev1.Pod](o, `{metadata: {name: demo-login-x, labels: {app.kubernetes.io/name: login, app.kubernetes.io/instance: demo-login}},
		spec: {containers: [{name: login, image: i}]}}`)
	pod := operator.Get[corev1.Pod](o, "demo-login-x")
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "login", LastTerminationState: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "sshd refuses key sshd_config of ConfigMap mine: line 3"},
	}}}
	if err := o.User.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.Replicas = new(int32(2)) })
	apiserver.Eventually(t, func() error {
		message := operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionFalse, "RollingOut")
		if want := "; container login of demo-login-x ended: sshd refuses key sshd_config of ConfigMap mine: line 3"; !strings.Contains(message, want) {
			return fmt.Errorf("the condition says %q, want %q in it", message, want)
		}
		return nil
	})
}

func TestKeysAndConfigurationOfLoginPodsRollOut(t *testing.T) {
	t.Parallel()
	o := loginNodes(t)
	operator.Create[corev1.Secret](o, `{metadata: {name: sssd}, stringData: {sssd.conf: one}}`)
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: sshd}, data: {sshd_config: MaxSessions 6}}`)
	o.Settle()
	host := operator.Get[corev1.Secret](o, "demo-login-ssh-host-keys").Data
	generation := func() int64 { return operator.Get[appsv1.Deployment](o, "demo-login").Generation }
	for _, step := range []struct {
		what  string
		rolls bool
		do    func()
	}{
		{"a restart of the operator", false, o.Restart},
		{"another user", false, func() {
			operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) {
				l.Spec.Users = append(l.Spec.Users, slinkyv1beta1.User{Name: "bob", UID: 1001})
			})
		}},
		{"sshd's configuration", true, func() {
			operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.ExtraSshdConfig = "MaxSessions 5" })
		}},
		{"root's keys", true, func() {
			operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.RootSSHAuthorizedKeys = "ssh-rsa AAAA" })
		}},
		{"the slurm key", true, func() {
			operator.Change(o, "keys", func(s *corev1.Secret) { s.Data["slurm.key"] = []byte("another") })
		}},
		{"a set of slurm keys", true, func() {
			operator.Change(o, "keys", func(s *corev1.Secret) {
				s.Data["slurm.jwks"] = []byte(`{"keys": [{"alg": "HS256", "kty": "oct", "kid": "a", "k": "VGhlIGtleSBiZWxvdyBtZSBuZXZlciBsaWVz", "use": "default"}]}`)
			})
		}},
		{"a set of slurm keys that no daemon would start with", false, func() {
			operator.Change(o, "keys", func(s *corev1.Secret) { s.Data["slurm.jwks"] = []byte(`{"keys": []}`) })
		}},
		{"no set of slurm keys", true, func() {
			operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Stalled", metav1.ConditionTrue, "KeyInvalid")
			got := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionFalse, "KeyInvalid")
			if want := "spec.slurmKeyRef: slurm.jwks in Secret keys is no set of keys for auth/slurm: it has no keys"; got != want {
				t.Errorf("%q, want %q", got, want)
			}
			operator.Change(o, "keys", func(s *corev1.Secret) { delete(s.Data, "slurm.jwks") })
		}},
		{"an sshd_config of the user's", true, func() {
			operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) {
				l.Spec.SshdConfigRef = &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "sshd"}, Key: "sshd_config"}
			})
		}},
		{"another content of the user's sshd_config", true, func() {
			operator.Change(o, "sshd", func(c *corev1.ConfigMap) { c.Data["sshd_config"] = "MaxSessions 7" })
		}},
		{"SSSD", true, func() {
			operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) {
				l.Spec.SssdConfRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "sssd"}, Key: "sssd.conf"}
			})
		}},
		{"sssd.conf", true, func() {
			operator.Change(o, "sssd", func(s *corev1.Secret) { s.Data["sssd.conf"] = []byte("two") })
		}},
		{"no SSSD", true, func() {
			operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.SssdConfRef = nil })
		}},
	} {
		before := generation()
		step.do()
		if step.rolls {
			apiserver.Eventually(t, func() error {
				if generation() == before {
					return fmt.Errorf("%s rolls out no new pods", step.what)
				}
				return nil
			})
		}
		o.Settle()
		if !step.rolls && generation() != before {
			t.Errorf("%s rolls out new pods", step.what)
		}
		if now := operator.Get[corev1.Secret](o, "demo-login-ssh-host-keys").Data; !maps.EqualFunc(host, now, func(a, b []byte) bool { return string(a) == string(b) }) {
			t.Fatalf("%s changed the host keys", step.what)
		}
	}
}

func TestHostKeysAreReplacedWhenTheirSecretIsDeletedAndMissedWhenIncomplete(t *testing.T) {
	t.Parallel()
	o := loginNodes(t)
	o.Settle()
	before := operator.Get[corev1.Secret](o, "demo-login-ssh-host-keys").Data
	digest := func() string {
		return operator.Get[appsv1.Deployment](o, "demo-login").Spec.Template.Annotations[slinkyv1beta1.AnnotationSSHHostKeysHash]
	}
	was := digest()
	operator.Delete[corev1.Secret](o, "demo-login-ssh-host-keys")
	apiserver.Eventually(t, func() error {
		s, err := operator.Find[corev1.Secret](o, "demo-login-ssh-host-keys")
		if err != nil || string(s.Data["ssh_host_ed25519_key"]) == string(before["ssh_host_ed25519_key"]) || digest() == was {
			return errors.Join(err, errors.New("there are no new keys, or the pods are those with the old ones"))
		}
		return nil
	})
	operator.Change(o, "demo-login-ssh-host-keys", func(s *corev1.Secret) { delete(s.Data, "ssh_host_rsa_key.pub") })
	got := operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionFalse, "KeyMissing")
	want := "Secret demo-login-ssh-host-keys has no key ssh_host_rsa_key.pub; add it, or delete the Secret and all host keys are generated again"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLoginPodsAreScaledByTheScaleSubresource(t *testing.T) {
	t.Parallel()
	o := loginNodes(t)
	l := operator.Get[slinkyv1beta1.LoginSet](o, "demo-login")
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 3}}
	if err := o.User.SubResource("scale").Update(t.Context(), l, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	apiserver.Eventually(t, func() error {
		if n := *operator.Get[appsv1.Deployment](o, "demo-login").Spec.Replicas; n != 3 {
			return fmt.Errorf("the Deployment has %d replicas", n)
		}
		return nil
	})
	o.RunWorkloads()
	apiserver.Eventually(t, func() error {
		var now autoscalingv1.Scale
		if err := o.User.SubResource("scale").Get(t.Context(), l, &now); err != nil {
			return err
		}
		if now.Status.Replicas != 3 || now.Status.Selector != "app.kubernetes.io/instance=demo-login,app.kubernetes.io/name=login" {
			return fmt.Errorf("the scale subresource says %+v", now.Status)
		}
		return nil
	})
}
