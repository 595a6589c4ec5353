// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// isolationVariable has the limits of each user of a login pod: names and values of files of cgroup v2, separated by blanks.
const isolationVariable = "COXSWAIN_USER_ISOLATION"

// Shares of the container's memory that a user gets by default, in percent, and the default weight.
const (
	highPercent, maxPercent = 80, 90
	defaultCPUWeight        = 100
)

// addIsolation limits what each user takes of a login pod. The entrypoint may mount the control groups writable only with a jail.
func (c *composer) addIsolation(container *corev1.Container, jail *slinkyv1beta1.Jail, u *nebiusv1.UserIsolation) {
	const at = loginPath + ".userIsolation"
	if u == nil || !u.Enabled {
		return
	}
	if jail == nil {
		c.ignore(true, at+" (without a jail)")
		return
	}
	memory := container.Resources.Limits.Memory()
	high, highest := shareOf(memory, highPercent, u.MemoryHigh), shareOf(memory, maxPercent, u.MemoryMax)
	if high <= 0 || highest <= 0 {
		c.fail(at, "memoryHigh and memoryMax must be given and positive, or follow from %s.sshd.resources.memory", loginPath)
		return
	}
	if high > highest {
		c.fail(at+".memoryHigh", "is %d bytes and exceeds memoryMax, %d bytes; one of them follows from %s.sshd.resources.memory", high, highest, loginPath)
		return
	}
	weight := u.CPUWeight
	if weight == 0 {
		weight = defaultCPUWeight
	}
	container.Env = append(container.Env, corev1.EnvVar{
		Name: isolationVariable, Value: fmt.Sprintf("memory.high=%d memory.max=%d cpu.weight=%d", high, highest, weight),
	})
	c.note(true, at+": has an effect on Kubernetes nodes with cgroup v2 alone; the log of a login pod says whether it has")
}

// shareOf is a number of bytes: the given one, or a share of the memory of the container.
func shareOf(memory *resource.Quantity, percent int64, given *resource.Quantity) int64 {
	if given != nil {
		return given.Value()
	}
	bytes := memory.Value()
	return bytes/100*percent + bytes%100*percent/100
}
