// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// imageOf returns the image of the daemon of a StatefulSet, empty while there is none.
func imageOf(o *operator.Operator, name string) string {
	if s, err := operator.Find[appsv1.StatefulSet](o, name); err == nil {
		return s.Spec.Template.Spec.Containers[0].Image
	}
	return ""
}

// image returns a container with only an image.
func image(name string) *embedded.Container {
	return &embedded.Container{RawExtension: embedded.From(map[string]string{"image": name})}
}

func TestSlurmdbdGetsANewReleaseBeforeSlurmctld(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "accounting", "controller")
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: demo}, spec: {embeddedDatabase: {}, slurmdbd: {image: "dbd:1"}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {accountingRef: {name: demo}, slurmctld: {image: "ctld:1"}}}`)
	images := func(slurmdbd, slurmctld string) func() error {
		return func() error {
			if got := imageOf(o, "demo-accounting") + " " + imageOf(o, "demo-controller"); got != slurmdbd+" "+slurmctld {
				return fmt.Errorf("the images are %s", got)
			}
			return nil
		}
	}
	apiserver.Eventually(t, images("dbd:1", "ctld:1"))
	o.RunWorkloads()
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionTrue, "Available")

	operator.Change(o, "demo", func(a *slinkyv1beta1.Accounting) { a.Spec.Slurmdbd = image("dbd:2") })
	apiserver.Eventually(t, images("dbd:2", "ctld:1")) // nobody has replaced the pod yet
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.Slurmctld = image("ctld:2") })
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Reconciling", metav1.ConditionTrue, "Waiting")
	if err := images("dbd:2", "ctld:1")(); err != nil {
		t.Error(err)
	}

	o.RunWorkloads()
	apiserver.Eventually(t, images("dbd:2", "ctld:2"))
}
