// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"fmt"
	"slices"
	"strings"
)

// Platform is the GPUs of a node.
type Platform struct {
	// Models are the names of all GPUs, as the driver has them: NVIDIA H100 80GB HBM3.
	Models []string
}

// Tag returns the narrowest platform: 8xH100, 8xGPU for models without a platform of their own, or CPU.
func (p Platform) Tag() string {
	tags := p.Tags()
	return tags[len(tags)-1]
}

// Tags returns all platforms that the node is, from wide to narrow.
func (p Platform) Tags() []string {
	if len(p.Models) == 0 {
		return []string{anyValue, cpuTag}
	}
	tags := []string{anyValue, fmt.Sprintf("%dxGPU", len(p.Models))}
	model := modelOf(p.Models[0])
	for _, other := range p.Models[1:] {
		if modelOf(other) != model {
			return tags
		}
	}
	if model != "" {
		tags = append(tags, fmt.Sprintf("%dx%s", len(p.Models), model))
	}
	return tags
}

// modelOf returns the word of a GPU's name that a platform is called by: B300 is one, and GB300 another.
func modelOf(name string) string {
	known := []string{"H100", "H200", "B200", "B300", "GB300"}
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == ' ' || r == '-' || r == '_' }) {
		if slices.Contains(known, word) {
			return word
		}
	}
	return ""
}
