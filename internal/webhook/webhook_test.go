// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/webhook"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

// scene is a running webhook, called by a real API server in one namespace, with a certificate that it made itself.
type scene struct {
	*apiserver.Server
	t        *testing.T
	user     client.Client
	warnings *warnings
	name     string // of the configurations
	secret   types.NamespacedName
	port     int
	runs     int
	stop     func()
	served   func() error
}

// warnings are the API server's warnings with its last answers.
type warnings struct {
	mu   sync.Mutex
	said []string
}

// HandleWarningHeader keeps a warning.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.said = append(w.said, text)
}

func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.said
	w.said = nil
	return out
}

// start runs the webhook in a namespace of its own.
func start(t *testing.T) *scene {
	t.Helper()
	return startFor(t, apiserver.Start(t))
}

// startFor runs the webhook for the namespace of a test. Its Secret begins empty, as the chart makes it.
func startFor(t *testing.T, server *apiserver.Server) *scene {
	t.Helper()
	s := &scene{Server: server, t: t, warnings: &warnings{}, name: server.Namespace, secret: types.NamespacedName{Namespace: server.Namespace, Name: "webhook-ca"}}
	restConfig := rest.CopyConfig(server.Config)
	restConfig.WarningHandler = s.warnings
	user, err := client.New(restConfig, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	s.user = user
	must(t, s.user.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.secret.Namespace, Name: s.secret.Name}}))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s.port = listener.Addr().(*net.TCPAddr).Port
	must(t, listener.Close())
	s.configure(s.port)
	s.run(s.port, t.TempDir())
	t.Cleanup(func() {
		s.stop()
		for _, o := range []client.Object{&admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.MutatingWebhookConfiguration{}} {
			o.SetName(s.name)
			must(t, s.user.Delete(context.Background(), o))
		}
	})
	apiserver.Eventually(t, s.served)
	s.called()
	return s
}

// configure registers the webhooks as the chart does, but for the namespace of the test alone and at an address of the host.
func (s *scene) configure(port int) {
	s.t.Helper()
	data, err := os.ReadFile("../../config/webhook/manifests.yaml")
	must(s.t, err)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.Namespace}}
	client := func(c *admissionv1.WebhookClientConfig) {
		url := fmt.Sprintf("https://localhost:%d%s", port, *c.Service.Path)
		*c = admissionv1.WebhookClientConfig{URL: &url}
	}
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		switch {
		case bytes.Contains(document, []byte("kind: ValidatingWebhookConfiguration")):
			var c admissionv1.ValidatingWebhookConfiguration
			must(s.t, yaml.UnmarshalStrict(document, &c))
			for i := range c.Webhooks {
				client(&c.Webhooks[i].ClientConfig)
				c.Webhooks[i].NamespaceSelector = selector
			}
			c.Name = s.name
			must(s.t, s.user.Create(s.t.Context(), &c))
		case bytes.Contains(document, []byte("kind: MutatingWebhookConfiguration")):
			var c admissionv1.MutatingWebhookConfiguration
			must(s.t, yaml.UnmarshalStrict(document, &c))
			for i := range c.Webhooks {
				client(&c.Webhooks[i].ClientConfig)
				c.Webhooks[i].NamespaceSelector = selector
			}
			c.Name = s.name
			must(s.t, s.user.Create(s.t.Context(), &c))
		}
	}
}

// run starts the program behind the registration, and what a kubelet would do for it: its Secret becomes files.
func (s *scene) run(port int, dir string) {
	s.t.Helper()
	skip := true
	// hack/check-rbac compares what it does with the chart's role of the webhook.
	account := s.Noted("webhook")
	account.Wrap(refuseAllOfAKind)
	mgr, err := ctrl.NewManager(account, ctrl.Options{
		Scheme: operator.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller:    config.Controller{SkipNameValidation: &skip},
		WebhookServer: webhook.NewServer(ctrlwebhook.Options{Host: "127.0.0.1", Port: port, CertDir: dir}),
	})
	must(s.t, err)
	// The rotation's controller is named after the Service, and must not be named like another one of this binary.
	s.runs++
	service := fmt.Sprintf("%s-%d", s.Namespace, s.runs)
	served, err := webhook.Setup(mgr, webhook.Options{Namespaces: []string{s.Namespace}}, webhook.Certificates{
		Directory: dir, Secret: s.secret, Service: service, Hosts: []string{"localhost"}, Validating: s.name, Mutating: s.name,
	})
	must(s.t, err)
	s.served = func() error { return served(nil) }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- mgr.Start(ctx) }()
	go func() { done <- s.mount(ctx, dir) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		for range 2 {
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				s.t.Errorf("running the webhook: %v", err)
			}
		}
	})
}

// refuseAllOfAKind refuses what the role of the chart does not allow: to list or watch other Secrets and configurations than those of its
// names. The API server takes the name from the selector.
func refuseAllOfAKind(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		limited := strings.HasSuffix(r.URL.Path, "/secrets") || strings.HasSuffix(r.URL.Path, "webhookconfigurations")
		if limited && r.Method == http.MethodGet && !strings.HasPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=") {
			return &http.Response{
				StatusCode: http.StatusForbidden, Request: r, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"all of a kind are forbidden"}`)),
			}, nil
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip is part of http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// again starts the program once more after a stop.
func (s *scene) again() *scene {
	s.t.Helper()
	s.run(s.port, s.t.TempDir())
	apiserver.Eventually(s.t, s.served)
	s.called()
	return s
}

// mount writes the Secret's content to files whenever it changes.
func (s *scene) mount(ctx context.Context, dir string) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for version := ""; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var secret corev1.Secret
		if err := s.user.Get(ctx, s.secret, &secret); err != nil {
			continue // the test is over, or the API server is away
		}
		if secret.ResourceVersion == version || len(secret.Data) == 0 {
			continue
		}
		for _, file := range []string{"tls.key", "tls.crt"} {
			fresh := filepath.Join(dir, "."+file)
			if err := errors.Join(os.WriteFile(fresh, secret.Data[file], 0o600), os.Rename(fresh, filepath.Join(dir, file))); err != nil {
				return err
			}
		}
		version = secret.ResourceVersion
	}
}

// called waits until the API server calls the webhook and trusts it.
func (s *scene) called() {
	s.t.Helper()
	apiserver.Eventually(s.t, func() error {
		if _, err := s.try("Controller", `{spec: {extraConf: "ClusterName=other"}}`); err == nil {
			return errors.New("the webhook is not called")
		}
		return nil
	})
}

// try asks the API server whether it would take an object, without storing it. The warnings come without the names of the
// webhooks that they are from.
func (s *scene) try(kind, text string) ([]string, error) {
	s.t.Helper()
	s.warnings.take()
	err := s.user.Create(s.t.Context(), s.object(kind, text), client.DryRunAll)
	return s.warnings.take(), err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refusal returns the webhook's message, without what the API server puts before it.
func refusal(err error) string {
	if err == nil {
		return ""
	}
	_, text, ok := strings.Cut(err.Error(), `denied the request: `)
	if !ok {
		return "not from the webhook: " + err.Error()
	}
	return text
}
