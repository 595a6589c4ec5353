// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Serves says whether the API server has a kind, such as the ServiceMonitor of a Prometheus operator that may or may not
// be installed. With the manager's RESTMapper, which asks the server again about kinds it does not know, it notices a CRD
// that is installed later; so it is to be asked when an object is wanted, not once at the start.
func Serves(mapper meta.RESTMapper, kind schema.GroupVersionKind) (bool, error) {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for kind %s: %w", kind, err)
	}
	return true, nil
}
