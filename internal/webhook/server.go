// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/coxswain-hpc/coxswain/internal/operator/command"
)

// Flags are the command line's flags about the server.
type Flags struct {
	address, secret string
	certificates    Certificates
}

// Bind declares the flags, each with the prefix: the manager has others beside them.
func (f *Flags) Bind(fs *flag.FlagSet, prefix string) {
	fs.StringVar(&f.address, prefix+"server-addr", ":9443", "`address` on which the webhooks are served")
	fs.StringVar(&f.certificates.Directory, prefix+"cert-dir", "/tmp/k8s-webhook-server/serving-certs", "`directory` with tls.crt and tls.key")
	fs.StringVar(&f.secret, prefix+"cert-secret", "",
		"`namespace/name` of the Secret mounted there, which this program fills and renews; empty: something else provides the files")
	fs.StringVar(&f.certificates.Service, prefix+"service", "coxswain-webhook", "`name` of the Service in front of the webhooks")
	command.BindList(fs, &f.certificates.Hosts, prefix+"hosts", "comma-separated further host `names` for the certificate")
	fs.StringVar(&f.certificates.Validating, prefix+"validating-configuration", "",
		"`name` of the ValidatingWebhookConfiguration whose caBundle this program sets; empty: none")
	fs.StringVar(&f.certificates.Mutating, prefix+"mutating-configuration", "",
		"`name` of the MutatingWebhookConfiguration whose caBundle this program sets; empty: none")
}

// Certificates returns where the certificate is, once Validate has been satisfied.
func (f *Flags) Certificates() Certificates {
	out := f.certificates
	if namespace, name, ok := strings.Cut(f.secret, "/"); ok {
		out.Secret = types.NamespacedName{Namespace: namespace, Name: name}
	}
	return out
}

// Validate returns what is wrong with the flags.
func (f *Flags) Validate(prefix string) error {
	var errs []error
	if _, _, err := f.listen(); err != nil {
		errs = append(errs, fmt.Errorf("--%sserver-addr is %q: %w", prefix, f.address, err))
	}
	if namespace, name, ok := strings.Cut(f.secret, "/"); f.secret != "" && (!ok || namespace == "" || name == "") {
		errs = append(errs, fmt.Errorf("--%scert-secret is %q: it must be namespace/name", prefix, f.secret))
	}
	return errors.Join(errs...)
}

func (f *Flags) listen() (host string, port int, err error) {
	host, text, err := net.SplitHostPort(f.address)
	if err != nil {
		return "", 0, errors.New("it must be host:port or :port")
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return "", 0, errors.New("the port must be a number from 1 to 65535")
	}
	return host, int(number), nil
}

// Server returns the server that the flags describe. It starts with the first webhook that is registered.
func (f *Flags) Server(http2 bool) (webhook.Server, error) {
	host, port, err := f.listen()
	if err != nil {
		return nil, err
	}
	o := webhook.Options{Host: host, Port: port, CertDir: f.certificates.Directory}
	if !http2 {
		o.TLSOpts = append(o.TLSOpts, command.HTTP1)
	}
	return NewServer(o), nil
}

// NewServer makes a server to which webhooks can be added while it starts. One of controller-runtime sets its defaults with the
// first registration or with its start, whichever comes first, and reads them in the other without a lock. So there is a first
// registration here, of what is found under no path.
func NewServer(o webhook.Options) webhook.Server {
	server := webhook.NewServer(o)
	server.Register("/", http.NotFoundHandler())
	return server
}
