// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcontroller

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := "standard"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "data", UID: "u-1", ResourceVersion: "7",
			Annotations: map[string]string{provisionerAnnotation: Provisioner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	change(c)
	return c
}

func TestNeedsVolume(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"a claim that was assigned to us needs a volume":            {func(*corev1.PersistentVolumeClaim) {}, true},
		"a claim that waits for its first consumer needs no volume": {func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }, false},
		"a claim of another provisioner needs no volume":            {func(c *corev1.PersistentVolumeClaim) { c.Annotations[provisionerAnnotation] = "other" }, false},
		"a claim that is bound needs no volume":                     {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }, false},
		"a claim that is being deleted needs no volume":             {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &now }, false},
		"a claim without a class needs no volume":                   {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }, false},
	} {
		if got := needsVolume(claim(test.change)); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestVolumeFor(t *testing.T) {
	retain := corev1.PersistentVolumeReclaimRetain
	block := corev1.PersistentVolumeBlock
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, ReclaimPolicy: &retain}
	v, err := volumeFor(claim(func(*corev1.PersistentVolumeClaim) {}), class, "/storage")
	if err != nil {
		t.Fatal(err)
	}
	got := []string{
		v.Name, v.Spec.HostPath.Path, string(v.Spec.AccessModes[0]), v.Spec.Capacity.Storage().String(),
		string(v.Spec.PersistentVolumeReclaimPolicy), v.Spec.StorageClassName, v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name,
	}
	want := []string{"pvc-u-1", "/storage/pvc-u-1", "ReadWriteMany", "1Gi", "Retain", "standard", "ns/data"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for about, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"volumeMode":      func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = &block },
		"spec.selector":   func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} },
		"spec.dataSource": func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSource = &corev1.TypedLocalObjectReference{} },
	} {
		if _, err := volumeFor(claim(change), class, "/storage"); err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("%s: got %v", about, err)
		}
	}
}

func TestOnlyOurReleasedVolumesAreRemoved(t *testing.T) {
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}}
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		want   bool
	}{
		"a released volume is removed":          {func(*corev1.PersistentVolume) {}, true},
		"a bound volume stays":                  {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"a volume of another provisioner stays": {func(v *corev1.PersistentVolume) { v.Annotations[provisionedBy] = "other" }, false},
		"a volume made by hand stays":           {func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
		"a volume to retain stays": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
		"a volume that leads somewhere else stays":  {func(v *corev1.PersistentVolume) { v.Spec.HostPath.Path = "/etc" }, false},
		"a volume that leads out of the tree stays": {func(v *corev1.PersistentVolume) { v.Spec.HostPath.Path = "/storage/../etc" }, false},
		"a volume of another name stays":            {func(v *corev1.PersistentVolume) { v.Name, v.Spec.HostPath.Path = "..", "/" }, false},
		"a volume without a claim stays":            {func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }, false},
		"a volume of another kind stays":            {func(v *corev1.PersistentVolume) { v.Spec.HostPath = nil }, false},
	} {
		v, err := volumeFor(claim(func(*corev1.PersistentVolumeClaim) {}), class, "/storage")
		if err != nil {
			t.Fatal(err)
		}
		v.Status.Phase = corev1.VolumeReleased
		test.change(v)
		if got := removable(v, "/storage"); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestFirstFree(t *testing.T) {
	pool := netip.MustParsePrefix("10.3.1.0/30")
	used := map[netip.Addr]bool{}
	for _, want := range []string{"10.3.1.1", "10.3.1.2", "10.3.1.3"} {
		a, err := firstFree(pool, used)
		if err != nil || a.String() != want {
			t.Fatalf("got %s, %v, want %s", a, err, want)
		}
		used[a] = true
	}
	if a, err := firstFree(pool, used); err == nil {
		t.Errorf("got %s from a full pool", a)
	}
}
