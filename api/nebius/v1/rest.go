// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// REST is slurmrestd, which serves Slurm's REST API. See https://slurm.schedmd.com/rest.html
type REST struct {
	SlurmNode `json:",inline"`

	// HostUsers false runs the pods in a user namespace of their own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// Enabled serves the REST API to users of the cluster at Service <cluster>-rest-svc. Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Size is the number of slurmrestd pods. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Size *int32 `json:"size,omitempty"`

	// REST is the container of slurmrestd. Its default port is 6820.
	// +optional
	REST NodeContainer `json:"rest,omitzero"`

	// ThreadCount is the number of threads that serve requests: SLURMRESTD_THREAD_COUNT. Default: 3.
	// https://slurm.schedmd.com/slurmrestd.html#SECTION_ENVIRONMENT-VARIABLES
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=1024
	ThreadCount int32 `json:"threadCount,omitempty"`

	// MaxConnections is the most connections at a time: SLURMRESTD_MAX_CONNECTIONS. Default: 10.
	// https://slurm.schedmd.com/slurmrestd.html#SECTION_ENVIRONMENT-VARIABLES
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=2
	MaxConnections int32 `json:"maxConnections,omitempty"`
}
