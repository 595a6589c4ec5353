// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// TestSlurmctldResolvesLoginPods looks at the names that pods of a Deployment have in DNS while they come and go.
func TestSlurmctldResolvesLoginPods(t *testing.T) {
	t.Parallel()
	o := loginNodes(t)
	searches := operator.Get[appsv1.StatefulSet](o, "demo-controller").Spec.Template.Spec.DNSConfig.Searches
	if want := "slurm-logins-demo." + o.Namespace + ".svc.cluster.local"; !slices.Contains(searches, want) {
		t.Errorf("slurmctld looks names up in %q, want %q too", searches, want)
	}
	if s := operator.Get[corev1.Service](o, "slurm-logins-demo"); s.Spec.ClusterIP != corev1.ClusterIPNone || len(s.Spec.Selector) > 0 {
		t.Errorf("the Service of the names is %+v", s.Spec)
	}
	expect := func(want ...string) {
		t.Helper()
		apiserver.Eventually(t, func() error {
			slice := operator.Get[discoveryv1.EndpointSlice](o, "demo-login-hosts")
			got := []string{slice.Labels[discoveryv1.LabelServiceName]}
			for _, e := range slice.Endpoints {
				got = append(got, *e.Hostname+" "+e.Addresses[0])
			}
			if !slices.Equal(got, append([]string{"slurm-logins-demo"}, want...)) {
				return fmt.Errorf("the names are %q, want %q", got, want)
			}
			return nil
		})
	}
	expect()
	start := func(name, address string) {
		t.Helper()
		operator.Create[corev1.Pod](o, `{metadata: {name: `+name+`, labels: {app.kubernetes.io/name: login, app.kubernetes.io/instance: demo-login}},
			spec: {containers: [{name: login, image: i}]}}`)
		p := operator.Get[corev1.Pod](o, name)
		p.Status.PodIP, p.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
		if err := o.User.Status().Update(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	start("demo-login-x", "10.0.0.7")
	expect("demo-login-x 10.0.0.7")
	start("demo-login-a", "10.0.0.8")
	expect("demo-login-a 10.0.0.8", "demo-login-x 10.0.0.7")
	operator.Delete[corev1.Pod](o, "demo-login-a")
	expect("demo-login-x 10.0.0.7", "demo-login-a 10.0.0.8")

	o.Settle()
	before := operator.Get[discoveryv1.EndpointSlice](o, "demo-login-hosts").ResourceVersion
	operator.Change(o, "demo-login-x", func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} })
	o.Settle()
	if after := operator.Get[discoveryv1.EndpointSlice](o, "demo-login-hosts").ResourceVersion; after != before {
		t.Error("the names are written again although nothing about them changed")
	}

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) {
		c.Spec.External, c.Spec.ExternalConfig = true, &slinkyv1beta1.ExternalConfig{Host: "ctld.example", Port: 6817}
	})
	operator.ExpectGone[discoveryv1.EndpointSlice](o, "demo-login-hosts")
}
