// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

func TestWhatAUserMountsTakesThePlaceOfWhatWorkersHave(t *testing.T) {
	const ours = `{controllerRef: {name: demo}, ssh: {enabled: true}}`
	for _, tt := range []struct {
		name, spec    string
		shm, hostKeys bool
	}{
		{"a user who mounts nothing has both", ours, true, true},
		{"without logins there are no host keys", `{controllerRef: {name: demo}}`, true, false},
		{"shared memory of a size of his own", `{controllerRef: {name: demo}, ssh: {enabled: true}, slurmd: {volumeMounts: [{name: shm, mountPath: /dev/shm/}]},
			template: {spec: {volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 1Gi}}]}}}`, false, true},
		{"shared memory that the template mounts", `{controllerRef: {name: demo}, ssh: {enabled: true},
			template: {spec: {containers: [{name: slurmd, volumeMounts: [{name: mine, mountPath: /dev/shm}]}], volumes: [{name: mine, emptyDir: {medium: Memory}}]}}}`, false, true},
		{"the shared memory of the Kubernetes node", `{controllerRef: {name: demo}, ssh: {enabled: true}, template: {spec: {hostIPC: true}}}`, false, true},
		{"a host key of his own", `{controllerRef: {name: demo}, ssh: {enabled: true}, slurmd: {volumeMounts: [{name: keys, mountPath: /etc/ssh/ssh_host_ed25519_key, subPath: a}]},
			template: {spec: {volumes: [{name: keys, secret: {secretName: keys}}]}}}`, true, false},
		{"a whole /etc/ssh of his own", `{controllerRef: {name: demo}, ssh: {enabled: true}, slurmd: {volumeMounts: [{name: keys, mountPath: /etc/ssh}]},
			template: {spec: {volumes: [{name: keys, secret: {secretName: keys}}]}}}`, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.spec)
			pod, err := slurmd.Pod(in, workerpod.Place{}, "0123456789")
			if err != nil {
				t.Fatal(err)
			}
			memory, keys := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
				return v.Name == "dev-shm" && cmp.Equal(v.EmptyDir, &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory})
			}), 0
			for _, m := range pod.Spec.Containers[0].VolumeMounts {
				if m.Name == "ssh-host-keys" && m.ReadOnly && m.MountPath == "/etc/ssh/"+m.SubPath {
					keys++
				}
			}
			if memory != tt.shm {
				t.Errorf("the operator mounts shared memory: %v; wanted %v", memory, tt.shm)
			}
			if want := map[bool]int{true: 6}[tt.hostKeys]; keys != want {
				t.Errorf("the operator mounts %d host keys; wanted %d", keys, want)
			}
			secret, used := slurmd.HostKeys(in)
			if used != tt.hostKeys || secret.Name != in.NodeSet.SSHHostKeysName() {
				t.Errorf("a Secret %s is asked for: %v; wanted %v", secret.Name, used, tt.hostKeys)
			}
		})
	}
}
