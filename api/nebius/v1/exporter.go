// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "github.com/coxswain-hpc/coxswain/api/embedded"

// Exporter serves metrics of the cluster to Prometheus.
type Exporter struct {
	SlurmNode `json:",inline"`

	// HostUsers false runs the pods in a user namespace of their own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// Enabled runs the exporter, and makes a PodMonitor where the prometheus-operator is installed. Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Size has no effect: there is always one exporter.
	// +optional
	Size int32 `json:"size,omitempty"`

	// ExporterContainer is the container of the exporter.
	// +optional
	ExporterContainer NodeContainer `json:"exporterContainer,omitzero"`

	// CollectionInterval is the time between two collections, such as 30s. Default: 30s.
	// +optional
	// +kubebuilder:default="30s"
	// +kubebuilder:validation:Pattern=`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`
	CollectionInterval string `json:"collectionInterval,omitempty"`

	// JobSource is where jobs are read from: slurmctld (controller) or slurmdbd (accounting). Default: controller.
	// +optional
	// +kubebuilder:default=controller
	// +kubebuilder:validation:Enum="";controller;accounting
	JobSource string `json:"jobSource,omitempty"`

	// AccountingJobsLookback is how far back jobs are read from slurmdbd, such as 1h. Default: 1h.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('[1-9]')",message="accountingJobsLookback must be greater than zero"
	AccountingJobsLookback string `json:"accountingJobsLookback,omitempty"`

	// MaxCollectorInflight is how many collections of one kind may run at a time. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	MaxCollectorInflight int32 `json:"maxCollectorInflight,omitempty"`

	// PodMonitorConfig are settings of the PodMonitor.
	// +optional
	// +kubebuilder:default={jobLabel: "slurm-exporter", interval: "30s", scrapeTimeout: "20s"}
	PodMonitorConfig PodMonitorConfig `json:"podMonitorConfig,omitzero"`

	// ServiceAccountName is the ServiceAccount of the pod. Default: one made by the operator.
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// Deprecated: use exporterContainer. With an image here, the exporter is left alone altogether.
	// +optional
	Exporter *LegacyExporter `json:"exporter,omitempty"`

	// Deprecated: has no effect; the exporter does not use munge.
	// +optional
	Munge *NodeContainer `json:"munge,omitempty"`

	// Deprecated: has no effect; the exporter does not use the jail.
	// +optional
	Volumes *ExporterVolumes `json:"volumes,omitempty"`
}

// PodMonitorConfig are settings of the exporter's PodMonitor.
type PodMonitorConfig struct {
	// JobLabel is the label of the pod that names the Prometheus job.
	// +optional
	JobLabel string `json:"jobLabel,omitempty"`

	// Interval is the time between two scrapes.
	// +optional
	// +kubebuilder:validation:Pattern=`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`
	Interval string `json:"interval,omitempty"`

	// ScrapeTimeout is the time that a scrape may take, at most the interval.
	// +optional
	// +kubebuilder:validation:Pattern=`^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?(([0-9]+)ms)?)$`
	ScrapeTimeout string `json:"scrapeTimeout,omitempty"`

	// RelabelConfig are relabelings of the targets (monitoring.coreos.com/v1 RelabelConfig). One that may make a label which
	// begins with __, such as __address__, is refused; __tmp is free.
	// +optional
	RelabelConfig []embedded.Object `json:"relabelConfig,omitempty"`

	// MetricRelabelConfigs are relabelings of the metrics (monitoring.coreos.com/v1 RelabelConfig). They follow one that
	// drops the labels pod, instance and container.
	// +optional
	MetricRelabelConfigs []embedded.Object `json:"metricRelabelConfigs,omitempty"`
}

// LegacyExporter is the container of an exporter of the first generation.
type LegacyExporter struct {
	NodeContainer `json:",inline"`

	// PodTemplateNameRef is the name of a core/v1 PodTemplate. It has no effect.
	// +optional
	PodTemplateNameRef string `json:"podTemplateNameRef,omitempty"`
}

// ExporterVolumes are the volumes of an exporter of the first generation.
type ExporterVolumes struct {
	// Jail is the root file system of jobs.
	// +optional
	Jail *NodeVolume `json:"jail,omitempty"`
}
