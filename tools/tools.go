// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tools pins the programs that Coxswain is built with: controller-gen, golangci-lint and Helm. The tool
// directives in go.mod name them; "make" builds each into bin/ when it is first needed.
package tools
