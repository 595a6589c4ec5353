// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// Kinds of volumes that are never a jail: they hold configuration, belong to one node, or their plugins are gone.
var neverJails = []string{"GCEPersistentDisk", "AWSElasticBlockStore", "Cinder", "PortworxVolume", "Quobyte", "ScaleIO", "StorageOS"}

// With a pod's fsGroup the kubelet changes the groups of all files of a volume, unless the volume is read-only for the pod.
func TestTheJailIsReadOnlyForPodsThatNeedItsUsers(t *testing.T) {
	tried := 0
	for kind := range reflect.TypeFor[corev1.VolumeSource]().Fields() {
		if _, can := kind.Type.Elem().FieldByName("ReadOnly"); !can || slices.Contains(neverJails, kind.Name) {
			continue
		}
		tried++
		source := corev1.VolumeSource{}
		reflect.ValueOf(&source).Elem().FieldByIndex(kind.Index).Set(reflect.New(kind.Type.Elem()))
		raw, err := json.Marshal(source)
		if err != nil {
			t.Fatal(err)
		}
		jail := &slinkyv1beta1.Jail{VolumeSource: embedded.VolumeSource{}}
		jail.VolumeSource.Raw = raw
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "daemon"}}}
		if err := AddUsers(&spec, jail, nil, "image", 401); err != nil {
			t.Fatal(err)
		}
		got := reflect.ValueOf(spec.Volumes[0].VolumeSource).FieldByIndex(kind.Index).Elem().FieldByName("ReadOnly")
		if got.Kind() == reflect.Pointer {
			got = got.Elem()
		}
		if !got.IsValid() || !got.Bool() {
			t.Errorf("a jail of kind %s is not read-only", kind.Name)
		}
	}
	if tried < 10 {
		t.Errorf("%d kinds were tried only", tried)
	}
}
