// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// TCP ports on which the daemons listen.
const (
	// SlurmctldPort is slurmctld's. Slurm: SlurmctldPort.
	SlurmctldPort int32 = 6817
	// SlurmdPort is slurmd's. Slurm: SlurmdPort.
	SlurmdPort int32 = 6818
	// SlurmdbdPort is slurmdbd's. Slurm: DbdPort.
	SlurmdbdPort int32 = 6819
	// SlurmrestdPort is slurmrestd's.
	SlurmrestdPort int32 = 6820
	// SSHPort is sshd's.
	SSHPort int32 = 22
	// DatabasePort is MySQL's and MariaDB's. Slurm: StoragePort.
	DatabasePort int32 = 3306
)

// portOr returns the port that the Service of a component has.
func (s *ServiceSpec) portOr(port int32) int32 {
	if s.Port != 0 {
		return s.Port
	}
	return port
}
