// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli/preview"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
)

// WaitingEdit is an edit of slurm.conf that waits for jobs.
type WaitingEdit struct {
	Namespace  string `json:"namespace"`
	Controller string `json:"controller"`
	// Message is the message of condition EditWaits.
	Message string `json:"message"`
}

// waitingEdits returns the edits that wait, by the conditions of Controllers.
func waitingEdits(controllers []slinkyv1beta1.Controller) (out []WaitingEdit) {
	for i := range controllers {
		c := &controllers[i]
		if waits := meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionEditWaits); waits != nil && alarming(*waits) {
			out = append(out, WaitingEdit{Namespace: c.Namespace, Controller: c.Name, Message: waits.Message})
		}
	}
	return out
}

// waits returns what the changes take away that jobs need, and which jobs these are now.
func (d *differ) waits(ctx context.Context, was, is []preview.Waits) (notes []string) {
	for _, edit := range is {
		for _, before := range was {
			if before.Namespace == edit.Namespace && before.Controller == edit.Controller {
				edit.EditWaits = edit.Without(before.EditWaits)
			}
		}
		if edit.Any() {
			notes = append(notes, "Controller/"+edit.Controller+": "+edit.Message(d.jobsOf(ctx, edit.Namespace, edit.Partitions)))
		}
	}
	return notes
}

// jobsOf asks squeue for the jobs of partitions, in a login pod of the namespace.
func (d *differ) jobsOf(ctx context.Context, namespace string, partitions []string) need.Answer {
	if len(partitions) == 0 {
		return need.Answer{}
	}
	c := *d.connection
	c.namespace = namespace
	lacks, err := lacking(ctx, &c, execRights()...)
	if err != nil {
		return need.Answer{Unknown: err.Error()}
	}
	if len(lacks) > 0 {
		return need.Answer{Unknown: "you lack the right to " + strings.Join(lacks, ", to ")}
	}
	login, err := d.findLogin(ctx, &c)
	if err != nil {
		return need.Answer{Unknown: err.Error()}
	}
	text, err := capture(ctx, &c, login, slinkyv1beta1.NameLogin, "env", "TZ=UTC", "squeue", "--all", "--array", "--noheader",
		"--partition="+strings.Join(partitions, ","), "--format="+need.SqueueFormat)
	if err != nil {
		return need.Answer{Unknown: err.Error()}
	}
	return need.Answer{Of: need.Count(need.ParseSqueue(string(text)), partitions)}
}
