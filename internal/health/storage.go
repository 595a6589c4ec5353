// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

const (
	// DefaultStorageThreshold is above how many percent of its limit of ephemeral storage a worker is drained.
	DefaultStorageThreshold = 85
	// DefaultStorageResumeThreshold is below how many percent it is undrained.
	DefaultStorageResumeThreshold = 80
)

// StorageThresholds are at which use of ephemeral storage a worker goes out of service and comes back, in percent of the
// limits of its pod.
type StorageThresholds struct {
	Drain, Resume float64
}

// Validate returns what is wrong with the thresholds.
func (t StorageThresholds) Validate() error {
	var errs []error
	if !(t.Drain >= 0 && t.Drain <= 100) { // NaN is neither
		errs = append(errs, fmt.Errorf("--ephemeral-storage-threshold is %v: it must be from 0 to 100", t.Drain))
	}
	if !(t.Resume > 0 && t.Resume < t.Drain) {
		errs = append(errs, fmt.Errorf("--ephemeral-storage-resume-threshold is %v: it must be above 0, and below --ephemeral-storage-threshold, which is %v", t.Resume, t.Drain))
	}
	return errors.Join(errs...)
}

// StorageUse is how much ephemeral storage a pod uses, as a kubelet reports. Unless Known it did not report it.
type StorageUse struct {
	// Used and Limit are in bytes. A limit of 0 is that the pod has none.
	Used  uint64
	Limit int64
	Known bool
}

// StorageLimit returns the sum of the limits of ephemeral storage of all containers and init containers of a pod, in bytes; 0 for none.
func StorageLimit(spec *corev1.PodSpec) (limit int64) {
	for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range list {
			limit += list[i].Resources.Limits.StorageEphemeral().Value()
		}
	}
	return limit
}

// Storage is what is known of the ephemeral storage of a worker pod. The zero value: nothing is known. It can be compared, and does not
// change with each measurement.
type Storage struct {
	// Full is Yes once more was used than the upper threshold, until less is used than the lower one: No. Unknown: no kubelet reported
	// it, or it is between the two and the state before is not known.
	Full node.Answer
	// Percent is how much of the limit was used when it became full, in steps of five, so that one text is about many nodes.
	Percent int
	// Waits is true if the disruption budget does not let the worker be drained for it now.
	Waits bool
	// Resume is the lower threshold in percent.
	Resume float64
}

// percentStep is the step in which the reason of a drain shows the percentage.
const percentStep = 5

// After returns what is known after a measurement, when before was known.
func (t StorageThresholds) After(before Storage, use StorageUse) Storage {
	out := Storage{Full: before.Full, Percent: before.Percent, Resume: t.Resume}
	if !use.Known {
		return out
	}
	if use.Limit <= 0 {
		return Storage{Full: node.No, Resume: t.Resume}
	}
	switch percent := 100 * float64(use.Used) / float64(use.Limit); {
	case percent > t.Drain && out.Full != node.Yes:
		out.Full, out.Percent = node.Yes, int(min(percent, 100))/percentStep*percentStep
	case percent < t.Resume:
		out.Full, out.Percent = node.No, 0
	}
	return out
}

// storageHint is what a reader of the reason may do.
const storageHint = "of its limit used: delete files of the pod outside of the jail, or unused containers"

// DrainReason returns the reason to drain the Slurm node with; empty for none.
func (s Storage) DrainReason() string {
	if s.Full != node.Yes || s.Waits {
		return ""
	}
	return fmt.Sprintf("%s %d %% %s", node.StorageReason, s.Percent, storageHint)
}
