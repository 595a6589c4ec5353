// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "ns1"} }

// Users' scripts, charts and other software spell the names out: docs/contributors/predecessors/slinky-objects.md#names-of-what-is-made.
func TestDerivedNames(t *testing.T) {
	controller := &slinkyv1beta1.Controller{ObjectMeta: meta("demo")}
	external := &slinkyv1beta1.Controller{ObjectMeta: meta("far"), Spec: slinkyv1beta1.ControllerSpec{
		External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "ctl.example.org", Port: 7000},
	}}
	externalV6 := &slinkyv1beta1.Controller{ObjectMeta: meta("far"), Spec: slinkyv1beta1.ControllerSpec{
		External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "fd00::1", Port: 7000},
	}}
	named := &slinkyv1beta1.Controller{ObjectMeta: meta("demo"), Spec: slinkyv1beta1.ControllerSpec{
		ClusterName: "hpc", Service: slinkyv1beta1.ServiceSpec{Port: 16817},
	}}
	accounting := &slinkyv1beta1.Accounting{ObjectMeta: meta("demo")}
	externalAccounting := &slinkyv1beta1.Accounting{ObjectMeta: meta("far"), Spec: slinkyv1beta1.AccountingSpec{
		External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "dbd.example.org", Port: 7031},
	}}
	restAPI := &slinkyv1beta1.RestApi{ObjectMeta: meta("demo")}
	login := &slinkyv1beta1.LoginSet{ObjectMeta: meta("demo-login")}
	nodes := &slinkyv1beta1.NodeSet{ObjectMeta: meta("demo-gpu"), Spec: slinkyv1beta1.NodeSetSpec{
		ControllerRef: slinkyv1beta1.ObjectReference{Name: "demo"},
	}}
	token := &slinkyv1beta1.Token{ObjectMeta: meta("demo"), Spec: slinkyv1beta1.TokenSpec{Username: "alice"}}

	for _, tt := range []struct{ what, got, want string }{
		{"Controller key", controller.Key().String(), "ns1/demo-controller"},
		{"Controller Service", controller.ServiceName(), "demo-controller"},
		{"Controller internal Service", controller.InternalServiceName(), "demo-controller-internal"},
		{"Controller ServiceMonitor", controller.ServiceMonitorName(), "demo-controller"},
		{"Controller ConfigMap", controller.ConfigName(), "demo-config"},
		{"Controller pod", controller.PodName(1), "demo-controller-1"},
		{"Controller primary host", controller.PrimaryName(), "demo-controller-0"},
		{"Controller short name", controller.Host(), "demo-controller.ns1"},
		{"Controller full name", controller.FQDN("cluster.local"), "demo-controller.ns1.svc.cluster.local"},
		{"Controller endpoint", controller.Endpoint(), "demo-controller.ns1:6817"},
		{"Controller endpoint with another port", named.Endpoint(), "demo-controller.ns1:16817"},
		{"cluster name by default", controller.ClusterName(), "ns1_demo"},
		{"cluster name", named.ClusterName(), "hpc"},
		{"worker Service", controller.WorkerServiceName(), "slurm-workers-demo"},
		{"worker Service by NodeSet", nodes.WorkerServiceName(), "slurm-workers-demo"},
		{"worker budget", controller.WorkerDisruptionBudgetName(), "slurm-workers-pdb-demo"},
		{"worker budget by NodeSet", nodes.WorkerDisruptionBudgetName(), "slurm-workers-pdb-demo"},
		{"external primary host", external.PrimaryName(), "ctl.example.org"},
		{"external host", external.Host(), "ctl.example.org"},
		{"external full name", external.FQDN("cluster.local"), "ctl.example.org"},
		{"external endpoint", external.Endpoint(), "ctl.example.org:7000"},
		{"external endpoint on IPv6", externalV6.Endpoint(), "[fd00::1]:7000"},
		{"Accounting key", accounting.Key().String(), "ns1/demo-accounting"},
		{"Accounting Service", accounting.ServiceName(), "demo-accounting"},
		{"Accounting Secret", accounting.ConfigName(), "demo-accounting"},
		{"Accounting host name", accounting.PrimaryName(), "demo-accounting-0"},
		{"Accounting address", accounting.Host(), "demo-accounting.ns1"},
		{"external Accounting host name", externalAccounting.PrimaryName(), "dbd.example.org"},
		{"external Accounting address", externalAccounting.Host(), "dbd.example.org"},
		{"database", accounting.DatabaseKey().String(), "ns1/demo-database"},
		{"RestApi key", restAPI.Key().String(), "ns1/demo-restapi"},
		{"RestApi Service", restAPI.ServiceName(), "demo-restapi"},
		{"RestApi URL", restAPI.URL(), "http://demo-restapi.ns1:6820"},
		{"LoginSet key", login.Key().String(), "ns1/demo-login"},
		{"LoginSet Service", login.ServiceName(), "demo-login"},
		{"LoginSet pods", login.PodServiceName(), "demo-login-headless-svc"},
		{"LoginSet pods, long name", (&slinkyv1beta1.LoginSet{ObjectMeta: meta(strings.Repeat("a", 51))}).PodServiceName(), strings.Repeat("a", 51) + "-pods"},
		{"LoginSet ConfigMap", login.SSHConfigName(), "demo-login-ssh-config"},
		{"LoginSet host keys", login.SSHHostKeysName(), "demo-login-ssh-host-keys"},
		{"LoginSet users", login.UsersName(), "demo-login-users"},
		{"NodeSet key", nodes.Key().String(), "ns1/demo-gpu"},
		{"NodeSet ConfigMap", nodes.SSHConfigName(), "demo-gpu-ssh-config"},
		{"token Secret", token.TokenRef().Name, "demo-jwt-alice"},
		{"token key", token.TokenRef().Key, "SLURM_JWT"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %q, want %q", tt.what, tt.got, tt.want)
		}
	}
	if got := externalAccounting.Port(); got != 7031 {
		t.Errorf("external Accounting port = %d, want 7031", got)
	}
	if got := accounting.Port(); got != 6819 {
		t.Errorf("Accounting port = %d, want 6819", got)
	}
}

func TestWorkerNames(t *testing.T) {
	for _, tt := range []struct {
		name                          string
		podSpec                       string
		padding                       int32
		wantPod, wantHost, wantCommon string
	}{
		{name: "without a host name the pod's counts", wantPod: "gpu-set-7", wantHost: "gpu-set-7", wantCommon: "gpu-set"},
		{name: "the host name is a prefix", podSpec: `{"hostname":"gpu-"}`, wantPod: "gpu-set-7", wantHost: "gpu-7", wantCommon: "gpu"},
		{name: "the prefix needs no hyphen", podSpec: `{"hostname":"n"}`, wantPod: "gpu-set-7", wantHost: "n7", wantCommon: "n"},
		{name: "ordinals are padded", podSpec: `{"hostname":"gpu-"}`, padding: 3, wantPod: "gpu-set-007", wantHost: "gpu-007", wantCommon: "gpu"},
		{name: "a mistake elsewhere in the pod spec renames nothing", podSpec: `{"hostname":"gpu-","containers":7}`, wantPod: "gpu-set-7", wantHost: "gpu-7", wantCommon: "gpu"},
		{name: "a host name that is none is left out", podSpec: `{"hostname":7}`, wantPod: "gpu-set-7", wantHost: "gpu-set-7", wantCommon: "gpu-set"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes := &slinkyv1beta1.NodeSet{ObjectMeta: meta("gpu-set")}
			nodes.Spec.OrdinalPadding = tt.padding
			if tt.podSpec != "" {
				nodes.Spec.Template.Spec = &embedded.PodSpec{RawExtension: runtime.RawExtension{Raw: []byte(tt.podSpec)}}
			}
			if got := nodes.PodName(7); got != tt.wantPod {
				t.Errorf("PodName = %q, want %q", got, tt.wantPod)
			}
			if got := nodes.Hostname(7); got != tt.wantHost {
				t.Errorf("Hostname = %q, want %q", got, tt.wantHost)
			}
			if got := nodes.SlurmName(); got != tt.wantCommon {
				t.Errorf("SlurmName = %q, want %q", got, tt.wantCommon)
			}
		})
	}
}

// Two workers of one name would be one pod with one claim.
func TestLongNamesOfDaemonPodsAreTheirOwn(t *testing.T) {
	nodes := &slinkyv1beta1.NodeSet{ObjectMeta: meta("gpu-set")}
	seen := map[string]string{}
	for i := range 20_000 {
		host := fmt.Sprintf("ip-10-0-0-0-of-a-machine-with-a-long-name-in-some-region-%05d", i)
		name := nodes.DaemonPodName(host)
		if other, there := seen[name]; there || len(name) > 63 {
			t.Fatalf("the pods of %s and %s are both called %s", host, other, name)
		}
		seen[name] = host
	}
}

func TestReferencesStayInTheirNamespace(t *testing.T) {
	for _, tt := range []struct {
		name      string
		namespace string
		wantErr   string
	}{
		{name: "no namespace is the own one"},
		{name: "the own namespace may be written", namespace: "ns1"},
		{name: "another namespace is refused with what to write", namespace: "ns2", wantErr: `namespace "ns2" of the reference to "a" is not "ns1", the object's own: leave it out`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			selector := slinkyv1beta1.JwtSecretKeySelector{Namespace: tt.namespace}
			selector.Name = "a"
			for _, err := range []error{
				slinkyv1beta1.ObjectReference{Name: "a", Namespace: tt.namespace}.InNamespace("ns1"),
				selector.InNamespace("ns1"),
			} {
				switch {
				case tt.wantErr == "" && err != nil:
					t.Errorf("error = %v", err)
				case tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)):
					t.Errorf("error = %v, want one with %q", err, tt.wantErr)
				}
			}
		})
	}
}
