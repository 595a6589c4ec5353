// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestAChangedSlurmKeyReachesEveryDaemonAndReplacesNoWorker(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	o.Settle()
	before := map[string]corev1.Pod{}
	for _, p := range o.Workers() {
		if _, stamped := p.Annotations["coxswain.dev/wanted-key"]; stamped {
			t.Errorf("%s is stamped although no key has changed", p.Name)
		}
		before[p.Name] = p
	}
	templates := func() map[string]string {
		const hash = "slinky.slurm.net/slurm-key-hash"
		return map[string]string{
			"slurmctld":  operator.Get[appsv1.StatefulSet](o, "demo-controller").Spec.Template.Annotations[hash],
			"slurmdbd":   operator.Get[appsv1.StatefulSet](o, "demo-accounting").Spec.Template.Annotations[hash],
			"slurmrestd": operator.Get[appsv1.Deployment](o, "demo-restapi").Spec.Template.Annotations[hash],
			"login":      operator.Get[appsv1.Deployment](o, "demo-login").Spec.Template.Annotations[hash],
		}
	}
	was := templates()
	operator.Change(o, "keys", func(s *corev1.Secret) { s.Data["slurm.key"] = []byte("another-slurm-key") })
	apiserver.Eventually(t, func() error {
		for daemon, hash := range templates() {
			if hash == was[daemon] {
				return fmt.Errorf("%s keeps the key of before", daemon)
			}
		}
		for _, p := range o.Workers() {
			if p.UID != before[p.Name].UID || p.DeletionTimestamp != nil {
				t.Fatalf("%s was replaced", p.Name)
			}
			if p.Annotations["coxswain.dev/wanted-key"] == "" {
				return fmt.Errorf("%s is not stamped", p.Name)
			}
		}
		return nil
	})
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}
