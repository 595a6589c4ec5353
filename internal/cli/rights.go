// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// right is a verb on a resource of the namespace.
type right struct {
	verb, group string
	// resource may name a subresource, as in pods/exec.
	resource string
}

func (r right) String() string {
	if r.group == "" {
		return r.verb + " " + r.resource
	}
	return r.verb + " " + r.resource + "." + r.group
}

// lacking returns the rights that the caller lacks, as the API server answers. Everybody may ask it about their own rights.
func lacking(ctx context.Context, c *connection, rights ...right) ([]string, error) {
	clientset, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	var out []string
	for _, r := range rights {
		resource, subresource, _ := strings.Cut(r.resource, "/")
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: c.namespace, Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource,
			},
		}}
		answer, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("asking for the right to %s in namespace %s: %w", r, c.namespace, err)
		}
		if !answer.Status.Allowed {
			out = append(out, r.String())
		}
	}
	return out, nil
}
