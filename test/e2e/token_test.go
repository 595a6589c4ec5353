// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// restVersion is one that all supported versions of slurmrestd have.
const restVersion = "v0.0.42"

// token returns the token in a Secret.
func (s *scene) token(ctx context.Context, secret string) (string, error) {
	var found corev1.Secret
	if err := s.Get(ctx, s.name(secret), &found); err != nil {
		return "", err
	}
	return string(found.Data["SLURM_JWT"]), nil
}

// asks sends a request to slurmrestd, through the login node at which the user is logged in, and returns the status.
func (u *user) asks(ctx context.Context, method, url, token, body string, into any) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("X-SLURM-USER-TOKEN", token)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{Transport: &http.Transport{DialContext: u.Through, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // it has been read
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return response.StatusCode, err
	}
	if response.StatusCode == http.StatusOK && into != nil {
		err = json.Unmarshal(answer, into)
	}
	return response.StatusCode, err
}

// usesToken asks the real slurmrestd with the token in a Secret, from the login node. What a token may do is what its user
// may do: change a node, or only look at it.
func (u *user) usesToken(t *testing.T, s *scene, secret string, mayChange bool) {
	t.Helper()
	const url = "http://rest-restapi:6820/slurm/" + restVersion
	token := ""
	eventually(t, soon, "the token in "+secret+" to be accepted", func(ctx context.Context) error {
		var err error
		if token, err = s.token(ctx, secret); err != nil {
			return err
		}
		var answer struct {
			Nodes  []struct{ Name string }
			Errors []any
		}
		status, err := u.asks(ctx, http.MethodGet, url+"/nodes/", token, "", &answer)
		if err != nil || status != http.StatusOK || len(answer.Nodes) != 2 || len(answer.Errors) > 0 {
			return errors.Join(err, fmt.Errorf("status %d, answer %+v", status, answer))
		}
		return nil
	})
	status, err := u.asks(t.Context(), http.MethodPost, url+"/node/node-0", token, `{"comment": "from a token"}`, nil)
	if err != nil || (status == http.StatusOK) != mayChange {
		t.Errorf("changing a node with the token in %s: status %d (%v)", secret, status, err)
	}
	if status, err := u.asks(t.Context(), http.MethodGet, url+"/nodes/", "", "", nil); err != nil || status != http.StatusUnauthorized {
		t.Errorf("without a token: status %d (%v)", status, err)
	}
}

// allowsPrivilegedTokens makes a Token for SlurmUser, which is refused until the owner of the key allows it.
func (s *scene) allowsPrivilegedTokens(t *testing.T) {
	t.Helper()
	m, err := walk.ParseManifest([]byte("apiVersion: slinky.slurm.net/v1beta1\nkind: Token\nmetadata: {name: privileged}\n" +
		"spec: {username: slurm, jwtKeyRef: {name: slurm-auth-jwt, key: jwt.key}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.apply(t, m)
	token := m.In(s.namespace)[0]
	if c := s.awaitCondition(t, soon, token, "Stalled", metav1.ConditionTrue); c.Reason != "PrivilegedUser" {
		t.Errorf("a token for SlurmUser is refused with %s: %s", c.Reason, c.Message)
	}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "slurm-auth-jwt"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"annotations": {"coxswain.dev/allow-privileged-tokens": "true"}}}`))
	if err := s.Patch(t.Context(), key, patch); err != nil {
		t.Fatal(err)
	}
	s.awaitCondition(t, soon, token, "Ready", metav1.ConditionTrue)
}
