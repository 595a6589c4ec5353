// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// The names of what a SlurmCluster is made of. All begin with the name of the cluster, so that several clusters fit in
// one namespace.

// ControllerName returns the name of the composed Controller.
func (c *SlurmCluster) ControllerName() string { return c.Name }

// AccountingName returns the name of the composed Accounting.
func (c *SlurmCluster) AccountingName() string { return c.Name }

// RestAPIName returns the name of the composed RestApi.
func (c *SlurmCluster) RestAPIName() string { return c.Name }

// LoginSetName returns the name of the composed LoginSet.
func (c *SlurmCluster) LoginSetName() string { return c.Name + "-login" }

// WorkerNodeSetName returns the name of the NodeSet composed of slurmNodes.worker.
func (c *SlurmCluster) WorkerNodeSetName() string { return c.Name + "-worker" }

// EmbeddedDBName returns the name of the objects of slurmNodes.accounting.embeddedDB.
func (c *SlurmCluster) EmbeddedDBName() string { return c.Name + "-mariadb" }

// ControllerServiceName returns the name of the Service of slurmctld.
func (c *SlurmCluster) ControllerServiceName() string { return c.Name + "-controller-svc" }

// AccountingServiceName returns the name of the Service of slurmdbd.
func (c *SlurmCluster) AccountingServiceName() string { return c.Name + "-accounting-svc" }

// RESTServiceName returns the name of the Service of slurmrestd.
func (c *SlurmCluster) RESTServiceName() string { return c.Name + "-rest-svc" }

// LoginServiceName returns the name of the Service that users ssh to.
func (c *SlurmCluster) LoginServiceName() string { return c.Name + "-login-svc" }

// WorkerServiceName returns the name of the headless Service of slurmNodes.worker.
func (c *SlurmCluster) WorkerServiceName() string { return c.Name + "-worker-svc" }

// NodeSetServiceName returns the name of the headless Service of the workers of all NodeSets.
func (c *SlurmCluster) NodeSetServiceName() string { return c.Name + "-nodeset-svc" }

// PopulateJailName returns the name of the populate-jail Job.
func (c *SlurmCluster) PopulateJailName() string { return c.Name + "-populate-jail" }

// SConfigControllerName returns the name of the Deployment of the config writer.
func (c *SlurmCluster) SConfigControllerName() string { return c.Name + "-sconfigcontroller" }

// ExporterName returns the name of the objects of the exporter: Deployment, Token and PodMonitor.
func (c *SlurmCluster) ExporterName() string { return c.Name + "-exporter" }

// MungeSecretName returns the name of the Secret with the munge key (key munge.key).
func (c *SlurmCluster) MungeSecretName() string { return c.Name + "-munge" }

// JWTSecretName returns the name of the Secret that tokens are signed with (key rest_jwt.key).
func (c *SlurmCluster) JWTSecretName() string { return c.Name + "-rest-jwt-key" }

// SSHDKeysSecretName returns the name of the Secret with the SSH host keys: the user's, or the generated one.
func (c *SlurmCluster) SSHDKeysSecretName() string {
	if c.Spec.Secrets.SSHDKeysName != "" {
		return c.Spec.Secrets.SSHDKeysName
	}
	return c.Name + "-sshd-keys"
}

// AppArmorProfileName returns the name of the profile of spec.useDefaultAppArmorProfile. It names the namespace, since the kernels of the
// nodes know one list of profiles.
func (c *SlurmCluster) AppArmorProfileName() string {
	return "soperator-cluster-" + c.Name + "-ns-" + c.Namespace
}

// MariaDBName returns the name of the objects MariaDB and Grant of the mariadb-operator.
func (c *SlurmCluster) MariaDBName() string { return c.Name + "-acct-db" }
