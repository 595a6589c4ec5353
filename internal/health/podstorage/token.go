// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenLifetime is how long a token for kubelets is valid, the least that API servers give out. A kubelet has the API server review it, for
// the API server's own audience, so that no other audience can be asked for.
const tokenLifetime = 10 * time.Minute

// account authenticates requests by short tokens of a ServiceAccount.
type account struct {
	name   types.NamespacedName
	client client.SubResourceClientConstructor
	clock  clock.PassiveClock
	next   http.RoundTripper

	mu    sync.Mutex
	token string
	// renew is when another token is asked for, and early is true if this one was, because a kubelet refused the one before.
	renew time.Time
	early bool
}

// RoundTrip is part of http.RoundTripper.
func (a *account) RoundTrip(request *http.Request) (*http.Response, error) {
	token, err := a.current(request.Context())
	if err != nil {
		return nil, err
	}
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := a.next.RoundTrip(request)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		a.refused(token)
	}
	return response, err
}

// refused has another token asked for with the next request, since a kubelet does not take this one: its ServiceAccount may have been made
// anew, or the keys changed that sign tokens. A kubelet that takes no token at all would have one asked for each time. So there is at most
// one before its time.
func (a *account) refused(token string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if token == a.token && !a.early {
		a.renew, a.early = time.Time{}, true
	}
}

// current returns a token that is valid for some minutes more. Requests that begin meanwhile wait for it.
func (a *account) current(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clock.Now().Before(a.renew) {
		return a.token, nil
	}
	early := a.early && a.renew.IsZero()
	of := &corev1.ServiceAccount{}
	of.Namespace, of.Name = a.name.Namespace, a.name.Name
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLifetime.Seconds()))}}
	if err := a.client.SubResource("token").Create(ctx, of, request); err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s for kubelets: %w", a.name, err)
	}
	a.token, a.renew, a.early = request.Status.Token, a.clock.Now().Add(tokenLifetime/2), early
	return a.token, nil
}
