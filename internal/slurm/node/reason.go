// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// reasonPrefix marks the reasons that the operator sets. It is the one that slurm-operator used, so that drains made by
// it are recognised; its oldest versions left out the blank.
const reasonPrefix = "slurm-operator:"

// MaintenanceReason begins the reasons for which nodes are drained because their machines are replaced. It is the one of Soperator 5.0,
// so that drains made by it are recognised.
const MaintenanceReason = "[compute_maintenance] node replacement process"

// formerMaintenanceReason is the one of Soperator before.
const formerMaintenanceReason = "[node_problem] compute_maintenance: node replacement process"

// StorageReason begins the reasons for which nodes are drained because a worker pod uses nearly all of its ephemeral storage. It is the
// one of Soperator, so that drains made by it are recognised.
const StorageReason = "[user_problem] pod_ephemeral_storage"

// rebootPrefix begins the reasons for which nodes are drained because their machines are to be rebooted. Soperator 5.0 writes that without a
// colon and what follows: its drains are not ours, since it is not known whether a process was left there.
const rebootPrefix = "[compute_maintenance] node reboot process: "

// RebootReason is the reason for which workers are drained because their machine is to be rebooted.
const RebootReason = rebootPrefix + "SoperatorChecksNodeDegraded"

// ChecksReason is the reason with which a worker is drained until the checks have passed that it needs.
const ChecksReason = reasonPrefix + " waits for checks"

// KillTaskFailed is Slurm's own reason for a node on which a process of a job outlived UnkillableStepTimeout (slurm.conf(5)).
const KillTaskFailed = "Kill task failed"

// MaxReason is the length in runes to which SanitizeReason cuts.
const MaxReason = 256

// reasonTime is how scontrol writes the time of a reason, in the time zone of the machine.
const reasonTime = "2006-01-02T15:04:05"

// Reason is why a node is drained or down, and who set it.
type Reason struct {
	// Text as Slurm stores it.
	Text string
	// SetBy is the name of the user who set it; empty if unknown.
	SetBy string
	// At is when it was set; zero if unknown.
	At time.Time
}

// OurReason is the text of a reason that the operator sets, made from a text that may come from a user.
func OurReason(text string) string {
	return strings.TrimSpace(reasonPrefix + " " + SanitizeReason(text))
}

// Ours reports whether the operator set the reason. An empty reason is not ours: an administrator can drain a node without
// one through the REST API, and that drain must be kept.
func (r Reason) Ours() bool {
	return strings.HasPrefix(r.Text, reasonPrefix) || r.OfMaintenance() || r.OfReboot() || r.OfStorage()
}

// OfStorage reports whether it is the reason for which the operator, or Soperator, drains nodes whose pods use nearly all of their ephemeral
// storage.
func (r Reason) OfStorage() bool { return strings.HasPrefix(r.Text, StorageReason) }

// OfMaintenance reports whether it is the reason for which the operator, or Soperator, drains nodes whose machines are replaced.
func (r Reason) OfMaintenance() bool {
	return strings.HasPrefix(r.Text, MaintenanceReason) || strings.HasPrefix(r.Text, formerMaintenanceReason)
}

// OfReboot reports whether it is the reason for which the operator drains nodes whose machines are to be rebooted.
func (r Reason) OfReboot() bool { return strings.HasPrefix(r.Text, rebootPrefix) }

// OfKillTask reports whether Slurm has drained the node because a process of a job could not be ended.
func (r Reason) OfKillTask() bool { return strings.HasPrefix(r.Text, KillTaskFailed) }

// RebootAfterKillTask is the operator's reason for the reboot of a machine, which replaces KillTaskFailed.
func RebootAfterKillTask() string { return rebootPrefix + KillTaskFailed }

// ReplacementAfterCheck is the operator's reason for the replacement of a machine. It replaces a check's reason and contains it.
func ReplacementAfterCheck(reason string) string {
	return MaintenanceReason + ": " + SanitizeReason(reason)
}

// TakesPlaceOf reports whether this reason of the operator replaces the other one, of Slurm or of a check.
func (r Reason) TakesPlaceOf(other Reason) bool {
	return r.AfterKillTask() && other.OfKillTask() || other.OfHardware() && r.Text == ReplacementAfterCheck(other.Text)
}

// AfterKillTask reports whether it is RebootAfterKillTask. Slurm may have appended to it.
func (r Reason) AfterKillTask() bool { return strings.HasPrefix(r.Text, RebootAfterKillTask()) }

// SlurmJobSuffix ends the reasons of checks that run as Slurm jobs, whatever their users let them begin with:
// docs/contributors/predecessors/soperator-checks.md#reactions.
const SlurmJobSuffix = "[slurm_job]"

// OfHardware reports whether it is the reason of a check that suspects the hardware of the machine:
// docs/contributors/predecessors/soperator-health.md#suspected-hardware.
func (r Reason) OfHardware() bool { return strings.HasPrefix(r.Text, "[hardware_problem]") }

// OfCheck reports whether it is the reason of a check of nodes, that of ephemeral storage included:
// docs/contributors/predecessors/soperator-health.md#reasons-of-drains.
func (r Reason) OfCheck() bool {
	if strings.HasSuffix(r.Text, SlurmJobSuffix) {
		return true
	}
	for _, prefix := range []string{"[node_problem]", "[user_problem]", "[hardware_problem]"} {
		if strings.HasPrefix(r.Text, prefix) && !r.OfMaintenance() {
			return true
		}
	}
	return false
}

// Plain is the text without the prefix that marks ours.
func (r Reason) Plain() string {
	text, _ := strings.CutPrefix(r.Text, reasonPrefix)
	return strings.TrimSpace(text)
}

// String is the reason as scontrol shows it: disk failed [root@2026-01-02T03:04:05]. The time is in UTC.
func (r Reason) String() string {
	provenance := r.SetBy
	if !r.At.IsZero() {
		provenance += "@" + r.At.UTC().Format(reasonTime)
	}
	if provenance == "" {
		return r.Text
	}
	return strings.TrimLeft(r.Text+" ["+provenance+"]", " ")
}

// SanitizeReason makes a text fit to be a reason: control characters, invisible characters and bytes that are not UTF-8
// are removed, blanks at the ends too, and the rest is cut to 256 runes.
func SanitizeReason(text string) string {
	var b strings.Builder
	kept := 0
	for _, r := range strings.TrimSpace(text) {
		// Ranging over a string gives RuneError for what is not UTF-8.
		if !unicode.IsGraphic(r) || r == utf8.RuneError {
			continue
		}
		if kept == MaxReason {
			break
		}
		b.WriteRune(r)
		kept++
	}
	return strings.TrimSpace(b.String())
}
