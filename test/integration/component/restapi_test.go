// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// connection returns the digest of what slurmrestd's pods were started with.
func connection(o *operator.Operator) string {
	d, _ := operator.Find[appsv1.Deployment](o, "demo-restapi")
	return d.Spec.Template.Annotations[slinkyv1beta1.AnnotationSlurmConnectionHash]
}

func TestSlurmrestdIsGuardedUntilTheSpecOpensIt(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller", "restapi")
	operator.Create[slinkyv1beta1.RestApi](o, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}}`)
	apiserver.Eventually(t, func() error {
		policy := operator.Get[networkingv1.NetworkPolicy](o, "demo-restapi")
		operators := policy.Spec.Ingress[0].From[1].NamespaceSelector.MatchLabels[corev1.LabelMetadataName]
		if operators != "coxswain-system" {
			return fmt.Errorf("it admits the operator in %q", operators)
		}
		return nil
	})
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)

	operator.Change(o, "demo", func(r *slinkyv1beta1.RestApi) { r.Spec.NetworkPolicy.Enabled = new(false) })
	operator.ExpectGone[networkingv1.NetworkPolicy](o, "demo-restapi")
}

func TestSlurmrestdFollowsItsSlurmdbdAndNothingElse(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "accounting", "controller", "restapi")
	operator.Create[corev1.Secret](o, `{metadata: {name: db}, stringData: {pw: first}}`)
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: demo}, spec: {storageConfig: {host: db.example, passwordKeyRef: {name: db, key: pw}}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {accountingRef: {name: demo}, inplaceReconfigure: true}}`)
	operator.Create[slinkyv1beta1.RestApi](o, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
	apiserver.Eventually(t, func() error {
		if connection(o) == "" {
			return errors.New("slurmrestd is not made")
		}
		return nil
	})
	o.Settle()
	before := connection(o)
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "SchedulerParameters=bf_max_job_test=1" })
	operator.ExpectCondition[slinkyv1beta1.RestApi](o, "demo", "Stalled", metav1.ConditionFalse, "Reconciled")
	o.Settle()
	if connection(o) != before {
		t.Error("slurmrestd is restarted for what it does not read")
	}
	operator.Change(o, "demo", func(a *slinkyv1beta1.Accounting) {
		a.Spec.External, a.Spec.ExternalConfig = true, &slinkyv1beta1.ExternalConfig{Host: "dbd.example", Port: 7000}
	})
	apiserver.Eventually(t, func() error {
		if connection(o) == before {
			return errors.New("slurmrestd keeps to the old slurmdbd")
		}
		return nil
	})
}

// lists returns the ConfigMaps whose users slurmrestd's pods know.
func lists(o *operator.Operator) []string {
	var out []string
	d, _ := operator.Find[appsv1.Deployment](o, "demo-restapi")
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name != "listed-users" {
			continue
		}
		for _, source := range v.Projected.Sources {
			out = append(out, source.ConfigMap.Name)
		}
	}
	return out
}

func TestSlurmrestdKnowsTheUsersOfLoginSets(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller", "loginset", "restapi")
	expect := func(want ...string) {
		t.Helper()
		apiserver.Eventually(t, func() error {
			if got := lists(o); !slices.Equal(got, want) {
				return fmt.Errorf("slurmrestd knows the users of %q, want %q", got, want)
			}
			return nil
		})
	}
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: other}}`)
	operator.Create[slinkyv1beta1.RestApi](o, `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`)
	operator.Create[slinkyv1beta1.LoginSet](o, `{metadata: {name: other}, spec: {controllerRef: {name: other}, users: [{name: bob, uid: 1001}]}}`)
	operator.Create[slinkyv1beta1.LoginSet](o, `{metadata: {name: empty}, spec: {controllerRef: {name: demo}}}`)
	operator.Create[slinkyv1beta1.LoginSet](o, operator.ALoginSet)
	expect("demo-login-users")

	o.Settle()
	before := operator.Get[appsv1.Deployment](o, "demo-restapi").Generation
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) {
		l.Spec.Users = append(l.Spec.Users, slinkyv1beta1.User{Name: "carol", UID: 1002})
	})
	apiserver.Eventually(t, func() error {
		if list := operator.Get[corev1.ConfigMap](o, "demo-login-users"); !strings.Contains(list.Data["passwd"], "carol:") {
			return errors.New("carol is not in the list")
		}
		return nil
	})
	o.Settle()
	if after := operator.Get[appsv1.Deployment](o, "demo-restapi").Generation; after != before {
		t.Error("slurmrestd is replaced for another user of a LoginSet")
	}

	operator.Change(o, "empty", func(l *slinkyv1beta1.LoginSet) { l.Spec.Users = []slinkyv1beta1.User{{Name: "dave", UID: 1003}} })
	expect("demo-login-users", "empty-users")
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.Users = nil })
	expect("empty-users")
	operator.Delete[slinkyv1beta1.LoginSet](o, "empty")
	expect()
}
