// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types. The first three stand on every kind and follow kstatus, so that "kubectl wait" and GitOps tools
// understand them.
// More info: https://github.com/kubernetes-sigs/cli-utils/blob/master/pkg/kstatus/README.md
const (
	// ConditionReady is True while the component is as its spec asks.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator works towards the spec and something is still to come.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will happen until a user changes something; the message names what.
	ConditionStalled = "Stalled"

	// ConditionFieldsIgnored is True when the spec sets fields that have no effect; the message names them.
	ConditionFieldsIgnored = "FieldsIgnored"
	// ConditionKeysPresent, on Controller and Accounting, is True when the Secrets with the auth/slurm and auth/jwt keys
	// are there and hold the keys that the spec names.
	ConditionKeysPresent = "KeysPresent"
	// ConditionConfigApplied, on Controller, is True when slurmctld has loaded the configuration whose digest is
	// status.configDigest.
	ConditionConfigApplied = "ConfigApplied"
	// ConditionConfigDoubtful, on Controller, is True when the configuration has keys that the operator does not know and
	// that a newer slurmctld may know, or numbers that may not do; the message names them.
	ConditionConfigDoubtful = "ConfigDoubtful"
	// ConditionEditWaits, on Controller and SlurmCluster, is True while partitions and nodes that its configuration no longer has stay in
	// slurm.conf, since jobs need them or may. They take no new jobs. The message has how many jobs need the partitions, as they were counted
	// last. Otherwise the condition is absent.
	ConditionEditWaits = "EditWaits"
	// ConditionJobsConfined, on Controller, is True when slurm.conf and cgroup.conf keep jobs to the cores, the memory and the devices that
	// they were given; the message names what they lack.
	ConditionJobsConfined = "JobsConfined"
	// ConditionHighlyAvailable, on a Controller with spec.ha, is True while a backup could take over from the active
	// slurmctld.
	ConditionHighlyAvailable = "HighlyAvailable"
	// ConditionVersionSupported, on Controller, is False when slurmctld is of a release that the operator cannot drive.
	ConditionVersionSupported = "VersionSupported"
	// ConditionSlurmReachable, on Controller, is True while slurmrestd answers and its answers can be relied on. While it
	// is not, no worker is drained, undrained or deleted for anything that only Slurm knows.
	ConditionSlurmReachable = "SlurmReachable"
	// ConditionDestructiveActionsPaused, on Controller, is True while deletions of workers wait because a minute has seen
	// as many as the cluster may.
	ConditionDestructiveActionsPaused = "DestructiveActionsPaused"
	// ConditionDatabaseReachable, on Accounting, is True while slurmdbd is connected to its database, and Unknown when that
	// is not known.
	ConditionDatabaseReachable = "DatabaseReachable"
	// ConditionSuspended, on Controller and Accounting, is True when the component is stopped because spec.suspend is true.
	ConditionSuspended = "Suspended"
	// ConditionReservationCreated, on NodeSet, is True while the maintenance reservation of a ScheduledUpdate exists.
	ConditionReservationCreated = "ReservationCreated"
	// ConditionWorkersUnknown, on NodeSet, is True when Slurm lacks workers that run and seems to have lost its state. It stays True
	// until Slurm has all of them. Meanwhile the operator deletes none of those.
	ConditionWorkersUnknown = "WorkersUnknown"
	// ConditionDrainsByChecksPaused, on NodeSet, is True while checks want more workers out of service than are allowed at the same time.
	// It is absent until that has happened.
	ConditionDrainsByChecksPaused = "DrainsByChecksPaused"
)

// Reasons of ConditionReady.
const (
	// ReasonAvailable (True): all wanted pods are ready.
	ReasonAvailable = "Available"
	// ReasonExternal (True): the component runs elsewhere and there is nothing to run here.
	ReasonExternal = "External"
	// ReasonPodsNotReady (False): some wanted pods are missing or not ready; the message counts them.
	ReasonPodsNotReady = "PodsNotReady"
	// ReasonWorkersUnknown (False): workers run that Slurm does not have, and it seems to have lost its state.
	ReasonWorkersUnknown = "WorkersUnknown"
	// ReasonControllerNotReady (False): the Controller that this belongs to is missing or not ready.
	ReasonControllerNotReady = "ControllerNotReady"
	// ReasonTokenIssued (True): the Secret of the Token holds a token that has not expired.
	ReasonTokenIssued = "TokenIssued"
)

// Reasons of ConditionSuspended. The first is also one of ConditionReady and of ConditionSlurmReachable.
const (
	// ReasonSuspended (True): spec.suspend is true, and no pod is left. ConditionReady is True for the same reason, and
	// ConditionSlurmReachable False.
	ReasonSuspended = "Suspended"
	// ReasonSuspending (False): spec.suspend is true, and pods are still there.
	ReasonSuspending = "Suspending"
	// ReasonResuming (False): spec.suspend is false again, and the component is not ready yet.
	ReasonResuming = "Resuming"
	// ReasonResumed (False): the component has been ready again since it was suspended.
	ReasonResumed = "Resumed"
)

// Reasons of ConditionReconciling, and of ConditionStalled when it is False.
const (
	// ReasonReconciled (False): the objects in the cluster are those that the spec asks for.
	ReasonReconciled = "Reconciled"
	// ReasonRollingOut (True): pods are being created, replaced or removed.
	ReasonRollingOut = "RollingOut"
	// ReasonWaiting (True): the next step waits for another object; the message names it.
	ReasonWaiting = "Waiting"
	// ReasonApplyFailed (True): the API server refuses to store an object that the component needs, for reasons outside of
	// the spec: a quota, an admission webhook, a missing right. The message quotes it; it is tried again.
	ReasonApplyFailed = "ApplyFailed"
)

// Reasons of ConditionStalled when it is True; ConditionReady is False for the same reason.
const (
	// ReasonInvalidSpec: a value in the spec cannot be used; the message begins with the path of the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonInvalidOverlay: a container, pod template or Service spec in the spec cannot be laid over the generated one, as
	// when a field is misspelt; the message begins with its path.
	ReasonInvalidOverlay = "InvalidOverlay"
	// ReasonReferenceRefused: a reference names another namespace.
	ReasonReferenceRefused = "ReferenceRefused"
	// ReasonReferenceNotFound: an object that the spec refers to does not exist; the message names field and object.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonInvalidConfiguration: slurmctld would not start with the configuration, or has refused it. The message quotes
	// the line and the complaint. The configuration before it stays where it is.
	ReasonInvalidConfiguration = "InvalidConfiguration"
	// ReasonConfigTooLarge: the configuration does not fit into a ConfigMap.
	ReasonConfigTooLarge = "ConfigTooLarge"
	// ReasonImmutableField: the change cannot be made to the objects that exist; the message has the way to get it.
	ReasonImmutableField = "ImmutableField"
	// ReasonPrivilegedUser: a Token is for root, SlurmUser or a number, and the Secret with the key does not allow it;
	// the message names the annotation.
	ReasonPrivilegedUser = "PrivilegedUser"
	// ReasonTokenExpired: the token of a Token without refresh has expired.
	ReasonTokenExpired = "TokenExpired"
	// ReasonNameConflict: an object of the name that is needed exists and belongs to someone else.
	ReasonNameConflict = "NameConflict"
	// ReasonHostnameConflict: the host name of a worker is another worker's, or, from a Kubernetes node in scaling mode DaemonSet, cannot
	// be one; the other workers are made.
	ReasonHostnameConflict = "HostnameConflict"
)

// Reasons of ConditionFieldsIgnored.
const (
	// ReasonFieldUnsupported (True): a field is set that this version of the operator does not act on.
	ReasonFieldUnsupported = "FieldUnsupported"
	// ReasonAllFieldsUsed (False): every field that is set has its effect.
	ReasonAllFieldsUsed = "AllFieldsUsed"
)

// Reasons of ConditionKeysPresent.
const (
	// ReasonKeysFound (True): the Secrets that the spec names hold the keys.
	ReasonKeysFound = "KeysFound"
	// ReasonKeysGenerated (True): at least one key was left out in the spec and is generated.
	ReasonKeysGenerated = "KeysGenerated"
	// ReasonKeyMissing (False): a Secret, or the key in it, does not exist; the message names both and the field.
	ReasonKeyMissing = "KeyMissing"
	// ReasonKeyInvalid (False): the set of keys beside the auth/slurm key is not one that Slurm accepts; ConditionStalled
	// is True for the same reason.
	ReasonKeyInvalid = "KeyInvalid"
	// ReasonKeyMismatch (False): a Controller and its Accounting use different Secrets, so that neither would trust
	// the other.
	ReasonKeyMismatch = "KeyMismatch"
)

// Reasons of ConditionEditWaits.
const (
	// ReasonJobsNeedPartitions (True): slurmctld would end the jobs of partitions that are to go.
	ReasonJobsNeedPartitions = "JobsNeedPartitions"
	// ReasonEditDone, of an event: the last of those partitions has gone.
	ReasonEditDone = "EditDone"
)

// Reasons of ConditionConfigApplied.
const (
	// ReasonConfigLoaded (True): slurmctld runs with the current configuration.
	ReasonConfigLoaded = "ConfigLoaded"
	// ReasonConfigPending (False): the configuration is on its way to slurmctld.
	ReasonConfigPending = "ConfigPending"
	// ReasonConfigRejected (False): slurmctld refused the configuration, although the operator found nothing against it. The
	// message quotes slurmctld. ConditionStalled is True for the same reason.
	ReasonConfigRejected = "ConfigRejected"
	// ReasonConfigUnknown (Unknown): slurmctld cannot be asked, or does not report what it has loaded; the message has the reason.
	ReasonConfigUnknown = "ConfigUnknown"
)

// Reasons of ConditionConfigDoubtful.
const (
	// ReasonUnknownKeys (True): there are keys that the operator does not know.
	ReasonUnknownKeys = "UnknownKeys"
	// ReasonTooManyNodes (True): MaxNodeCount is less than the nodes that there are to be.
	ReasonTooManyNodes = "TooManyNodes"
	// ReasonHealthCheckTimeoutTooLong (True): HealthCheckTimeout is not less than HealthCheckInterval, of which slurmctld and slurmd
	// complain in their logs.
	ReasonHealthCheckTimeoutTooLong = "HealthCheckTimeoutTooLong"
	// ReasonIncludeNotLookedAfter (True): slurm.conf includes a file that the operator does not know, or has no room for. It cannot keep
	// partitions and nodes for their jobs that go from there.
	ReasonIncludeNotLookedAfter = "IncludeNotLookedAfter"
	// ReasonKeysKnown (False): the operator knows all keys.
	ReasonKeysKnown = "KeysKnown"
)

// Reasons of ConditionJobsConfined.
const (
	// ReasonControlGroupsConfine (True): control groups keep jobs to what they were given.
	ReasonControlGroupsConfine = "ControlGroupsConfine"
	// ReasonNotConfined (False): jobs may use more than they were given, as Slurm's defaults let them.
	ReasonNotConfined = "NotConfined"
)

// Reasons of ConditionHighlyAvailable.
const (
	// ReasonBackupReady (True): at least two slurmctlds answer.
	ReasonBackupReady = "BackupReady"
	// ReasonBackupMissing (False): fewer than two slurmctlds answer; the message names those that do.
	ReasonBackupMissing = "BackupMissing"
	// ReasonNotAsked (Unknown): the slurmctlds cannot be asked; the message has the reason.
	ReasonNotAsked = "NotAsked"
)

// Reasons of ConditionVersionSupported.
const (
	// ReasonVersionSupported (True): the operator can drive this release of Slurm.
	ReasonVersionSupported = "VersionSupported"
	// ReasonVersionUnsupported (False): the operator cannot drive this release; the message names those that it can.
	ReasonVersionUnsupported = "VersionUnsupported"
	// ReasonVersionUnknown (Unknown): slurmctld has not reported its release yet.
	ReasonVersionUnknown = "VersionUnknown"
)

// Reasons of ConditionSlurmReachable; ReasonKeyMissing (False) is another one.
const (
	// ReasonAnswering (True): slurmrestd answers, and its answers fit those before.
	ReasonAnswering = "Answering"
	// ReasonConnecting (Unknown): slurmrestd has not answered yet.
	ReasonConnecting = "Connecting"
	// ReasonNotAnswering (False): slurmrestd or slurmctld does not answer; the message has the error.
	ReasonNotAnswering = "NotAnswering"
	// ReasonTokenRefused (False): slurmctld does not accept tokens that are signed with the key in the Secret.
	ReasonTokenRefused = "TokenRefused"
	// ReasonAnswersInDoubt (Unknown): answers of slurmrestd make no sense, or contradict those before, as after a
	// slurmctld has lost its state; the message names what.
	ReasonAnswersInDoubt = "AnswersInDoubt"
	// ReasonNoRestAPI (False): no RestApi refers to the Controller, so that Slurm cannot be asked.
	ReasonNoRestAPI = "NoRestApi"
)

// Reasons of ConditionDestructiveActionsPaused.
const (
	// ReasonWithinBudget (False): deletions of workers happen as they are due.
	ReasonWithinBudget = "WithinBudget"
	// ReasonBudgetSpent (True): a minute has seen as many deletions as it may; the others follow.
	ReasonBudgetSpent = "BudgetSpent"
)

// Reasons of ConditionDrainsByChecksPaused.
const (
	// ReasonWithinLimit (False): no check waits.
	ReasonWithinLimit = "WithinLimit"
	// ReasonLimitReached (True): as many workers are out of service for checks as --max-nodes-drained-by-checks allows; the message names
	// those that checks want out as well.
	ReasonLimitReached = "LimitReached"
)

// Reasons of ConditionDatabaseReachable.
const (
	// ReasonDatabaseConnected (True): slurmdbd is connected to its database.
	ReasonDatabaseConnected = "DatabaseConnected"
	// ReasonDatabaseStarting (False): the embedded database is not ready yet.
	ReasonDatabaseStarting = "DatabaseStarting"
	// ReasonDatabaseUnreachable (False): slurmdbd has no connection to the database; the message names the database, and where
	// slurmdbd logs the reason.
	ReasonDatabaseUnreachable = "DatabaseUnreachable"
	// ReasonPasswordMissing (False): the Secret with the database password, or the key in it, does not exist.
	ReasonPasswordMissing = "PasswordMissing"
	// ReasonDatabaseNotSeen (Unknown): it is not known at the moment, since slurmdbd's pod does not run, or its node does
	// not answer. ReasonExternal (Unknown): slurmdbd runs elsewhere.
	ReasonDatabaseNotSeen = "DatabaseNotSeen"
)

// Reasons of ConditionWorkersUnknown.
const (
	// ReasonStateLost (True): workers run that Slurm does not have, and it lacked most of those of the cluster.
	ReasonStateLost = "StateLost"
	// ReasonWorkersKnown (False): Slurm has all workers that run, but for those that it never had.
	ReasonWorkersKnown = "WorkersKnown"
)

// Reasons of ConditionReservationCreated.
const (
	// ReasonReservationCreated (True): the reservation exists.
	ReasonReservationCreated = "Created"
	// ReasonReservationNotExists (False): the reservation does not exist.
	ReasonReservationNotExists = "NotExists"
)

// GetConditions returns the conditions in the status.
func (a *Accounting) GetConditions() []metav1.Condition { return a.Status.Conditions }

// SetConditions replaces the conditions in the status.
func (a *Accounting) SetConditions(conditions []metav1.Condition) { a.Status.Conditions = conditions }

// GetConditions returns the conditions in the status.
func (c *Controller) GetConditions() []metav1.Condition { return c.Status.Conditions }

// SetConditions replaces the conditions in the status.
func (c *Controller) SetConditions(conditions []metav1.Condition) { c.Status.Conditions = conditions }

// GetConditions returns the conditions in the status.
func (l *LoginSet) GetConditions() []metav1.Condition { return l.Status.Conditions }

// SetConditions replaces the conditions in the status.
func (l *LoginSet) SetConditions(conditions []metav1.Condition) { l.Status.Conditions = conditions }

// GetConditions returns the conditions in the status.
func (n *NodeSet) GetConditions() []metav1.Condition { return n.Status.Conditions }

// SetConditions replaces the conditions in the status.
func (n *NodeSet) SetConditions(conditions []metav1.Condition) { n.Status.Conditions = conditions }

// GetConditions returns the conditions in the status.
func (r *RestApi) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions in the status.
func (r *RestApi) SetConditions(conditions []metav1.Condition) { r.Status.Conditions = conditions }

// GetConditions returns the conditions in the status.
func (t *Token) GetConditions() []metav1.Condition { return t.Status.Conditions }

// SetConditions replaces the conditions in the status.
func (t *Token) SetConditions(conditions []metav1.Condition) { t.Status.Conditions = conditions }
