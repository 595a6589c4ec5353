// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

// A check with spec.requiredBeforeJobs runs on the machine of each worker that needs it, beside its other runs: docs/decisions/051. The end of
// such a Job is written on the pods of the machine. It waits neither for the cluster nor for other checks, which may wait for workers.

// Worker is a worker pod that needs the check before it takes jobs.
type Worker struct {
	Name string
	UID  types.UID
	// Machine is the machine of its Kubernetes node; zero while that is not known.
	Machine workerpod.Machine
	// CheckState is what the pod shows of the check so far.
	CheckState string
}

// Mark is what a pod is to show of the check.
type Mark struct {
	Pod        string
	UID        types.UID
	CheckState string
	// Failed is true if the check has failed there and the pod does not show it yet.
	Failed bool
}

// machineJobTTL is how long the Job of a machine stays when it has ended. A worker that is made there meanwhile need not wait for another
// one; one that has failed is tried again afterwards.
const machineJobTTL = time.Hour

// Requires reports whether workers need a check before they take jobs. The API server refuses others.
func Requires(check *nebiusv1alpha1.ActiveCheck) bool {
	return check.Spec.RequiredBeforeJobs && !IsSlurmJob(check)
}

// LooksAtMachine reports whether a Job checks the machine of a worker.
func LooksAtMachine(job *batchv1.Job) bool {
	return job.Annotations[slinkyv1beta1.AnnotationMachine] != ""
}

// onMachines adds the Jobs that check the machines of workers, and what the pods are to show. The cases in order:
//
//	case                                        what happens
//	it has passed on this machine               nothing
//	nothing is known of the machine             nothing: the pod stays as it is
//	the check has mistakes                      the pod shows it
//	there is no Job for this machine            it is made
//	the Job has not ended                       the pod shows that it runs
//	it has failed                               the pod shows how; the Job is made again once it is gone
//	it is complete                              the pod shows that the check has passed
func (o *Output) onMachines(in Input, template corev1.PodTemplateSpec) {
	if !Requires(in.Check) {
		return
	}
	made := map[string]bool{}
	for _, w := range in.Workers {
		if _, here := workerpod.CheckPassed(w.CheckState, w.Machine); here || w.Machine.UID == "" {
			continue
		}
		name := machineJobName(in.Check, w.Machine)
		at := slices.IndexFunc(in.MachineJobs, func(j batchv1.Job) bool {
			return j.Name == name && j.Annotations[slinkyv1beta1.AnnotationMachine] == w.Machine.String()
		})
		mark := Mark{Pod: w.Name, UID: w.UID}
		switch {
		case at >= 0:
			mark.CheckState = says(&in.MachineJobs[at], w.Machine)
			mark.Failed = has(&in.MachineJobs[at], batchv1.JobFailed) && mark.CheckState != w.CheckState
		case len(o.Problems) > 0:
			mark.CheckState = "cannot run: " + o.Problems[0].Error()
		default:
			mark.CheckState = "waits for Job " + name
			if !made[name] {
				o.Add(machineJob(in.Check, name, w.Machine, template))
				made[name] = true
			}
		}
		if mark.CheckState != w.CheckState {
			o.Marks = append(o.Marks, mark)
		}
	}
}

// says returns what a pod shows of the check, by the Job of its machine.
func says(job *batchv1.Job, machine workerpod.Machine) string {
	switch {
	case has(job, batchv1.JobComplete):
		return slinkyv1beta1.CheckPassed + machine.String()
	case has(job, batchv1.JobFailed):
		return fmt.Sprintf("Job %s failed: %s", job.Name, failure(job))
	}
	return "waits for Job " + job.Name
}

// machineJobName returns the name of the Job that looks at a machine.
func machineJobName(check *nebiusv1alpha1.ActiveCheck, machine workerpod.Machine) string {
	return name(check) + "-" + label.Digest(map[string][]byte{"check": []byte(check.Name), "machine": []byte(machine.String())})[:10]
}

// machineJob returns a run on one machine. Neither a cordon nor a taint keeps it away: the worker is there already.
func machineJob(check *nebiusv1alpha1.ActiveCheck, name string, machine workerpod.Machine, template corev1.PodTemplateSpec) *batchv1.Job {
	template = *template.DeepCopy()
	pod.Bind(&template.Spec, machine.Node)
	template.Spec.Tolerations = append(template.Spec.Tolerations, corev1.Toleration{Operator: corev1.TolerationOpExists})
	out := &batchv1.Job{ObjectMeta: meta(check, name), Spec: jobSpec(check, template)}
	out.Annotations = label.Merge(out.Annotations, map[string]string{slinkyv1beta1.AnnotationMachine: machine.String()})
	out.Spec.TTLSecondsAfterFinished = new(int32(machineJobTTL / time.Second))
	return out
}
