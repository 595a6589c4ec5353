// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/yaml"
)

// UsesEnv names the environment variable with a directory into which Main writes what each account was used for. It has a directory
// for each account, and in that a file for each test binary, with lines of group/resource and verb.
const UsesEnv = "COXSWAIN_RBAC_USES"

// operatorAccount is the account of AsOperator.
const operatorAccount = "operator"

const (
	operatorNamespace = "coxswain-system"
	operatorName      = "coxswain"
	operatorUser      = "system:serviceaccount:" + operatorNamespace + ":" + operatorName
	operatorGroup     = "coxswain:operators"
)

// uses collects what accounts were used for.
type uses struct {
	mu   sync.Mutex
	seen map[string]map[string]bool
}

// AsOperator returns Config with the rights of the operator instead of every right: those of config/rbac/role.yaml, in all
// namespaces. What it is used for is recorded, see UsesEnv. The operator is a service account there, whose requests the server
// limits (priority and fairness), unlike those of an administrator.
func (s *Server) AsOperator(t testing.TB) *rest.Config {
	t.Helper()
	if err := theShared.plane.grantRole(); err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(s.Config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: operatorUser, Groups: append(serviceaccount.MakeGroupNames(operatorNamespace), operatorGroup),
	}
	config.Wrap(theShared.uses.wrap(operatorAccount))
	return config
}

// Noted returns Config with every right, and records what it is used for under the name of an account, see UsesEnv.
func (s *Server) Noted(account string) *rest.Config {
	config := rest.CopyConfig(s.Config)
	config.Wrap(theShared.uses.wrap(account))
	return config
}

// createRole gives the operators' group the role that is generated from the code, and limits it as the chart does.
func (c *controlPlane) createRole() error {
	directory, err := crdDirectory()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(directory, "..", "..", "..", "config", "rbac", "role.yaml")) //nolint:gosec // a file of this repository
	if err != nil {
		return fmt.Errorf("reading the operator's role: %w", err)
	}
	var role rbacv1.ClusterRole
	if err := yaml.UnmarshalStrict(data, &role); err != nil {
		return fmt.Errorf("parsing the operator's role: %w", err)
	}
	clientset, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("making a client for the operator's role: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := c.limit(ctx, clientset, filepath.Join(directory, "..", "..", "..", "helm", "coxswain", "files", "limits.yaml")); err != nil {
		return err
	}
	_, roleErr := clientset.RbacV1().ClusterRoles().Create(ctx, &role, metav1.CreateOptions{})
	_, bindingErr := clientset.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: operatorGroup}},
	}, metav1.CreateOptions{})
	if err := errors.Join(roleErr, bindingErr); err != nil {
		return fmt.Errorf("granting the operator's role: %w", err)
	}
	return poll(ctx, func() bool { return granted(ctx, clientset) })
}

// limit has the policies of a file of the chart hold for the operator.
func (c *controlPlane) limit(ctx context.Context, clientset kubernetes.Interface, file string) error {
	data, err := os.ReadFile(file) //nolint:gosec // a file of this repository
	if err != nil {
		return fmt.Errorf("reading the limits of the operator: %w", err)
	}
	policies := map[string]admissionv1.ValidatingAdmissionPolicySpec{}
	if err := yaml.UnmarshalStrict(data, &policies); err != nil {
		return fmt.Errorf("parsing the limits of the operator: %w", err)
	}
	admission := clientset.AdmissionregistrationV1()
	for name, spec := range policies {
		if len(spec.MatchConditions) == 0 {
			spec.MatchConditions = []admissionv1.MatchCondition{{Name: "the-operator", Expression: "request.userInfo.username == '" + operatorUser + "'"}}
		}
		meta := metav1.ObjectMeta{Name: "limits-" + name}
		_, policyErr := admission.ValidatingAdmissionPolicies().Create(ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{})
		_, bindingErr := admission.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: meta,
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		}, metav1.CreateOptions{})
		if err := errors.Join(policyErr, bindingErr); err != nil {
			return fmt.Errorf("limiting the operator: %w", err)
		}
	}
	return nil
}

// granted reports whether the server's own view of the role is up to date.
func granted(ctx context.Context, clientset kubernetes.Interface) bool {
	review, err := clientset.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: operatorUser, Groups: []string{operatorGroup}, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "slinky.slurm.net", Resource: "controllers", Verb: "list",
		}},
	}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed
}

// wrap makes a transport that records what an account is used for.
func (u *uses) wrap(account string) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper { return u.noting(account, next) }
}

func (u *uses) noting(account string, next http.RoundTripper) http.RoundTripper {
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		// A request that a test's end cut off counts: the server may have done what it asks for.
		if response != nil && response.StatusCode == http.StatusForbidden {
			return response, err
		}
		info, infoErr := resolver.NewRequestInfo(r)
		if infoErr != nil || !info.IsResourceRequest {
			return response, err
		}
		resource := info.APIGroup + "/" + info.Resource
		if info.Subresource != "" {
			resource += "/" + info.Subresource
		}
		u.note(account, resource, info.Verb)
		if info.Verb == "patch" && response != nil && response.StatusCode == http.StatusCreated {
			u.note(account, resource, "create") // an apply that creates needs both
		}
		return response, err
	})
}

func (u *uses) note(account, resource, verb string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen == nil {
		u.seen = map[string]map[string]bool{}
	}
	if u.seen[account] == nil {
		u.seen[account] = map[string]bool{}
	}
	u.seen[account][resource+" "+verb] = true
}

// write writes the records to the directory that the environment names, if any.
func (u *uses) write() error {
	directory, ok := os.LookupEnv(UsesEnv)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !ok || directory == "" {
		return nil
	}
	// Test binaries are named after the last element of their package only.
	name, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the package: %w", err)
	}
	for account, seen := range u.seen {
		path := filepath.Join(directory, account, strings.ReplaceAll(strings.Trim(name, "/"), "/", "_"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // says nothing that the sources do not say
			return fmt.Errorf("making a directory for the used rights: %w", err)
		}
		lines := strings.Join(slices.Sorted(maps.Keys(seen)), "\n") + "\n"
		if err := os.WriteFile(path, []byte(lines), 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("writing the used rights: %w", err)
		}
	}
	return nil
}
