// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/internal/health"
	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func thresholds() health.StorageThresholds {
	return health.StorageThresholds{Drain: health.DefaultStorageThreshold, Resume: health.DefaultStorageResumeThreshold}
}

func TestThresholdsOfEphemeralStorage(t *testing.T) {
	for name, c := range map[string]struct {
		drain, resume float64
		refused       string
	}{
		"the usual thresholds":              {drain: 85, resume: 80},
		"the whole limit":                   {drain: 100, resume: 99.5},
		"more than all":                     {drain: 101, resume: 80, refused: "from 0 to 100"},
		"less than nothing":                 {drain: -1, resume: -2, refused: "from 0 to 100"},
		"no number":                         {drain: math.NaN(), resume: 80, refused: "from 0 to 100"},
		"the lower one is the upper one":    {drain: 80, resume: 80, refused: "below --ephemeral-storage-threshold, which is 80"},
		"the lower one is no number":        {drain: 80, resume: math.NaN(), refused: "below --ephemeral-storage-threshold"},
		"a node that could never come back": {drain: 80, resume: 0, refused: "above 0"},
	} {
		t.Run(name, func(t *testing.T) {
			err := health.StorageThresholds{Drain: c.drain, Resume: c.resume}.Validate()
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAMeasurementOfEphemeralStorage(t *testing.T) {
	const limit = 1000
	full := health.Storage{Full: node.Yes, Percent: 85, Resume: 80}
	free := health.Storage{Full: node.No, Resume: 80}
	unknown := health.Storage{Resume: 80}
	for name, c := range map[string]struct {
		before health.Storage
		use    health.StorageUse
		want   health.Storage
		reason string
	}{
		"little is used":                      {unknown, health.StorageUse{Used: 100, Limit: limit, Known: true}, free, ""},
		"exactly the upper threshold is used": {free, health.StorageUse{Used: 850, Limit: limit, Known: true}, free, ""},
		"more is used":                        {free, health.StorageUse{Used: 851, Limit: limit, Known: true}, full, "[user_problem] pod_ephemeral_storage 85 % of its limit used"},
		"more is used than before, of which nobody is told":          {full, health.StorageUse{Used: 990, Limit: limit, Known: true}, full, "[user_problem] pod_ephemeral_storage 85 % of its limit used"},
		"more than the limit is used":                                {free, health.StorageUse{Used: math.MaxUint64, Limit: 1, Known: true}, health.Storage{Full: node.Yes, Percent: 100, Resume: 80}, "[user_problem] pod_ephemeral_storage 100 % "},
		"the pod is full, and its use is between the thresholds":     {full, health.StorageUse{Used: 820, Limit: limit, Known: true}, full, "[user_problem] pod_ephemeral_storage 85 % "},
		"the pod is full, and its use is at the lower threshold":     {full, health.StorageUse{Used: 800, Limit: limit, Known: true}, full, "[user_problem] pod_ephemeral_storage 85 % "},
		"the pod is full, and its use is below the lower threshold":  {full, health.StorageUse{Used: 799, Limit: limit, Known: true}, free, ""},
		"the pod is not full, and its use is between the thresholds": {free, health.StorageUse{Used: 820, Limit: limit, Known: true}, free, ""},
		"nobody knows what was before":                               {unknown, health.StorageUse{Used: 820, Limit: limit, Known: true}, unknown, ""},
		"the kubelet does not answer":                                {full, health.StorageUse{Limit: limit}, full, "[user_problem] pod_ephemeral_storage 85 % "},
		"the pod has no limit":                                       {full, health.StorageUse{Used: 5, Known: true}, free, ""},
		"nothing was known, and nobody answers":                      {unknown, health.StorageUse{Limit: limit}, unknown, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := thresholds().After(c.before, c.use)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want, +got):\n%s", diff)
			}
			reason := got.DrainReason()
			if !strings.HasPrefix(reason, c.reason) || (reason == "") != (c.reason == "") {
				t.Errorf("the reason is %q", reason)
			}
			if reason != "" && (!(node.Reason{Text: reason}).Ours() || node.SanitizeReason(reason) != reason) {
				t.Errorf("the reason %q is not known as ours, or Slurm does not take it", reason)
			}
			if got.Waits = true; got.DrainReason() != "" {
				t.Error("a worker that waits is drained")
			}
		})
	}
}

// TestHysteresisOfEphemeralStorage takes random measurements: a worker is taken out above the upper threshold only, comes back below the
// lower one only, and its reason stays the same in between.
func TestHysteresisOfEphemeralStorage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := health.StorageThresholds{Resume: float64(rapid.IntRange(1, 98).Draw(t, "resume"))}
		limits.Drain = float64(rapid.IntRange(int(limits.Resume)+1, 100).Draw(t, "drain"))
		if err := limits.Validate(); err != nil {
			t.Fatal(err)
		}
		is, reason := health.Storage{}, ""
		for range rapid.IntRange(1, 60).Draw(t, "minutes") {
			used := rapid.IntRange(0, 130).Draw(t, "used")
			known := rapid.IntRange(0, 4).Draw(t, "known") > 0
			before := is
			is = limits.After(before, health.StorageUse{Used: uint64(used), Limit: 100, Known: known})
			switch {
			case before.Full != node.Yes && is.Full == node.Yes && (!known || float64(used) <= limits.Drain):
				t.Fatalf("full at %d %% with %v", used, limits)
			case before.Full == node.Yes && is.Full != node.Yes && (!known || float64(used) >= limits.Resume):
				t.Fatalf("free at %d %% with %v", used, limits)
			case known && float64(used) > limits.Drain && is.Full != node.Yes, known && float64(used) < limits.Resume && is.Full != node.No:
				t.Fatalf("%v at %d %% with %v", is.Full, used, limits)
			case before.Full == node.Yes && is.Full == node.Yes && is.DrainReason() != reason:
				t.Fatalf("the reason %q became %q", reason, is.DrainReason())
			}
			reason = is.DrainReason()
		}
	})
}

func TestLimitOfEphemeralStorage(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		want int64
	}{
		"none":                                {`containers: [{name: a, resources: {limits: {memory: 1Gi}}}, {name: b}]`, 0},
		"containers have limits":              {`containers: [{name: a, resources: {limits: {ephemeral-storage: 1Ki}}}, {name: b, resources: {limits: {ephemeral-storage: "6"}}}]`, 1030},
		"init containers have limits as well": {`{initContainers: [{name: i, resources: {limits: {ephemeral-storage: 1Ki}}}], containers: [{name: a, resources: {limits: {ephemeral-storage: 1Ki}}}]}`, 2048},
		"what is requested is not a limit":    {`containers: [{name: a, resources: {requests: {ephemeral-storage: 1Ki}}}]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := health.StorageLimit(manifest.Parse[corev1.PodSpec](t, c.spec)); got != c.want {
				t.Error(got)
			}
		})
	}
}
