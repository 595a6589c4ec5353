// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/login"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// TestAnUpgradeOfTheOperatorRestartsNoPods compares digests of the pods of fixed objects with those that the operator made
// of them before. For StatefulSets and Deployments it is the pod template that decides over a restart, for workers their
// revision.
func TestAnUpgradeOfTheOperatorRestartsNoPods(t *testing.T) {
	var b strings.Builder
	data, err := os.ReadFile(filepath.Join("testdata", "upgrade", "components.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&b, "# Component objects\n%s", pods(t, components(t, string(data))))
	for _, sample := range []string{"slurmcluster-minimal.yaml", "slurmcluster.yaml"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", sample))
		if err != nil {
			t.Fatal(err)
		}
		out := Cluster(load(t).input(t, string(text)))
		if len(out.Problems) > 0 {
			t.Fatalf("%s has problems: %v", sample, out.Problems)
		}
		fmt.Fprintf(&b, "# config/samples/%s\n%s", sample, pods(t, out.Objects))
	}
	golden.Check(t, filepath.Join("upgrade", "pods.txt"), []byte(b.String()))
	if t.Failed() {
		t.Log("An upgrade to this version of the operator would restart the pods of these lines in everybody's clusters: " +
			"slurmctld is away for seconds, ssh sessions end, workers are drained. The golden files of internal/render show what changed in them. " +
			"If it cannot be avoided, write it into docs/administrators/operations.md (Upgrade the operator) and accept it with " +
			"'go test ./internal/compose -run Upgrade -update'.")
	}
}

// components reads objects as the API server does, with the defaults of their CRDs.
func components(t *testing.T, text string) []render.Object {
	t.Helper()
	crds := load(t).slinky
	var out []render.Object
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := crdcheck.Parse(t, document)
		kind, _ := object["kind"].(string)
		object["apiVersion"] = slinkyv1beta1.GroupVersion.String()
		if errs := crds[kind].Create(t.Context(), object); len(errs) > 0 {
			t.Fatalf("the API server refuses the %s: %v", kind, errs.ToAggregate())
		}
		into := map[string]render.Object{
			"Accounting": &slinkyv1beta1.Accounting{}, "Controller": &slinkyv1beta1.Controller{}, "RestApi": &slinkyv1beta1.RestApi{},
			"LoginSet": &slinkyv1beta1.LoginSet{}, "NodeSet": &slinkyv1beta1.NodeSet{},
		}[kind]
		delete(object, "status")
		crdcheck.Decode(t, object, into)
		into.SetNamespace("slurm")
		out = append(out, into)
	}
	return out
}

// pods renders component objects together and returns a line for each kind of pod among them.
func pods(t *testing.T, objects []render.Object) string {
	t.Helper()
	images := image.Set{Registry: "example.com/coxswain", Tag: "26.05"}
	controllers, accountings := map[string]*slinkyv1beta1.Controller{}, map[string]*slinkyv1beta1.Accounting{}
	var sets []slinkyv1beta1.NodeSet
	logins := map[string][]slinkyv1beta1.LoginSet{}
	for _, o := range objects {
		switch o := o.(type) {
		case *slinkyv1beta1.Controller:
			controllers[o.Name] = o
		case *slinkyv1beta1.Accounting:
			accountings[o.Name] = o
		case *slinkyv1beta1.NodeSet:
			sets = append(sets, *o)
		case *slinkyv1beta1.LoginSet:
			logins[o.Spec.ControllerRef.Name] = append(logins[o.Spec.ControllerRef.Name], *o)
		}
	}
	var lines []string
	add := func(out render.Output) {
		if len(out.Problems) > 0 {
			t.Fatalf("a sample has problems: %v", out.Problems)
		}
		for _, o := range out.Objects {
			switch o := o.(type) {
			case *appsv1.StatefulSet:
				lines = append(lines, "StatefulSet "+o.Name+" "+digest(t, o.Spec.Template))
			case *appsv1.Deployment:
				lines = append(lines, "Deployment "+o.Name+" "+digest(t, o.Spec.Template))
			}
		}
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *slinkyv1beta1.Accounting:
			add(slurmdbd.Render(slurmdbd.Input{Accounting: o, SlurmKeyDigest: "a", JwtKeyDigest: "b", Password: "c", SealingKey: []byte("d"), Images: images}))
		case *slinkyv1beta1.Controller:
			in := slurmctld.Input{Controller: o, SlurmKeyDigest: "a", JwtKeyDigest: "b", ClusterDomain: "cluster.local", Images: images}
			if o.Spec.AccountingRef != nil {
				in.Accounting = accountings[o.Spec.AccountingRef.Name]
			}
			for i := range sets {
				if sets[i].Spec.ControllerRef.Name == o.Name {
					in.NodeSets = append(in.NodeSets, sets[i])
				}
			}
			add(slurmctld.Render(in).Output)
		case *slinkyv1beta1.RestApi:
			c := o.Spec.ControllerRef.Name
			add(slurmrestd.Render(slurmrestd.Input{RestAPI: o, Controller: controllers[c], LoginSets: logins[c], SlurmKeyDigest: "a", Images: images}))
		case *slinkyv1beta1.LoginSet:
			add(login.Render(login.Input{
				LoginSet: o, Controller: controllers[o.Spec.ControllerRef.Name], SlurmKeyDigest: "a", HostKeysDigest: "b", SssdDigest: "c", ClusterDomain: "cluster.local", Images: images,
			}))
		case *slinkyv1beta1.NodeSet:
			data, err := slurmd.RevisionData(slurmd.Input{NodeSet: o, Controller: controllers[o.Spec.ControllerRef.Name], ClusterDomain: "cluster.local", Images: images})
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, "NodeSet "+o.Name+" "+slurmd.RevisionHash(data, 0))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// digest is a short digest of a template as JSON, whose keys are in one order.
func digest(t *testing.T, template any) string {
	t.Helper()
	data, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	return label.Digest(map[string][]byte{"template": data})[:16]
}
