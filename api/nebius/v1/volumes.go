// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// NodeVolume is a volume: either one of spec.volumeSources, or a claim per pod.
//
// +kubebuilder:validation:XValidation:rule=`(self.?volumeSourceName.orValue("") != "") != has(self.volumeClaimTemplateSpec)`,message="exactly one of volumeSourceName and volumeClaimTemplateSpec must be given"
type NodeVolume struct {
	// VolumeSourceName is the entry of spec.volumeSources to use.
	// +optional
	VolumeSourceName string `json:"volumeSourceName,omitempty"`

	// VolumeClaimTemplateSpec makes one PersistentVolumeClaim per pod (core/v1 PersistentVolumeClaimSpec).
	// +optional
	VolumeClaimTemplateSpec *embedded.PersistentVolumeClaimSpec `json:"volumeClaimTemplateSpec,omitempty"`
}

// NodeVolumeMount is a volume and where it is mounted.
//
// +kubebuilder:validation:XValidation:rule=`(self.?volumeSourceName.orValue("") != "") != has(self.volumeClaimTemplateSpec)`,message="exactly one of volumeSourceName and volumeClaimTemplateSpec must be given"
type NodeVolumeMount struct {
	// Name is the name of the mount and of the volume in the pod.
	// +required
	Name string `json:"name"`

	// MountPath is the absolute path of the mount.
	// +required
	MountPath string `json:"mountPath"`

	// SubPath is the path within the volume. Default: its root.
	// +optional
	// +kubebuilder:default=""
	SubPath string `json:"subPath,omitempty"`

	// ReadOnly mounts without permission to write. Default: false.
	// +optional
	// +kubebuilder:default=false
	ReadOnly bool `json:"readOnly,omitempty"`

	// VolumeSourceName is the entry of spec.volumeSources to use.
	// +optional
	VolumeSourceName string `json:"volumeSourceName,omitempty"`

	// VolumeClaimTemplateSpec makes one PersistentVolumeClaim per pod (core/v1 PersistentVolumeClaimSpec).
	// +optional
	VolumeClaimTemplateSpec *embedded.PersistentVolumeClaimSpec `json:"volumeClaimTemplateSpec,omitempty"`
}

// VolumeSource is a core/v1 VolumeSource with a name. Beside name it has exactly one member, such as
// persistentVolumeClaim, hostPath or nfs.
type VolumeSource struct {
	// Name is what components refer to. The source named jail is the jail of components that name no other.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	embedded.VolumeSource `json:",inline"`
}

// UnmarshalJSON reads the name, and keeps the other members as written.
func (v *VolumeSource) UnmarshalJSON(data []byte) error {
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(data, &members); err != nil {
		return fmt.Errorf("decoding a volume source: %w", err)
	}
	*v = VolumeSource{}
	if name, ok := members["name"]; ok {
		if err := json.Unmarshal(name, &v.Name); err != nil {
			return fmt.Errorf("decoding the name of a volume source: %w", err)
		}
		delete(members, "name")
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return fmt.Errorf("encoding volume source %s: %w", v.Name, err)
	}
	v.Raw = raw
	return nil
}

// MarshalJSON writes the name beside the other members.
func (v VolumeSource) MarshalJSON() ([]byte, error) {
	members := map[string]json.RawMessage{}
	if len(v.Raw) > 0 {
		if err := json.Unmarshal(v.Raw, &members); err != nil {
			return nil, fmt.Errorf("encoding volume source %s: %w", v.Name, err)
		}
	}
	name, err := json.Marshal(v.Name)
	if err != nil {
		return nil, fmt.Errorf("encoding volume source %s: %w", v.Name, err)
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	members["name"] = name
	return json.Marshal(members)
}
