// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

func TestWhenAnEditWaitsForNodesThatJobsName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		endangered []string
		annotation string
		waits      bool
	}{
		{"no job names a node that is absent", nil, "", false},
		{"a job names a node that is absent", []string{"w-0"}, "", true},
		{"the job may end for this edit", []string{"w-0"}, "new", false},
		{"the job may end for another edit only", []string{"w-0"}, "old", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := &slinkyv1beta1.Controller{}
			c.Annotations = map[string]string{slinkyv1beta1.AnnotationEndJobs: tt.annotation}
			if err := (absences{nodes: []string{"w-0", "w-1"}, endangered: tt.endangered}).wait(c, "new"); (err != nil) != tt.waits {
				t.Errorf("it says %v", err)
			}
		})
	}
}
