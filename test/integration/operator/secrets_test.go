// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	coxswain "github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// secretReads are what is asked of the API server about Secrets.
type secretReads struct {
	mu sync.Mutex
	// whole are lists and watches of whole Secrets, by their selectors; metadata those without content; single the names of
	// those that are read one by one.
	whole, metadata, single []string
}

// roundTripper makes a transport that records reads of Secrets.
func (s *secretReads) roundTripper(next http.RoundTripper) http.RoundTripper {
	return transport(func(r *http.Request) (*http.Response, error) {
		_, name, ok := strings.Cut(r.URL.Path, "/secrets")
		if ok && r.Method == http.MethodGet {
			s.mu.Lock()
			switch {
			case name != "":
				s.single = append(s.single, strings.TrimPrefix(name, "/"))
			case strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata"):
				s.metadata = append(s.metadata, r.URL.Query().Get("labelSelector"))
			default:
				s.whole = append(s.whole, r.URL.Query().Get("labelSelector"))
			}
			s.mu.Unlock()
		}
		return next.RoundTrip(r)
	})
}

type transport func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The operator may read every Secret of the namespaces that it watches, and does so only with those that it has made or that a
// spec names. Of all others it only learns that they exist.
func TestOnlySecretsThatAreOursOrReferredToAreRead(t *testing.T) {
	t.Parallel()
	server := apiserver.Start(t)
	reads := &secretReads{}
	restConfig := server.AsOperator(t)
	restConfig.Wrap(reads.roundTripper)
	skip := true
	ctx, cancel := context.WithCancel(t.Context())
	mgr, err := coxswain.NewManager(ctx, restConfig, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	}, coxswain.Options{
		Namespaces: []string{server.Namespace}, Images: image.Set{Registry: "example.com", Tag: "1"}, ClusterDomain: "cluster.local",
		Enabled: map[string]bool{"accounting": true, "controller": true, "token": true},
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	user := server.Outsider(t, coxswain.Scheme())
	for _, obj := range []client.Object{
		manifest.Parse[corev1.Secret](t, `{metadata: {name: somebodys}, stringData: {password: x}}`),
		manifest.Parse[corev1.Secret](t, operator.Keys), manifest.Parse[corev1.Secret](t, operator.JWT),
		manifest.Parse[slinkyv1beta1.Accounting](t, operator.AnAccounting), manifest.Parse[slinkyv1beta1.Controller](t, operator.AController),
		manifest.Parse[slinkyv1beta1.Token](t, operator.AToken),
	} {
		obj.SetNamespace(server.Namespace)
		if err := user.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	exists := func(obj client.Object, name string) error {
		return user.Get(t.Context(), client.ObjectKey{Namespace: server.Namespace, Name: name}, obj)
	}
	apiserver.Eventually(t, func() error {
		return errors.Join(exists(&appsv1.StatefulSet{}, "demo-controller"), exists(&appsv1.StatefulSet{}, "demo-accounting"), exists(&corev1.Secret{}, "ci-jwt-alice"))
	})

	cached := func(name string) error {
		return mgr.GetCache().Get(t.Context(), client.ObjectKey{Namespace: server.Namespace, Name: name}, &corev1.Secret{})
	}
	apiserver.Eventually(t, func() error { return errors.Join(cached("demo-accounting"), cached("ci-jwt-alice")) })
	for _, name := range []string{"somebodys", "keys", "jwt"} {
		if err := cached(name); !apierrors.IsNotFound(err) {
			t.Errorf("Secret %s is in the cache (%v)", name, err)
		}
	}
	reads.mu.Lock()
	defer reads.mu.Unlock()
	if len(reads.metadata) == 0 || slices.Contains(reads.single, "somebodys") {
		t.Errorf("metadata is asked for %d times, and Secrets one by one: %v", len(reads.metadata), reads.single)
	}
	for _, selector := range reads.whole {
		if selector != "app.kubernetes.io/managed-by=coxswain" {
			t.Errorf("whole Secrets are asked for with selector %q", selector)
		}
	}
}
