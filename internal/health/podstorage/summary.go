// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package podstorage

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/types"
)

// summary is what is read of a kubelet's answer at /stats/summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1, Summary).
type summary struct {
	Pods []struct {
		PodRef struct {
			UID types.UID `json:"uid"`
		} `json:"podRef"`
		EphemeralStorage *struct {
			UsedBytes *uint64 `json:"usedBytes"`
		} `json:"ephemeral-storage"`
	} `json:"pods"`
}

// maxSummary is how many bytes of an answer are read. Several are read at once.
const maxSummary = 32 << 20

// decode reads how many bytes of ephemeral storage pods use, by their UIDs. A pod for which the kubelet does not report it is left out.
func decode(r io.Reader) (map[types.UID]uint64, error) {
	var s summary
	if err := json.NewDecoder(io.LimitReader(r, maxSummary)).Decode(&s); err != nil {
		return nil, fmt.Errorf("reading the summary: %w", err)
	}
	used := map[types.UID]uint64{}
	for _, p := range s.Pods {
		if p.PodRef.UID != "" && p.EphemeralStorage != nil && p.EphemeralStorage.UsedBytes != nil {
			used[p.PodRef.UID] = *p.EphemeralStorage.UsedBytes
		}
	}
	return used, nil
}
