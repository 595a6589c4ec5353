// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// createAll makes workers.
func (r *reconciler) createAll(ctx context.Context, in slurmd.Input, places []workerpod.Place, revision string) error {
	if len(places) == 0 {
		return nil
	}
	var created done
	err := kube.SlowStart(len(places), func(i int) error {
		err := r.create(ctx, in, places[i], revision, &created)
		if conflict, ok := errors.AsType[*kube.ConflictError](err); ok {
			created.hold(conflict) // the others are made
			return nil
		}
		return err
	})
	if pods := created.String(); pods != "" {
		r.Recorder.Eventf(in.NodeSet, nil, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created %s", pods)
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // the NodeSet goes with it
	}
	return errors.Join(err, created.held())
}

func (r *reconciler) create(ctx context.Context, in slurmd.Input, place workerpod.Place, revision string, created *done) error {
	n := in.NodeSet
	pod, err := slurmd.Pod(in, place, revision)
	if err != nil {
		return err
	}
	answered, err := r.takeName(ctx, n, pod)
	if err == nil {
		defer answered()
		err = r.createClaims(ctx, n, place)
	}
	if err != nil {
		if _, rest := problem.FromError(err); rest == nil {
			created.hold(err) // the others are made
			return nil
		}
		return err
	}
	if err := controllerutil.SetControllerReference(n, pod, r.Client.Scheme()); err != nil {
		return fmt.Errorf("owning Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	pod.Annotations = label.Merge(pod.Annotations, map[string]string{
		// Jobs are let onto it once it is ready. This announces it for a pod that starts within the minute.
		slinkyv1beta1.AnnotationOpening: workerpod.Opening{At: r.Clock.Now(), By: r.Process}.String(),
	})
	err = r.Client.Create(ctx, pod, client.FieldOwner(kube.FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.adopt(ctx, n, pod)
	case apierrors.IsInvalid(err):
		return &kube.RejectedError{Object: refTo(pod), Err: err}
	case err != nil:
		return fmt.Errorf("creating Pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.Applier.Wrote(n, pod)
	created.add(pod.Name)
	return nil
}

// adopt makes the pod with the name of wanted ours, if it was a worker of a NodeSet of this name and has no owner now, as after "kubectl
// delete nodeset --cascade=orphan". Its revision decides whether it is to be replaced.
func (r *reconciler) adopt(ctx context.Context, n *slinkyv1beta1.NodeSet, wanted *corev1.Pod) error {
	live := &corev1.Pod{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	holder := metav1.GetControllerOf(live)
	switch {
	case live.DeletionTimestamp != nil, holder != nil && holder.Kind == "NodeSet" && holder.Name == n.Name:
		return nil // it is ours, or of a NodeSet that was deleted and made anew and goes with it; an event follows
	case holder != nil:
		return &kube.ConflictError{
			Object: refTo(live), Owner: kube.Ref{Kind: "NodeSet", Namespace: n.Namespace, Name: n.Name},
			Holder: kube.Ref{Kind: holder.Kind, Namespace: live.Namespace, Name: holder.Name},
		}
	}
	for _, key := range []string{label.Name, label.Instance, slinkyv1beta1.LabelCluster} {
		if live.Labels[key] != wanted.Labels[key] {
			return &kube.ConflictError{Object: refTo(live), Owner: kube.Ref{Kind: "NodeSet", Namespace: n.Namespace, Name: n.Name}}
		}
	}
	if stays, err := r.stays(ctx, n); err != nil || !stays {
		return err // an event of that is on its way
	}
	before := live.DeepCopy()
	if err := controllerutil.SetControllerReference(n, live, r.Client.Scheme()); err != nil {
		return fmt.Errorf("owning Pod %s/%s: %w", live.Namespace, live.Name, err)
	}
	if err := r.Client.Patch(ctx, live, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("adopting Pod %s/%s: %w", live.Namespace, live.Name, err)
	}
	r.Applier.Wrote(n, live)
	log.FromContext(ctx).Info("Adopted a worker", "pod", live.Name)
	return nil
}

// stays asks the API server whether a NodeSet exists and is not being deleted. Its pods may have lost their owner because it is being
// deleted, and they are to be kept: adopting them then would have them deleted with it. Kubernetes' own controllers ask before they adopt
// as well.
func (r *reconciler) stays(ctx context.Context, n *slinkyv1beta1.NodeSet) (bool, error) {
	var live slinkyv1beta1.NodeSet
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(n), &live); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading NodeSet %s/%s once more: %w", n.Namespace, n.Name, err)
	}
	return live.UID == n.UID && live.DeletionTimestamp == nil, nil
}

func refTo(pod *corev1.Pod) kube.Ref {
	return kube.Ref{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
}

// maxConfigs bounds how many sshd_configs are kept. Forgetting one costs a read.
const maxConfigs = 256

// configOf is a version of a ConfigMap that a NodeSet names, and the key in it.
type configOf struct {
	set          types.UID
	version, key string
}

// sshdConfig returns the sshd_config that the spec names; empty for none. A NodeSet is looked at with every change of a worker: the
// ConfigMap is read again only when it has changed.
func (r *reconciler) sshdConfig(ctx context.Context, n *slinkyv1beta1.NodeSet) (string, error) {
	ref := n.Spec.SSH.SshdConfigRef
	if !n.Spec.SSH.Enabled || ref == nil {
		return "", nil
	}
	version, err := r.ConfigMapVersion(ctx, n.Namespace, ref.Name)
	if err != nil {
		return "", err
	}
	of := configOf{set: n.UID, version: version, key: ref.Key}
	if known, ok := r.configs.Get(of); ok && version != "" {
		if text, ok := known.(string); ok {
			return text, nil
		}
	}
	text, err := r.ConfigMapValue(ctx, n.Namespace, *ref, "spec.ssh.sshdConfigRef")
	if err != nil {
		return "", err
	}
	r.configs.Add(of, text)
	return text, nil
}

// hasHostKeys reports whether there is a Secret with the host keys of the workers' sshd. It looks only at the name: the kubelet reports
// missing keys.
func (r *reconciler) hasHostKeys(ctx context.Context, n *slinkyv1beta1.NodeSet) (bool, error) {
	if !n.Spec.SSH.Enabled {
		return false, nil
	}
	version, err := r.SecretVersion(ctx, n.Namespace, n.SSHHostKeysName())
	return version != "", err
}

// maxDigests bounds the number of pairs of Secrets whose digests are kept. Forgetting one costs two reads.
const maxDigests = 1024

// madeOf are the versions of the Secrets that a digest was made from.
type madeOf struct {
	set          types.UID
	key, file    string
	keyIs, value string
}

// sssd returns the digest of the sssd.conf that the spec names. It may hold a password, so its digest is sealed. A NodeSet is looked at
// with every change of a worker: Secrets are read again only when one of them has changed.
func (r *reconciler) sssd(ctx context.Context, n *slinkyv1beta1.NodeSet, c *slinkyv1beta1.Controller) (string, error) {
	ref := n.Spec.SSH.SssdConfRef
	if !n.Spec.SSH.Enabled || ref == nil || ref.Name == "" {
		return "", nil
	}
	of, err := r.versions(ctx, n, c)
	if err != nil {
		return "", err
	}
	if known, ok := r.sealed.Get(of); ok && of.keyIs != "" && of.value != "" {
		if digest, ok := known.(string); ok {
			return digest, nil
		}
	}
	seal, _, err := r.SlurmKey(ctx, n.Namespace, *c.AuthSlurmRef(), "spec.controllerRef")
	if err != nil {
		return "", err
	}
	value, err := r.SecretValue(ctx, n.Namespace, *ref, "spec.ssh.sssdConfRef")
	if err != nil {
		return "", err
	}
	digest := label.Seal(seal, map[string][]byte{ref.Key: value})
	r.sealed.Add(of, digest)
	return digest, nil
}

// versions returns the versions in the cache of metadata. A Secret that is read after that is the same or a newer one, and then an event of
// it follows.
func (r *reconciler) versions(ctx context.Context, n *slinkyv1beta1.NodeSet, c *slinkyv1beta1.Controller) (of madeOf, err error) {
	key, file := c.AuthSlurmRef(), n.Spec.SSH.SssdConfRef
	of = madeOf{set: n.UID, key: key.Key, file: file.Key}
	if of.keyIs, err = r.SecretVersion(ctx, n.Namespace, key.Name); err != nil {
		return of, err
	}
	of.value, err = r.SecretVersion(ctx, n.Namespace, file.Name)
	return of, err
}
