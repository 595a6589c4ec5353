// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// running returns a StatefulSet with an image, with so many pods of the newest template.
func running(image string, observed int64, updated int32) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	s.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	s.Status = appsv1.StatefulSetStatus{ObservedGeneration: observed, UpdatedReplicas: updated}
	return s
}

func TestSlurmdbdIsUpgradedBeforeSlurmctld(t *testing.T) {
	a := &slinkyv1beta1.Accounting{ObjectMeta: metav1.ObjectMeta{Name: "acct"}}
	asleep := &slinkyv1beta1.Accounting{Spec: slinkyv1beta1.AccountingSpec{Suspend: true}}
	for _, tt := range []struct {
		name  string
		u     upgrade
		waits bool
	}{
		{"a first slurmctld waits for nobody", upgrade{image: "new", accounting: a, slurmdbd: running("old", 2, 1), slurmdbdImage: "new"}, false},
		{"a slurmctld that keeps its image waits for nobody", upgrade{slurmctld: running("ctld", 2, 1), image: "ctld", accounting: a, slurmdbd: running("old", 2, 1), slurmdbdImage: "new"}, false},
		{"without accounting there is nobody to wait for", upgrade{slurmctld: running("old", 2, 1), image: "new"}, false},
		{"a slurmdbd that does not exist yet is not older", upgrade{slurmctld: running("old", 2, 1), image: "new", accounting: a, slurmdbdImage: "new"}, false},
		{"a slurmdbd whose StatefulSet has not been changed yet is waited for", upgrade{slurmctld: running("old", 2, 1), image: "new", accounting: a, slurmdbd: running("old", 2, 1), slurmdbdImage: "new"}, true},
		{"a slurmdbd whose change nobody has looked at is waited for", upgrade{slurmctld: running("old", 2, 1), image: "new", accounting: a, slurmdbd: running("new", 1, 1), slurmdbdImage: "new"}, true},
		{"a slurmdbd whose old pod is still there is waited for", upgrade{slurmctld: running("old", 2, 1), image: "new", accounting: a, slurmdbd: running("new", 2, 0), slurmdbdImage: "new"}, true},
		{"a slurmdbd that has a new pod, ready or not, is not waited for", upgrade{slurmctld: running("old", 2, 1), image: "new", accounting: a, slurmdbd: running("new", 2, 1), slurmdbdImage: "new"}, false},
		{"a slurmdbd that is suspended is not waited for", upgrade{slurmctld: running("old", 2, 0), image: "new", accounting: asleep, slurmdbd: running("new", 2, 0), slurmdbdImage: "new"}, false},
		{"a slurmdbd that keeps its own image is not waited for", upgrade{slurmctld: running("old", 2, 1), image: "new", accounting: a, slurmdbd: running("mine", 2, 1), slurmdbdImage: "mine"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.u.wait()
			if (err != nil) != tt.waits {
				t.Fatalf("got %v", err)
			}
			if err != nil && !strings.Contains(err.Error(), "spec.accountingRef: slurmctld gets its new image new after slurmdbd of Accounting acct has new") {
				t.Error(err)
			}
		})
	}
}
