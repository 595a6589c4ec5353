// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmdbd

import (
	"errors"
	"slices"
	"strconv"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

const slurmdbdConfFile = "slurmdbd.conf"

// ownedKeys are the keys that only the operator may set: otherwise slurmdbd would not be reached.
var ownedKeys = conf.Owned{ //nolint:gochecknoglobals // a constant list
	"DbdHost", "DbdPort", "SlurmUser", "AuthType", "AuthAltTypes", "AuthAltParameters:jwt_key", "AuthAltParameters:jwks",
	"StorageType", "StorageHost", "StoragePort", "StorageUser", "StoragePass", "StorageLoc",
}

// ownedTLSKeys join ownedKeys when the spec has certificates.
var ownedTLSKeys = conf.Owned{ //nolint:gochecknoglobals // a constant list
	"StorageParameters:SSL_CA", "StorageParameters:SSL_CERT", "StorageParameters:SSL_KEY",
}

// slurmdbdConf is slurmdbd.conf, see https://slurm.schedmd.com/slurmdbd.conf.html. It is nil when it cannot be written.
func slurmdbdConf(in Input) (*conf.Document, error) {
	a := in.Accounting
	storage, _ := a.Database()
	d := conf.New(conf.Slurmdbd)
	d.Section("GENERAL")
	d.Add("DbdHost", a.PrimaryName())
	d.Add("DbdPort", strconv.Itoa(int(slinkyv1beta1.SlurmdbdPort)))
	d.Add("SlurmUser", pod.SlurmUser)
	d.Add("PidFile", "/run/slurmdbd.pid")
	d.Section("PLUGINS & PARAMETERS")
	d.Add("AuthType", "auth/slurm")
	d.Add("AuthInfo", "use_client_ids")
	d.Add("AuthAltTypes", "auth/jwt")
	if a.Spec.Munge != nil {
		// Each of the two without the other, or without munged, keeps slurmdbd from starting.
		d.Add("AuthInfo", "socket="+pod.MungeSocket)
		d.Add("AuthAltTypes", "auth/munge")
	}
	d.Add("AuthAltParameters", "jwt_key="+pod.EtcSlurm+"/"+pod.JwtKeyFile)
	if a.Spec.JwksKeyRef != nil {
		d.Add("AuthAltParameters", "jwks="+pod.EtcSlurm+"/"+pod.JwksFile)
	}
	d.Section("STORAGE")
	d.Add("StorageType", "accounting_storage/mysql")
	d.Add("StorageHost", storage.Host)
	d.Add("StoragePort", strconv.Itoa(int(storage.Port)))
	d.Add("StorageUser", storage.Username)
	d.Add("StorageLoc", storage.Database)
	var passwordErr error
	if err := conf.CheckValue(in.Password); err != nil {
		passwordErr = problem.Errorf(PasswordPath(a), config.ReasonInvalid, "slurmdbd.conf cannot hold this password: %v", err)
	} else if in.Password != "" {
		d.Add("StoragePass", in.Password)
	}
	for _, parameter := range tlsParameters(a) {
		d.Add("StorageParameters", parameter)
	}
	d.Section("LOGGING")
	d.Add("LogFile", "/dev/null")
	d.Add("LogTimeFormat", "iso8601,format_stderr")
	owned := ownedKeys
	if len(tlsParameters(a)) > 0 {
		owned = slices.Concat(owned, ownedTLSKeys)
	}
	if a.Spec.Munge != nil {
		owned = slices.Concat(owned, conf.Owned{"AuthInfo:socket"})
	}
	merged, err := config.Lay(d, config.Read(conf.Slurmdbd, a.Spec.ExtraConf, "spec.extraConf"), owned)
	return merged, errors.Join(passwordErr, err)
}
