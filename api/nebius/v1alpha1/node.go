// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Conditions of a Kubernetes node by which a drain and a reboot are asked for, and by which the rebooter reports how far it is.
const (
	// ConditionSoperatorChecksNodeDegraded is True while the machine is to be rebooted because of what Slurm reports about its workers.
	ConditionSoperatorChecksNodeDegraded = "SoperatorChecksNodeDegraded"
	// ConditionSoperatorChecksNodeMaintenance is True while the machine is to be replaced, and no job is left on its workers.
	ConditionSoperatorChecksNodeMaintenance = "SoperatorChecksNodeMaintenance"
	// ConditionSlurmNodeNotReady is True while the machine is to be replaced because its Kubernetes node was not ready for too long.
	ConditionSlurmNodeNotReady = "SlurmNodeNotReady"
	// ConditionSlurmNodeDrain is True while the node is to be drained, or is.
	ConditionSlurmNodeDrain = "SlurmNodeDrain"
	// ConditionSlurmNodeReboot is True while the node is to be rebooted, or has been.
	ConditionSlurmNodeReboot = "SlurmNodeReboot"
)

// Reasons of those conditions, as the rebooter writes them. With status True, any other reason asks for a drain or a reboot: by convention
// NodeNeedDrain and NodeNeedReboot.
const (
	// ReasonNodeDraining goes with SlurmNodeDrain True: the rebooter cordons the node and evicts its pods.
	ReasonNodeDraining = "NodeDraining"
	// ReasonNodeDrained goes with SlurmNodeDrain True: no pod is left to evict.
	ReasonNodeDrained = "NodeDrained"
	// ReasonNodeUndrained goes with SlurmNodeDrain False: the rebooter has taken back what it did.
	ReasonNodeUndrained = "NodeUndrained"
	// ReasonNodeRebooting goes with SlurmNodeReboot True: the machine goes down.
	ReasonNodeRebooting = "NodeRebooting"
	// ReasonNodeRebooted goes with SlurmNodeReboot True: the machine has another boot id. No reboot is asked for any more.
	ReasonNodeRebooted = "NodeRebooted"
)

// Reasons of SoperatorChecksNodeDegraded, and of SlurmNodeReboot as the operator writes it.
const (
	// ReasonSlurmNodeDegraded goes with SoperatorChecksNodeDegraded True: the workers drain.
	ReasonSlurmNodeDegraded = "SlurmNodeDegraded"
	// ReasonNodeNeedReboot goes with True of both: the workers are drained, and the rebooter is asked for a reboot.
	ReasonNodeNeedReboot = "NodeNeedReboot"
	// ReasonNodeNoRebootNeeded goes with SoperatorChecksNodeDegraded False: the request for a reboot has been taken back.
	ReasonNodeNoRebootNeeded = "NodeNoRebootNeeded"
	// ReasonNoRebooter goes with False of both: no rebooter runs that could reboot the machine.
	ReasonNoRebooter = "NoRebooter"
)

// Reasons of SoperatorChecksNodeMaintenance, SlurmNodeNotReady and HardwareIssuesSuspected, and of SlurmNodeDrain as the operator writes it.
const (
	// ReasonNodeNeedDrain goes with True of SoperatorChecksNodeMaintenance and SlurmNodeDrain: the rebooter is asked for a drain.
	ReasonNodeNeedDrain = "NodeNeedDrain"
	// ReasonNodeNotReady goes with SlurmNodeNotReady True.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonNodeReady goes with SlurmNodeNotReady False: the Kubernetes node is ready again.
	ReasonNodeReady = "NodeReady"
	// ReasonGPUHealthCheckFailedSoperator goes with HardwareIssuesSuspected True: a check has drained a worker with [hardware_problem].
	ReasonGPUHealthCheckFailedSoperator = "GPUHealthCheckFailedSoperator"
)

const (
	// NameNodeConfigurator is the value of label app.kubernetes.io/name of what a NodeConfigurator makes.
	NameNodeConfigurator = "nodeconfigurator"
	// LabelNodeConfigurator is on the pods of NodeConfigurators.
	LabelNodeConfigurator = "slurm.nebius.ai/node-configurator"
	// EnvRebooterNodeName is the environment variable by which a rebooter learns the name of its Kubernetes node.
	EnvRebooterNodeName = "REBOOTER_NODE_NAME"
)

// Annotations of a Kubernetes node in which the rebooter keeps what it has done. What has no mark here was not done by the rebooter.
const (
	// AnnotationRebooterCordoned is set when the rebooter has cordoned the node.
	AnnotationRebooterCordoned = "coxswain.dev/rebooter-cordoned"
	// AnnotationRebooterTainted is set when the rebooter has tainted the node.
	AnnotationRebooterTainted = "coxswain.dev/rebooter-tainted"
	// AnnotationRebootFrom is the boot id that the node had when the rebooter saw the request for a reboot.
	AnnotationRebootFrom = "coxswain.dev/reboot-from"
	// AnnotationDrainedForReboot is set when no drain was asked for: the rebooter drains for the sake of a reboot.
	AnnotationDrainedForReboot = "coxswain.dev/drained-for-reboot"
)

// RebooterTaint returns the taint of a node that the rebooter drains, as Soperator has it:
// docs/contributors/predecessors/soperator-health.md#the-rebooter.
func RebooterTaint() corev1.Taint {
	return corev1.Taint{Key: "node.kubernetes.io/NoExecute", Value: "true", Effect: corev1.TaintEffectNoExecute}
}
