// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcontroller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// Provisioner is the name by which StorageClasses ask for a directory.
	Provisioner = "localkube.coxswain.dev/directory"
	// provisionerAnnotation is set on a claim when it is time to provision it.
	provisionerAnnotation = "volume.kubernetes.io/storage-provisioner"
	// provisionedBy is set on a volume to name who made it.
	provisionedBy = "pv.kubernetes.io/provisioned-by"
)

// provisioner makes a directory and a PersistentVolume for each claim. The
// directory is visible at the same path in all nodes, so any access mode works.
type provisioner struct {
	client  kubernetes.Interface
	claims  corelisters.PersistentVolumeClaimLister
	classes storagelisters.StorageClassLister
	dir     string
}

func newProvisioner(client kubernetes.Interface, factory informers.SharedInformerFactory, dir string) *worker {
	informer := factory.Core().V1().PersistentVolumeClaims()
	p := &provisioner{client: client, claims: informer.Lister(), classes: factory.Storage().V1().StorageClasses().Lister(), dir: dir}
	return newWorker("provisioner", informer.Informer(), p.sync)
}

func (p *provisioner) sync(ctx context.Context, name cache.ObjectName) error {
	claim, err := p.claims.PersistentVolumeClaims(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the claim %s: %w", name, err)
	}
	if !needsVolume(claim) {
		return nil
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if err != nil {
		return fmt.Errorf("reading the StorageClass of the claim %s: %w", name, err)
	}
	volume, err := volumeFor(claim, class, p.dir)
	if err != nil {
		return p.refuse(ctx, claim, err)
	}
	path := volume.Spec.HostPath.Path
	if err := makeOpenDirectory(path); err != nil {
		return fmt.Errorf("making the directory of the claim %s: %w", name, err)
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volume, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating the volume of the claim %s: %w", name, err)
	}
	klog.FromContext(ctx).Info("Provisioned a volume", "claim", name, "volume", volume.Name)
	return nil
}

// makeOpenDirectory makes a directory for any user, as local-path-provisioner
// does: fsGroup does not apply to hostPath volumes.
func makeOpenDirectory(path string) error {
	if err := os.MkdirAll(path, 0o750); err != nil {
		return err
	}
	return os.Chmod(path, 0o777) //nolint:gosec // The pods' users are unknown, and the directory above is closed.
}

// refuse writes an event with what is wrong with a claim.
func (p *provisioner) refuse(ctx context.Context, claim *corev1.PersistentVolumeClaim, reason error) error {
	now := metav1.Now()
	event := &corev1.Event{
		// A fixed name: the claim is looked at again and again, and one event is enough.
		ObjectMeta: metav1.ObjectMeta{Name: claim.Name + ".refused." + string(claim.UID), Namespace: claim.Namespace},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "PersistentVolumeClaim",
			Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		},
		Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: reason.Error(),
		Source:         corev1.EventSource{Component: Provisioner},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	_, err := p.client.CoreV1().Events(claim.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("refusing the claim %s: %w", claim.Name, err)
	}
	return nil
}

// needsVolume reports whether it is this provisioner's turn. Kubernetes sets the
// annotation, with WaitForFirstConsumer once a pod of the claim is scheduled.
func needsVolume(claim *corev1.PersistentVolumeClaim) bool {
	return claim.DeletionTimestamp == nil &&
		claim.Spec.VolumeName == "" &&
		claim.Spec.StorageClassName != nil &&
		claim.Annotations[provisionerAnnotation] == Provisioner
}

// volumeFor returns the volume for a claim. Its error is what a user has to
// change.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, dir string) (*corev1.PersistentVolume, error) {
	if mode := claim.Spec.VolumeMode; mode != nil && *mode != corev1.PersistentVolumeFilesystem {
		return nil, fmt.Errorf("volumeMode %s is not supported: directories make file systems only", *mode)
	}
	if claim.Spec.Selector != nil {
		return nil, errors.New("spec.selector is not supported: a claim with a selector is for volumes made by hand")
	}
	if claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil {
		return nil, errors.New("spec.dataSource is not supported: volumes start empty")
	}
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	name := volumeName(claim.UID)
	kind := corev1.HostPathDirectory
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: Provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:                   claim.Spec.AccessModes,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: filepath.Join(dir, name), Type: &kind},
			},
		},
	}, nil
}

func volumeName(claim types.UID) string { return "pvc-" + string(claim) }

// remover removes volumes that were released, with their directories.
type remover struct {
	client  kubernetes.Interface
	volumes corelisters.PersistentVolumeLister
	dir     string
}

func newRemover(client kubernetes.Interface, factory informers.SharedInformerFactory, dir string) *worker {
	informer := factory.Core().V1().PersistentVolumes()
	r := &remover{client: client, volumes: informer.Lister(), dir: dir}
	return newWorker("remover", informer.Informer(), r.sync)
}

func (r *remover) sync(ctx context.Context, name cache.ObjectName) error {
	volume, err := r.volumes.Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the volume %s: %w", name, err)
	}
	if !removable(volume, r.dir) {
		return nil
	}
	if err := os.RemoveAll(volume.Spec.HostPath.Path); err != nil {
		return fmt.Errorf("removing the directory of the volume %s: %w", name, err)
	}
	err = r.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the volume %s: %w", name, err)
	}
	klog.FromContext(ctx).Info("Removed a volume", "volume", volume.Name)
	return nil
}

// removable reports whether a volume is over and its directory ours to remove:
// made by this provisioner, at exactly the place where it puts this volume.
func removable(volume *corev1.PersistentVolume, dir string) bool {
	return volume.Annotations[provisionedBy] == Provisioner &&
		volume.Status.Phase == corev1.VolumeReleased &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		volume.Spec.ClaimRef != nil &&
		volume.Name == volumeName(volume.Spec.ClaimRef.UID) &&
		volume.Spec.HostPath != nil &&
		volume.Spec.HostPath.Path == filepath.Join(dir, volume.Name)
}
