// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook warns users of mistakes while they make them. internal/webhook/validation decides what a mistake
// is, with the pure code of the controllers. So a refusal has the words of the object's condition, and an
// object that is admitted while the webhook is down gets that condition. Nothing therefore depends on the webhook being up, and its
// failurePolicy is Ignore unless an administrator decides otherwise.
//
// What one object shows by itself is refused by rules in its CRD, without the webhook. Here is what needs a parser or a
// look at other objects. A reference to what does not exist yet is a warning, never a refusal: manifests come in any order.
package webhook

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// What the API server sends here, and on which terms. Names and paths of the first six and of the last are those of Slinky
// (docs/contributors/predecessors/slinky-installation.md#paths-of-webhooks). Deletions have entries of their own: the API server does
// without an answer, whatever the chart sets for the others. helm/coxswain/templates/webhook.yaml adds what its values set.
//
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-controller,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slinky.slurm.net,resources=controllers,verbs=create;update,versions=v1beta1,name=controller-v1beta1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-nodeset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slinky.slurm.net,resources=nodesets,verbs=create;update,versions=v1beta1,name=nodeset-v1beta1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-loginset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slinky.slurm.net,resources=loginsets,verbs=create;update,versions=v1beta1,name=loginset-v1beta1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-accounting,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slinky.slurm.net,resources=accountings,verbs=create;update,versions=v1beta1,name=accounting-v1beta1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-restapi,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slinky.slurm.net,resources=restapis,verbs=create;update,versions=v1beta1,name=restapi-v1beta1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-token,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slinky.slurm.net,resources=tokens,verbs=create;update,versions=v1beta1,name=token-v1beta1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slurm-nebius-ai-v1-slurmcluster,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slurm.nebius.ai,resources=slurmclusters,verbs=create;update,versions=v1,name=slurmcluster-v1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slurm-nebius-ai-v1alpha1-nodeset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slurm.nebius.ai,resources=nodesets,verbs=create;update,versions=v1alpha1,name=nodeset-v1alpha1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slurm-nebius-ai-v1alpha1-nodeconfigurator,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slurm.nebius.ai,resources=nodeconfigurators,verbs=create;update,versions=v1alpha1,name=nodeconfigurator-v1alpha1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slurm-nebius-ai-v1alpha1-activecheck,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slurm.nebius.ai,resources=activechecks,verbs=create;update,versions=v1alpha1,name=activecheck-v1alpha1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-nodeset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slinky.slurm.net,resources=nodesets,verbs=delete,versions=v1beta1,name=nodeset-deletion-v1beta1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=3
// +kubebuilder:webhook:path=/validate-slurm-nebius-ai-v1alpha1-nodeset,mutating=false,failurePolicy=ignore,sideEffects=None,groups=slurm.nebius.ai,resources=nodesets,verbs=delete,versions=v1alpha1,name=nodeset-deletion-v1alpha1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=3
// +kubebuilder:webhook:path=/validate--v1-secret,mutating=false,failurePolicy=fail,sideEffects=None,groups="",resources=secrets,verbs=create;update;delete,versions=v1,name=validate.secrets.nebius.ai,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=10,patch=`{"objectSelector":{"matchLabels":{"slurm.nebius.ai/webhook":"true"}}}`
// +kubebuilder:webhook:path=/mutate--v1-binding,mutating=true,failurePolicy=ignore,sideEffects=None,groups="",resources=pods/binding,verbs=create,versions=v1,name=podsbinding-v1.kb.io,admissionReviewVersions=v1,matchPolicy=Equivalent,timeoutSeconds=2,patch=`{"matchConditions":[{"name":"to-a-node","expression":"!has(object.target.kind) || object.target.kind in ['', 'Node']"}]}`

// Options are what the webhooks look at.
type Options struct {
	// Namespaces are those whose objects are looked at; none, or one that is *, means all. Others are admitted.
	Namespaces []string
}

// covers reports whether objects of a namespace are looked at.
func (o Options) covers(namespace string) bool {
	return len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, "*") || slices.Contains(o.Namespaces, namespace)
}

// Register adds all webhooks to the server of a manager. They read from the API server, not from a cache: requests are
// few, and what a user has just created counts.
func Register(mgr ctrl.Manager, o Options) error {
	bindings := ctrl.NewWebhookManagedBy(mgr, &corev1.Binding{}).WithDefaulter(&binder{live: mgr.GetAPIReader(), options: o})
	return errors.Join(
		validate(mgr, o, &slinkyv1beta1.Controller{}),
		validate(mgr, o, &slinkyv1beta1.NodeSet{}),
		validate(mgr, o, &slinkyv1beta1.LoginSet{}),
		validate(mgr, o, &slinkyv1beta1.Accounting{}),
		validate(mgr, o, &slinkyv1beta1.RestApi{}),
		validate(mgr, o, &slinkyv1beta1.Token{}),
		validate(mgr, o, &nebiusv1.SlurmCluster{}),
		validate(mgr, o, &nebiusv1alpha1.NodeSet{}),
		validate(mgr, o, &nebiusv1alpha1.NodeConfigurator{}),
		validate(mgr, o, &nebiusv1alpha1.ActiveCheck{}),
		register(ctrl.NewWebhookManagedBy(mgr, &corev1.Secret{}).WithValidator(&protector{live: mgr.GetAPIReader(), options: o}), "Secrets"),
		register(bindings, "Bindings"),
	)
}

// validate registers the validation of one kind, at the path that the name of the kind gives.
func validate[T client.Object](mgr ctrl.Manager, o Options, obj T) error {
	kinds, _, err := mgr.GetScheme().ObjectKinds(obj)
	if err != nil {
		return fmt.Errorf("finding the kind of %T: %w", obj, err)
	}
	v := &validator[T]{kind: kinds[0].GroupKind(), options: o, live: mgr.GetAPIReader()}
	return register(ctrl.NewWebhookManagedBy(mgr, obj).WithValidator(admission.Validator[T](v)), v.kind.String())
}

func register(b interface{ Complete() error }, what string) error {
	if err := b.Complete(); err != nil {
		return fmt.Errorf("registering the webhook of %s: %w", what, err)
	}
	return nil
}
