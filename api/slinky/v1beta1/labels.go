// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Labels that the operator sets on what it makes.
const (
	// LabelCluster names the Controller of a worker pod.
	LabelCluster = "slinky.slurm.net/cluster"
	// LabelPodName is the name of a worker pod.
	LabelPodName = "nodeset.slinky.slurm.net/pod-name"
	// LabelPodIndex is the ordinal of a worker pod, padded as in its name.
	LabelPodIndex = "nodeset.slinky.slurm.net/pod-index"
	// LabelPodHostname is the Slurm node name of a worker pod. NVIDIA's topograph and others read it.
	LabelPodHostname = "nodeset.slinky.slurm.net/pod-hostname"
	// LabelPodProtect is "true" on a worker pod until Slurm shows its node drained; the PodDisruptionBudget selects it.
	LabelPodProtect = "nodeset.slinky.slurm.net/pod-protect"
	// LabelScalingMode is the ScalingMode under which a worker pod was made.
	LabelScalingMode = "nodeset.slinky.slurm.net/scaling-mode"
	// LabelControllerActive is "true" on the slurmctld pod that is in charge.
	LabelControllerActive = "controller.slinky.slurm.net/active"
	// LabelRevisionHash is the revision of a worker pod, as on the pods of a DaemonSet.
	LabelRevisionHash = "controller.kubernetes.io/hash"
)

// Annotations by which users and tools ask something of the operator.
const (
	// AnnotationPodCordon on a worker pod, when "true", asks for its Slurm node to be drained.
	AnnotationPodCordon = "nodeset.slinky.slurm.net/pod-cordon"
	// AnnotationPodCordonReason on a worker pod is why a user has set AnnotationPodCordon, in words for other users. "kubectl slurm explain"
	// shows it; Slurm does not.
	AnnotationPodCordonReason = "coxswain.dev/cordon-reason"
	// AnnotationPlan on a worker pod is what is going to happen to it and what that waits for.
	AnnotationPlan = "coxswain.dev/plan"
	// AnnotationDryRun on a NodeSet, when "true", stops everything that is done to its workers; status.plan then shows all
	// that would be done.
	AnnotationDryRun = "coxswain.dev/dry-run"
	// AnnotationEndJobs on a Controller is the digest of a configuration, as in condition EditWaits. It lets the edit that led to it end the
	// jobs of partitions that go, at once.
	AnnotationEndJobs = "coxswain.dev/end-jobs"
	// AnnotationLingering on the StatefulSet of slurmctld are the lines of slurm.conf that stay for jobs, for the case that a user deletes
	// the ConfigMap. The operator writes it.
	AnnotationLingering = "coxswain.dev/lingering"
	// AnnotationEvictIdle on a NodeSet, when "true", lets workers be evicted on which no job ran when Slurm was asked last,
	// drained or not; one that has started since is killed.
	AnnotationEvictIdle = "coxswain.dev/evict-idle"
	// AnnotationPodDeletionCost on a worker pod is an int32; the lower goes first when a NodeSet shrinks.
	AnnotationPodDeletionCost = "nodeset.slinky.slurm.net/pod-deletion-cost"
	// AnnotationPodDeadline on a worker pod is the RFC 3339 time at which the last of its running jobs must end.
	AnnotationPodDeadline = "nodeset.slinky.slurm.net/pod-deadline"
	// AnnotationNodeCordonReason on a Kubernetes node replaces the reason with which its Slurm nodes are drained.
	AnnotationNodeCordonReason = "nodeset.slinky.slurm.net/node-cordon-reason"
	// AnnotationHostnameOverride on a Kubernetes node is the host name of its pod in scaling mode DaemonSet.
	AnnotationHostnameOverride = "nodeset.slinky.slurm.net/hostname-override"
	// AnnotationTopologySpec on a Kubernetes node is the Slurm topology of the node that runs on it, such as
	// "topo-switch:s2,topo-block:b2". The operator copies it to the pod.
	AnnotationTopologySpec = "topology.slinky.slurm.net/spec"
	// AnnotationTopologyLine is AnnotationTopologySpec as releases before 1.1 spelled it.
	AnnotationTopologyLine = "topology.slinky.slurm.net/line"
	// AnnotationAllowPrivilegedTokens on a Secret with a JWT key, when "true", allows Tokens for root, for SlurmUser
	// (slurm) and for users given by number. Anybody who may edit that Secret decides about it.
	AnnotationAllowPrivilegedTokens = "coxswain.dev/allow-privileged-tokens"
	// AnnotationJwtKeyID on a Secret with a JWT key marks the key as an RSA private key in PEM, for RS256, and is the
	// kid of its public half in the Controller's jwks.
	AnnotationJwtKeyID = "coxswain.dev/jwt-key-id"
	// AnnotationFeatures on a Kubernetes node is a comma-separated list; each becomes Slurm feature "k8s/<value>".
	AnnotationFeatures = "features.slinky.slurm.net/spec"
)

// LabelSlurmrestdClient is "true" on a pod, and on its namespace if that is neither the RestApi's nor the operator's, and lets the
// pod connect to slurmrestd.
const LabelSlurmrestdClient = "coxswain.dev/slurmrestd-client"

// Annotations that carry digests of what a pod was made from, so that a change of it replaces the pod.
const (
	// AnnotationSlurmKeyHash is the digest of the auth/slurm key.
	AnnotationSlurmKeyHash = "slinky.slurm.net/slurm-key-hash"
	// AnnotationJwtKeyHash is the digest of the JWT key.
	AnnotationJwtKeyHash = "slinky.slurm.net/jwt-key-hash"
	// AnnotationMungeKeyHash is the digest of the munge key, where munged runs.
	AnnotationMungeKeyHash = "coxswain.dev/munge-key-hash"
	// AnnotationJwtHs256KeyHash is AnnotationJwtKeyHash as releases before 1.1 spelled it.
	AnnotationJwtHs256KeyHash = "slinky.slurm.net/jwt-hs256-key-hash"
	// AnnotationSlurmConfigHash is the digest of slurm.conf and the files beside it.
	AnnotationSlurmConfigHash = "slinky.slurm.net/slurm-config-hash"
	// AnnotationSlurmConnectionHash is the digest of the lines of slurm.conf by which a client finds Slurm.
	AnnotationSlurmConnectionHash = "coxswain.dev/slurm-connection-hash"
	// AnnotationSlurmdbdConfHash is the digest of slurmdbd.conf.
	AnnotationSlurmdbdConfHash = "slinky.slurm.net/slurmdbd-conf-hash"
	// AnnotationSshdConfHash is the digest of the files of sshd_config and root's authorized_keys.
	AnnotationSshdConfHash = "slinky.slurm.net/sshd-conf-hash"
	// AnnotationSssdConfHash is the digest of sssd.conf.
	AnnotationSssdConfHash = "slinky.slurm.net/sssd-conf-hash"
	// AnnotationSSHHostKeysHash is the digest of the ssh host keys.
	AnnotationSSHHostKeysHash = "slinky.slurm.net/ssh-host-keys-hash"
)

const (
	// TaintWorker is the key of the taint, without value and with effect NoExecute, that every worker pod tolerates.
	TaintWorker = "nodeset.slinky.slurm.net/worker"

	// FinalizerReservation keeps a NodeSet until its Slurm reservation is deleted.
	FinalizerReservation = "nodeset.slinky.slurm.net/reservation"
	// FinalizerWorkers keeps a NodeSet until its workers are drained and deleted.
	FinalizerWorkers = "coxswain.dev/workers"
)

// Values of the label app.kubernetes.io/name, one for each component.
const (
	// NameSlurmctld marks what belongs to a Controller.
	NameSlurmctld = "slurmctld"
	// NameSlurmdbd marks what belongs to an Accounting.
	NameSlurmdbd = "slurmdbd"
	// NameSlurmrestd marks what belongs to a RestApi.
	NameSlurmrestd = "slurmrestd"
	// NameLogin marks what belongs to a LoginSet.
	NameLogin = "login"
	// NameSlurmd marks what belongs to a NodeSet.
	NameSlurmd = "slurmd"
	// NameToken marks what belongs to a Token.
	NameToken = "token"
	// NameMariaDB marks what belongs to the embedded database of an Accounting.
	NameMariaDB = "mariadb"
)
