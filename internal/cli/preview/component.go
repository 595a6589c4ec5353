// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile/reference"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/jwt"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/login"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// generated returns a Secret whose values the operator generates when it is not there.
func generated(namespace string, s render.Secret) *corev1.Secret {
	out := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: namespace, Labels: s.Labels, Annotations: s.Annotations}, Data: map[string][]byte{}}
	for _, key := range []string{s.Key, s.Set} {
		if key != "" {
			out.Data[key] = nil
		}
	}
	return out
}

// get reads an object, and reports whether it is there.
func (m *maker) get(ctx context.Context, namespace, name string, into client.Object) (bool, error) {
	err := m.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s/%s: %w", into, namespace, name, err)
	}
	return true, nil
}

// controllerOf returns the Controller that a component refers to. Without it the operator makes nothing.
func (m *maker) controllerOf(ctx context.Context, of client.Object, ref slinkyv1beta1.ObjectReference) (*slinkyv1beta1.Controller, error) {
	c := &slinkyv1beta1.Controller{}
	found, err := m.get(ctx, of.GetNamespace(), ref.Name, c)
	if err != nil {
		return nil, err
	}
	if !found {
		m.note(of, "the operator makes nothing from it until Controller %s exists", ref.Name)
		return nil, nil
	}
	return c, nil
}

// value returns what a ConfigMap has under a key, empty when it has none.
func (m *maker) value(ctx context.Context, of client.Object, ref *corev1.ConfigMapKeySelector) (string, error) {
	if ref == nil {
		return "", nil
	}
	config := &corev1.ConfigMap{}
	found, err := m.get(ctx, of.GetNamespace(), ref.Name, config)
	if err == nil && !found {
		m.note(of, "ConfigMap %s was not found and is treated as empty", ref.Name)
	}
	return config.Data[ref.Key], err
}

// slurmctld makes the objects of a Controller, and remembers its slurm.conf.
func (m *maker) slurmctld(ctx context.Context, c *slinkyv1beta1.Controller) error {
	in := slurmctld.Input{Controller: c, Images: m.images, ClusterDomain: m.ClusterDomain, SlurmKeyDigest: Unknown, JwtKeyDigest: Unknown, MungeKeyDigest: Unknown, SSSDDigest: Unknown}
	if ref := c.Spec.AccountingRef; ref != nil {
		accounting := &slinkyv1beta1.Accounting{}
		found, err := m.get(ctx, c.Namespace, ref.Name, accounting)
		switch {
		case err != nil:
			return err
		case !found:
			m.note(c, "the operator makes nothing from it until Accounting %s exists", ref.Name)
			return nil
		}
		in.Accounting = accounting
	}
	for _, o := range m.Objects {
		if set, ok := o.(*slinkyv1beta1.NodeSet); ok && set.Namespace == c.Namespace && set.Spec.ControllerRef.Name == c.Name {
			in.NodeSets = append(in.NodeSets, *set)
		}
	}
	if err := m.files(ctx, c, &in.Files); err != nil {
		return err
	}
	config := &corev1.ConfigMap{}
	if found, err := m.get(ctx, c.Namespace, c.ConfigName(), config); err != nil {
		return err
	} else if found {
		in.Live = slurmctld.ReadLive(config.Data)
		in.MaxNodeCount = slurmctld.TableOfNodes(in.Live)
	}
	out := slurmctld.Render(in)
	if waits := out.EditWaits; waits.Any() {
		m.out.Waits = append(m.out.Waits, Waits{Namespace: c.Namespace, Controller: c.Name, EditWaits: waits})
	}
	for _, doubt := range out.Doubts {
		m.note(c, "%s", doubt.Error())
	}
	out.Secrets = reference.GeneratedKeys(c)
	if slurmctld.WantsServiceMonitor(c) {
		out.Add(slurmctld.ServiceMonitor(c))
	}
	for _, o := range out.Objects {
		if config, ok := o.(*corev1.ConfigMap); ok && config.Name == c.ConfigName() {
			m.connections[client.ObjectKeyFromObject(c)] = config.Data["slurm.conf"]
		}
	}
	return m.take(c, out.Output)
}

// files reads the ConfigMaps of the reference lists of a Controller.
func (m *maker) files(ctx context.Context, c *slinkyv1beta1.Controller, files *slurmctld.Files) error {
	for _, list := range []struct {
		refs []slinkyv1beta1.ObjectReference
		to   *[]slurmctld.File
	}{
		{c.Spec.ConfigFileRefs, &files.Config},
		{c.Spec.PrologScriptRefs, &files.Prolog},
		{c.Spec.EpilogScriptRefs, &files.Epilog},
		{c.Spec.PrologSlurmctldScriptRefs, &files.PrologSlurmctld},
		{c.Spec.EpilogSlurmctldScriptRefs, &files.EpilogSlurmctld},
	} {
		for _, ref := range list.refs {
			config := &corev1.ConfigMap{}
			found, err := m.get(ctx, c.Namespace, ref.Name, config)
			if err != nil {
				return err
			}
			if !found {
				m.note(c, "ConfigMap %s was not found; its files are left out", ref.Name)
			}
			for name, content := range config.Data {
				*list.to = append(*list.to, slurmctld.File{ConfigMap: ref.Name, Name: name, Content: content})
			}
			for name, content := range config.BinaryData {
				*list.to = append(*list.to, slurmctld.File{ConfigMap: ref.Name, Name: name, Content: string(content)})
			}
		}
	}
	return nil
}

func (m *maker) slurmdbd(a *slinkyv1beta1.Accounting) error {
	out := slurmdbd.Render(slurmdbd.Input{
		Accounting: a, Images: m.images, Password: Hidden, SealingKey: []byte(Unknown), SlurmKeyDigest: Unknown, JwtKeyDigest: Unknown,
		MungeKeyDigest: Unknown, TLSDigest: Unknown,
	})
	if !a.Spec.External {
		out.Secrets = reference.GeneratedKeys(a)
		if ref := a.DatabasePasswordRef(); ref != nil && a.Spec.EmbeddedDatabase != nil && a.Spec.EmbeddedDatabase.PasswordKeyRef == nil {
			out.Ensure(true, render.Secret{Name: ref.Name, Key: ref.Key})
		}
	}
	return m.take(a, out)
}

func (m *maker) slurmrestd(ctx context.Context, r *slinkyv1beta1.RestApi) error {
	c, err := m.controllerOf(ctx, r, r.Spec.ControllerRef)
	if err != nil || c == nil {
		return err
	}
	var logins []slinkyv1beta1.LoginSet
	for _, o := range m.Objects {
		if l, ok := o.(*slinkyv1beta1.LoginSet); ok && l.Namespace == c.Namespace && l.Spec.ControllerRef.Name == c.Name {
			logins = append(logins, *l)
		}
	}
	return m.take(r, slurmrestd.Render(slurmrestd.Input{
		RestAPI: r, Controller: c, LoginSets: logins, Images: m.images, SlurmKeyDigest: Unknown, SSSDDigest: Unknown, OperatorNamespace: Unknown,
		ConnectionDigest: slurmrestd.ConnectionDigest(m.connections[client.ObjectKeyFromObject(c)]),
	}))
}

// hostKeys stands for the names of host keys.
const hostKeys = "ssh_host_*"

func (m *maker) login(ctx context.Context, l *slinkyv1beta1.LoginSet) error {
	c, err := m.controllerOf(ctx, l, l.Spec.ControllerRef)
	if err != nil || c == nil {
		return err
	}
	in := login.Input{
		LoginSet: l, Controller: c, Images: m.images, ClusterDomain: m.ClusterDomain, SlurmKeyDigest: Unknown, HostKeysDigest: Unknown, MungeKeyDigest: Unknown,
	}
	if l.Spec.SssdConfRef != nil {
		in.SssdDigest = Unknown
	}
	if in.SshdConfig, err = m.value(ctx, l, l.Spec.SshdConfigRef); err != nil {
		return err
	}
	out := login.Render(in)
	out.Ensure(true, render.Secret{Name: l.SSHHostKeysName(), Key: hostKeys})
	return m.take(l, out)
}

// workers makes the first worker of a NodeSet, and what all of them share.
func (m *maker) workers(ctx context.Context, n *slinkyv1beta1.NodeSet) error {
	c, err := m.controllerOf(ctx, n, n.Spec.ControllerRef)
	if err != nil || c == nil {
		return err
	}
	in := slurmd.Input{NodeSet: n, Controller: c, Images: m.images, ClusterDomain: m.ClusterDomain, Protected: n.DisruptionProtection()}
	if n.Spec.SSH.Enabled {
		if in.SshdConfig, err = m.value(ctx, n, n.Spec.SSH.SshdConfigRef); err != nil {
			return err
		}
		if ref := n.Spec.SSH.SssdConfRef; ref != nil && ref.Name != "" {
			in.SssdDigest = Unknown
		}
	}
	var out render.Output
	slurmd.Ignore(n, &out)
	out.Fail("spec", slurmd.Check(in))
	out.Add(slurmd.Service(n))
	if n.DisruptionProtection() {
		out.Add(slurmd.DisruptionBudget(n))
	}
	if n.Spec.SSH.Enabled {
		out.Add(slurmd.SSHConfig(in))
		keys, used := slurmd.HostKeys(in)
		keys.Key = hostKeys
		out.Ensure(used, keys)
	}
	place := m.place(n)
	if place == nil || len(out.Problems) > 0 {
		return m.take(n, out)
	}
	claims, err := slurmd.Claims(n, *place)
	out.Fail("spec", err)
	for _, claim := range claims {
		out.Add(claim)
	}
	data, err := slurmd.RevisionData(in)
	out.Fail("spec", err)
	hash := slurmd.RevisionHash(data, 0)
	worker, err := slurmd.Pod(in, *place, hash)
	out.Fail("spec", err)
	out.Add(slurmd.ControllerRevision(n, data, hash, 1), worker)
	return m.take(n, out)
}

// place returns where the worker is that stands for all; nil when there is none.
func (m *maker) place(n *slinkyv1beta1.NodeSet) *workerpod.Place {
	if n.ScalingMode() == slinkyv1beta1.ScalingModeDaemonSet {
		m.note(n, "one worker is shown, on a Kubernetes node called %s; each matching node gets one", Unknown)
		return &workerpod.Place{Node: Unknown, Hostname: Unknown}
	}
	switch replicas := n.Replicas(); {
	case replicas == 0:
		m.note(n, "it has no workers")
		return nil
	case replicas > 1:
		m.note(n, "one of %d workers is shown", replicas)
	}
	return &workerpod.Place{}
}

// token makes the Secret of a Token, of which only the name is known.
func (m *maker) token(t *slinkyv1beta1.Token) error {
	var out render.Output
	out.IgnoreOptional(t.Spec)
	ref := t.TokenRef()
	secret := generated(t.Namespace, render.Secret{Name: ref.Name, Key: ref.Key, Labels: jwt.Labels(t).Labels(t.Labels), Annotations: label.Merge(t.Annotations)})
	secret.Immutable = new(!t.Refreshes())
	out.Add(secret)
	return m.take(t, out)
}
