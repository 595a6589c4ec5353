// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestTheCacheKeepsOfAWorkerWhatIsRead(t *testing.T) {
	const text = `
metadata:
  name: w-0
  labels: {slinky.slurm.net/cluster: demo}
  annotations: {a: b}
  managedFields: [{manager: me}]
spec:
  nodeName: n
  hostname: h
  tolerations: [{key: k}]
  volumes: [{name: config, configMap: {name: c}}, {name: spool, persistentVolumeClaim: {claimName: spool-w-0}}]
  containers: [{name: slurmd, image: i, args: [a], env: [{name: E, value: v}], volumeMounts: [{name: config, mountPath: /c}], readinessProbe: {periodSeconds: 1}}]
status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: slurmd}]}
`
	slim := func(p *corev1.Pod) *corev1.Pod {
		out, err := slimPod(p)
		if err != nil {
			t.Fatal(err)
		}
		return out.(*corev1.Pod)
	}
	want := manifest.Parse[corev1.Pod](t, `
metadata: {name: w-0, labels: {slinky.slurm.net/cluster: demo}, annotations: {a: b}}
spec:
  nodeName: n
  hostname: h
  volumes: [{name: spool, persistentVolumeClaim: {claimName: spool-w-0}}]
  containers: [{name: slurmd, image: i, args: [a], env: [{name: E, value: v}]}]
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
`)
	if diff := cmp.Diff(want, slim(manifest.Parse[corev1.Pod](t, text))); diff != "" {
		t.Errorf("of a worker:\n%s", diff)
	}
	other := manifest.Parse[corev1.Pod](t, text)
	delete(other.Labels, "slinky.slurm.net/cluster")
	whole := other.DeepCopy()
	whole.ManagedFields = nil
	if diff := cmp.Diff(whole, slim(other)); diff != "" {
		t.Errorf("of slurmctld's pod, whose containers say how it is:\n%s", diff)
	}
}
