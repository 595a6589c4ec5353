// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Serves says whether the API server has a kind, such as the ServiceMonitor of a Prometheus operator that may or may not be
// installed. definitions is a cache of the metadata of CustomResourceDefinitions, in which the kind's has that name. As long as
// there is none, the manager's RESTMapper is not asked: it would ask the server for an unknown kind each time. It notices a CRD
// that is installed later; so it is to be asked when an object is wanted, not once at the start.
func Serves(ctx context.Context, definitions client.Reader, mapper meta.RESTMapper, definition string, kind schema.GroupVersionKind) (bool, error) {
	crd := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}}
	switch err := definitions.Get(ctx, client.ObjectKey{Name: definition}, crd); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading CustomResourceDefinition %s: %w", definition, err)
	}
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for kind %s: %w", kind, err)
	}
	return true, nil
}
