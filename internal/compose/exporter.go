// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

const (
	exporterPath = "spec.slurmNodes.exporter"
	// exporterComponent is the component of the exporter, and the name of its container, as Soperator has both:
	// docs/contributors/predecessors/soperator-objects.md#the-exporter.
	exporterComponent = "exporter"
	// Ports on which the exporter serves the metrics of the cluster, unless the spec sets another, and its own metrics.
	exporterPort           = 8080
	exporterMonitoringPort = 8081
	// The names of these ports.
	exporterPortName           = "metrics"
	exporterMonitoringPortName = "monitoring"
	// exporterTokenVolume is the volume with the exporter's token, and exporterTokenDir is where it is mounted.
	exporterTokenVolume = "token"
	exporterTokenDir    = "/etc/exporter"
	// exporterUser is the exporter's Slurm user. It sees all nodes and jobs, and may change nothing.
	exporterUser = "nobody"
	// exporterTokenLifetime is long enough for a kubelet to bring the next token before the last one expires.
	exporterTokenLifetime = time.Hour
	// minCollectionInterval is the shortest interval that the program accepts.
	minCollectionInterval = time.Second
)

// hasExporter reports whether the spec asks for an exporter of ours. A container of the first generation asks for another program.
func hasExporter(spec *nebiusv1.Exporter) bool {
	return spec.Enabled && (spec.Exporter == nil || spec.Exporter.Image == "") //nolint:staticcheck // deprecated, and in effect all the same
}

// exporter composes the program that exports metrics of the cluster, its token and its PodMonitor; nil if the spec asks for none.
func (c *composer) exporter() *appsv1.Deployment {
	spec := c.spec.SlurmNodes.Exporter
	c.dropFilter(true, &spec.K8sNodeFilterName, exporterPath)
	if !hasExporter(&spec) {
		c.ignore(spec.Enabled, exporterPath+".enabled (with exporter.image, which is for the first generation of exporters; use exporterContainer)")
		return nil
	}
	if old := spec.Exporter; old != nil { //nolint:staticcheck // deprecated, and told of
		c.differs(exporterPath+".exporter", *old, nebiusv1.LegacyExporter{NodeContainer: defaultContainer()})
	}
	replicas := int32(1)
	if c.spec.Maintenance.Downscaled() || c.out.Components.Controller.Spec.Suspend {
		replicas = 0
	}
	jwt := c.exporterToken()
	out := &appsv1.Deployment{
		ObjectMeta: c.meta(c.cluster.ExporterName(), exporterComponent),
		Spec: appsv1.DeploymentSpec{
			Replicas:             &replicas,
			RevisionHistoryLimit: new(int32(0)),
			Strategy:             appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}, // two would count everything twice
			Selector:             &metav1.LabelSelector{MatchLabels: exporterSelector(c.cluster)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: label.Merge(c.labels(exporterComponent), map[string]string{slinkyv1beta1.LabelSlurmrestdClient: "true"})},
				Spec:       c.exporterPod(&spec, jwt.TokenRef()),
			},
		},
	}
	c.out.Add(jwt)
	c.exporterAccount(&spec)
	c.out.Add(out)
	c.podMonitor(&spec)
	return out
}

func exporterSelector(cluster *nebiusv1.SlurmCluster) map[string]string {
	set := label.Set{Name: "slurmcluster", Instance: cluster.Name}
	return label.Merge(set.Selector(), map[string]string{label.Component: exporterComponent})
}

// exporterToken is kept fresh by the controller of Tokens.
func (c *composer) exporterToken() *slinkyv1beta1.Token {
	return &slinkyv1beta1.Token{
		ObjectMeta: c.meta(c.cluster.ExporterName(), exporterComponent),
		Spec: slinkyv1beta1.TokenSpec{
			JwtKeyRef: c.out.Components.Controller.AuthJwtRef(),
			Username:  exporterUser,
			Lifetime:  &metav1.Duration{Duration: exporterTokenLifetime},
			Refresh:   new(true),
		},
	}
}

// exporterAccount is an account without rights, unless the spec names another one.
func (c *composer) exporterAccount(spec *nebiusv1.Exporter) {
	if spec.ServiceAccountName == "" {
		c.out.Add(&corev1.ServiceAccount{ObjectMeta: c.meta(c.exporterAccountName(), exporterComponent), AutomountServiceAccountToken: new(false)})
	}
}

func (c *composer) exporterAccountName() string { return c.cluster.ExporterName() + "-sa" }

func (c *composer) exporterPod(spec *nebiusv1.Exporter, tokenRef *corev1.SecretKeySelector) corev1.PodSpec {
	out := c.podSpec(spec.SlurmNode, spec.HostUsers, spec.ExporterContainer, exporterPath)
	out.ServiceAccountName = cmp.Or(spec.ServiceAccountName, c.exporterAccountName())
	out.AutomountServiceAccountToken, out.EnableServiceLinks = new(false), new(false)
	const unprivileged = 65532
	out.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(unprivileged)), RunAsGroup: new(int64(unprivileged)), FSGroup: new(int64(unprivileged)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	out.Volumes = []corev1.Volume{{Name: exporterTokenVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: tokenRef.Name, Items: []corev1.KeyToPath{{Key: tokenRef.Key, Path: tokenRef.Key}}, DefaultMode: new(int32(0o440)),
	}}}}
	out.Containers = []corev1.Container{c.exporterContainer(spec, tokenRef.Key)}
	return out
}

func (c *composer) exporterContainer(spec *nebiusv1.Exporter, tokenFile string) corev1.Container {
	const at = exporterPath + ".exporterContainer"
	out := c.container(spec.ExporterContainer, at, withoutCPU)
	out.Name, out.Image = exporterComponent, cmp.Or(out.Image, c.images.Exporter())
	if len(out.Command) == 0 {
		out.Command = []string{"/usr/bin/exporter"}
	}
	port := cmp.Or(spec.ExporterContainer.Port, exporterPort)
	if port == exporterMonitoringPort {
		c.fail(at+".port", "must not be %d, where the exporter serves metrics of itself", port)
	}
	out.Args = append(c.exporterArgs(spec, port, tokenFile), out.Args...)
	restrict(&out)
	out.Ports = []corev1.ContainerPort{
		{Name: exporterPortName, ContainerPort: port, Protocol: corev1.ProtocolTCP},
		{Name: exporterMonitoringPortName, ContainerPort: exporterMonitoringPort, Protocol: corev1.ProtocolTCP},
	}
	// A restart does not help when it is Slurm that does not answer.
	if out.LivenessProbe == nil {
		out.LivenessProbe = &corev1.Probe{
			ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/metrics", Port: intstr.FromString(exporterMonitoringPortName)}},
			InitialDelaySeconds: 10, PeriodSeconds: 20, TimeoutSeconds: pod.BusySeconds,
		}
	}
	if out.ReadinessProbe == nil {
		out.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/health", Port: intstr.FromString(exporterPortName)}},
			PeriodSeconds: 5, TimeoutSeconds: pod.BusySeconds,
		}
	}
	out.VolumeMounts = []corev1.VolumeMount{{Name: exporterTokenVolume, MountPath: exporterTokenDir, ReadOnly: true}}
	return out
}

// exporterArgs are those of Soperator (docs/contributors/predecessors/soperator-objects.md#the-exporter), and where the token is.
func (c *composer) exporterArgs(spec *nebiusv1.Exporter, port int32, tokenFile string) []string {
	args := []string{
		"--cluster-namespace=" + c.cluster.Namespace, "--cluster-name=" + c.cluster.Name,
		"--slurm-api-server=" + c.out.Components.RestAPI.URL(),
		"--token-file=" + exporterTokenDir + "/" + tokenFile,
	}
	if port != exporterPort {
		args = append(args, "--metrics-bind-address=:"+strconv.Itoa(int(port)))
	}
	if interval := spec.CollectionInterval; interval != "" {
		if d, err := model.ParseDuration(interval); err != nil || time.Duration(d) < minCollectionInterval {
			c.fail(exporterPath+".collectionInterval", "must be at least 1s, such as 30s")
		}
		args = append(args, "--collection-interval="+interval)
	}
	if spec.MaxCollectorInflight > 0 {
		args = append(args, "--max-collector-inflight="+strconv.Itoa(int(spec.MaxCollectorInflight)))
	}
	return append(args, c.exporterJobs(spec)...)
}

// exporterJobs returns the arguments for where the exporter reads jobs. slurmdbd exists only with accounting.
func (c *composer) exporterJobs(spec *nebiusv1.Exporter) []string {
	const byDefault = "1h"
	if spec.JobSource != "accounting" {
		c.ignore(spec.AccountingJobsLookback != "" && spec.AccountingJobsLookback != byDefault, exporterPath+".accountingJobsLookback (without jobSource: accounting)")
		return nil
	}
	if c.out.Components.Accounting == nil {
		c.ignore(true, exporterPath+".jobSource (without slurmNodes.accounting; jobs are read from slurmctld)")
		return nil
	}
	return []string{"--job-source=accounting", fmt.Sprintf("--accounting-jobs-lookback=%s", cmp.Or(spec.AccountingJobsLookback, byDefault))}
}
