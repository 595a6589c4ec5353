// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmdbd

import (
	_ "embed"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// DatabaseWatcher is the name of the sidecar of slurmdbd whose readiness shows whether slurmdbd has its database. The readiness of
// slurmdbd's own container shows that it serves.
const DatabaseWatcher = "database"

// askConfFile is the configuration with which the sidecar asks slurmdbd. It is not called slurm.conf, which slurmdbd must not find.
const askConfFile = "ask.conf"

//go:embed watchdatabase.sh
var watchDatabaseScript string

// watchDatabase is a native sidecar (KEP-753) that only serves its probe. It has the same rights as slurmdbd, and needs no access to
// Kubernetes: the kubelet reports the result.
func watchDatabase(a *slinkyv1beta1.Accounting, image string) corev1.Container {
	storage, _ := a.Database()
	return corev1.Container{
		Name:            DatabaseWatcher,
		Image:           image,
		Command:         []string{"tini", "--", "sleep", "infinity"},
		Env:             []corev1.EnvVar{{Name: "STORAGE_PORT", Value: strconv.Itoa(int(storage.Port))}},
		RestartPolicy:   new(corev1.ContainerRestartPolicyAlways),
		SecurityContext: pod.Restricted(pod.SlurmUID),
		ReadinessProbe: &corev1.Probe{
			ProbeHandler:   corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"bash", "-c", watchDatabaseScript}}},
			TimeoutSeconds: pod.BusySeconds, PeriodSeconds: 5, FailureThreshold: 3,
		},
		// Below /run slurmdbd has the socket by which clients get their credentials.
		VolumeMounts: []corev1.VolumeMount{
			{Name: pod.EtcVolume, MountPath: pod.EtcSlurm, ReadOnly: true}, {Name: runVolume, MountPath: "/run", ReadOnly: true},
		},
	}
}

// askConf is as much of slurm.conf as a client needs to ask the slurmdbd of its own pod.
func askConf() *conf.Document {
	d := conf.New(conf.Slurm)
	d.Add("ClusterName", "ask")
	d.Add("SlurmctldHost", "localhost")
	d.Add("SlurmUser", pod.SlurmUser)
	d.Add("AuthType", "auth/slurm")
	d.Add("CredType", "cred/slurm")
	d.Add("AuthInfo", "use_client_ids")
	d.Add("AccountingStorageType", "accounting_storage/slurmdbd")
	d.Add("AccountingStorageHost", "localhost")
	d.Add("AccountingStoragePort", strconv.Itoa(int(slinkyv1beta1.SlurmdbdPort)))
	return d
}
