// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// connection reaches the API server by the kubeconfig and the flags.
type connection struct {
	client.WithWatch
	// config is from the kubeconfig and the flags.
	config *rest.Config
	// namespace is from --namespace, or else from the context.
	namespace string
}

func (s *session) connect() (*connection, error) {
	namespace, _, err := s.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("reading the namespace of the kubeconfig: %w", err)
	}
	config, err := s.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1 // the API server has its own limits
	scheme := runtime.NewScheme()
	err = errors.Join(corev1.AddToScheme(scheme), nebiusv1.AddToScheme(scheme), nebiusv1alpha1.AddToScheme(scheme), slinkyv1beta1.AddToScheme(scheme))
	if err != nil {
		return nil, fmt.Errorf("making a scheme: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: newMapper(scheme)})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &connection{WithWatch: c, config: config, namespace: namespace}, nil
}
