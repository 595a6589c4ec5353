// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver gives tests a real kube-apiserver with a real etcd behind it.
//
// Server-side apply, CEL rules, defaults, immutable fields and resource versions are what the operator's correctness
// hangs on, and no imitation has them right. So tests talk to the same binaries as "make demo", without nodes and
// without controllers: nothing but the test changes an object, no garbage collector removes dependents, and
// namespaces are not emptied.
//
// All tests of one test binary share one control plane, which starts with the first Start (about three seconds) and
// stops in Main; each test works in a namespace of its own. The processes are children of the test binary and die with
// it, however it ends. A package that uses it has
//
//	func TestMain(m *testing.M) { apiserver.Main(m) }
package apiserver

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startTimeout bounds the start of the control plane. It takes three seconds on an idle machine with two cores; a
// machine that also runs the other tests may be much slower.
const startTimeout = 90 * time.Second

// shared is the control plane of this test binary.
type shared struct {
	mu      sync.Mutex
	inMain  bool
	plane   *controlPlane
	failure error
	uses    uses
}

//nolint:gochecknoglobals // one control plane per test binary is the point; Main owns it
var theShared shared

// Main runs the tests of a package, with the log shown under -v, and stops the control plane afterwards if a test has started it.
func Main(m *testing.M) {
	theShared.mu.Lock()
	theShared.inMain = true
	theShared.mu.Unlock()
	flag.Parse()
	ctrl.SetLogger(logger(testing.Verbose()))
	code := m.Run()
	theShared.mu.Lock()
	defer theShared.mu.Unlock()
	if theShared.plane != nil {
		theShared.plane.stop()
	}
	if err := theShared.uses.write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// logger is silent, or with -v writes the log of the code under test to standard error.
func logger(verbose bool) logr.Logger {
	if !verbose {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { fmt.Fprintln(os.Stderr, prefix, args) }, funcr.Options{})
}

// Server is a test's view of the shared control plane.
type Server struct {
	// Config has every right (group system:masters) and no client-side rate limit.
	Config *rest.Config
	// Namespace exists, is empty and belongs to this test alone.
	Namespace string
	// Writes counts every changing request made through Config, and through nothing else.
	Writes *Writes
}

// Start returns a view of the running control plane with a fresh namespace and the CRDs of helm/coxswain-crds/crd; the first
// call starts it. Without the binaries the test is skipped and prints how to build them; where they are Required, as by the
// Makefile, it fails.
func Start(t testing.TB) *Server {
	t.Helper()
	s := StartBare(t)
	if err := theShared.plane.installCRDs(); err != nil {
		t.Fatal(err)
	}
	return s
}

// StartBare is Start without our CRDs (other tests of the binary may have installed them), for tests about the kinds
// that Kubernetes has itself.
func StartBare(t testing.TB) *Server {
	t.Helper()
	plane, err := theShared.start()
	var missing *missingBinaryError
	if errors.As(err, &missing) && !Required() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("starting kube-apiserver: %v", err)
	}
	writes := &Writes{}
	config := rest.CopyConfig(plane.config)
	config.Wrap(writes.wrap)
	namespace, err := createNamespace(t.Context(), plane.config)
	if err != nil {
		t.Fatalf("creating a namespace for the test: %v", err)
	}
	return &Server{Config: config, Namespace: namespace, Writes: writes}
}

// Interrupt ends the API server, and starts it again when meanwhile returns, as an upgrade of a control plane does. All tests
// of the binary share the server: none may run in parallel.
func (s *Server) Interrupt(t testing.TB, meanwhile func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	if err := theShared.plane.interrupt(ctx, meanwhile); err != nil {
		t.Fatalf("starting kube-apiserver again: %v", err)
	}
}

// Client returns a client without a cache: it reads what the server has now.
func (s *Server) Client(t testing.TB, scheme *runtime.Scheme) client.Client {
	t.Helper()
	c, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return c
}

// Outsider returns a client without a cache whose writes are not counted: a user who edits our objects.
func (s *Server) Outsider(t testing.TB, scheme *runtime.Scheme) client.Client {
	t.Helper()
	config := rest.CopyConfig(theShared.plane.config)
	config.UserAgent = "outsider"
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return client.WithFieldOwner(c, "outsider")
}

func (s *shared) start() (*controlPlane, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.inMain {
		return nil, errors.New("this package needs func TestMain(m *testing.M) { apiserver.Main(m) }")
	}
	if s.plane == nil && s.failure == nil {
		// Not the context of the test that happens to be first: the control plane outlives it.
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		s.plane, s.failure = startControlPlane(ctx)
	}
	return s.plane, s.failure
}

func createNamespace(ctx context.Context, config *rest.Config) (string, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	namespace, err := clientset.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("creating a namespace: %w", err)
	}
	return namespace.Name, nil
}
