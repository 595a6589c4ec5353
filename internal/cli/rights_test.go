// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// as gives a user rules in the namespace of the test, and returns what the user connects with.
func as(t testing.TB, server *apiserver.Server, user string, rules ...rbacv1.PolicyRule) *rest.Config {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(server.Config)
	if err != nil {
		t.Fatal(err)
	}
	user = user + "-" + server.Namespace
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	if _, err := clientset.RbacV1().Roles(server.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", APIGroup: rbacv1.GroupName, Name: user},
	}
	if _, err := clientset.RbacV1().RoleBindings(server.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, rule := range rules {
		awaitRight(t, clientset, server.Namespace, user, rule)
	}
	config := rest.CopyConfig(server.Config)
	config.Impersonate.UserName = user
	return config
}

// awaitRight waits until the API server goes by a rule: it reads roles from a cache.
func awaitRight(t testing.TB, clientset kubernetes.Interface, namespace, user string, rule rbacv1.PolicyRule) {
	t.Helper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
		},
	}}
	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
		answer, err := clientset.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Status.Allowed {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("after %s %s may not %s %s", patience, user, rule.Verbs[0], rule.Resources[0])
		case <-tick.C:
		}
	}
}
