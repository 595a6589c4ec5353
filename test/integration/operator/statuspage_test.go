// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	coxswain "github.com/coxswain-hpc/coxswain/internal/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/chart"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
	"github.com/coxswain-hpc/coxswain/internal/testing/port"
)

// pageTimeout bounds one answer of the status page.
const pageTimeout = time.Minute

// grantPage creates those roles of the chart that the status page needs, and the binding of the operator's. They are the same for all
// tests of the binary.
func grantPage(t *testing.T, o *operator.Operator) (reader string) {
	t.Helper()
	const release = "coxswain"
	wanted := map[string]bool{
		"ClusterRole " + release + "-metrics-auth": true, "ClusterRoleBinding " + release + "-metrics-auth": true, "ClusterRole " + release + "-status-page-reader": true,
	}
	for _, document := range chart.Documents(chart.Render(t, release, "coxswain-system", "--set", "statusPage.enabled=true")) {
		var object metav1.PartialObjectMetadata
		if err := yaml.Unmarshal(document, &object); err != nil {
			t.Fatal(err)
		}
		name := object.Kind + " " + object.Name
		if !wanted[name] {
			continue
		}
		delete(wanted, name)
		var created client.Object = &rbacv1.ClusterRole{}
		if object.Kind == "ClusterRoleBinding" {
			created = &rbacv1.ClusterRoleBinding{}
		}
		if err := yaml.Unmarshal(document, created); err != nil {
			t.Fatal(err)
		}
		if err := client.IgnoreAlreadyExists(o.User.Create(t.Context(), created)); err != nil {
			t.Fatalf("creating %s: %v", name, err)
		}
	}
	if len(wanted) > 0 {
		t.Fatalf("the chart lacks %v", wanted)
	}
	return release + "-status-page-reader"
}

// account makes a service account, with the right of a role if one is named, and returns a token of it.
func account(t *testing.T, o *operator.Operator, name, role string) (token string) {
	t.Helper()
	made := operator.Create[corev1.ServiceAccount](o, "metadata: {name: "+name+"}")
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: o.Namespace + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: o.Namespace}},
		}
		if err := o.User.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := o.User.SubResource("token").Create(t.Context(), made, request); err != nil {
		t.Fatalf("asking for a token of %s: %v", name, err)
	}
	return request.Status.Token
}

// servePage lets the operator serve the status page as the chart has it: over HTTPS, to those whom the API server lets.
func servePage(t *testing.T, o *operator.Operator) (url string) {
	t.Helper()
	address, listen := port.Hold(t)
	asOperator := rest.CopyConfig(o.Config) // it has rights of the chart, too, and those are not compared with role.yaml
	asOperator.Impersonate = o.AsOperator(t).Impersonate
	httpClient, err := rest.HTTPClientFor(asOperator)
	if err != nil {
		t.Fatal(err)
	}
	o.Adapt = func(base *ctrl.Options, options *coxswain.Options) {
		base.Metrics = metricsserver.Options{BindAddress: address, ListenConfig: listen, SecureServing: true, FilterProvider: func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
			return filters.WithAuthenticationAndAuthorization(asOperator, httpClient)
		}}
		options.StatusPage = true
	}
	o.Restart()
	return "https://" + address
}

// The API server decides who sees the page, by the roles of the chart. What it shows are that server's objects and Slurm's jobs.
func TestTheStatusPageShowsObjectsToThoseWhoMayGetIt(t *testing.T) {
	o := operator.StartCluster(t)
	reader := grantPage(t, o)
	viewer, stranger := account(t, o, "viewer", reader), account(t, o, "stranger", "")
	url := servePage(t, o)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // which is made when it starts
	defer transport.CloseIdleConnections()
	open := func(path, token string) (*http.Response, error) {
		ctx, stop := context.WithTimeout(t.Context(), pageTimeout)
		t.Cleanup(stop)
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		if err != nil {
			return nil, err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		return transport.RoundTrip(request)
	}
	get := func(path, token string) (status int, body string, err error) {
		answer, err := open(path, token)
		if err != nil {
			return 0, "", err
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text), err
	}
	cluster := "/ui/" + o.Namespace + "/demo"
	apiserver.Eventually(t, func() error {
		status, body, err := get(cluster, viewer)
		for _, want := range []string{"Controller demo", "NodeSet demo-gpu", "gpu-0\nidle", "Fresh", "Ready True"} {
			if err != nil || status != http.StatusOK || !strings.Contains(body, want) {
				return fmt.Errorf("%d without %q (%w):\n%s", status, want, err, body)
			}
		}
		return nil
	})
	for _, tt := range []struct {
		name, path, token string
		status            int
		contains          string
	}{
		{"a viewer sees all clusters", "/ui", viewer, http.StatusOK, o.Namespace + "/demo"},
		{"a stranger is refused the list", "/ui", stranger, http.StatusForbidden, "denied"},
		{"a stranger is refused a cluster", cluster, stranger, http.StatusForbidden, "denied"},
		{"a stranger is refused the changes of a cluster", cluster + "/events", stranger, http.StatusForbidden, "denied"},
		{"the right to the page is none to metrics", "/metrics", viewer, http.StatusForbidden, "denied"},
		{"a token that the API server did not make is refused", cluster, viewer + "x", http.StatusInternalServerError, "Authentication failed"},
		{"without a token there is nothing", cluster, "", http.StatusUnauthorized, "Unauthorized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, body, err := get(tt.path, tt.token)
			if err != nil || status != tt.status || !strings.Contains(body, tt.contains) {
				t.Errorf("%d (%v): %s", status, err, body)
			}
			if tt.status != http.StatusOK && strings.Contains(body, "demo-gpu") {
				t.Errorf("the refusal shows objects: %s", body)
			}
		})
	}
	if calls := o.Slurm.Counters().Calls; calls["GET jobs/state"]+calls["GET jobs"] > 0 {
		t.Errorf("Slurm was asked for jobs while nobody followed the page: %v", calls)
	}
	o.Slurm.Submit(fake.Job{NodeList: []string{"gpu-0"}, User: "alice"})
	o.Slurm.Submit(fake.Job{NodeList: []string{"gpu-0"}, User: "bob"})
	answer, err := open(cluster+"/events", viewer)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var fragments map[string]string
		if err := json.Unmarshal([]byte(data), &fragments); err != nil {
			t.Fatal(err)
		}
		if all := fragments["jobs"] + fragments["main"]; strings.Contains(all, "<td>bob<td>main<td>PENDING<td class=\"message\">Resources") {
			return
		}
	}
	t.Errorf("the job that waits is not shown: %v", lines.Err())
}
