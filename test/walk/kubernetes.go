// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Kubernetes is a cluster and ways to talk to it.
type Kubernetes struct {
	client.WithWatch
	// Clientset is for what client.Client cannot: logs and port forwarding.
	Clientset kubernetes.Interface
	Config    *rest.Config
	// Kubeconfig is the path of the file that leads to the cluster.
	Kubeconfig string
	// Local is true for the Kubernetes of localkube, whose Services can be reached from this machine.
	Local bool
	// Host is the address under which pods reach processes of this machine; empty when the Kubernetes is not local.
	Host string
	// AuditLog is the file in which a local Kubernetes records every write; empty elsewhere.
	AuditLog string
}

// BuildPrograms builds what the walk runs and what goes into images. With local false the user has a Kubernetes already, and
// the images in a registry.
func BuildPrograms(ctx context.Context, r Repository, p *Progress, local bool) error {
	p.Waiting("the Go compiler")
	_, err := r.run(ctx, p, "make", append([]string{"--no-print-directory"}, programs(local)...)...)
	return err
}

// programs are targets of the Makefile.
func programs(local bool) []string {
	if local {
		return []string{"bin/helm", "build", "bin/localkube"}
	}
	return []string{"bin/helm"}
}

// StartKubernetes starts a local Kubernetes with so many nodes, or uses, repairs and grows the one that runs. One that has
// more keeps them. There are nodes of these names, with a domain, in any case.
func StartKubernetes(ctx context.Context, r Repository, p *Progress, nodes int, names ...string) (*Kubernetes, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("starting a local Kubernetes needs root: run as root, or name a cluster of yours with KUBECONFIG=…")
	}
	if before, err := statusOf(ctx, r); err == nil {
		nodes = max(nodes, before.Nodes)
	}
	args := []string{"up", "--nodes", fmt.Sprint(nodes)}
	if len(names) > 0 {
		args = append(args, "--node-names", strings.Join(names, ","))
	}
	out, err := r.run(ctx, p, "bin/localkube", args...)
	if err != nil {
		return nil, err
	}
	k, err := Connect(strings.TrimSpace(out))
	if err != nil {
		return nil, err
	}
	after, err := statusOf(ctx, r)
	if err != nil {
		return nil, err
	}
	k.Local, k.Host = true, after.Host
	k.AuditLog = filepath.Join(after.Logs, "audit.log")
	return k, nil
}

// localStatus is what localkube reports about the local Kubernetes.
type localStatus struct {
	Nodes      int
	Logs, Host string
}

// statusOf asks localkube, which reports a broken one as well, and nothing where there is none.
func statusOf(ctx context.Context, r Repository) (localStatus, error) {
	var out bytes.Buffer
	failed := r.execute(ctx, &out, io.Discard, "bin/localkube", "status", "--json")
	var status localStatus
	if err := json.Unmarshal(out.Bytes(), &status); err != nil {
		return localStatus{}, fmt.Errorf("reading the status of the local Kubernetes: %w", errors.Join(failed, err))
	}
	return status, nil
}

// Connect connects to the cluster of a kubeconfig and fails if nothing answers there.
func Connect(kubeconfig string) (*Kubernetes, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	// Tests ask many things at once; the API server defends itself.
	config.QPS = -1
	config.Timeout = 30 * time.Second
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	if _, err := clientset.ServerVersion(); err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", config.Host, err)
	}
	// Watches last as long as the caller waits.
	watching := rest.CopyConfig(config)
	watching.Timeout = 0
	log.SetLogger(logr.Discard())
	c, err := client.NewWithWatch(watching, client.Options{Scheme: newScheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", config.Host, err)
	}
	return &Kubernetes{WithWatch: c, Clientset: clientset, Config: config, Kubeconfig: kubeconfig}, nil
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme,
		nebiusv1.AddToScheme, nebiusv1alpha1.AddToScheme, slinkyv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err) // two types of one name: a mistake in this program
		}
	}
	return scheme
}
