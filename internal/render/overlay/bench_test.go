// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// What many users write: an image, resources, a variable, a volume.
const (
	benchContainer = `{"image":"example.com/slurmctld:1","env":[{"name":"B","value":"3"},{"name":"C","value":"4"}],
		"resources":{"limits":{"memory":"16Gi"},"requests":{"cpu":"2","memory":"16Gi"}},
		"volumeMounts":[{"name":"data","mountPath":"/data"}]}`
	benchPodSpec = `{"nodeSelector":{"disk":"ssd"},"priorityClassName":"high","tolerations":[{"key":"gpu","operator":"Exists"}],
		"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}]}`
)

func BenchmarkContainer(b *testing.B) {
	user := &embedded.Container{}
	user.Raw = []byte(benchContainer)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Container(base(), user, "spec"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPodSpec(b *testing.B) {
	user := &embedded.PodSpec{}
	user.Raw = []byte(benchPodSpec)
	spec := corev1.PodSpec{Containers: []corev1.Container{base()}, Volumes: []corev1.Volume{{Name: "etc"}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := PodSpec(spec, user, "spec"); err != nil {
			b.Fatal(err)
		}
	}
}
