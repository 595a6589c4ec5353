// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd has the generated definitions of both API groups, for programs that check objects without an API server. Helm reads the same
// files.
package crd

import "embed"

// Files are the definitions, one file for each kind.
//
//go:embed *.yaml
var Files embed.FS
