// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crd has the generated definitions of both API groups, for programs that check objects without an API server.
package crd

import "embed"

// Bases are the definitions, one file for each kind, in directory bases.
//
//go:embed bases/*.yaml
var Bases embed.FS
