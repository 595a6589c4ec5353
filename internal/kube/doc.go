// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube is the driver between what Coxswain has decided and the Kubernetes API.
//
// Controllers render the objects that ought to exist and hand them to an Applier. It writes them with server-side apply
// under the field manager "coxswain", but only those that differ from what the cache holds: at rest there is not one
// call (docs/decisions/001-no-op-detection.md). It refuses to touch what belongs to somebody else, recognises changes
// that Kubernetes does not allow before asking for them, and prunes what is no longer wanted from a fixed list of kinds.
//
// Beside it are the status writer (PatchStatus), the three summary conditions (Summary, Report), read-your-writes
// (Applier.Behind) and the question whether a kind exists (Serves).
//
// After a restart everything follows from the cluster: the Applier's memory only saves calls, and losing it costs at most
// one call for an object that the server stores differently from what was sent.
package kube
