// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"slices"
	"strings"
)

// Platform is what an image runs on, in the words of OCI.
type Platform struct {
	// OS is "linux".
	OS string `json:"os"`
	// Architecture is as Go names it: amd64, arm64, ppc64le.
	Architecture string `json:"architecture"`
	// Variant is the version of the architecture, such as v7 of arm.
	Variant string `json:"variant"`
}

// String returns the platform as docker prints it: "linux/arm64/v8".
func (p Platform) String() string {
	return strings.TrimRight(p.OS+"/"+p.Architecture+"/"+p.Variant, "/")
}

// normalized returns the platform without the variant that every machine of an architecture has.
func (p Platform) normalized() Platform {
	if p.Architecture == "arm64" && p.Variant == "v8" || p.Architecture == "amd64" && p.Variant == "v1" {
		p.Variant = ""
	}
	return p
}

// variants returns the variants that run on a platform, the best first. The empty one is among them.
func (p Platform) variants() []string {
	if p.Architecture == "arm" {
		all := []string{"v8", "v7", "v6", "v5"}
		if i := slices.Index(all, p.Variant); i >= 0 {
			return append(all[i:], "")
		}
	}
	return slices.Compact([]string{p.Variant, ""})
}

// choose returns the manifest of an index for a platform. A manifest of which the index has no platform is the last resort: whoever reads
// it finds the platform in the image's configuration.
func choose(manifests []descriptor, want Platform) (descriptor, bool) {
	want = want.normalized()
	for _, variant := range want.variants() {
		for _, m := range manifests {
			if m.Platform != nil && m.Platform.normalized() == (Platform{want.OS, want.Architecture, variant}) {
				return m, true
			}
		}
	}
	i := slices.IndexFunc(manifests, func(m descriptor) bool { return m.Platform == nil })
	if i < 0 {
		return descriptor{}, false
	}
	return manifests[i], true
}

// offered returns the platforms of an index for an error. What is for no platform, such as signatures, is left out.
func offered(manifests []descriptor) string {
	var names []string
	for _, m := range manifests {
		if m.Platform != nil && m.Platform.OS != "unknown" && !slices.Contains(names, m.Platform.String()) {
			names = append(names, m.Platform.String())
		}
	}
	const most = 12
	switch {
	case len(names) == 0:
		return "no platform"
	case len(names) > most:
		names = append(names[:most], "others")
	}
	return strings.Join(names, ", ")
}
