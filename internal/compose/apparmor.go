// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
)

// AppArmorProfileKind is the kind of the security-profiles-operator (https://github.com/kubernetes-sigs/security-profiles-operator)
// that loads a profile into the kernels of the nodes. Not every cluster has it.
var AppArmorProfileKind = schema.GroupVersionKind{Group: "security-profiles-operator.x-k8s.io", Version: "v1alpha1", Kind: "AppArmorProfile"} //nolint:gochecknoglobals // a constant

// AppArmorProfileDefinition is the name of its CRD.
const AppArmorProfileDefinition = "apparmorprofiles.security-profiles-operator.x-k8s.io"

// AppArmorProfiles are that kind as Soperator has it (docs/contributors/predecessors/soperator-objects.md#the-apparmor-profile). Later
// releases of the security-profiles-operator have another one of the same name.
func AppArmorProfiles() foreignkind.Kind {
	return foreignkind.Kind{GroupVersionKind: AppArmorProfileKind, Definition: AppArmorProfileDefinition, Fields: []string{"spec.policy"}}
}

// appArmorProfile adds the profile of spec.useDefaultAppArmorProfile. Without its kind, or with another one of its name, the field is
// listed as without effect.
func (c *composer) appArmorProfile() {
	if !c.spec.UseDefaultAppArmorProfile {
		return
	}
	if kind := c.installed.AppArmorProfiles; !kind.Usable() {
		wayOut := "install the security-profiles-operator"
		if kind.Installed {
			wayOut = "load a profile on the nodes and name it in appArmorProfile of the containers, as localhost/<profile>"
		}
		c.ignore(true, "spec.useDefaultAppArmorProfile ("+kind.Why(AppArmorProfileDefinition)+"; "+wayOut+")")
		return
	}
	name := c.cluster.AppArmorProfileName()
	out := appArmorProfileOf(c.cluster)
	out.SetLabels(c.labels("apparmor"))
	out.Object["spec"] = map[string]any{"policy": driverPolicy(name)}
	c.out.Add(out)
}

func appArmorProfileOf(cluster *nebiusv1.SlurmCluster) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	out.SetGroupVersionKind(AppArmorProfileKind)
	out.SetNamespace(cluster.Namespace)
	out.SetName(cluster.AppArmorProfileName())
	return out
}

// confined is the profile of the main container of login pods and workers. One that the user names comes first. Without the kind
// nothing would load the profile, and the containers would not start.
func (c *composer) confined(named string) string {
	if !c.spec.UseDefaultAppArmorProfile || !c.installed.AppArmorProfiles.Usable() || named != "" && named != unconfined {
		return named
	}
	return "localhost/" + c.cluster.AppArmorProfileName()
}

// driverPolicy allows everything but to write the files of NVIDIA's driver, of which containers have the host's own
// (docs/contributors/predecessors/soperator-objects.md#the-apparmor-profile). See apparmor.d(5).
func driverPolicy(profile string) string {
	files := []string{
		"/{,**/}lib{nvidia,cuda,cudadebugger,nvcuvid,nvoptix}{,-*}.so*",
		"/{,**/}lib{EGL,GLX,GLESv1_CM,GLESv2,vdpau}_nvidia.so*",
		"/{,**/}bin/nvidia-*",
		"/{,**/}firmware/nvidia/{,**/}gsp*.bin",
	}
	var b strings.Builder
	b.WriteString("#include <tunables/global>\n\nprofile " + profile + " flags=(attach_disconnected,mediate_deleted) {\n")
	for _, rule := range []string{"file", "mount", "remount", "umount", "pivot_root", "capability", "network", "dbus", "ptrace", "signal", "unix"} {
		b.WriteString("  " + rule + ",\n")
	}
	for _, file := range files {
		b.WriteString("  deny " + file + " wl,\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// UnwantedProfile is the profile that a cluster may still have from before; nil for none.
func (o *Output) UnwantedProfile(cluster *nebiusv1.SlurmCluster, installed Installed) *unstructured.Unstructured {
	if !installed.AppArmorProfiles.Usable() || cluster.Spec.UseDefaultAppArmorProfile || len(o.Problems) > 0 {
		return nil
	}
	return appArmorProfileOf(cluster)
}
