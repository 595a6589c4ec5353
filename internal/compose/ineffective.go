// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

// ineffective lists the fields of the SlurmCluster that have another value than their default and no effect in this version.
// It leaves out those that the functions which compose the rest have listed. A field without effect by design, such as
// the size of accounting, says so in the API and is not listed.
func (c *composer) ineffective() {
	spec, nodes := c.spec, &c.spec.SlurmNodes

	// The jail, and what fills it and writes into it.
	c.ignore(nodes.Controller.Volumes.Jail != nil, controllerPath+".volumes.jail")
	c.ignore(nodes.Login.Volumes.Jail != nil, loginPath+".volumes.jail")
	c.ignore(len(nodes.Login.Volumes.JailSubMounts) > 0, loginPath+".volumes.jailSubMounts")
	c.differs("spec.populateJail", spec.PopulateJail, defaultPopulateJail())
	c.differs("spec.sConfigController", spec.SConfigController, defaultSConfigController())

	// Slurm's configuration as far as it needs programs that the images lack.
	c.differs("spec.mpiConfig", spec.MPIConfig, nebiusv1.MPIConfig{PMIxEnv: new("OMPI_MCA_btl_tcp_if_include=eth0")})
	c.differs("spec.plugStackConfig.pyxis", spec.PlugStackConfig.Pyxis, defaultPyxis())
	c.differs("spec.plugStackConfig.ncclDebug", spec.PlugStackConfig.NCCLDebug, defaultNCCLDebug())
	c.differs("spec.plugStackConfig.ncclInspectorPreConf", spec.PlugStackConfig.NCCLInspectorPreConf, defaultNCCLInspector())
	c.ignore(spec.SlurmConfig.TopologyBlockSize != 0 && spec.SlurmConfig.TopologyBlockSize != defaultBlockSize, "spec.slurmConfig.topologyBlockSize") //nolint:staticcheck // deprecated, and told of if set
	c.ignore(spec.Topology.BlockSize != 0 && spec.Topology.BlockSize != defaultBlockSize, "spec.topology.blockSize")
	c.ignore(len(spec.WorkerFeatures) > 0, "spec.workerFeatures") //nolint:staticcheck // deprecated, and told of if set

	c.ineffectiveSlurmConfig()
	c.unconfined()

	// slurmctld and slurmdbd go on running: their objects hold the keys of the cluster.
	c.ignore(spec.Maintenance.Downscaled(), "spec.maintenance (slurmctld, slurmdbd and slurmrestd keep running)")
	c.ignore(spec.UseDefaultAppArmorProfile, "spec.useDefaultAppArmorProfile")

	c.ineffectiveSidecars()
	c.ineffectiveWorker()
	if nodes.Exporter.Enabled {
		c.differs("spec.slurmNodes.exporter", nodes.Exporter, defaultExporter())
	}
	c.differs(controllerPath+".openMetrics.serviceMonitor", nodes.Controller.OpenMetrics.ServiceMonitor,
		nebiusv1.ServiceMonitor{Interval: "30s", ScrapeTimeout: "28s"})
	c.ignore(nodes.Login.SSHDConfigMapRefName != "", loginPath+".sshdConfigMapRefName")
	c.ignore(nodes.Login.UserIsolation != nil && nodes.Login.UserIsolation.Enabled, loginPath+".userIsolation")
	// Ports of Services have an effect only on the type of Service that has them.
	c.ignore(nodes.Login.SSHDServiceNodePort != 0 && !hasNodePort(nodes.Login.SSHDServiceType), loginPath+".sshdServiceNodePort")
	c.ignore(nodes.Login.SSHDServiceLoadBalancerIP != "" && nodes.Login.SSHDServiceType != corev1.ServiceTypeLoadBalancer, loginPath+".sshdServiceLoadBalancerIP")
	c.ignore(len(nodes.Login.SSHDServiceLoadBalancerSourceRanges) > 0 && nodes.Login.SSHDServiceType != corev1.ServiceTypeLoadBalancer,
		loginPath+".sshdServiceLoadBalancerSourceRanges")
}

// ineffectiveSlurmConfig lists what slurm.conf does not take over as it is.
func (c *composer) ineffectiveSlurmConfig() {
	s := &c.spec.SlurmConfig
	c.note(value(s.TopologyPlugin) == topologyTree, "spec.slurmConfig.topologyPlugin: topology/tree makes no topology.conf in this version: Slurm takes the network to be flat")
	// Slurm powers nothing down without a program for that.
	_, program := c.custom.Document.Get("SuspendProgram")
	c.ignore(s.SuspendTime != nil && *s.SuspendTime != neverSuspend && !program, "spec.slurmConfig.suspendTime (without SuspendProgram in spec.customSlurmConfig)")
}

// unconfined tells of containers with that AppArmor profile, which is the API's default. It is not listed among the
// fields without effect, or no SlurmCluster would ever be without them.
func (c *composer) unconfined() {
	nodes := &c.spec.SlurmNodes
	profiles := []string{nodes.Controller.Slurmctld.AppArmorProfile, nodes.Login.SSHD.AppArmorProfile, nodes.REST.REST.AppArmorProfile}
	if nodes.Accounting.Enabled {
		profiles = append(profiles, nodes.Accounting.Slurmdbd.AppArmorProfile)
	}
	c.note(slices.Contains(profiles, unconfined),
		"appArmorProfile: unconfined is the container runtime's own profile; only slurmd, whose container is privileged, is without any")
}

func hasNodePort(t corev1.ServiceType) bool {
	return t == corev1.ServiceTypeNodePort || t == corev1.ServiceTypeLoadBalancer
}

// ineffectiveSidecars lists munge and SSSD. Slurm authenticates with auth/slurm; SSSD runs in the login container, where
// it has a configuration.
func (c *composer) ineffectiveSidecars() {
	nodes := &c.spec.SlurmNodes
	c.differs(controllerPath+".munge", nodes.Controller.Munge, defaultContainer())
	c.differs(loginPath+".munge", nodes.Login.Munge, defaultContainer())
	c.differs(accountingPath+".munge", nodes.Accounting.Munge, defaultContainer())
	c.ignore(nodes.Controller.SSSD != nil, controllerPath+".sssd")
	c.ignore(nodes.Controller.SSSDConfSecretRefName != "", controllerPath+".sssdConfSecretRefName")
	c.ignore(nodes.Controller.SSSDLdapCAConfigMapRefName != "", controllerPath+".sssdLdapCAConfigMapRefName")
	c.ignore(nodes.Controller.SSSDDebugLevel != 0, controllerPath+".sssdDebugLevel")
	c.ignore(nodes.Login.SSSD != nil, loginPath+".sssd")
	c.ignore(nodes.Login.SSSDLdapCAConfigMapRefName != "", loginPath+".sssdLdapCAConfigMapRefName")
	c.ignore(nodes.Login.SSSDDebugLevel != 0, loginPath+".sssdDebugLevel")
}

func (c *composer) ineffectiveWorker() {
	worker := c.spec.SlurmNodes.Worker
	if worker == nil {
		return
	}
	c.differs(workerPath+".munge", worker.Munge, defaultContainer())
	c.ignore(worker.Volumes.Jail != nil, workerPath+".volumes.jail")
	c.ignore(len(worker.Volumes.JailSubMounts) > 0, workerPath+".volumes.jailSubMounts")
	c.ignore(worker.SSHDConfigMapRefName != "", workerPath+".sshdConfigMapRefName")
	c.ignore(worker.SupervisordConfigMapRefName != "", workerPath+".supervisordConfigMapRefName")
}

// ineffectiveNodeSet lists the fields of a NodeSet without effect.
func (f *findings) ineffectiveNodeSet(spec *nebiusv1alpha1.NodeSetSpec) {
	f.ignore(spec.Slurmd.Volumes.Jail != nil, "spec.slurmd.volumes.jail")
	f.ignore(len(spec.Slurmd.Volumes.JailSubMounts) > 0, "spec.slurmd.volumes.jailSubMounts")
	f.ignore(spec.Slurmd.Port != 0 && spec.Slurmd.Port != 6818, "spec.slurmd.port")
	f.ignore(spec.Slurmd.Security.LimitsConfig != "", "spec.slurmd.security.limitsConfig")
	f.differs("spec.munge", spec.Munge, nebiusv1alpha1.Sidecar{
		Image: nebiusv1alpha1.Image{PullPolicy: corev1.PullIfNotPresent}, Security: nebiusv1alpha1.ContainerSecurity{AppArmorProfile: unconfined},
	})
	f.ignore(spec.SSSD != nil, "spec.sssd")
	f.ignore(spec.SSSDConfSecretRefName != "", "spec.sssdConfSecretRefName")
	f.ignore(spec.SSSDDebugLevel != 0, "spec.sssdDebugLevel")
	f.ignore(spec.SSSDLdapCAConfigMapRefName != "", "spec.sssdLdapCAConfigMapRefName")
	f.ignore(spec.NodeConfig.Dynamic != "", "spec.nodeConfig.dynamic")
	f.ignore(spec.NodeConfig.AutoResume != nil && !*spec.NodeConfig.AutoResume, "spec.nodeConfig.autoResume")
	f.ignore(spec.Topology.Fabric != "" && spec.Topology.Fabric != "root", "spec.topology.fabric")
	f.ignore(value(spec.Docker.Enabled), "spec.docker.enabled")
	f.note(spec.UpdateStrategy == nebiusv1alpha1.UpdateStrategySlurmAwareRollingUpdate,
		"spec.updateStrategy: slurmAwareRollingUpdate is what rollingUpdate is: a worker is drained before it is replaced, at most maxUnavailable at a time")
	f.ignore(spec.EphemeralNodes, "spec.ephemeralNodes")
	f.ignore(spec.InitialNumberEphemeralNodes != nil && *spec.InitialNumberEphemeralNodes != 1, "spec.initialNumberEphemeralNodes")
	f.ignore(spec.EphemeralTopologyWaitTimeout != 0 && spec.EphemeralTopologyWaitTimeout != 180, "spec.ephemeralTopologyWaitTimeout")
	f.ignore(spec.WorkerInitRandomDelaySeconds != 0, "spec.workerInitRandomDelaySeconds")
	f.ignore(spec.ConfigMapRefSSHD != "", "spec.configMapRefSshd")
	f.ignore(spec.ConfigMapRefSupervisord != "", "spec.configMapRefSupervisord")
}

// Defaults of the API, of blocks that have no effect as a whole. A test holds them against the CRDs.
const (
	unconfined       = "unconfined"
	defaultBlockSize = 18
)

func defaultContainer() nebiusv1.NodeContainer {
	return nebiusv1.NodeContainer{ImagePullPolicy: corev1.PullIfNotPresent, AppArmorProfile: unconfined}
}

func defaultPopulateJail() nebiusv1.PopulateJail {
	return nebiusv1.PopulateJail{ImagePullPolicy: corev1.PullIfNotPresent, AppArmorProfile: unconfined}
}

func defaultSConfigController() nebiusv1.SConfigController {
	return nebiusv1.SConfigController{
		Container:               defaultContainer(),
		Node:                    nebiusv1.SConfigControllerNode{Size: new(int32(1))},
		ReconfigurePollInterval: metav1.Duration{Duration: 20 * time.Second},
		ReconfigureWaitTimeout:  metav1.Duration{Duration: 5 * time.Minute},
	}
}

func defaultPyxis() nebiusv1.Pyxis {
	return nebiusv1.Pyxis{Required: new(true), ImporterPath: new("/opt/slurm_scripts/pyxis_caching_importer.sh")}
}

func defaultNCCLDebug() nebiusv1.NCCLDebug {
	return nebiusv1.NCCLDebug{LogLevel: "INFO", OutputToFile: new(true), OutputDirectory: "/opt/soperator-outputs/local/nccl_logs"}
}

func defaultNCCLInspector() nebiusv1.NCCLInspectorPreConf {
	return nebiusv1.NCCLInspectorPreConf{
		Enabled:        new(false),
		ProfilerPlugin: "/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so",
		DumpDir:        "/opt/soperator-outputs/shared/nccl_profiles/%j/%s", DumpThreadIntervalMicroseconds: 1000000,
	}
}

func defaultExporter() nebiusv1.Exporter {
	return nebiusv1.Exporter{
		ExporterContainer:  defaultContainer(),
		CollectionInterval: "30s", JobSource: "controller", AccountingJobsLookback: "1h", MaxCollectorInflight: 1,
		PodMonitorConfig: nebiusv1.PodMonitorConfig{JobLabel: "slurm-exporter", Interval: "30s", ScrapeTimeout: "20s"},
	}
}

// differs lists what in a block without effect is set to something else than its default. One member is listed by its path,
// several are listed after the path of the block. The API server cuts off what is too long for its warnings, and charts write whole blocks.
func (f *findings) differs(path string, value, byDefault any) {
	members, defaults := fieldsOf(value), fieldsOf(byDefault)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(members)), func(name string) bool { return !differing(members[name], defaults[name]) })
	if len(names) == 1 {
		f.ignore(true, path+"."+names[0])
	} else {
		f.ignore(len(names) > 0, path+" ("+strings.Join(names, ", ")+")")
	}
}

// differing says whether any leaf of value is set to something else than in byDefault. Lists are leaves.
func differing(value, byDefault any) bool {
	members, isMap := value.(map[string]any)
	if !isMap {
		return !isZero(value) && !reflect.DeepEqual(value, byDefault)
	}
	defaults, _ := byDefault.(map[string]any)
	for name := range members {
		if differing(members[name], defaults[name]) {
			return true
		}
	}
	return false
}

// isZero says whether a value is what an object made in Go has where nobody wrote anything. false counts as written: it is
// only there where the field is a pointer.
func isZero(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == "" || value == "0s"
	case []any:
		return len(value) == 0
	}
	return false
}
