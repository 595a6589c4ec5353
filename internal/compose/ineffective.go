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
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// ineffective lists the fields of the SlurmCluster that have another value than their default and no effect in this version. It leaves
// out those that other compose functions have listed. A field without effect by design, such as the size of accounting, is described so
// in the API and is not listed.
func (c *composer) ineffective() {
	spec, nodes := c.spec, &c.spec.SlurmNodes

	c.ineffectiveTopology()
	c.ignore(len(spec.WorkerFeatures) > 0 && nodes.Worker == nil, featuresPath+" (without slurmNodes.worker)") //nolint:staticcheck // deprecated, and told of

	c.ineffectiveSlurmConfig()
	c.unconfined()

	c.ineffectiveSidecars()
	c.ineffectiveWorker()
	// Ports of Services have an effect only on the type of Service that has them.
	c.ignore(nodes.Login.SSHDServiceNodePort != 0 && !hasNodePort(nodes.Login.SSHDServiceType), loginPath+".sshdServiceNodePort")
	c.ignore(nodes.Login.SSHDServiceLoadBalancerIP != "" && nodes.Login.SSHDServiceType != corev1.ServiceTypeLoadBalancer, loginPath+".sshdServiceLoadBalancerIP")
	c.ignore(len(nodes.Login.SSHDServiceLoadBalancerSourceRanges) > 0 && nodes.Login.SSHDServiceType != corev1.ServiceTypeLoadBalancer,
		loginPath+".sshdServiceLoadBalancerSourceRanges")
}

// ineffectiveSlurmConfig lists what slurm.conf does not take over as it is.
func (c *composer) ineffectiveSlurmConfig() {
	s := &c.spec.SlurmConfig
	// Slurm powers nothing down without a SuspendProgram.
	_, program := c.custom.Document.Get("SuspendProgram")
	c.ignore(s.SuspendTime != nil && *s.SuspendTime != neverSuspend && !program && !c.savesPower(),
		suspendTimePath+" (without ephemeral nodes, and without SuspendProgram in spec.customSlurmConfig)")
}

// unconfined reports containers with that AppArmor profile, which is the API's default. It is a note and not a field without effect,
// since otherwise every SlurmCluster would have one.
func (c *composer) unconfined() {
	nodes := &c.spec.SlurmNodes
	profiles := []string{nodes.Controller.Slurmctld.AppArmorProfile, c.confined(nodes.Login.SSHD.AppArmorProfile), nodes.REST.REST.AppArmorProfile}
	if nodes.Accounting.Enabled {
		profiles = append(profiles, nodes.Accounting.Slurmdbd.AppArmorProfile)
	}
	if c.out.Components.SConfigController != nil {
		profiles = append(profiles, c.spec.SConfigController.Container.AppArmorProfile)
	}
	if c.out.Components.Exporter != nil {
		profiles = append(profiles, nodes.Exporter.ExporterContainer.AppArmorProfile)
	}
	c.note(slices.Contains(profiles, unconfined),
		"appArmorProfile: unconfined here means the container runtime's default profile; only slurmd runs without one, because its container is privileged")
}

func hasNodePort(t corev1.ServiceType) bool {
	return t == corev1.ServiceTypeNodePort || t == corev1.ServiceTypeLoadBalancer
}

// ineffectiveSidecars lists SSSD of login pods, which runs in the container of sshd, where it has a configuration, and munged of a slurmdbd
// that does not exist. The composers of the other pods handle what asks for sidecars there.
func (c *composer) ineffectiveSidecars() {
	nodes := &c.spec.SlurmNodes
	if c.out.Components.Accounting == nil {
		c.differs(accountingPath+".munge", nodes.Accounting.Munge, defaultContainer())
	}
	c.inContainer(nodes.Login.SSSD != nil, loginPath+".sssd", "sshd")
	c.ignore(nodes.Login.SSSDLdapCAConfigMapRefName != "" && nodes.Login.SSSDConfSecretRefName == "", loginPath+".sssdLdapCAConfigMapRefName (without sssdConfSecretRefName)")
	c.ignore(nodes.Login.SSSDDebugLevel != 0 && nodes.Login.SSSDConfSecretRefName == "", loginPath+".sssdDebugLevel (without sssdConfSecretRefName)")
}

func (c *composer) ineffectiveWorker() {
	worker := c.spec.SlurmNodes.Worker
	if worker == nil {
		return
	}
	c.unsupervised(worker.SupervisordConfigMapRefName != "", workerPath+".supervisordConfigMapRefName", workerPath+".customInitContainers")
}

// ineffectiveNodeSet lists the fields of a NodeSet without effect.
func (f *findings) ineffectiveNodeSet(spec *nebiusv1alpha1.NodeSetSpec) {
	f.inContainer(spec.SSSD != nil, "spec.sssd", "slurmd")
	f.ignore(value(spec.Docker.Enabled), "spec.docker.enabled")
	f.note(spec.Docker.Enabled == nil || *spec.Docker.Enabled, "spec.docker.enabled: the image of slurmd has no Docker, and none is started")
	f.note(spec.UpdateStrategy == nebiusv1alpha1.UpdateStrategySlurmAwareRollingUpdate,
		"spec.updateStrategy: slurmAwareRollingUpdate is what rollingUpdate is: a worker is drained before it is replaced, at most maxUnavailable at a time")
	f.ignore(spec.InitialNumberEphemeralNodes != nil && *spec.InitialNumberEphemeralNodes != 1 && !spec.EphemeralNodes,
		"spec.initialNumberEphemeralNodes (without ephemeralNodes)")
	f.ignore(spec.EphemeralTopologyWaitTimeout != 0 && spec.EphemeralTopologyWaitTimeout != 180, "spec.ephemeralTopologyWaitTimeout")
	f.unsupervised(spec.ConfigMapRefSupervisord != "", "spec.configMapRefSupervisord", "spec.customInitContainers")
}

// ineffectiveAutoResume reports nodes that Slurm powers up although autoResume is off: Slurm has no such setting for a node. It powers
// up ephemeral nodes, and all nodes if there is a ResumeProgram.
func (c *composer) ineffectiveAutoResume(spec *nebiusv1alpha1.NodeSetSpec) {
	resume := spec.NodeConfig.AutoResume
	if resume == nil || *resume {
		return
	}
	custom, _ := conf.Parse(conf.Slurm, c.spec.CustomSlurmConfig) // the SlurmCluster reports mistakes in it
	_, program := custom.Get("ResumeProgram")
	c.ignore(spec.EphemeralNodes, "spec.nodeConfig.autoResume (with ephemeralNodes)")
	c.ignore(program, "spec.nodeConfig.autoResume (with ResumeProgram in customSlurmConfig of the SlurmCluster)")
}

// inContainer reports a container for SSSD. Entrypoints start it beside sshd, so that one image is enough.
func (f *findings) inContainer(set bool, path, container string) {
	f.ignore(set, path)
	f.note(set, path+": SSSD runs in the container of "+container+", with the image and the resources of that, once sssdConfSecretRefName names its sssd.conf")
}

// unsupervised reports programs that supervisord would run beside slurmd. In Kubernetes each has a container of its own.
func (f *findings) unsupervised(set bool, path, instead string) {
	f.ignore(set, path)
	f.note(set, path+": workers have no supervisord, as slurmd is the process of its container; give a program beside it an entry of "+
		instead+" with restartPolicy: Always")
}

// Defaults of the API, of blocks that have no effect as a whole. A test compares them with the CRDs.
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

// differing reports whether any leaf of value is set to anything but its value in byDefault. Lists are leaves.
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

// isZero reports whether a value is what an object made in Go has where nobody set anything. false counts as set: it only occurs where
// the field is a pointer.
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
