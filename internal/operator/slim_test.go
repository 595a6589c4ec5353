// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
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
  containers: [{name: slurmd, image: i, args: [a], env: [{name: E, value: v}, {name: F, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}], volumeMounts: [{name: config, mountPath: /c}], readinessProbe: {periodSeconds: 1}}]
status: {phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}], conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: slurmd}]}
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
  containers: [{name: slurmd, args: [a], env: [{name: E, value: v}]}]
status: {phase: Running, podIP: 10.0.0.1, conditions: [{type: Ready, status: "True"}]}
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

func TestTheCacheKeepsTheLimitsOfEphemeralStorage(t *testing.T) {
	p := manifest.Parse[corev1.Pod](t, `
metadata: {name: w-0, labels: {slinky.slurm.net/cluster: demo}}
spec:
  initContainers: [{name: prepare, image: i, resources: {limits: {ephemeral-storage: 1Gi, cpu: "1"}}}, {name: logs, image: i}]
  containers: [{name: side, image: i, resources: {limits: {ephemeral-storage: 2Gi}}}, {name: slurmd, image: i, resources: {limits: {ephemeral-storage: 4Gi, memory: 1Gi}}}]
status: {hostIP: 10.0.0.9}
`)
	before := health.StorageLimit(&p.Spec)
	if _, err := slimPod(p); err != nil {
		t.Fatal(err)
	}
	want := manifest.Parse[corev1.Pod](t, `
metadata: {name: w-0, labels: {slinky.slurm.net/cluster: demo}}
spec:
  initContainers: [{name: prepare, resources: {limits: {ephemeral-storage: 1Gi}}}]
  containers: [{name: slurmd, resources: {limits: {ephemeral-storage: 4Gi}}}, {name: side, resources: {limits: {ephemeral-storage: 2Gi}}}]
status: {hostIP: 10.0.0.9}
`)
	if diff := cmp.Diff(want, p); diff != "" || health.StorageLimit(&p.Spec) != before || before != 7<<30 {
		t.Errorf("the limit was %d and is %d:\n%s", before, health.StorageLimit(&p.Spec), diff)
	}
}

func TestTheCacheKeepsWithWhatWordsAWorkerEnded(t *testing.T) {
	p := manifest.Parse[corev1.Pod](t, `
metadata: {name: w-0, labels: {slinky.slurm.net/cluster: demo}}
status: {containerStatuses: [{name: logs, image: i}, {name: slurmd, image: i, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, message: sshd refuses it}}}]}
`)
	if _, err := slimPod(p); err != nil {
		t.Fatal(err)
	}
	want := manifest.Parse[corev1.Pod](t, `status: {containerStatuses: [{name: slurmd, lastState: {terminated: {exitCode: 0, message: sshd refuses it}}}]}`)
	if diff := cmp.Diff(want.Status, p.Status); diff != "" {
		t.Error(diff)
	}
}

func TestTheCacheKeepsOfAKubernetesNodeWhatIsRead(t *testing.T) {
	out, err := slimNode(manifest.Parse[corev1.Node](t, `
metadata: {name: n, labels: {a: b}, managedFields: [{manager: me}]}
spec: {unschedulable: true, taints: [{key: k, effect: NoSchedule}]}
status: {conditions: [{type: Ready, status: "True"}], capacity: {cpu: "2"}, images: [{names: [i]}], nodeInfo: {kernelVersion: "6", systemUUID: u}}
`))
	want := manifest.Parse[corev1.Node](t, `
metadata: {name: n, labels: {a: b}}
spec: {unschedulable: true, taints: [{key: k, effect: NoSchedule}]}
status: {conditions: [{type: Ready, status: "True"}], nodeInfo: {systemUUID: u}}
`)
	if diff := cmp.Diff(want, out); err != nil || diff != "" {
		t.Errorf("%v:\n%s", err, diff)
	}
}

// What a worker registers with is compared with its Slurm record, also after an upgrade of the operator.
func TestWhatAWorkerRegistersWithIsKept(t *testing.T) {
	p := manifest.Parse[corev1.Pod](t, `
metadata: {name: w-0, labels: {slinky.slurm.net/cluster: demo}}
spec: {containers: [{name: logs}, {name: slurmd, args: [-Z, --conf, Weight=5], env: [{name: SLURMD_OPTIONS, value: "--x"}, {name: POD_MEMORY, value: "600"}]}]}
`)
	whole := slurmd.Registration(p)
	if _, err := slimPod(p); err != nil || slurmd.Registration(p) != whole {
		t.Errorf("%v, or the registration is another one", err)
	}
	if whole == slurmd.Registration(&corev1.Pod{}) {
		t.Error("the registration says nothing")
	}
}
