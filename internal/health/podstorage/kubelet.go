// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// DefaultKubeletPort is the port on which kubelets serve HTTPS.
	DefaultKubeletPort = 10250
	// DefaultRequestTimeout is how long a kubelet may take to answer.
	DefaultRequestTimeout = 10 * time.Second
)

// KubeletOptions are how kubelets are asked.
type KubeletOptions struct {
	Port           int
	RequestTimeout time.Duration
	// CAFile has the certificates of the authorities that sign kubelets' serving certificates; empty is those that the API server is
	// verified with.
	CAFile string
	// InsecureSkipTLSVerify takes any certificate. Any program that answers at the address of a node then gets the token.
	InsecureSkipTLSVerify bool
	// Account is the ServiceAccount as which kubelets are asked, by tokens of ten minutes. Without a name it is the operator's own
	// account, and its token, with all its rights, is shown to each kubelet.
	Account types.NamespacedName
}

// Validate returns what is wrong with the options, by their flags.
func (o KubeletOptions) Validate() error {
	var errs []error
	if o.Port < 1 || o.Port > 65535 {
		errs = append(errs, fmt.Errorf("--kubelet-port is %d: it must be from 1 to 65535", o.Port))
	}
	if (o.Account.Name == "") != (o.Account.Namespace == "") {
		errs = append(errs, errors.New("--kubelet-service-account and --kubelet-service-account-namespace belong together"))
	}
	if o.RequestTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--kubelet-request-timeout is %s: it must be above 0", o.RequestTimeout))
	}
	if o.CAFile != "" {
		if o.InsecureSkipTLSVerify {
			errs = append(errs, errors.New("--kubelet-ca-file and --kubelet-insecure-skip-tls-verify exclude one another"))
		}
		if _, err := os.Stat(o.CAFile); err != nil {
			errs = append(errs, fmt.Errorf("--kubelet-ca-file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// kubelets asks kubelets.
type kubelets struct {
	options KubeletOptions
	client  *http.Client
}

func newKubelets(config *rest.Config, o KubeletOptions, tokens client.SubResourceClientConstructor, now clock.PassiveClock) (*kubelets, error) {
	c := rest.CopyConfig(config)
	if o.Account.Name != "" {
		c = rest.AnonymousClientConfig(config)
	}
	c.ServerName = "" // that of the API server
	// A proxy for the API server is not one for nodes.
	c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } //nolint:nilnil // http.Transport's word for no proxy
	switch {
	case o.InsecureSkipTLSVerify:
		c.Insecure, c.CAFile, c.CAData = true, "", nil
	case o.CAFile != "":
		c.Insecure, c.CAFile, c.CAData = false, o.CAFile, nil
	default:
		c.Insecure = false
	}
	asking, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("making the client of kubelets: %w", err)
	}
	asking.Timeout = o.RequestTimeout
	if o.Account.Name != "" {
		next := asking.Transport
		if next == nil {
			next = http.DefaultTransport
		}
		asking.Transport = &account{name: o.Account, client: tokens, clock: now, next: next}
	}
	// The token goes with every request, and must not follow a redirect.
	asking.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &kubelets{options: o, client: asking}, nil
}

// use asks the kubelet at an address how many bytes of ephemeral storage its pods use, by their UIDs.
func (k *kubelets) use(ctx context.Context, address string) (used map[types.UID]uint64, err error) {
	target := url.URL{Scheme: "https", Host: net.JoinHostPort(address, strconv.Itoa(k.options.Port)), Path: "/stats/summary"}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	request.Close = true // a request a minute is not worth an open connection for each node
	response, err := k.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking: %w", err)
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	switch response.StatusCode {
	case http.StatusOK:
		return decode(response.Body)
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("it answers %s: the operator needs the right to get nodes/stats, and kubelets have to ask the API server about callers", response.Status)
	}
	return nil, fmt.Errorf("it answers %s", response.Status)
}
