// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

func TestImagesOfSoperatorAreKnown(t *testing.T) {
	for reference, want := range map[string]bool{
		"cr.eu-north1.nebius.cloud/soperator/login_sshd:1.22.1-noble-slurm25.05.4": true,
		"cr.eu-north1.nebius.cloud/soperator/worker_slurmd":                        true,
		"mirror.example.com:5000/controller_slurmctld@sha256:0000":                 true,
		"mirror.example.com/a/controller_slurmdbd:latest@sha256:0000":              true,
		"populate_jail": true,
		"ghcr.io/x/slurmrestd:1.22.1-noble-slurm25.05.4":     true,
		"ghcr.io/x/slurmrestd:5.0.0-slurm26.05.3-nebius-2":   true,
		"ghcr.io/coxswain-hpc/slurmrestd:26.05":              false,
		"ghcr.io/slinkyproject/slurmrestd:26.05-ubuntu24.04": false,
		"example.com/worker_slurmd/slurmd:1":                 false,
		"example.com:5000":                                   false,
		"":                                                   false,
	} {
		if got := isSoperators(reference); got != want {
			t.Errorf("%q: %v, want %v", reference, got, want)
		}
	}
}

func FuzzIsSoperators(f *testing.F) {
	f.Add("cr.eu-north1.nebius.cloud/soperator/login_sshd:1.22.1-noble-slurm25.05.4@sha256:00")
	f.Fuzz(func(t *testing.T, reference string) {
		if here, mirrored := isSoperators(reference), isSoperators("mirror.example.com:5000/"+reference); here != mirrored {
			t.Errorf("%q: %v, and in another registry %v", reference, here, mirrored)
		}
	})
}

// TestImagesOfSoperatorAreReplaced names them in every role.
func TestImagesOfSoperatorAreReplaced(t *testing.T) {
	const registry = "cr.eu-north1.nebius.cloud/soperator/"
	compose := func(keep bool) Output {
		cluster := &nebiusv1.SlurmCluster{}
		cluster.Name = "demo"
		cluster.Spec.VolumeSources = []nebiusv1.VolumeSource{{Name: "jail", VolumeSource: embedded.VolumeSource{RawExtension: embedded.From(map[string]any{"emptyDir": map[string]any{}})}}}
		jailIsFilled(cluster)
		cluster.Spec.SConfigController.Container.Image = registry + "sconfigcontroller:1"
		cluster.Spec.PopulateJail.Image = registry + "populate_jail:1"
		nodes := &cluster.Spec.SlurmNodes
		nodes.Controller.Slurmctld.Image = registry + "controller_slurmctld:1"
		nodes.Login.SSHD.Image = registry + "login_sshd:1"
		nodes.Accounting.Enabled, nodes.Accounting.EmbeddedDB = true, &nebiusv1.EmbeddedDB{Enabled: true}
		nodes.Accounting.Slurmdbd.Image = registry + "controller_slurmdbd:1"
		nodes.REST.REST.Image = registry + "slurmrestd:1.22.1-noble-slurm25.05.4"
		set := nebiusv1alpha1.NodeSet{}
		set.Name = "big"
		set.Spec.Slurmd.Image = nebiusv1alpha1.Image{Repository: registry + "worker_slurmd", Tag: "1"}
		return Cluster(Input{
			Cluster: cluster, NodeSets: []nebiusv1alpha1.NodeSet{set},
			Images: image.Set{Registry: "ours", Tag: "2", KeepSoperators: keep},
		})
	}
	out := compose(false)
	want := []string{
		"NodeSet big spec.slurmd.image: " + registry + "worker_slurmd:1",
		"spec.slurmNodes.accounting.slurmdbd.image: " + registry + "controller_slurmdbd:1",
		"spec.slurmNodes.controller.slurmctld.image: " + registry + "controller_slurmctld:1",
		"spec.slurmNodes.rest.rest.image: " + registry + "slurmrestd:1.22.1-noble-slurm25.05.4",
		"spec.slurmNodes.login.sshd.image: " + registry + "login_sshd:1",
		"spec.populateJail.image: " + registry + "populate_jail:1",
		"spec.sConfigController.container.image: " + registry + "sconfigcontroller:1",
	}
	if diff := cmp.Diff(want, out.Replaced); diff != "" {
		t.Errorf("what is told differs (-want +got):\n%s", diff)
	}
	named := func(out Output) int {
		text, err := json.Marshal([]any{out.Components, out.Objects})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, name := range append([]string{"slurmrestd"}, soperatorImages()...) {
			n += min(1, strings.Count(string(text), registry+name))
		}
		return n
	}
	if got := named(out); got != 0 {
		t.Errorf("%d images of Soperator are left", got)
	}
	if kept := compose(true); len(kept.Replaced) > 0 || named(kept) != len(want) {
		t.Errorf("%v is replaced, and %d images of Soperator are left, want %d", kept.Replaced, named(kept), len(want))
	}
}

func TestImagesOfChecks(t *testing.T) {
	images := image.Set{Registry: "r", Tag: "t"}
	const tag = ":5.0.0-slurm26.05.3-nebius-2"
	for reference, want := range map[string]string{
		"cr.eu-north1.nebius.cloud/soperator/k8s_check_job" + tag:   "r/check-job:t",
		"mirror.example.org:5000/soperator/sansible" + tag:          "r/check-job:t",
		"cr.eu-north1.nebius.cloud/soperator/slurm_check_job" + tag: "r/slurm-check-job:t",
		"k8s_check_job": "r/check-job:t", "my_k8s_check_job": "", "debian:trixie": "", "": "", "cr.eu-north1.nebius.cloud/soperator/worker_slurmd" + tag: "",
	} {
		if got := CheckImage(images, reference); got != want {
			t.Errorf("%s runs as %q, want %q", reference, got, want)
		}
	}
	images.KeepSoperators = true
	if got := CheckImage(images, "soperator/k8s_check_job"+tag); got != "" {
		t.Errorf("an image that is kept runs as %q", got)
	}
}

func TestChecksMayAskAndNotStartPods(t *testing.T) {
	in := Input{Cluster: &nebiusv1.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "demo"}}, HasChecks: true}
	var role *rbacv1.Role
	for _, o := range Cluster(in).Objects {
		if r, ok := o.(*rbacv1.Role); ok && r.Name == "demo-activecheck-role" {
			role = r
		}
	}
	if role == nil {
		t.Fatal("checks have no Role")
	}
	for _, rule := range role.Rules {
		for _, verb := range rule.Verbs {
			if verb != "get" && verb != "list" || slices.Contains(rule.Resources, "secrets") {
				t.Errorf("checks may %s %v", verb, rule.Resources)
			}
		}
	}
	in.HasChecks = false
	for _, o := range Cluster(in).Objects {
		if strings.Contains(o.GetName(), "activecheck") {
			t.Errorf("without checks there is %s", o.GetName())
		}
	}
}
