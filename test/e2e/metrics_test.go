// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// scrapesSlurmctld gets the metrics at the paths to which a ServiceMonitor leads Prometheus, and expects of each a series that
// slurmctld 26.05 is known to have.
func (u *user) scrapesSlurmctld(t *testing.T, url string) {
	t.Helper()
	for path, series := range map[string]string{
		"/metrics/jobs": "slurm_jobs_completed ", "/metrics/nodes": `slurm_node_cpus{node="node-0"} `,
		"/metrics/partitions": `slurm_partition_nodes{partition="node"} 2`, "/metrics/scheduler": "slurm_schedule_cycle_cnt ",
	} {
		text, err := u.scrapes(t.Context(), url+path)
		if err != nil {
			t.Error(err)
		} else if !strings.Contains("\n"+text, "\n"+series) {
			t.Errorf("%s has no series %s:\n%s", path, series, text[:min(len(text), 2000)])
		}
	}
}

// scrapes reads metrics from the login node at which the user is logged in.
func (u *user) scrapes(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	status, text, err := reads(&http.Client{Transport: &http.Transport{DialContext: u.Through, DisableKeepAlives: true}}, request)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s answered with status %d", url, status)
	}
	return text, err
}

// reads sends a request and returns the status and all of the body.
func reads(c *http.Client, request *http.Request) (status int, text string, err error) {
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // it has been read
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// metricsReader is the ClusterRole of the chart for scraping the operator.
const metricsReader = "coxswain-metrics-reader"

// scrapesOperator gets the operator's own metrics through its Service, as Prometheus does: over HTTPS, with a token that has the
// right to. Others do not get them.
func (s *scene) scrapesOperator(t *testing.T, controller string, nodes int) {
	t.Helper()
	address, release, err := s.Reach(t.Context(), walk.Operator)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.namespace + "-metrics"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: metricsReader},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.namespace, Name: "prometheus"}},
	}
	if err := errors.Join(client.IgnoreNotFound(s.Delete(t.Context(), binding.DeepCopy())), s.Create(t.Context(), binding)); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Delete(context.WithoutCancel(t.Context()), binding); err != nil {
			t.Error(err)
		}
	}()

	// The operator has made its certificate itself.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	get := func(ctx context.Context, token string) (int, string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", nil)
		if err != nil {
			return 0, "", err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		return reads(&http.Client{Transport: transport}, request)
	}
	for who, tt := range map[string]struct {
		token string
		want  int
	}{
		"nobody": {"", http.StatusUnauthorized}, "an account without the right": {s.account(t, "stranger"), http.StatusForbidden},
		// The API server calls such a token an error, and controller-runtime passes that on.
		"somebody with a token of his own making": {"e30.e30.e30", http.StatusInternalServerError},
	} {
		if status, _, err := get(t.Context(), tt.token); err != nil || status != tt.want {
			t.Errorf("%s gets status %d (%v), not %d", who, status, err, tt.want)
		}
	}
	of := fmt.Sprintf(`controller=%q,namespace=%q`, controller, s.namespace)
	prometheus := s.account(t, "prometheus")
	eventually(t, soon, "the operator's metrics", func(ctx context.Context) error {
		status, text, err := get(ctx, prometheus)
		for _, series := range []string{
			`coxswain_slurm_trust{` + of + `,trust="Fresh"} 1`, fmt.Sprintf(`coxswain_slurm_nodes{%s} %d`, of, nodes),
			`coxswain_slurm_calls_total{call="GET nodes",` + of + `,result="ok"} `, `controller_runtime_reconcile_total{controller="Controller",result="success"} `,
		} {
			if !strings.Contains("\n"+text, "\n"+series) {
				err = errors.Join(err, fmt.Errorf("status %d, and no series %s", status, series))
			}
		}
		return err
	})
}

// account makes a ServiceAccount and returns a token of it.
func (s *scene) account(t *testing.T, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := s.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	token, err := s.Clientset.CoreV1().ServiceAccounts(s.namespace).CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}
