// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/nodeset/nodesetplan"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/login"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
)

// lookup finds mistakes in objects, by rendering them and by what they refer to.
type lookup struct {
	live    client.Reader
	release string
	// nodeSets are the NodeSets of slinky.slurm.net in the namespace of the object, listed at the first call.
	nodeSets func() ([]slinkyv1beta1.NodeSet, error)
}

func newLookup(ctx context.Context, live client.Reader, namespace, release string) lookup {
	return lookup{live: live, release: release, nodeSets: sync.OnceValues(func() ([]slinkyv1beta1.NodeSet, error) {
		var list slinkyv1beta1.NodeSetList
		if err := live.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the NodeSets of namespace %s: %w", namespace, err)
		}
		return list.Items, nil
	})}
}

// What is rendered here is thrown away, so any image and any domain will do.
func images() image.Set { return image.Set{Registry: "any", Tag: "any"} }

const anyDomain = "cluster.local"

// anyController stands for the Controller that a component refers to, which need not exist yet. Nothing in a component is
// right with one Controller and wrong with another.
func anyController(obj client.Object, ref slinkyv1beta1.ObjectReference) *slinkyv1beta1.Controller {
	return &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: ref.Name}}
}

// ownNamespace records a reference into another namespace.
func (f *Findings) ownNamespace(ref slinkyv1beta1.ObjectReference, namespace, path string) {
	if err := ref.InNamespace(namespace); err != nil {
		f.Mistakes = append(f.Mistakes, problem.Errorf(path+".namespace", slinkyv1beta1.ReasonReferenceRefused, "%v", err))
	}
}

func (l lookup) controller(ctx context.Context, c *slinkyv1beta1.Controller) (Findings, error) {
	var f Findings
	if ref := c.Spec.AccountingRef; ref != nil {
		f.ownNamespace(*ref, c.Namespace, "spec.accountingRef")
	}
	if name := c.Spec.ClusterName; strings.ToLower(name) != name {
		f.Warnings = append(f.Warnings, fmt.Sprintf("spec.clusterName: Slurm writes names of clusters in lower case; this one becomes %q", strings.ToLower(name)))
	}
	if err := slurmctld.CheckClusterName(c); err != nil && c.Spec.AccountingRef == nil {
		f.Warnings = append(f.Warnings, err.Error())
	}
	in := slurmctld.Input{Controller: c, ClusterDomain: anyDomain, Images: images(), Release: l.release}
	err := errors.Join(l.files(ctx, c, &in.Files, &f), l.sharedClaim(ctx, c, &f))
	out := slurmctld.Render(in)
	f.add(out.Output)
	for _, doubt := range out.Doubts {
		f.Warnings = append(f.Warnings, doubt.Error())
	}
	return f, err
}

// files reads the ConfigMaps of the reference lists.
func (l lookup) files(ctx context.Context, c *slinkyv1beta1.Controller, files *slurmctld.Files, f *Findings) error {
	var errs []error
	read := func(refs []slinkyv1beta1.ObjectReference, field string, to *[]slurmctld.File) {
		for i, ref := range refs {
			path := fmt.Sprintf("spec.%s[%d]", field, i)
			f.ownNamespace(ref, c.Namespace, path)
			cm := &corev1.ConfigMap{}
			found, err := l.get(ctx, c.Namespace, ref.Name, cm)
			errs = append(errs, err)
			if err == nil && !found {
				f.Warnings = append(f.Warnings, fmt.Sprintf("%s: ConfigMap %s does not exist yet", path, ref.Name))
			}
			for name, content := range cm.Data {
				*to = append(*to, slurmctld.File{ConfigMap: ref.Name, Name: name, Content: content})
			}
			for name, content := range cm.BinaryData {
				*to = append(*to, slurmctld.File{ConfigMap: ref.Name, Name: name, Content: string(content)})
			}
		}
	}
	read(c.Spec.ConfigFileRefs, "configFileRefs", &files.Config)
	f.unknownFiles(files.Config)
	read(c.Spec.PrologScriptRefs, "prologScriptRefs", &files.Prolog)
	read(c.Spec.EpilogScriptRefs, "epilogScriptRefs", &files.Epilog)
	read(c.Spec.PrologSlurmctldScriptRefs, "prologSlurmctldScriptRefs", &files.PrologSlurmctld)
	read(c.Spec.EpilogSlurmctldScriptRefs, "epilogSlurmctldScriptRefs", &files.EpilogSlurmctld)
	return errors.Join(errs...)
}

// knownFiles are the files that Slurm reads by name, beside slurm.conf:
// docs/contributors/predecessors/slinky-installation.md#names-of-configuration-files, and resources.yaml.
const knownFiles = `acct_gather.conf burst_buffer.conf cgroup.conf cli_filter.lua gres.conf helpers.conf job_container.conf
	job_submit.lua knl.conf mpi.conf namespace.yaml oci.conf plugstack.conf resources.yaml topology.conf topology.yaml`

// unknownFiles warns of names that may be misspelt. They may also be included by another file.
func (f *Findings) unknownFiles(files []slurmctld.File) {
	known := strings.Fields(knownFiles)
	var names []string
	for _, file := range files {
		if !slices.Contains(known, file.Name) && file.Name != "slurm.conf" && file.Name != "slurmdbd.conf" {
			names = append(names, file.Name)
		}
	}
	if slices.Sort(names); len(names) > 0 {
		f.Warnings = append(f.Warnings, "spec.configFileRefs: Slurm reads no file of this name, unless another one includes it: "+strings.Join(slices.Compact(names), ", "))
	}
}

// sharedClaim looks whether the claim of several slurmctlds can be used by all of them.
func (l lookup) sharedClaim(ctx context.Context, c *slinkyv1beta1.Controller, f *Findings) error {
	if c.Spec.HA == nil || !c.Spec.HA.Enabled || c.Spec.Persistence == nil || c.Spec.Persistence.ExistingClaim == "" {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	found, err := l.get(ctx, c.Namespace, c.Spec.Persistence.ExistingClaim, claim)
	switch {
	case err != nil:
		return err
	case !found:
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s: PersistentVolumeClaim %s does not exist yet", slurmctld.ExistingClaimPath, c.Spec.Persistence.ExistingClaim))
		return nil
	}
	problems, err := problem.FromError(slurmctld.CheckSharedClaim(claim))
	f.Mistakes = append(f.Mistakes, problems...)
	return err
}

// get reads an object of a namespace and reports whether it is there.
func (l lookup) get(ctx context.Context, namespace, name string, obj client.Object) (bool, error) {
	err := l.live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s/%s: %w", obj, namespace, name, err)
	}
	return true, nil
}

func (l lookup) nodeSet(ctx context.Context, n *slinkyv1beta1.NodeSet) (Findings, error) {
	var f Findings
	f.ownNamespace(n.Spec.ControllerRef, n.Namespace, "spec.controllerRef")
	var out render.Output
	slurmd.Ignore(n, &out)
	out.Fail("spec", slurmd.Check(slurmd.Input{
		NodeSet: n, Controller: anyController(n, n.Spec.ControllerRef), ClusterDomain: anyDomain, Images: images(),
	}))
	f.add(out)
	err := l.namesakes(ctx, n, hostnamePath, nodesetplan.RenameWorkers(n), &f)
	return f, err
}

func (lookup) loginSet(_ context.Context, l *slinkyv1beta1.LoginSet) (Findings, error) {
	var f Findings
	f.ownNamespace(l.Spec.ControllerRef, l.Namespace, "spec.controllerRef")
	f.add(login.Render(login.Input{
		LoginSet: l, Controller: anyController(l, l.Spec.ControllerRef), ClusterDomain: anyDomain, Images: images(),
	}))
	return f, nil
}

func (lookup) accounting(_ context.Context, a *slinkyv1beta1.Accounting) (Findings, error) {
	var f Findings
	f.add(slurmdbd.Render(slurmdbd.Input{Accounting: a, Password: "any", SealingKey: []byte("any"), Images: images()}))
	return f, nil
}

func (lookup) restAPI(_ context.Context, r *slinkyv1beta1.RestApi) (Findings, error) {
	var f Findings
	f.ownNamespace(r.Spec.ControllerRef, r.Namespace, "spec.controllerRef")
	f.add(slurmrestd.Render(slurmrestd.Input{RestAPI: r, Controller: anyController(r, r.Spec.ControllerRef), Images: images()}))
	return f, nil
}

func (lookup) token(_ context.Context, t *slinkyv1beta1.Token) (Findings, error) {
	var f Findings
	var out render.Output
	out.IgnoreOptional(t.Spec)
	f.add(out)
	if ref := t.Spec.JwtHs256KeyRef; ref != nil { //nolint:staticcheck // deprecated, and still read
		if err := ref.InNamespace(t.Namespace); err != nil {
			f.Mistakes = append(f.Mistakes, problem.Errorf("spec.jwtHs256KeyRef.namespace", slinkyv1beta1.ReasonReferenceRefused, "%v", err))
		}
	}
	return f, nil
}
