// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// What a scenario costs the API server, at most. Each write of a status may be made in two steps, and each object that is made
// makes its owner's status follow: the bounds leave room for that and no more. "go test -v" prints what it was.
func TestAScenarioCostsFewWrites(t *testing.T) {
	t.Parallel()
	scenarios := []struct {
		name string
		most int
		do   func(*operator.Operator)
	}{
		{"a restart of the operator", 0, func(o *operator.Operator) { o.Restart() }},
		{"a line of extraConf", 10, func(o *operator.Operator) {
			operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "MinJobAge=77" })
		}},
		{"a ConfigMap deleted by hand", 6, func(o *operator.Operator) { operator.Delete[corev1.ConfigMap](o, "demo-config") }},
		{"another JWT key", 12, func(o *operator.Operator) {
			operator.Change(o, "jwt", func(s *corev1.Secret) { s.Data["jwt_hs256.key"] = []byte("another-key-of-at-least-thirty-two-bytes") })
		}},
		{"another auth/slurm key", 24, func(o *operator.Operator) {
			operator.Change(o, "keys", func(s *corev1.Secret) { s.Data["slurm.key"] = []byte("another-slurm-key") })
		}},
		{"three login pods for one", 6, func(o *operator.Operator) {
			operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.Replicas = new(int32(3)) })
		}},
		{"an image changed by hand", 6, func(o *operator.Operator) {
			operator.Change(o, "demo-restapi", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "example.com/other" })
		}},
		{"two workers more", 16, func(o *operator.Operator) {
			operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(4)) })
			o.Settle()
			o.RunWorkers()
		}},
		{"a RestApi deleted", 10, func(o *operator.Operator) { operator.Delete[slinkyv1beta1.RestApi](o, "demo") }},
	}
	o := operator.StartCluster(t)
	o.Settle()
	t.Logf("a cluster of five components and two workers: %d writes, %d of them to status", len(o.Writes.All()), len(o.Writes.Of("status")))
	for _, s := range scenarios {
		o.Writes.Reset()
		s.do(o)
		o.Settle()
		o.RunWorkloads()
		o.Settle()
		all := o.Writes.All()
		t.Logf("%s: %d writes, %d of them to status", s.name, len(all), len(o.Writes.Of("status")))
		if len(all) > s.most {
			t.Errorf("%s costs %d writes, not at most %d: %v", s.name, len(all), s.most, all)
		}
	}
}
