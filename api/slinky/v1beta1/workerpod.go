// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AnnotationNodeCordoned on a worker pod is "true" while its AnnotationPodCordon is there because its Kubernetes node is
// cordoned: it goes when the node is uncordoned, and AnnotationPodCordon with it unless a user set that too.
const AnnotationNodeCordoned = "coxswain.dev/node-cordoned"
