// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coxswain "github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// as returns a client of an account that has every right, so that what is refused is refused by a policy.
func as(t *testing.T, config *rest.Config, user string) client.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated", "system:masters"}}
	c, err := client.New(config, client.Options{Scheme: coxswain.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPoliciesLimitWhatRBACCannot is about an operator, or a pod that fills a jail, that an attacker has taken over. All other tests of the
// operator run under the same policies.
func TestPoliciesLimitWhatRBACCannot(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "token")
	ours := as(t, o.Config, o.AsOperator(t).Impersonate.UserName)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: o.Namespace, Name: name} }
	made := func(obj client.Object) client.Object {
		t.Helper()
		if err := o.User.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	owned := func(by string) client.Object {
		s := &corev1.Secret{ObjectMeta: meta(strings.ToLower("of-" + strings.ReplaceAll(by, "/", "-")))}
		s.OwnerReferences = []metav1.OwnerReference{{APIVersion: by, Kind: "Accounting", Name: "demo", UID: "gone", Controller: new(true)}}
		return made(s)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("data"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
	job := func(name string, managedBy *string) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: meta(name), Spec: batchv1.JobSpec{ManagedBy: managedBy, Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "i"}}},
		}}}
		j.Labels = map[string]string{"app.kubernetes.io/component": "populate-jail"}
		j.Annotations = map[string]string{"coxswain.dev/populate-run": "a"}
		made(j)
		return j
	}
	role := func(name string, rules ...rbacv1.PolicyRule) error {
		return ours.Create(t.Context(), &rbacv1.Role{ObjectMeta: meta(name), Rules: rules})
	}
	rule := func(resources, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs), ResourceNames: names}
	}
	binding := func(name, kind, subject, namespace string) error {
		return ours.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta(name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: "a"},
			Subjects: []rbacv1.Subject{{Kind: subject, Name: "a", Namespace: namespace}}})
	}
	status := func(j *batchv1.Job) error {
		before := j.DeepCopy()
		j.Status.Active = 1
		return ours.Status().Patch(t.Context(), j, client.MergeFrom(before))
	}
	filling, of := job("demo-populate-jail", nil), func(edit func(*batchv1.Job)) func() error {
		return func() error {
			j := &batchv1.Job{}
			if err := o.User.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "demo-populate-jail"}, j); err != nil {
				return err
			}
			before := j.DeepCopy()
			edit(j)
			return as(t, o.Config, "system:serviceaccount:"+o.Namespace+":"+j.Name).Patch(t.Context(), j, client.MergeFrom(before))
		}
	}
	checked := job("check", new("coxswain.dev/activecheck"))
	own, other, foreign := owned("slinky.slurm.net/v1beta1"), owned("example.com/v1"), made(&corev1.Secret{ObjectMeta: meta("of-nobody")})
	const claims, secrets, roles, bindings, jobs, one = "no PersistentVolumeClaim", "deletes no Secret but", "makes Roles for", "binds Roles to", "status of Jobs that", "and change nothing else"
	remove := func(obj client.Object) func() error {
		return func() error { return ours.Delete(t.Context(), obj) }
	}
	made(claim)
	// The API server takes a while to apply a new policy.
	apiserver.Eventually(t, func() error {
		if err := ours.Delete(t.Context(), foreign, client.DryRunAll); err == nil {
			return fmt.Errorf("a Secret of nobody goes")
		}
		return nil
	})
	for _, tt := range []struct {
		name    string
		do      func() error
		refusal string
	}{
		{"a claim goes", remove(claim), claims},
		{"a Secret of a component goes", remove(own), ""},
		{"a Secret of something else goes", remove(other), secrets},
		{"a Secret of nobody goes", remove(foreign), secrets},
		{"a Role reads one Secret", func() error { return role("one", rule("secrets", "get", "a")) }, ""},
		{"a Role reads all Secrets", func() error { return role("all", rule("secrets", "get")) }, roles},
		{"a Role lists one Secret", func() error { return role("list", rule("secrets", "get list", "a")) }, roles},
		{"a Role makes pods", func() error { return role("pods", rule("configmaps", "list"), rule("configmaps pods", "list")) }, roles},
		{"a Role writes ConfigMaps", func() error { return role("configmaps", rule("configmaps", "list patch")) }, roles},
		{"a Role patches all Jobs", func() error { return role("jobs", rule("jobs", "patch")) }, roles},
		{"a Role may do everything", func() error { return role("everything", rule("*", "*")) }, roles},
		{"an account is bound to a Role", func() error { return binding("bound", "Role", "ServiceAccount", o.Namespace) }, ""},
		{"an account of another namespace is bound", func() error { return binding("elsewhere", "Role", "ServiceAccount", "default") }, bindings},
		{"an account is bound to a ClusterRole", func() error { return binding("cluster", "ClusterRole", "ServiceAccount", o.Namespace) }, bindings},
		{"somebody is bound", func() error { return binding("somebody", "Role", "User", "") }, bindings},
		{"the status of a Job of an ActiveCheck is written", func() error { return status(checked) }, ""},
		{"the status of another Job is written", func() error { return status(filling) }, jobs},
		{"a pod that fills a jail says how far it is", of(func(j *batchv1.Job) { j.Annotations["coxswain.dev/populate-progress"] = "1" }), ""},
		{"a pod that fills a jail says once more how far it is", of(func(j *batchv1.Job) { j.Annotations["coxswain.dev/populate-progress"] = "2" }), ""},
		{"a pod that fills a jail changes the annotation of its run", of(func(j *batchv1.Job) { j.Annotations["coxswain.dev/populate-run"] = "b" }), one},
		{"a pod that fills a jail takes the annotation of its run away", of(func(j *batchv1.Job) { delete(j.Annotations, "coxswain.dev/populate-run") }), one},
		{"a pod that fills a jail annotates something else", of(func(j *batchv1.Job) { j.Annotations["a"] = "b" }), one},
		{"a pod that fills a jail changes a label", of(func(j *batchv1.Job) { j.Labels["a"] = "b" }), one},
		{"a pod that fills a jail lets more pods run", of(func(j *batchv1.Job) { j.Spec.Parallelism = new(int32(5)) }), one},
		{"a pod that fills a jail keeps the Job from going", of(func(j *batchv1.Job) { j.Finalizers = append(j.Finalizers, "example.com/a") }), one},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.do()
			if (err == nil) != (tt.refusal == "") || err != nil && !strings.Contains(err.Error(), tt.refusal) {
				t.Errorf("the answer is %v, want %q", err, tt.refusal)
			}
		})
	}
}
