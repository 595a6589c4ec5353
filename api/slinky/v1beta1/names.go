// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The comments below write N for the name of the object and NS for its namespace.

// Key returns NS and N-controller, the name of the StatefulSet of slurmctld.
func (c *Controller) Key() types.NamespacedName { return key(c.Namespace, c.Name+"-controller") }

// ServiceName returns N-controller, the Service of slurmctld.
func (c *Controller) ServiceName() string { return c.Name + "-controller" }

// ServicePort returns the TCP port of the Service of slurmctld.
func (c *Controller) ServicePort() int32 { return c.Spec.Service.portOr(SlurmctldPort) }

// InternalServiceName returns N-controller-internal, the headless Service that gives each slurmctld pod a host name.
func (c *Controller) InternalServiceName() string { return c.Name + "-controller-internal" }

// ServiceMonitorName returns N-controller.
func (c *Controller) ServiceMonitorName() string { return c.Name + "-controller" }

// ConfigName returns N-config, the ConfigMap with slurm.conf and its companions.
func (c *Controller) ConfigName() string { return c.Name + "-config" }

// WorkerServiceName returns slurm-workers-N, the headless Service that gives the workers of all NodeSets their host
// names.
func (c *Controller) WorkerServiceName() string { return "slurm-workers-" + c.Name }

// WorkerDomain returns the DNS domain of the workers' host names.
func (c *Controller) WorkerDomain(clusterDomain string) string {
	return fqdn(c.WorkerServiceName(), c.Namespace, clusterDomain)
}

// LoginHostsServiceName returns slurm-logins-N, the headless Service in which the login pods of all LoginSets have host names.
func (c *Controller) LoginHostsServiceName() string { return "slurm-logins-" + c.Name }

// LoginDomain returns the DNS domain of the login pods' host names.
func (c *Controller) LoginDomain(clusterDomain string) string {
	return fqdn(c.LoginHostsServiceName(), c.Namespace, clusterDomain)
}

// WorkerDisruptionBudgetName returns slurm-workers-pdb-N, the PodDisruptionBudget of the workers of all NodeSets.
func (c *Controller) WorkerDisruptionBudgetName() string { return "slurm-workers-pdb-" + c.Name }

// PodName returns N-controller-0 for ordinal 0 and so on, the slurmctld pods.
func (c *Controller) PodName(ordinal int) string {
	return c.Name + "-controller-" + strconv.Itoa(ordinal)
}

// PodHost returns the name under which a slurmctld pod is reached from other pods: that of the Service, or with backups
// that of its own Service, N-controller-0.NS for ordinal 0 and so on. The name of a pod in a headless Service would go with
// the pod, and Slurm tries for five seconds to resolve a name that is not there.
func (c *Controller) PodHost(ordinal int) string {
	if c.Replicas() > 1 {
		return shortFQDN(c.PodName(ordinal), c.Namespace)
	}
	return c.Host()
}

// PrimaryName returns the host name of the first slurmctld: N-controller-0, or the host of an external one.
func (c *Controller) PrimaryName() string {
	if host, ok := c.externalHost(); ok {
		return host
	}
	return c.PodName(0)
}

// ClusterName returns the name of the Slurm cluster: the name in the spec, or else NS_N.
func (c *Controller) ClusterName() string {
	if c.Spec.ClusterName != "" {
		return c.Spec.ClusterName
	}
	return c.Namespace + "_" + c.Name
}

// Host returns the name under which slurmctld is reached from other pods: N-controller.NS, or the host of an external
// one.
func (c *Controller) Host() string {
	if host, ok := c.externalHost(); ok {
		return host
	}
	return shortFQDN(c.ServiceName(), c.Namespace)
}

// FQDN returns N-controller.NS.svc.<clusterDomain>, or the host of an external slurmctld.
func (c *Controller) FQDN(clusterDomain string) string {
	if host, ok := c.externalHost(); ok {
		return host
	}
	return fqdn(c.ServiceName(), c.Namespace, clusterDomain)
}

// Endpoint returns host and port at which slurmctld is reached, as slurmd and sackd take them with --conf-server.
func (c *Controller) Endpoint() string {
	port := c.ServicePort()
	if c.Spec.External && c.Spec.ExternalConfig != nil {
		port = c.Spec.ExternalConfig.Port
	}
	return net.JoinHostPort(c.Host(), strconv.Itoa(int(port)))
}

func (c *Controller) externalHost() (string, bool) {
	if !c.Spec.External || c.Spec.ExternalConfig == nil {
		return "", false
	}
	return c.Spec.ExternalConfig.Host, true
}

// Key returns NS and N-accounting, the name of the StatefulSet of slurmdbd.
func (a *Accounting) Key() types.NamespacedName { return key(a.Namespace, a.Name+"-accounting") }

// ServiceName returns N-accounting, the Service of slurmdbd.
func (a *Accounting) ServiceName() string { return a.Name + "-accounting" }

// ServicePort returns the TCP port of the Service of slurmdbd.
func (a *Accounting) ServicePort() int32 { return a.Spec.Service.portOr(SlurmdbdPort) }

// ConfigName returns N-accounting, the Secret with slurmdbd.conf.
func (a *Accounting) ConfigName() string { return a.Name + "-accounting" }

// PrimaryName returns the host name of slurmdbd: N-accounting-0, or the host of an external one.
func (a *Accounting) PrimaryName() string {
	if a.Spec.External && a.Spec.ExternalConfig != nil {
		return a.Spec.ExternalConfig.Host
	}
	return a.Name + "-accounting-0"
}

// Host returns the name under which slurmdbd is reached from other pods: N-accounting.NS, or the host of an external
// one.
func (a *Accounting) Host() string {
	if a.Spec.External && a.Spec.ExternalConfig != nil {
		return a.Spec.ExternalConfig.Host
	}
	return shortFQDN(a.ServiceName(), a.Namespace)
}

// Port returns the TCP port at which slurmdbd is reached.
func (a *Accounting) Port() int32 {
	if a.Spec.External && a.Spec.ExternalConfig != nil {
		return a.Spec.ExternalConfig.Port
	}
	return a.ServicePort()
}

// DatabaseKey returns NS and N-database, the name of the StatefulSet and the Service of the embedded database.
func (a *Accounting) DatabaseKey() types.NamespacedName { return key(a.Namespace, a.Name+"-database") }

// Database returns how slurmdbd reaches its database: storageConfig with its defaults filled in, or the
// embedded one. ok is false when the spec has no database.
func (a *Accounting) Database() (storage StorageConfig, ok bool) {
	switch {
	case a.Spec.EmbeddedDatabase != nil:
		storage.Host = shortFQDN(a.Name+"-database", a.Namespace)
	case a.Spec.StorageConfig != nil:
		storage = *a.Spec.StorageConfig.DeepCopy()
	default:
		return StorageConfig{}, false
	}
	if storage.Port == 0 {
		storage.Port = DatabasePort
	}
	if storage.Database == "" {
		storage.Database = "slurm_acct_db"
	}
	if storage.Username == "" {
		storage.Username = "slurm"
	}
	if ref := a.DatabasePasswordRef(); ref != nil {
		storage.PasswordKeyRef = *ref
	}
	return storage, true
}

// Key returns NS and N-restapi, the name of the Deployment of slurmrestd.
func (r *RestApi) Key() types.NamespacedName { return key(r.Namespace, r.Name+"-restapi") }

// ServiceName returns N-restapi, the Service of slurmrestd.
func (r *RestApi) ServiceName() string { return r.Name + "-restapi" }

// ServicePort returns the TCP port of the Service of slurmrestd.
func (r *RestApi) ServicePort() int32 { return r.Spec.Service.portOr(SlurmrestdPort) }

// URL returns http://N-restapi.NS:6820, at which slurmrestd is reached from other pods.
func (r *RestApi) URL() string {
	host := shortFQDN(r.ServiceName(), r.Namespace)
	return "http://" + net.JoinHostPort(host, strconv.Itoa(int(r.ServicePort())))
}

// Key returns NS and N, the name of the Deployment or StatefulSet of the login pods.
func (l *LoginSet) Key() types.NamespacedName { return key(l.Namespace, l.Name) }

// ServiceName returns N, the Service for ssh.
func (l *LoginSet) ServiceName() string { return l.Name }

// HostsName returns N-hosts, the EndpointSlice with the host names of the login pods.
func (l *LoginSet) HostsName() string { return l.Name + "-hosts" }

// PodServiceName returns N-headless-svc, the headless Service by which the pods of a StatefulSet are reached one by one, as
// N-0.N-headless-svc.NS and so on. Soperator calls it so. Where that is longer than a name may be, it is N-pods.
func (l *LoginSet) PodServiceName() string {
	const longest = 63 // RFC 1035
	if name := l.Name + "-headless-svc"; len(name) <= longest {
		return name
	}
	return l.Name + "-pods"
}

// PodDomain returns the DNS domain of the host names of a StatefulSet's pods.
func (l *LoginSet) PodDomain(clusterDomain string) string {
	return fqdn(l.PodServiceName(), l.Namespace, clusterDomain)
}

// ServicePort returns the TCP port of the Service for ssh.
func (l *LoginSet) ServicePort() int32 { return l.Spec.Service.portOr(SSHPort) }

// SSHConfigName returns N-ssh-config, the ConfigMap with sshd_config and root's authorized_keys.
func (l *LoginSet) SSHConfigName() string { return l.Name + "-ssh-config" }

// SSHHostKeysName returns N-ssh-host-keys, the Secret with the ssh host keys.
func (l *LoginSet) SSHHostKeysName() string { return l.Name + "-ssh-host-keys" }

// UsersName returns N-users, the ConfigMap with the files that spec.users are rendered to.
func (l *LoginSet) UsersName() string { return l.Name + "-users" }

// Key returns NS and N.
func (n *NodeSet) Key() types.NamespacedName { return key(n.Namespace, n.Name) }

// SSHConfigName returns N-ssh-config, the ConfigMap with the workers' sshd_config.
func (n *NodeSet) SSHConfigName() string { return n.Name + "-ssh-config" }

// SSHHostKeysName returns N-ssh-host-keys, the Secret with the host keys that all workers of the NodeSet have.
func (n *NodeSet) SSHHostKeysName() string { return n.Name + "-ssh-host-keys" }

// PodName returns N-7 for ordinal 7, or N-007 with an ordinalPadding of 3.
func (n *NodeSet) PodName(ordinal int) string { return n.Name + "-" + n.PaddedOrdinal(ordinal) }

// DaemonPodName returns N-<host name>, the pod of a Kubernetes node in scaling mode DaemonSet. A name that would be too
// long for a label ends in a digest instead.
func (n *NodeSet) DaemonPodName(hostname string) string {
	name := n.Name + "-" + hostname
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	const digits = 10 // of a thousand host names with the same beginning two have the same five with a likelihood of 38 %
	sum := sha256.Sum256([]byte(hostname))
	return name[:validation.LabelValueMaxLength-1-digits] + "-" + hex.EncodeToString(sum[:])[:digits]
}

// PaddedOrdinal returns an ordinal with the number of digits that ordinalPadding asks for.
func (n *NodeSet) PaddedOrdinal(ordinal int) string {
	return fmt.Sprintf("%0*d", int(n.Spec.OrdinalPadding), ordinal)
}

// Hostname returns the host name of a worker, which is the name of its Slurm node unless the pod uses the host network:
// template.spec.hostname and the ordinal, or else the name of the pod.
func (n *NodeSet) Hostname(ordinal int) string {
	if prefix := n.hostnamePrefix(); prefix != "" {
		return prefix + n.PaddedOrdinal(ordinal)
	}
	return n.PodName(ordinal)
}

// SlurmName returns what the workers have in common in slurm.conf: the name of their feature, their NodeSet line and
// their partition. It is template.spec.hostname without hyphens at its ends, or else N.
func (n *NodeSet) SlurmName() string {
	if name := strings.Trim(n.hostnamePrefix(), "-"); name != "" {
		return name
	}
	return n.Name
}

// WorkerServiceName returns slurm-workers-<controller>, the headless Service that gives the workers their host names.
func (n *NodeSet) WorkerServiceName() string { return "slurm-workers-" + n.Spec.ControllerRef.Name }

// WorkerDisruptionBudgetName returns slurm-workers-pdb-<controller>, the PodDisruptionBudget of the workers.
func (n *NodeSet) WorkerDisruptionBudgetName() string {
	return "slurm-workers-pdb-" + n.Spec.ControllerRef.Name
}

// hostnamePrefix returns template.spec.hostname. It reads nothing else of the pod spec, so that a mistake elsewhere in
// it, which is reported when the spec is decoded, does not rename nodes.
func (n *NodeSet) hostnamePrefix() string {
	if n.Spec.Template.Spec == nil {
		return ""
	}
	var spec struct {
		Hostname string `json:"hostname"`
	}
	if err := json.Unmarshal(n.Spec.Template.Spec.Raw, &spec); err != nil {
		return ""
	}
	return spec.Hostname
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func shortFQDN(service, namespace string) string { return service + "." + namespace }

func fqdn(service, namespace, clusterDomain string) string {
	return service + "." + namespace + ".svc." + clusterDomain
}
