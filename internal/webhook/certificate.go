// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Certificates are where the server finds its certificate and whether this program makes it.
type Certificates struct {
	// Directory has tls.crt and tls.key, mounted from a Secret. The server notices when they change.
	Directory string
	// Secret is the one that Directory is mounted from, to be filled and renewed by this program; it must exist. Empty:
	// another program does that, such as cert-manager, which then also gives the CA to the API server.
	Secret types.NamespacedName
	// Service is the name of the Service in front of the server, in the namespace of Secret.
	Service string
	// Hosts are further names of the server: outside of the cluster, the name of its machine.
	Hosts []string
	// Validating and Mutating are the names of the webhook configurations that get the CA; empty: there is none.
	Validating, Mutating string
}

// Setup registers the webhooks as soon as there is a certificate to serve them with, and returns a check that is
// satisfied once they are served. Every replica serves; those that renew a certificate at the same time meet at the
// resource version of the Secret.
func Setup(mgr ctrl.Manager, o Options, c Certificates) (func(*http.Request) error, error) {
	ready := make(chan struct{})
	if c.Secret.Name == "" {
		close(ready)
	} else if err := rotate(mgr, c, ready); err != nil {
		return nil, err
	}
	served := make(chan struct{})
	if err := mgr.Add(&registration{mgr: mgr, options: o, ready: ready, served: served}); err != nil {
		return nil, fmt.Errorf("adding the registration of the webhooks: %w", err)
	}
	return func(r *http.Request) error {
		select {
		case <-served:
			return mgr.GetWebhookServer().StartedChecker()(r)
		default:
			return errors.New("there is no certificate yet")
		}
	}, nil
}

// rotate has the certificate made and renewed, and its CA given to the API server. The library writes it with each look at the
// Secret or a configuration, as after a restart of the API server, whether that has changed or not; what is the same is not stored.
func rotate(mgr ctrl.Manager, c Certificates, ready chan struct{}) error {
	var configurations []rotator.WebhookInfo
	if c.Validating != "" {
		configurations = append(configurations, rotator.WebhookInfo{Name: c.Validating, Type: rotator.Validating})
	}
	if c.Mutating != "" {
		configurations = append(configurations, rotator.WebhookInfo{Name: c.Mutating, Type: rotator.Mutating})
	}
	host := c.Service + "." + c.Secret.Namespace + ".svc"
	err := rotator.AddRotator(narrowed{mgr, c}, &rotator.CertRotator{
		SecretKey: c.Secret, CertDir: c.Directory, CAName: c.Service + "-ca", CAOrganization: "coxswain",
		DNSName: host, ExtraDNSNames: append([]string{c.Service + "." + c.Secret.Namespace}, c.Hosts...),
		ControllerName: c.Service + "-certificate", IsReady: ready, Webhooks: configurations, FieldOwner: "coxswain-webhook",
	})
	if err != nil {
		return fmt.Errorf("adding the rotation of certificates: %w", err)
	}
	return nil
}

// narrowed is a manager for the library, whose cache watches the whole of each kind. Its requests ask for the objects that it is about, by
// their names: no other right is needed, and no other Secret is read.
type narrowed struct {
	ctrl.Manager
	certificates Certificates
}

// GetConfig is part of manager.Manager.
func (n narrowed) GetConfig() *rest.Config {
	config := rest.CopyConfig(n.Manager.GetConfig())
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return named{names: n.certificates.names(), next: next}
	})
	return config
}

// names returns the names of the objects that are watched, by the paths of their kinds.
func (c Certificates) names() map[string]string {
	const configurations = "/apis/admissionregistration.k8s.io/v1/"
	return map[string]string{
		"/api/v1/namespaces/" + c.Secret.Namespace + "/secrets": c.Secret.Name,
		configurations + "validatingwebhookconfigurations":      c.Validating,
		configurations + "mutatingwebhookconfigurations":        c.Mutating,
	}
}

// named lets requests for all objects of a kind ask for the one of a name.
type named struct {
	names map[string]string
	next  http.RoundTripper
}

// RoundTrip is part of http.RoundTripper.
func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	if name := n.names[r.URL.Path]; name != "" && r.Method == http.MethodGet {
		r = r.Clone(r.Context())
		query := r.URL.Query()
		query.Set("fieldSelector", "metadata.name="+name)
		r.URL.RawQuery = query.Encode()
	}
	return n.next.RoundTrip(r)
}

// registration adds the webhooks to the server when the certificate is there: the server does not start without.
type registration struct {
	mgr           ctrl.Manager
	options       Options
	ready, served chan struct{}
}

// NeedLeaderElection returns false: every replica serves.
func (*registration) NeedLeaderElection() bool { return false }

// Start waits for the certificate.
func (r *registration) Start(ctx context.Context) error {
	select {
	case <-r.ready:
	case <-ctx.Done():
		return nil
	}
	if err := Register(r.mgr, r.options); err != nil {
		return err
	}
	close(r.served)
	return nil
}
