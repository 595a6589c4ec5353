// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// cleanUpTimeout is how long the deletion of the Token may take, also after Ctrl-C.
const cleanUpTimeout = 10 * time.Second

// issueByObject has the operator issue the token, by a Token that is deleted again.
func (s *session) issueByObject(ctx context.Context, c *connection, r tokenRequest) (out issued, err error) {
	if s.login != "" {
		return out, errors.New("--login is for --exec: choose the cluster by --controller")
	}
	group := slinkyv1beta1.GroupVersion.Group
	lacks, err := lacking(ctx, c, right{"list", group, "controllers"}, right{"create", group, "tokens"}, right{"watch", group, "tokens"},
		right{"delete", group, "tokens"}, right{"get", "", "secrets"})
	if err != nil {
		return out, err
	}
	if len(lacks) > 0 {
		return out, denied("making a Token", c.namespace, lacks,
			`, or use --exec, which needs the rights to list pods, and to get and create pods/exec`)
	}
	controller, err := oneController(ctx, c, r.controller)
	if err != nil {
		return out, err
	}
	token := newToken(controller, r, rand.String(8))
	if err := c.Create(ctx, token, client.FieldOwner(fieldManager)); err != nil {
		return out, fmt.Errorf("making Token %s/%s: %w", token.Namespace, token.Name, err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
		defer cancel()
		if problem := c.Delete(ctx, token); client.IgnoreNotFound(problem) != nil {
			fmt.Fprintf(s.Streams.ErrOut, "Warning: Token %s/%s could not be deleted; delete it yourself: %v\n", token.Namespace, token.Name, problem)
		}
	}()
	ready, err := awaitToken(ctx, c, token, r.timeout)
	if err != nil {
		return out, err
	}
	var secret corev1.Secret
	ref := ready.TokenRef()
	if err := c.Get(ctx, client.ObjectKey{Namespace: ready.Namespace, Name: ref.Name}, &secret); err != nil {
		return out, fmt.Errorf("reading the Secret of Token %s/%s: %w", ready.Namespace, ready.Name, err)
	}
	out = issued{Token: string(secret.Data[ref.Key]), Username: ready.User()}
	if ready.Status.ExpiresAt != nil {
		out.ExpiresAt = ready.Status.ExpiresAt.UTC()
	}
	if out.Token == "" {
		return out, fmt.Errorf("reading the Secret of Token %s/%s: key %s is empty", ready.Namespace, ready.Name, ref.Key)
	}
	return out, nil
}

// newToken returns a Token that is not renewed. The Secret gets its name, since not every user is a name for a Secret.
func newToken(controller *slinkyv1beta1.Controller, r tokenRequest, random string) *slinkyv1beta1.Token {
	token := &slinkyv1beta1.Token{ObjectMeta: metav1.ObjectMeta{Name: "kubectl-slurm-" + random, Namespace: controller.Namespace}}
	token.Spec = slinkyv1beta1.TokenSpec{
		JwtKeyRef: controller.AuthJwtRef(),
		Username:  r.user,
		Lifetime:  &metav1.Duration{Duration: r.lifespan},
		Refresh:   new(false),
		SecretRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: token.Name}, Key: slinkyv1beta1.TokenKeyName},
	}
	return token
}

// oneController returns the Controller of that name, or the only one of the namespace.
func oneController(ctx context.Context, c *connection, name string) (*slinkyv1beta1.Controller, error) {
	var list slinkyv1beta1.ControllerList
	if err := c.List(ctx, &list, client.InNamespace(c.namespace)); err != nil {
		return nil, fmt.Errorf("listing Controllers%s: %w", inNamespace(c.namespace), err)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	switch i := slices.Index(names, name); {
	case i >= 0:
		return &list.Items[i], nil
	case name != "":
		return nil, fmt.Errorf("there is no Controller %s%s", name, inNamespace(c.namespace))
	case len(names) == 0:
		return nil, fmt.Errorf("there is no Controller%s", inNamespace(c.namespace))
	case len(names) > 1:
		return nil, fmt.Errorf("there are several Controllers%s: choose one with --controller: %s", inNamespace(c.namespace), strings.Join(names, ", "))
	}
	return &list.Items[0], nil
}

// awaitToken waits until the operator has set the condition of a Token that was just made.
func awaitToken(ctx context.Context, c *connection, token *slinkyv1beta1.Token, timeout time.Duration) (*slinkyv1beta1.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var list slinkyv1beta1.TokenList
	w, err := c.Watch(ctx, &list, client.InNamespace(token.Namespace), client.MatchingFields{"metadata.name": token.Name},
		&client.ListOptions{Raw: rawFrom(token.ResourceVersion)})
	if err != nil {
		return nil, fmt.Errorf("watching Token %s/%s: %w", token.Namespace, token.Name, err)
	}
	defer w.Stop()
	last := "the operator has not handled it yet"
	for event := range w.ResultChan() {
		seen, ok := event.Object.(*slinkyv1beta1.Token)
		switch {
		case event.Type == watch.Error:
			return nil, fmt.Errorf("watching Token %s/%s: %w", token.Namespace, token.Name, apierrors.FromObject(event.Object))
		case event.Type == watch.Deleted:
			return nil, fmt.Errorf("somebody has deleted Token %s/%s", token.Namespace, token.Name)
		case !ok:
			continue
		}
		if stalled := meta.FindStatusCondition(seen.Status.Conditions, slinkyv1beta1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
			return nil, fmt.Errorf("the operator refuses a token for %s (%s): %s", token.User(), stalled.Reason, stalled.Message)
		}
		ready := readiness(seen.Generation, seen.Status.Conditions)
		if ready.Status == metav1.ConditionTrue {
			return seen, nil
		}
		last = ready.Message
	}
	return nil, fmt.Errorf("no token for %s after %s: %s. Check whether the operator runs, or use --exec, which does not need it", token.User(), timeout, last)
}
