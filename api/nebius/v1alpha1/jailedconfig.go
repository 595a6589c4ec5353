// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// JailedConfig is a ConfigMap whose keys are written as files into the jail.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Files Written",type=string,JSONPath=`.status.conditions[?(@.type=='FilesWritten')].reason`,description="Whether the files are written"
// +kubebuilder:printcolumn:name="Reconfiguration Status",type=string,JSONPath=`.status.conditions[?(@.type=='UpdateActionsCompleted')].reason`,description="Whether the update actions are completed"
// +kubebuilder:printcolumn:name="Jailed Path",type=string,JSONPath=`.spec.items[0].path`,description="Path of the first file"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type JailedConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec defines which files to write.
	// +required
	Spec JailedConfigSpec `json:"spec"`

	// Status shows which are written.
	// +optional
	Status JailedConfigStatus `json:"status,omitzero"`
}

// JailedConfigList is a list of JailedConfigs.
//
// +kubebuilder:object:root=true
type JailedConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []JailedConfig `json:"items"`
}

// LabelJailedAggregation on JailedConfigs names the group whose files are written as one batch.
const LabelJailedAggregation = "slurm.nebius.ai/jailed-aggregation"

// JailedConfigSpec defines which files to write.
type JailedConfigSpec struct {
	// ConfigMap is where the contents come from, in the same namespace.
	// +required
	ConfigMap ConfigMapReference `json:"configMap"`

	// Items define which key is written to which path.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Items []JailedConfigItem `json:"items,omitempty"`

	// DefaultMode are the permissions of files whose item names none, in decimal: 420 is 0644, the default.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4095
	DefaultMode *int32 `json:"defaultMode,omitempty"`

	// UpdateActions are done, in this order, when all files are written. Reconfigure has Slurm reread its configuration.
	// https://slurm.schedmd.com/scontrol.html#OPT_reconfigure
	// +optional
	// +listType=atomic
	UpdateActions []UpdateAction `json:"updateActions,omitempty"`
}

// UpdateAction is what is done when files are written.
//
// +kubebuilder:validation:Enum=Reconfigure
type UpdateAction string

// UpdateActionReconfigure has Slurm reread its configuration.
const UpdateActionReconfigure UpdateAction = "Reconfigure"

// ConfigMapReference names a ConfigMap in the same namespace.
type ConfigMapReference struct {
	// Name is the name of the ConfigMap.
	// +required
	Name string `json:"name"`
}

// JailedConfigItem defines which key is written to which path.
type JailedConfigItem struct {
	// Key is the key of the ConfigMap, of data or else binaryData.
	// +required
	Key string `json:"key"`

	// Path is the absolute path of the file in the jail.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !self.endsWith('/') && !self.matches('/[.][.]?(/|$)')",message="must be an absolute path of a file, without . and .. as parts"
	Path string `json:"path"`

	// Mode are the permissions of the file, in decimal. Default: defaultMode.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4095
	Mode *int32 `json:"mode,omitempty"`
}

// JailedConfigStatus shows which files are written.
type JailedConfigStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are FilesWritten and UpdateActionsCompleted.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Conditions of a JailedConfig.
const (
	// ConditionFilesWritten is True when all files are as in the ConfigMap.
	ConditionFilesWritten = "FilesWritten"
	// ConditionUpdateActionsCompleted is True when the update actions for these files are done.
	ConditionUpdateActionsCompleted = "UpdateActionsCompleted"
)

// Reasons of the conditions of a JailedConfig.
const (
	// ReasonInit goes with Unknown, before the first pass.
	ReasonInit = "Init"
	// ReasonRefresh goes with False, while files are written or actions run.
	ReasonRefresh = "Refresh"
	// ReasonSuccess goes with True.
	ReasonSuccess = "Success"
	// ReasonNotFound goes with False: the ConfigMap, or a key of it, does not exist.
	ReasonNotFound = "NotFound"
	// ReasonNotWritten goes with False: a file could not be written.
	ReasonNotWritten = "NotWritten"
	// ReasonMissingAction goes with True of UpdateActionsCompleted where there are no update actions.
	ReasonMissingAction = "MissingAction"
)
