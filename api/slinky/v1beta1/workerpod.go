// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

// AnnotationNodeCordoned on a worker pod is "true" while its AnnotationPodCordon is there because its Kubernetes node is
// cordoned: it goes when the node is uncordoned, and AnnotationPodCordon with it unless a user set that too.
const AnnotationNodeCordoned = "coxswain.dev/node-cordoned"

// AnnotationRetired on a worker pod is the cause for which it is to go, such as "scale-in". Its Slurm node is drained, and the pod
// deleted when nothing runs on it.
const AnnotationRetired = "coxswain.dev/retired"

// AnnotationRetiredAt on a worker pod is the RFC 3339 time since when it is to go. Its jobs have the time of spec.drainTimeout
// from then on.
const AnnotationRetiredAt = "coxswain.dev/retired-at"

// AnnotationNode on a worker pod names the Kubernetes node to which it is bound, by scaling mode DaemonSet or pinToNode.
const AnnotationNode = "coxswain.dev/node"

// AnnotationWantedKey on a worker pod is the digest of the auth/slurm keys that it should see.
const AnnotationWantedKey = "coxswain.dev/wanted-key"

// AnnotationOpening on a worker pod is when which operator process last announced that it lets jobs onto the Slurm node, such
// as "2026-11-22T10:00:00.5Z 8fa91c". Until that is over the operator keeps the protection of the pod and does not delete it:
// docs/decisions/015-announced-before-opened.md.
const AnnotationOpening = "coxswain.dev/opening"

// AnnotationCheckComment on a worker pod is the result for the worker of the last Slurm job of an ActiveCheck with commentSlurmNode. The
// comment of the Slurm node has it, too.
const AnnotationCheckComment = "coxswain.dev/check-comment"

// AnnotationRequiredChecks on a worker pod are the checks that it needs, comma separated: spec.requiredChecks of its NodeSet when it was made.
const AnnotationRequiredChecks = "coxswain.dev/required-checks"

// AnnotationCheckPrefix and the name of a required check are the annotation of a worker pod with how that check went: CheckPassed and the
// machine on which it has passed, or a text for people.
const AnnotationCheckPrefix = "check.coxswain.dev/"

// CheckPassed begins the annotation of a check that has passed; the machine follows.
const CheckPassed = "Passed "

// AnnotationMachine on a Job is the machine that its check tests.
const AnnotationMachine = "coxswain.dev/machine"

// Conditions that the operator writes on worker pods.
const (
	// PodConditionRetiring shows what a worker pod that is to go (coxswain.dev/retired) waits for.
	PodConditionRetiring corev1.PodConditionType = "coxswain.dev/Retiring"
	// PodConditionNeedsAttention on a worker pod is there, with status True, while a person has to look at something; the
	// message names the object and what to do.
	PodConditionNeedsAttention corev1.PodConditionType = "coxswain.dev/NeedsAttention"
	// PodConditionOutOfService on a worker pod is there, with status True, while its Slurm node gets no new jobs. The reason is what keeps
	// them from it; the message has who does so, since when, what is waited for and what comes next.
	PodConditionOutOfService corev1.PodConditionType = "coxswain.dev/OutOfService"
	// PodConditionRegistered on a worker pod is there from when Slurm had its node first: True while it has it, False while it does
	// not. A pod without it has never run a job.
	PodConditionRegistered corev1.PodConditionType = "coxswain.dev/Registered"
)

// Reasons of PodConditionNeedsAttention, and of the events that announce it.
const (
	// ReasonStuckTerminating: the pod is being deleted and does not go.
	ReasonStuckTerminating = "StuckTerminating"
	// ReasonKubernetesNodeNotReady: Kubernetes gets no news from the node that the pod runs on.
	ReasonKubernetesNodeNotReady = "KubernetesNodeNotReady"
	// ReasonInvalidTopology: AnnotationTopologySpec of the Kubernetes node cannot be read.
	ReasonInvalidTopology = "InvalidTopology"
	// ReasonInvalidFeatures: AnnotationFeatures of the Kubernetes node cannot be read.
	ReasonInvalidFeatures = "InvalidFeatures"
	// ReasonNodeNameMismatch: slurmd has registered by another name than the operator looks for.
	ReasonNodeNameMismatch = "NodeNameMismatch"
	// ReasonInvalidRegistration: slurmd offers less than the record of its node wants, and Slurm gives it no jobs.
	ReasonInvalidRegistration = "InvalidRegistration"
	// ReasonRecordOutdated: the record of the node is from a worker that registered with something else.
	ReasonRecordOutdated = "RecordOutdated"
	// ReasonRecordRefused: Slurm refuses what is to be written into the record of its node.
	ReasonRecordRefused = "RecordRefused"
)

// Reasons of PodConditionOutOfService, beside ReasonInvalidRegistration.
const (
	// ReasonRetiring: the worker is to go.
	ReasonRetiring = "Retiring"
	// ReasonMaintenance: a condition of the Kubernetes node announces that its machine is replaced.
	ReasonMaintenance = "Maintenance"
	// ReasonEphemeralStorage: the pod uses nearly all of its ephemeral storage.
	ReasonEphemeralStorage = "EphemeralStorage"
	// ReasonReboot: the machine of the Kubernetes node is to be rebooted.
	ReasonReboot = "Reboot"
	// ReasonKillTaskFailed: Slurm has drained it because a process of a job could not be ended.
	ReasonKillTaskFailed = "KillTaskFailed"
	// ReasonCordoned: the Kubernetes node or the pod is cordoned.
	ReasonCordoned = "Cordoned"
	// ReasonKubernetesNodeUnknown: the drain is the operator's, and without the Node it is not known whether its cause goes on.
	ReasonKubernetesNodeUnknown = "KubernetesNodeUnknown"
	// ReasonWaitsForChecks: a check that has to pass on the machine before the worker takes jobs has not.
	ReasonWaitsForChecks = "WaitsForChecks"
	// ReasonReturning: the drain is the operator's, or Slurm's for an outdated registration. It is no longer wanted, and ends when the worker
	// can take jobs.
	ReasonReturning = "Returning"
	// ReasonNotResponding: Slurm has given the node up.
	ReasonNotResponding = "NotResponding"
	// ReasonFailedCheck: a check has drained it.
	ReasonFailedCheck = "FailedCheck"
	// ReasonHeldBySomebody: an administrator, or a program of theirs, has drained it or set it DOWN.
	ReasonHeldBySomebody = "HeldBySomebody"
)

// ReasonWaitingForJobs is the reason of PodConditionRetiring while the worker waits for its jobs to end. At other times the reason is the
// cause for which it goes, such as ScaleIn.
const ReasonWaitingForJobs = "WaitingForJobs"

// ReasonResumeTimeout is the reason of the event for Slurm nodes that did not come within ResumeTimeout after Slurm had powered them up.
const ReasonResumeTimeout = "ResumeTimeout"

// ReasonSlurmNodeNotRegistered is the reason of the event for a worker that is made anew because its slurmd runs and Slurm
// does not have its node.
const ReasonSlurmNodeNotRegistered = "SlurmNodeNotRegistered"

// ReasonSlurmNodeRecordOutdated is the reason of the event for records of Slurm nodes that were deleted because their workers
// register with something else from now on.
const ReasonSlurmNodeRecordOutdated = "SlurmNodeRecordOutdated"
