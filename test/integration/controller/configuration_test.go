// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// load lets the fake slurmctld load what is in the ConfigMap, and returns its stamp.
func load(o *operator.Operator) string {
	_, rest, _ := strings.Cut(operator.Get[corev1.ConfigMap](o, "demo-config").Data["slurm.conf"], "SlurmctldParameters=")
	line, _, _ := strings.Cut(rest, "\n")
	o.Slurm.Load(strings.Split(line, ",")...)
	_, digest, _ := strings.Cut(line, "coxswain_config=")
	return digest
}

func TestConfigAppliedSaysWhatSlurmctldHasLoaded(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller", "restapi")
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {inplaceReconfigure: true}}`)
	operator.Create[slinkyv1beta1.RestApi](o, operator.ARestAPI)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "ConfigApplied", metav1.ConditionFalse, "ConfigPending")
	digest := load(o)
	if message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "ConfigApplied", metav1.ConditionTrue, "ConfigLoaded"); message != "slurmctld has loaded "+digest {
		t.Errorf("%s, and the stamp is %s", message, digest)
	}
	c := operator.Get[slinkyv1beta1.Controller](o, "demo")
	if c.Status.ConfigDigest != digest || c.Status.SlurmVersion != "26.05.5" {
		t.Errorf("status %+v", c.Status)
	}
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "VersionSupported", metav1.ConditionTrue, "VersionSupported")

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "KillWait=31" })
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "ConfigApplied", metav1.ConditionFalse, "ConfigPending")
	apiserver.Eventually(t, func() error {
		if now := load(o); now == digest {
			return fmt.Errorf("the ConfigMap is the old one")
		}
		return nil
	})
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "ConfigApplied", metav1.ConditionTrue, "ConfigLoaded")
	good := operator.Get[corev1.ConfigMap](o, "demo-config")

	o.Settle()
	o.Writes.Reset()
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "KillWait=soon\nMaxJobCout=5" })
	message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "ConfigApplied", metav1.ConditionFalse, "InvalidConfiguration")
	want := `slurmctld keeps the previous configuration: spec.extraConf: line 1: KillWait: "soon" is not a number; ` +
		`spec.extraConf: line 2: MaxJobCout: slurm.conf has no key of this name that the operator knows; did you mean MaxJobCount?`
	if message != want {
		t.Errorf("%q, want %q", message, want)
	}
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionTrue, "InvalidConfiguration")
	o.Settle()
	for _, w := range o.Writes.All() {
		if !strings.HasSuffix(w.Path, "/status") && !strings.Contains(w.Path, "/events") {
			t.Errorf("a configuration that cannot be used is told, and nothing else: %v", w)
		}
	}
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "KillWait=31" })
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "ConfigApplied", metav1.ConditionTrue, "ConfigLoaded")
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionFalse, "Reconciled")
	if now := operator.Get[corev1.ConfigMap](o, "demo-config"); now.ResourceVersion != good.ResourceVersion {
		t.Error("the ConfigMap was written although nothing came of the mistake")
	}
}
