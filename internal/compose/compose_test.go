// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// definitions are the CRDs of both groups.
type definitions struct {
	nebius, slinky map[string]*crdcheck.CRD
}

func load(t testing.TB) definitions {
	t.Helper()
	return definitions{nebius: crdcheck.Load(t, "slurm.nebius.ai"), slinky: crdcheck.Load(t, "slinky.slurm.net")}
}

// input reads objects as the API server does: it fills in defaults, and refuses what it would refuse.
func (d definitions) input(t testing.TB, text string) Input {
	t.Helper()
	in := Input{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := crdcheck.Parse(t, document)
		kind, _ := object["kind"].(string)
		crd := d.nebius[kind]
		if crd == nil {
			continue
		}
		if errs := crd.Create(t.Context(), object); len(errs) > 0 {
			t.Fatalf("the API server refuses the %s: %v", kind, errs.ToAggregate())
		}
		if kind == "SlurmCluster" {
			in.Cluster = &nebiusv1.SlurmCluster{}
			crdcheck.Decode(t, object, in.Cluster)
			in.Cluster.Namespace = "slurm"
			jailIsFilled(in.Cluster)
			continue
		}
		set := nebiusv1alpha1.NodeSet{}
		delete(object, "status")
		crdcheck.Decode(t, object, &set)
		set.Namespace = "slurm"
		in.NodeSets = append(in.NodeSets, set)
	}
	return in
}

// jailIsFilled lets everything be composed that waits for the jail.
func jailIsFilled(c *nebiusv1.SlurmCluster) {
	c.Status.Conditions = []metav1.Condition{{Type: nebiusv1.ConditionJailPopulated, Status: metav1.ConditionTrue}}
}

// cluster is input for a SlurmCluster called demo with this spec.
func (d definitions) cluster(t testing.TB, spec string, nodeSets ...string) Input {
	t.Helper()
	documents := []string{"apiVersion: slurm.nebius.ai/v1\nkind: SlurmCluster\nmetadata: {name: demo}\nspec: " + spec}
	for _, set := range nodeSets {
		name, spec, _ := strings.Cut(set, " ")
		documents = append(documents, "apiVersion: slurm.nebius.ai/v1alpha1\nkind: NodeSet\nmetadata: {name: "+name+"}\nspec: "+spec)
	}
	return d.input(t, strings.Join(documents, "\n---\n"))
}

// file reads testdata/<name>.yaml.
func (d definitions) file(t testing.TB, name string) Input {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return d.input(t, string(text))
}

func statefulSetOf(t testing.TB, objects []render.Object) *appsv1.StatefulSet {
	t.Helper()
	for _, o := range objects {
		if s, ok := o.(*appsv1.StatefulSet); ok {
			return s
		}
	}
	t.Fatal("there is no StatefulSet")
	return nil
}

// kindOf is the kind of a composed object.
func kindOf(t testing.TB, object render.Object) (apiVersion, kind string) {
	t.Helper()
	switch object.(type) {
	case *corev1.ConfigMap:
		return "v1", "ConfigMap"
	case *corev1.Service:
		return "v1", "Service"
	case *corev1.ServiceAccount:
		return "v1", "ServiceAccount"
	case *rbacv1.Role:
		return "rbac.authorization.k8s.io/v1", "Role"
	case *rbacv1.RoleBinding:
		return "rbac.authorization.k8s.io/v1", "RoleBinding"
	case *batchv1.Job:
		return "batch/v1", "Job"
	case *appsv1.Deployment:
		return "apps/v1", "Deployment"
	case *nebiusv1alpha1.JailedConfig:
		return "slurm.nebius.ai/v1alpha1", "JailedConfig"
	case *slinkyv1beta1.Controller:
		kind = "Controller"
	case *slinkyv1beta1.Accounting:
		kind = "Accounting"
	case *slinkyv1beta1.RestApi:
		kind = "RestApi"
	case *slinkyv1beta1.LoginSet:
		kind = "LoginSet"
	case *slinkyv1beta1.NodeSet:
		kind = "NodeSet"
	case *slinkyv1beta1.Token:
		kind = "Token"
	case *unstructured.Unstructured:
		gvk := object.GetObjectKind().GroupVersionKind()
		return gvk.GroupVersion().String(), gvk.Kind
	default:
		t.Fatalf("unexpected %T", object)
	}
	return slinkyv1beta1.GroupVersion.String(), kind
}

// plainObject is a composed object as it is sent: without status and empty metadata.
func plainObject(t testing.TB, object render.Object) map[string]any {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out := crdcheck.Parse(t, string(raw))
	out["apiVersion"], out["kind"] = kindOf(t, object)
	delete(out, "status")
	return out
}

// expectValid fails the test when the API server would refuse a composed object.
func (d definitions) expectValid(t *testing.T, objects []render.Object) {
	t.Helper()
	for _, object := range objects {
		fields := plainObject(t, object)
		kinds := d.slinky
		if fields["apiVersion"] == "slurm.nebius.ai/v1alpha1" {
			kinds = d.nebius
		}
		if crd := kinds[fields["kind"].(string)]; crd != nil {
			if errs := crd.Create(t.Context(), fields); len(errs) > 0 {
				t.Errorf("the API server refuses %s %s: %v", fields["kind"], object.GetName(), errs.ToAggregate())
			}
		}
	}
}

func TestComposedObjects(t *testing.T) {
	d := load(t)
	for _, name := range []string{"minimal", "full", "nodesets"} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(d.file(t, name))
			if len(out.Problems) > 0 {
				t.Errorf("problems: %s", out.Problems.Message())
			}
			var b bytes.Buffer
			for _, path := range out.Ignored {
				b.WriteString("# without effect: " + path + "\n")
			}
			for _, sentence := range out.Unresolved {
				b.WriteString("# unresolved: " + sentence + "\n")
			}
			for _, object := range out.Objects {
				document, err := yaml.Marshal(plainObject(t, object))
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("---\n")
				b.Write(document)
			}
			golden.Check(t, name+".golden.yaml", b.Bytes())
			d.expectValid(t, out.Objects)
		})
	}
}

// TestSamples holds config/samples against the API, and against composing.
func TestSamples(t *testing.T) {
	d := load(t)
	for _, name := range []string{"slurmcluster.yaml", "slurmcluster-minimal.yaml"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", name))
			if err != nil {
				t.Fatal(err)
			}
			in := d.input(t, string(text))
			out := Cluster(in)
			if len(out.Problems) > 0 || len(out.Ignored) > 0 {
				t.Errorf("problems: %s; without effect: %v", out.Problems.Message(), out.Ignored)
			}
			d.expectValid(t, out.Objects)
			expectRenderable(t, in.Cluster, out)
		})
	}
}

func TestAnExternalDatabaseWithoutAUserIsThatOfSlurm(t *testing.T) {
	d := load(t)
	for user, want := range map[string]string{"": "slurm", "user: me,": "me"} {
		out := Cluster(d.cluster(t, `{slurmNodes: {accounting: {enabled: true, externalDB: {enabled: true, host: db, port: 0, `+user+` passwordSecretKeyRef: {name: s, key: k}}}}}`))
		if len(out.Problems) > 0 {
			t.Fatal(out.Problems.Message())
		}
		storage, ok := out.Components.Accounting.Database()
		if !ok || storage.Username != want || storage.Port != 3306 {
			t.Errorf("with %q the database is %v, want user %q and port 3306", user, storage, want)
		}
	}
}

func TestATemplateInTheSpoolOfANodeSetIsAClaimPerWorker(t *testing.T) {
	d := load(t)
	out := Cluster(d.cluster(t, "{}", `a {slurmd: {volumes: {spool: {volumeClaimTemplateSpec: {accessModes: [ReadWriteOnce], storageClassName: ssd}}}}}`))
	if len(out.Problems)+len(out.Held) > 0 {
		t.Fatalf("%s %v", out.Problems.Message(), out.Held)
	}
	set := out.Components.NodeSets[len(out.Components.NodeSets)-1]
	if len(set.Spec.VolumeClaimTemplates) != 1 {
		t.Fatalf("%d templates of claims, want 1", len(set.Spec.VolumeClaimTemplates))
	}
	claim, err := set.Spec.VolumeClaimTemplates[0].Decode()
	if err != nil {
		t.Fatal(err)
	}
	slurmd, err := set.Spec.Slurmd.Decode()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(slurmd.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == claim.Name })
	if i < 0 || slurmd.VolumeMounts[i].MountPath != spoolDir || *claim.Spec.StorageClassName != "ssd" {
		t.Errorf("claim %v, mounts %v: want the claim at %s", claim, slurmd.VolumeMounts, spoolDir)
	}
}
