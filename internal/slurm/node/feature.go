// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strings"
)

// featurePrefix marks the features that the operator gives to nodes; all others are somebody else's.
const featurePrefix = "k8s/"

// ParseFeatures reads a comma-separated list of values, "a100, nvlink", and returns the features that stand for them:
// k8s/a100 and k8s/nvlink, each once. Blanks around values and empty values do not count.
func ParseFeatures(csv string) ([]string, error) {
	var features []string
	for value := range strings.SplitSeq(csv, ",") {
		value = strings.TrimSpace(value)
		if value == "" {
			continue
		}
		if len(value) > maxFeature {
			return nil, fmt.Errorf("the feature %q… is longer than %d characters", value[:32], maxFeature)
		}
		// Other characters mean something in the constraints of jobs, or end a list.
		for _, r := range value {
			if r >= 0x80 || !strings.ContainsRune(featureCharacters, r) {
				return nil, fmt.Errorf("the feature %q has the character %q; only letters, digits and . _ - : / may be there", value, r)
			}
		}
		if f := featurePrefix + value; !slices.Contains(features, f) {
			features = append(features, f)
		}
	}
	return features, nil
}

const (
	// maxFeature bounds one feature, in bytes.
	maxFeature        = 128
	featureCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/"
)

// WithFeatures returns the features of a node with ours replaced by others, and whether that is a change. Those that are
// not ours stay, in their order. The result is never nil.
func WithFeatures(have, ours []string) (features []string, changed bool) {
	features = make([]string, 0, len(have)+len(ours))
	old := 0
	for _, f := range have {
		switch {
		case !strings.HasPrefix(f, featurePrefix):
			features = append(features, f)
		case slices.Contains(ours, f):
			old++
		default:
			changed = true
		}
	}
	return append(features, ours...), changed || old != len(ours)
}
