// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// TestAPodMayPatchItsOwnJobAlone has a real API server, and the rights that a SlurmCluster gives the pod.
func TestAPodMayPatchItsOwnJobAlone(t *testing.T) {
	server := apiserver.Start(t)
	user := server.Client(t, clientgoscheme.Scheme)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: server.Namespace, Name: name} }
	job := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: meta(name), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		}}}}
	}
	own, account := job("demo-populate-jail"), &corev1.ServiceAccount{ObjectMeta: meta("demo-populate-jail")}
	for _, o := range []client.Object{
		own, job("other"), account,
		&rbacv1.Role{ObjectMeta: meta("r"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"batch"}, Resources: []string{"jobs"}, ResourceNames: []string{own.Name}, Verbs: []string{"patch"},
		}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta("r"), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: server.Namespace}},
		},
	} {
		if err := user.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := user.SubResource("token").Create(t.Context(), account, token); err != nil {
		t.Fatal(err)
	}
	authority := server.Config.CAData
	if len(authority) == 0 {
		var err error
		if authority, err = os.ReadFile(server.Config.CAFile); err != nil {
			t.Fatal(err)
		}
	}
	o := populateOptions{job: own.Name, server: server.Config.Host, serviceAccount: t.TempDir()}
	for name, content := range map[string]string{"namespace": server.Namespace, "token": token.Status.Token, "ca.crt": string(authority)} {
		if err := os.WriteFile(filepath.Join(o.serviceAccount, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	apiserver.Eventually(t, func() error { return annotate(t.Context(), o, `{"files":1}`) }) // the right takes a moment
	if err := user.Get(t.Context(), client.ObjectKeyFromObject(own), own); err != nil || own.Annotations[compose.AnnotationPopulateProgress] != `{"files":1}` {
		t.Errorf("the Job has %v (%v)", own.Annotations, err)
	}
	o.job = "other"
	if err := annotate(t.Context(), o, "{}"); err == nil || !strings.Contains(err.Error(), "403 Forbidden") {
		t.Errorf("the pod may patch another Job: %v", err)
	}
}
