// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// Controller is slurmctld.
type Controller struct {
	SlurmNode    `json:",inline"`
	SSSDSettings `json:",inline"`

	// HostUsers false runs the pods in a user namespace of their own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// Slurmctld is the container of slurmctld. Its port is SlurmctldPort, 6817 by default.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_SlurmctldPort
	// +optional
	Slurmctld NodeContainer `json:"slurmctld,omitzero"`

	// Munge is the container of munged beside slurmctld. It runs where an image is named that is not Soperator's; clients may then
	// prove who they are by munge as well. The daemons trust each other by auth/slurm in any case. Default: none.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_AuthAltTypes
	// +optional
	Munge NodeContainer `json:"munge,omitzero"`

	// OpenMetrics are slurmctld's own metrics. See https://slurm.schedmd.com/metrics.html
	// +optional
	// +kubebuilder:default={}
	OpenMetrics OpenMetrics `json:"openMetrics,omitzero"`

	// ServiceAccountName is the ServiceAccount of the pod. Default: one made by the operator.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Volumes are the volumes of slurmctld.
	// +optional
	Volumes ControllerVolumes `json:"volumes,omitzero"`
}

// ControllerVolumes are the volumes of slurmctld.
type ControllerVolumes struct {
	// Jail is the root file system whose users slurmctld knows. Default: that of the cluster, which is
	// the jail of the first of slurmctld, login pods and workers that names one, or the volume source called jail; else none.
	// +optional
	Jail *NodeVolume `json:"jail,omitempty"`

	// Spool holds the state of slurmctld. Default: a claim of the default storage class.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_StateSaveLocation
	// +optional
	Spool *NodeVolume `json:"spool,omitempty"`

	// CustomMounts are mounts in the container.
	// +optional
	// +kubebuilder:validation:MaxItems=256
	CustomMounts []NodeVolumeMount `json:"customMounts,omitempty"`
}

// OpenMetrics are slurmctld's own metrics.
type OpenMetrics struct {
	// Enabled has slurmctld serve metrics: MetricsType=metrics/openmetrics. Default: true.
	// https://slurm.schedmd.com/slurm.conf.html#OPT_MetricsType
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// ServiceMonitor has Prometheus scrape them, where the prometheus-operator is installed.
	// +optional
	// +kubebuilder:default={}
	ServiceMonitor ServiceMonitor `json:"serviceMonitor,omitzero"`
}

// ServiceMonitor has Prometheus scrape slurmctld.
type ServiceMonitor struct {
	// Endpoints are the groups of metrics to scrape. Default: all.
	// +optional
	// +kubebuilder:validation:items:Enum=jobs;jobs-users-accts;nodes;partitions;scheduler
	Endpoints []string `json:"endpoints,omitempty"`

	// Interval is the time between two scrapes. Default: 30s.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Pattern=`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`
	Interval string `json:"interval,omitempty"`

	// ScrapeTimeout is the time that a scrape may take, at most the interval. Default: 28s.
	// +optional
	// +kubebuilder:default="28s"
	// +kubebuilder:validation:Pattern=`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`
	ScrapeTimeout string `json:"scrapeTimeout,omitempty"`
}
