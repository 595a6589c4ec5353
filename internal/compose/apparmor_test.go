// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// confinement is the AppArmor profile of an overlay: type and name.
func confinement(t *testing.T, overlay *embedded.Container) string {
	t.Helper()
	container, err := overlay.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if container == nil || container.SecurityContext == nil || container.SecurityContext.AppArmorProfile == nil {
		return ""
	}
	p := container.SecurityContext.AppArmorProfile
	if p.Type != corev1.AppArmorProfileTypeLocalhost {
		return string(p.Type)
	}
	return *p.LocalhostProfile
}

func TestTheProfileOfLoginPodsAndWorkers(t *testing.T) {
	const ours = "soperator-cluster-demo-ns-slurm"
	d, there := load(t), foreignkind.Fit{Installed: true}
	for name, test := range map[string]struct {
		spec, login, worker, nodeSet string
		kind                         foreignkind.Fit
		ignored                      string
	}{
		"nobody asks for the profile":                          {spec: `{}`, kind: there},
		"login pods and workers have the profile":              {spec: `{useDefaultAppArmorProfile: true}`, kind: there, login: ours, worker: ours, nodeSet: ours},
		"what the user names comes first":                      {spec: `{useDefaultAppArmorProfile: true, slurmNodes: {login: {sshd: {appArmorProfile: localhost/mine}}, worker: {slurmd: {appArmorProfile: runtime/default}}}}`, kind: there, login: "mine", worker: "RuntimeDefault", nodeSet: ours},
		"nobody could load the profile, so that no pod has it": {spec: `{useDefaultAppArmorProfile: true}`, kind: foreignkind.Fit{}, ignored: "spec.useDefaultAppArmorProfile (the cluster has no CRD " + AppArmorProfileDefinition + "; install the security-profiles-operator)"},
		"the kind of that name is another one": {spec: `{useDefaultAppArmorProfile: true}`, kind: foreignkind.Fit{Installed: true, Misfit: "its objects are in no namespace"},
			ignored: "spec.useDefaultAppArmorProfile (its objects are in no namespace; load a profile on the nodes and name it in appArmorProfile of the containers, as localhost/<profile>)"},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.input(t, `
apiVersion: slurm.nebius.ai/v1
kind: SlurmCluster
metadata: {name: demo}
spec: `+test.spec+`
---
apiVersion: slurm.nebius.ai/v1alpha1
kind: NodeSet
metadata: {name: gpu}
spec: {replicas: 1}
`)
			if in.Cluster.Spec.SlurmNodes.Worker == nil {
				in.Cluster.Spec.SlurmNodes.Worker = d.cluster(t, `{slurmNodes: {worker: {size: 1}}}`).Cluster.Spec.SlurmNodes.Worker
			}
			in.Observed.Installed.AppArmorProfiles = test.kind
			out := Cluster(in)
			parts := out.Components
			if got := confinement(t, parts.LoginSet.Spec.Login); got != test.login {
				t.Errorf("login pods have %q, want %q", got, test.login)
			}
			for i, want := range []string{test.worker, test.nodeSet} {
				if got := confinement(t, parts.NodeSets[i].Spec.Slurmd); got != want {
					t.Errorf("%s has %q, want %q", parts.NodeSets[i].Name, got, want)
				}
			}
			made := 0
			for i, o := range out.Objects {
				if _, kind := kindOf(t, o); kind == AppArmorProfileKind.Kind {
					made++
					if i > 0 {
						t.Errorf("it comes after %s, whose pods may need it", out.Objects[0].GetName())
					}
				}
			}
			if want := test.login != ""; (made > 0) != want {
				t.Errorf("%d profiles are made", made)
			}
			got := slices.DeleteFunc(out.Ignored, func(field string) bool { return !strings.Contains(field, "useDefaultAppArmorProfile") })
			if strings.Join(got, " ") != test.ignored {
				t.Errorf("without effect: %v, want %s", got, test.ignored)
			}
		})
	}
}

func TestTheProfile(t *testing.T) {
	in := load(t).cluster(t, `{useDefaultAppArmorProfile: true}`)
	in.Observed.Installed = AllInstalled()
	out := Cluster(in)
	if got := out.UnwantedProfile(in.Cluster, in.Observed.Installed); got != nil {
		t.Errorf("%s is not wanted", got.GetName())
	}
	text, err := yaml.Marshal(plainObject(t, out.Objects[0]))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "apparmor.golden.yaml", text)
}

func TestAProfileThatIsNotWanted(t *testing.T) {
	in := load(t).cluster(t, `{}`)
	out := Cluster(in)
	for _, fit := range []foreignkind.Fit{{}, {Installed: true, Misfit: "its objects are in no namespace"}} {
		if got := out.UnwantedProfile(in.Cluster, Installed{AppArmorProfiles: fit}); got != nil {
			t.Errorf("it is looked for where its kind is not: %+v", fit)
		}
	}
	if got := out.UnwantedProfile(in.Cluster, AllInstalled()); got == nil || got.GetName() != "soperator-cluster-demo-ns-slurm" || got.GetNamespace() != "slurm" {
		t.Errorf("%v is not wanted", got)
	}
	out.Problems = append(out.Problems, Cluster(load(t).cluster(t, `{customSlurmConfig: PartitionName}`)).Problems...)
	if got := out.UnwantedProfile(in.Cluster, AllInstalled()); len(out.Problems) == 0 || got != nil {
		t.Errorf("with %d mistakes in the spec %v goes", len(out.Problems), got)
	}
}
