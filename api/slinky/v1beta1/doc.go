// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the API group slinky.slurm.net: one object per component of a Slurm cluster. A Controller is
// slurmctld and thereby the cluster; an Accounting is slurmdbd; a RestApi, a LoginSet and a NodeSet belong to the
// Controller that they name; a Token is a signed JWT in a Secret. Objects written for SchedMD's slurm-operator keep
// working: every field of its first v1beta1 release and of 1.3 is here, together with a few of our own.
//
// Whatever goes by a fixed rule from such an object is a method of it, so that nothing has to spell a name twice. Those are names
// of the objects made for it, addresses, and references that the operator fills in.
//
// +kubebuilder:object:generate=true
// +groupName=slinky.slurm.net
package v1beta1
