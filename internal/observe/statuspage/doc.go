// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package statuspage serves web pages that show administrators how Slurm clusters are: what runs, what is wrong, what will happen next.
//
// Facts are gathered from the manager's cache and from the Slurm caches, without a call of Slurm or Kubernetes. Jobs are the exception: Slurm is
// asked for those of a cluster while somebody follows its page. A pure function makes a Page of all that. Templates turn its parts into fragments of HTML. The page in a browser and the updates that follow it
// consist of the same fragments. The pages change nothing, and show no content of Secrets.
//
// Who may see them is decided by the server of the metrics, before a request gets here.
package statuspage
