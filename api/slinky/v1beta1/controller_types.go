// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// ControllerSpec is what a user asks of a Controller.
//
// +kubebuilder:validation:XValidation:rule=`!self.?external.orValue(false) || self.?externalConfig.host.orValue("") != "" && self.externalConfig.port > 0`,message="externalConfig must be set when external is true"
// +kubebuilder:validation:XValidation:rule=`!self.?ha.enabled.orValue(false) || (self.?persistence.enabled.orValue(false) && self.?persistence.existingClaim.orValue("") != "")`,message="ha.enabled needs persistence.existingClaim, a PersistentVolumeClaim with access mode ReadWriteMany: all slurmctld pods share the saved state"
// +kubebuilder:validation:XValidation:rule=`(has(self.clusterName) ? self.clusterName : "") == (has(oldSelf.clusterName) ? oldSelf.clusterName : "")`,message="clusterName cannot be changed: the saved state and the accounting records belong to it"
// +kubebuilder:validation:XValidation:rule=`self.?persistence.enabled.orValue(true) == oldSelf.?persistence.enabled.orValue(true)`,message="persistence.enabled cannot be changed: the saved state would be lost"
// +kubebuilder:validation:XValidation:rule=`(has(self.persistence) && has(self.persistence.existingClaim) ? self.persistence.existingClaim : "") == (has(oldSelf.persistence) && has(oldSelf.persistence.existingClaim) ? oldSelf.persistence.existingClaim : "")`,message="persistence.existingClaim cannot be changed: the saved state would be lost"
type ControllerSpec struct {
	// ClusterName is the name of the Slurm cluster, at most 40 characters. It cannot be changed. Slurm keeps it in lower
	// case. Default: <namespace>_<name>.
	// Slurm: ClusterName, https://slurm.schedmd.com/slurm.conf.html#OPT_ClusterName
	// +optional
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9A-Za-z_$][0-9A-Za-z_$.-]*)?$')",message="must consist of letters, digits and the characters _ $ . - and begin with none of the last two"
	ClusterName string `json:"clusterName,omitempty"`

	// SlurmKeyRef selects the key with which the daemons of the cluster prove who they are (auth/slurm): 1024 random
	// bytes, for example. Secret and key cannot be changed. Default: the operator generates the key once and keeps it as
	// slurm.key in Secret <name>-auth-slurm.
	// Slurm: AuthType=auth/slurm, https://slurm.schedmd.com/authentication.html#slurm
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.key == oldSelf.key",message="the key of a cluster cannot be changed for another one; change the content of the Secret"
	SlurmKeyRef *corev1.SecretKeySelector `json:"slurmKeyRef,omitempty"`

	// JwtKeyRef selects the key with which JSON Web Tokens are signed and checked (auth/jwt): random bytes for HS256, 32
	// or more. It wins over jwtHs256KeyRef. Secret and key cannot be changed. Default: the operator generates the key
	// once and keeps it as jwt.key in Secret <name>-auth-jwt.
	// Slurm: AuthAltParameters=jwt_key=, https://slurm.schedmd.com/jwt.html
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.key == oldSelf.key",message="the key of a cluster cannot be changed for another one; change the content of the Secret"
	JwtKeyRef *corev1.SecretKeySelector `json:"jwtKeyRef,omitempty"`

	// JwtHs256KeyRef is the earlier name of jwtKeyRef.
	//
	// Deprecated: use jwtKeyRef.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.key == oldSelf.key",message="the key of a cluster cannot be changed for another one; change the content of the Secret"
	JwtHs256KeyRef *corev1.SecretKeySelector `json:"jwtHs256KeyRef,omitempty"`

	// JwksKeyRef selects a JSON Web Key Set with the public keys of further token issuers, from a ConfigMap. Default:
	// none.
	// Slurm: AuthAltParameters=jwks=, https://slurm.schedmd.com/jwt.html
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	JwksKeyRef *corev1.ConfigMapKeySelector `json:"jwksKeyRef,omitempty"`

	// AccountingRef names the Accounting (slurmdbd) that keeps the job records of this cluster. Default: none, the
	// records are not kept.
	// Slurm: AccountingStorageHost, https://slurm.schedmd.com/slurm.conf.html#OPT_AccountingStorageHost
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.?namespace.orValue('') == ''",message="name must not be empty"
	AccountingRef *ObjectReference `json:"accountingRef,omitempty"`

	// External is true if slurmctld runs elsewhere, at externalConfig. Only a minimal slurm.conf is made for it then,
	// and the keys must be given, since nothing here can generate those of another cluster. Default: false.
	// +optional
	// +kubebuilder:default=false
	External bool `json:"external,omitempty"`

	// ExternalConfig is the address of the external slurmctld. Required when external is true.
	// +optional
	ExternalConfig *ExternalConfig `json:"externalConfig,omitempty"`

	// Slurmctld is the container of slurmctld: a core/v1 Container, or a part of one, laid over the generated one as a
	// strategic merge patch. The API server does not look inside; a mistyped field shows as condition Stalled, with
	// its path. Default image: the operator's.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
	// +optional
	Slurmctld *embedded.Container `json:"slurmctld,omitempty"`

	// Reconfigure is the sidecar container that runs "scontrol reconfigure" when the files in /etc/slurm change: a
	// core/v1 Container, or a part of one, laid over the generated one. Default image: that of slurmctld.
	// +optional
	Reconfigure *embedded.Container `json:"reconfigure,omitempty"`

	// Logfile is the sidecar container that copies slurmctld's log to its standard output: a core/v1 Container, or a
	// part of one, laid over the generated one. Default image: that of slurmctld.
	// +optional
	Logfile *embedded.Container `json:"logfile,omitempty"`

	// Jail is the root file system in which jobs run on workers: a plugin of the image moves them there, by the first line of
	// plugstack.conf. Slurmctld itself only learns the users of its /etc/passwd, through a read-only mount of a sidecar. Give
	// the workers their jail first: jobs do not start on a worker without one. Default: none.
	// Slurm: https://slurm.schedmd.com/spank.html
	// +optional
	Jail *Jail `json:"jail,omitempty"`

	// Munge lets clients prove who they are by munge as well: munged runs beside slurmctld. The daemons still trust each other by
	// auth/slurm. It has no effect with external. Default: none.
	// Slurm: AuthAltTypes, https://slurm.schedmd.com/slurm.conf.html#OPT_AuthAltTypes
	// +optional
	Munge *Munge `json:"munge,omitempty"`

	// SSSD makes the users and the groups of a directory known to slurmctld, for AllowGroups of partitions for example, and to slurmrestd,
	// which has a sidecar of the same kind. With external, slurmrestd alone has one. Default: none.
	// Slurm: AllowGroups, https://slurm.schedmd.com/slurm.conf.html#OPT_AllowGroups
	// +optional
	SSSD *SSSD `json:"sssd,omitempty"`

	// Template is laid over the slurmctld pod.
	// +optional
	Template PodTemplate `json:"template,omitzero"`

	// ExtraConf is merged into the generated slurm.conf; it may have many lines. A parameter with one value replaces
	// the generated one, a comma-separated one is united with it, a line of a repeatable kind (PartitionName=…,
	// NodeSet=…) is added. Parameters that the operator needs as they are (ClusterName, SlurmctldHost and others) are
	// refused with condition Stalled. Default: nothing.
	// Slurm: https://slurm.schedmd.com/slurm.conf.html
	// +optional
	ExtraConf string `json:"extraConf,omitempty"`

	// ConfigFileRefs name ConfigMaps whose keys become files in /etc/slurm, such as cgroup.conf, gres.conf, topology.yaml.
	// slurm.conf and slurmdbd.conf are not among them.
	// Slurm: https://slurm.schedmd.com/slurm.conf.html
	// +optional
	// +nullable
	// +kubebuilder:validation:items:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	ConfigFileRefs []ObjectReference `json:"configFileRefs,omitempty"`

	// PrologScriptRefs name ConfigMaps whose keys are scripts that slurmd runs before a job.
	// Slurm: Prolog, https://slurm.schedmd.com/slurm.conf.html#OPT_Prolog
	// +optional
	// +nullable
	// +kubebuilder:validation:items:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	PrologScriptRefs []ObjectReference `json:"prologScriptRefs,omitempty"`

	// EpilogScriptRefs name ConfigMaps whose keys are scripts that slurmd runs after a job.
	// Slurm: Epilog, https://slurm.schedmd.com/slurm.conf.html#OPT_Epilog
	// +optional
	// +nullable
	// +kubebuilder:validation:items:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	EpilogScriptRefs []ObjectReference `json:"epilogScriptRefs,omitempty"`

	// PrologSlurmctldScriptRefs name ConfigMaps whose keys are scripts that slurmctld runs before a job.
	// Slurm: PrologSlurmctld, https://slurm.schedmd.com/slurm.conf.html#OPT_PrologSlurmctld
	// +optional
	// +nullable
	// +kubebuilder:validation:items:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	PrologSlurmctldScriptRefs []ObjectReference `json:"prologSlurmctldScriptRefs,omitempty"`

	// EpilogSlurmctldScriptRefs name ConfigMaps whose keys are scripts that slurmctld runs after a job.
	// Slurm: EpilogSlurmctld, https://slurm.schedmd.com/slurm.conf.html#OPT_EpilogSlurmctld
	// +optional
	// +nullable
	// +kubebuilder:validation:items:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	EpilogSlurmctldScriptRefs []ObjectReference `json:"epilogSlurmctldScriptRefs,omitempty"`

	// InplaceReconfigure selects how a changed configuration takes effect. True: the reconfigure sidecar makes slurmctld load it
	// without a restart. False: the slurmctld pod is replaced. Default: false.
	// Slurm: https://slurm.schedmd.com/scontrol.html#OPT_reconfigure
	// +optional
	// +kubebuilder:default=false
	InplaceReconfigure bool `json:"inplaceReconfigure,omitempty"`

	// Persistence is the volume on which slurmctld saves its state: queue, running jobs, reservations. Default: a claim
	// of 4Gi with access mode ReadWriteOnce in the default StorageClass.
	// Slurm: StateSaveLocation, https://slurm.schedmd.com/slurm.conf.html#OPT_StateSaveLocation
	// +optional
	Persistence *ControllerPersistence `json:"persistence,omitempty"`

	// HA runs backup slurmctlds that take over when the active one fails. Default: one slurmctld, restarted by
	// Kubernetes when it fails.
	// Slurm: https://slurm.schedmd.com/quickstart_admin.html#HA
	// +optional
	HA *ControllerHA `json:"ha,omitempty"`

	// Suspend stops slurmctld and its backups, and keeps everything else: keys, configuration, Services and the claim with the saved
	// state. When it is false again, slurmctld continues with the jobs that it knew. Meanwhile Slurm cannot be asked, so the
	// operator drains and deletes no worker. Default: false.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// Service describes the Service of slurmctld.
	// +optional
	Service ServiceSpec `json:"service,omitzero"`

	// Metrics controls whether and how Prometheus finds slurmctld's metrics.
	// +optional
	Metrics Metrics `json:"metrics,omitzero"`
}

// ControllerPersistence is the volume on which slurmctld saves its state. Beside its own two fields it has those of a
// core/v1 PersistentVolumeClaimSpec.
type ControllerPersistence struct {
	// Enabled keeps the state on a PersistentVolumeClaim. Without it a new slurmctld pod knows no job of the old one. It
	// cannot be changed. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// ExistingClaim is the name of a PersistentVolumeClaim to use. The fields of the claim spec have no effect then. It
	// cannot be changed. Default: a claim of our own, statesave-<name>-controller-0.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ExistingClaim string `json:"existingClaim,omitempty"`

	corev1.PersistentVolumeClaimSpec `json:",inline"`
}

// ControllerHA describes Slurm's own fail-over of slurmctld.
type ControllerHA struct {
	// Enabled runs backup slurmctlds. It needs persistence.existingClaim with access mode ReadWriteMany.
	// Default: false.
	// Slurm: SlurmctldHost, https://slurm.schedmd.com/slurm.conf.html#OPT_SlurmctldHost
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Backups is the number of backup slurmctlds; there are 1 + backups slurmctld pods. Default: 1, with 0 as well.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Backups *int32 `json:"backups,omitempty"`
}

// Metrics controls whether and how Prometheus finds metrics.
type Metrics struct {
	// Enabled makes slurmctld serve OpenMetrics on its port, at /metrics/…. Default: false.
	// Slurm: MetricsType=metrics/openmetrics, https://slurm.schedmd.com/slurm.conf.html#OPT_MetricsType
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// ServiceMonitor describes the ServiceMonitor object for the Prometheus operator.
	// +optional
	// +nullable
	ServiceMonitor *ServiceMonitor `json:"serviceMonitor,omitempty"`
}

// ServiceMonitor describes a monitoring.coreos.com/v1 ServiceMonitor.
type ServiceMonitor struct {
	// Enabled makes the ServiceMonitor; metrics.enabled is needed too, and the CRD of the Prometheus operator.
	// Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	Metadata `json:",inline"`

	// Interval is the time between two scrapes of an endpoint that has none itself, such as 30s. Default: Prometheus'
	// own.
	// +optional
	Interval PrometheusDuration `json:"interval,omitempty"`

	// ScrapeTimeout is the time after which a scrape counts as failed, for endpoints that have none themselves; not
	// longer than interval. Default: Prometheus' own.
	// +optional
	ScrapeTimeout PrometheusDuration `json:"scrapeTimeout,omitempty"`

	// Endpoints to scrape. Default: /metrics/jobs, /metrics/nodes, /metrics/partitions and /metrics/scheduler.
	// +optional
	// +nullable
	Endpoints []MetricsEndpoint `json:"endpoints,omitempty"`
}

// MetricsEndpoint is one path from which Prometheus scrapes metrics.
type MetricsEndpoint struct {
	// Path is the HTTP path, such as /metrics/jobs.
	Path string `json:"path"`

	// Interval is the time between two scrapes. Default: serviceMonitor.interval.
	// +optional
	Interval PrometheusDuration `json:"interval,omitempty"`

	// ScrapeTimeout is the time after which a scrape counts as failed. Default: serviceMonitor.scrapeTimeout.
	// +optional
	ScrapeTimeout PrometheusDuration `json:"scrapeTimeout,omitempty"`
}

// PrometheusDuration is a duration as Prometheus writes it: numbers with the units y, w, d, h, m, s and ms, in this order.
//
// +kubebuilder:validation:Pattern=`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`
type PrometheusDuration string

// ControllerStatus is what the operator observes of a Controller.
type ControllerStatus struct {
	// ObservedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// ClusterName is the name by which Slurm knows the cluster.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`

	// ConfigDigest is the digest of the configuration that the operator last rendered for slurmctld. Condition
	// ConfigApplied shows whether slurmctld has loaded it.
	// +optional
	ConfigDigest string `json:"configDigest,omitempty"`

	// SlurmVersion is the release of slurmctld, such as 26.05.3, as it reports it.
	// +optional
	SlurmVersion string `json:"slurmVersion,omitempty"`

	// Conditions are Ready, Reconciling, Stalled, FieldsIgnored, KeysPresent, ConfigApplied, VersionSupported,
	// SlurmReachable and DestructiveActionsPaused. Suspended is there once slurmctld has been suspended.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Controller is slurmctld, and thereby a Slurm cluster: RestApis, LoginSets and NodeSets name the Controller that they
// belong to.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=slurmctld
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether slurmctld is up and does what the spec says."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why it is ready or not."
// +kubebuilder:printcolumn:name="CLUSTER",type="string",JSONPath=".status.clusterName",description="The name of the Slurm cluster."
// +kubebuilder:printcolumn:name="VERSION",type="string",JSONPath=".status.slurmVersion",description="The release of slurmctld.",priority=1
// +kubebuilder:printcolumn:name="APPLIED",type="string",JSONPath=".status.conditions[?(@.type==\"ConfigApplied\")].status",description="Whether slurmctld has loaded the current configuration.",priority=1
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="What to know about it.",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,39}[a-z0-9])?$')",message="metadata.name must begin with a letter, consist of lower-case letters, digits and '-', and have at most 41 characters: it becomes part of host names"
type Controller struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is asked for.
	// +optional
	// +kubebuilder:default={}
	Spec ControllerSpec `json:"spec,omitzero"`

	// Status is what is observed. The operator writes it.
	// +optional
	Status ControllerStatus `json:"status,omitzero"`
}

// ControllerList is a list of Controllers.
//
// +kubebuilder:object:root=true
type ControllerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Controller `json:"items"`
}
