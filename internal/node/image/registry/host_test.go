// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

// Host returns the registry or mirror that has answered.
func (i *Image) Host() string { return i.source.host }
