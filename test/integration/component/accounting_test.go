// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func conf(o *operator.Operator) string {
	s, _ := operator.Find[corev1.Secret](o, "demo-accounting")
	return string(s.Data["slurmdbd.conf"])
}

// template returns the annotations of slurmdbd's pods, or nil while there is no StatefulSet.
func template(o *operator.Operator) map[string]string {
	s, _ := operator.Find[appsv1.StatefulSet](o, "demo-accounting")
	return s.Spec.Template.Annotations
}

func TestAnotherPasswordReachesSlurmdbdAndRestartsIt(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "accounting")
	operator.Create[corev1.Secret](o, `{metadata: {name: db}, stringData: {pw: first}}`)
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: demo}, spec: {storageConfig: {host: db.example, passwordKeyRef: {name: db, key: pw}}}}`)
	apiserver.Eventually(t, func() error {
		if !strings.Contains(conf(o), "StoragePass=first\n") || template(o) == nil {
			return errors.New("slurmdbd is not made")
		}
		return nil
	})
	before := template(o)["slinky.slurm.net/slurmdbd-conf-hash"]
	operator.Change(o, "db", func(s *corev1.Secret) { s.Data["pw"] = []byte("second") })
	apiserver.Eventually(t, func() error {
		if !strings.Contains(conf(o), "StoragePass=second\n") || template(o)["slinky.slurm.net/slurmdbd-conf-hash"] == before {
			return errors.New("slurmdbd has the first password")
		}
		return nil
	})
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

func TestSlurmdbdThatMovesOutLeavesNoPasswordBehind(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "accounting")
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: demo}, spec: {embeddedDatabase: {}}}`)
	apiserver.Eventually(t, func() error {
		if template(o) == nil {
			return errors.New("slurmdbd is not made")
		}
		return nil
	})
	operator.Change(o, "demo", func(a *slinkyv1beta1.Accounting) {
		a.Spec = slinkyv1beta1.AccountingSpec{External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "dbd.example", Port: 6819}}
	})
	apiserver.Eventually(t, func() error {
		if operator.Exists[corev1.Secret](o, "demo-accounting") {
			return errors.New("its Secret is still there")
		}
		for _, name := range []string{"demo-accounting", "demo-database"} {
			if operator.Exists[corev1.Service](o, name) || operator.Exists[appsv1.StatefulSet](o, name) {
				return fmt.Errorf("%s is still there", name)
			}
		}
		return nil
	})
	// They may be those of running daemons, and of a database whose volume stays.
	for _, name := range []string{"demo-auth-slurm", "demo-auth-jwt", "demo-auth-database"} {
		if !operator.Exists[corev1.Secret](o, name) {
			t.Errorf("the generated Secret %s is gone", name)
		}
	}
	operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Ready", metav1.ConditionTrue, "Available")
	operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "DatabaseReachable", metav1.ConditionUnknown, "External")
}

// asKubelet has a kubelet report how the containers of slurmdbd's pod are, which have run for an hour.
func asKubelet(o *operator.Operator, t *testing.T, watcher, slurmdbd bool) {
	t.Helper()
	live := operator.Get[corev1.Pod](o, "demo-accounting-0")
	patch := client.MergeFrom(live.DeepCopy())
	container := func(name string, ready bool) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{Name: name, Ready: ready, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-time.Hour))},
		}}}
	}
	ready := corev1.ConditionFalse
	if watcher && slurmdbd {
		ready = corev1.ConditionTrue
	}
	live.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, InitContainerStatuses: container("database", watcher), ContainerStatuses: container("slurmdbd", slurmdbd),
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}},
	}
	if err := o.User.Status().Patch(t.Context(), live, patch); err != nil {
		t.Fatal(err)
	}
}

func TestTheDatabaseIsReachableWhenTheSidecarSaysSo(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "accounting")
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: demo}, spec: {storageConfig: {host: db.example, passwordKeyRef: {name: db, key: pw}}}}`)
	expect := func(status metav1.ConditionStatus, reason string) {
		t.Helper()
		operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "DatabaseReachable", status, reason)
	}
	expect(metav1.ConditionFalse, "PasswordMissing")
	operator.Create[corev1.Secret](o, `{metadata: {name: db}, stringData: {pw: first}}`)
	expect(metav1.ConditionUnknown, "DatabaseNotSeen")
	operator.Create[corev1.Pod](o, `{metadata: {name: demo-accounting-0, labels: {app.kubernetes.io/name: slurmdbd, app.kubernetes.io/instance: demo}},
		spec: {containers: [{name: slurmdbd, image: x}]}}`)
	asKubelet(o, t, true, true)
	expect(metav1.ConditionTrue, "DatabaseConnected")
	asKubelet(o, t, false, true)
	expect(metav1.ConditionFalse, "DatabaseUnreachable")
	message := operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Ready", metav1.ConditionFalse, "DatabaseUnreachable")
	if !strings.Contains(message, "db.example:3306") {
		t.Errorf("Ready does not say which database: %s", message)
	}
	asKubelet(o, t, true, true)
	expect(metav1.ConditionTrue, "DatabaseConnected")
}

func TestCertificatesThatAreNoneAreRefusedAndHeal(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "accounting")
	operator.Create[corev1.Secret](o, `{metadata: {name: db}, stringData: {pw: first}}`)
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: demo}, spec: {storageConfig: {host: db.example, passwordKeyRef: {name: db, key: pw},
		tls: {caRef: {configMapKeyRef: {name: ca, key: ca.crt}}, clientCertificateRef: {name: me}}}}}`)
	message := operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Ready", metav1.ConditionFalse, "ReferenceNotFound")
	if !strings.HasPrefix(message, "spec.storageConfig.tls.caRef: ConfigMap ca does not exist") {
		t.Error(message)
	}
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: ca}, data: {ca.crt: nonsense}}`)
	operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	certificate, key := certificate(t)
	operator.Change(o, "ca", func(c *corev1.ConfigMap) { c.Data["ca.crt"] = certificate })
	operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Ready", metav1.ConditionFalse, "KeyMissing")
	operator.Create[corev1.Secret](o, `{metadata: {name: me}, type: kubernetes.io/tls, stringData: {tls.crt: nonsense, tls.key: nonsense}}`)
	operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	operator.Change(o, "me", func(s *corev1.Secret) {
		s.Data["tls.crt"], s.Data["tls.key"] = []byte(certificate), []byte(key)
	})
	apiserver.Eventually(t, func() error {
		if !strings.Contains(conf(o), "SSL_KEY=/etc/slurm/database-client.key") || template(o)["coxswain.dev/database-tls-hash"] == "" {
			return fmt.Errorf("slurmdbd has %s", conf(o))
		}
		return nil
	})
}
