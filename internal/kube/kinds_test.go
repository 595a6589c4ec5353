// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func (e *engine) podTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "slurm"}},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{
				Name: "reconfigure", Image: "slurm", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
			}},
			Containers: []corev1.Container{{
				Name: "slurmctld", Image: "slurm", Command: []string{"slurmctld", "-D"},
				Ports: []corev1.ContainerPort{{Name: "slurmctld", ContainerPort: 6817}, {Name: "dns", ContainerPort: 53, Protocol: corev1.ProtocolUDP}},
				Env: []corev1.EnvVar{
					{Name: "PLAIN", Value: "x"}, {Name: "EMPTY"},
					{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
					{Name: "CPU", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}}},
				},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("1000m"), "memory": resource.MustParse("1024Mi")},
					Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("2Gi")},
				},
				LivenessProbe:   &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/livez", Port: intstr.FromInt32(6817)}}},
				ReadinessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("slurmctld")}}},
				SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(0)), RunAsNonRoot: new(false), Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "etc", MountPath: "/etc/slurm"}, {Name: "state", MountPath: "/var/spool/slurmctld"}, {Name: "tmp", MountPath: "/tmp", SubPath: "a"},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "etc", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
					DefaultMode: new(int32(0o600)),
					Sources: []corev1.VolumeProjection{
						{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "config"}}},
						{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "key"}, Items: []corev1.KeyToPath{{Key: "slurm.key", Path: "slurm.key", Mode: new(int32(0o400))}}}},
					},
				}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "state", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("0.5Gi"))}}},
				{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/sys/fs/cgroup"}}},
			},
			Tolerations:                  []corev1.Toleration{{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists}},
			NodeSelector:                 map[string]string{"kubernetes.io/arch": "amd64"},
			AutomountServiceAccountToken: new(false),
			HostAliases:                  []corev1.HostAlias{{IP: "10.0.0.1", Hostnames: []string{"a"}}},
			ImagePullSecrets:             []corev1.LocalObjectReference{{Name: "pull"}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "kubernetes.io/hostname", WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "slurm"}},
			}},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "slurm"}},
			}}}},
			DNSConfig:       &corev1.PodDNSConfig{Searches: []string{"slurm.local"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: new("2")}}},
			SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(401))},
		},
	}
}

func (e *engine) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: e.meta("restapi"), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "slurm"}}, Template: e.podTemplate(),
	}}
}

func (e *engine) statefulSet() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: e.meta("controller"), Spec: appsv1.StatefulSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "slurm"}}, ServiceName: "controller", Template: e.podTemplate(),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "statesave", Labels: map[string]string{"app": "slurm"}},
			Spec:       claimSpec("4096Mi"),
		}},
		PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType},
	}}
}

func (e *engine) job() *batchv1.Job {
	template := e.podTemplate()
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{ObjectMeta: e.meta("populate"), Spec: batchv1.JobSpec{Template: template, TTLSecondsAfterFinished: new(int32(60))}}
}

func (e *engine) service(name string, spec corev1.ServiceSpec) *corev1.Service {
	spec.Selector = map[string]string{"app": "slurm"}
	spec.Ports = []corev1.ServicePort{{Name: "tcp", Port: 6817}, {Name: "udp", Port: 6817, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromString("dns")}}
	return &corev1.Service{ObjectMeta: e.meta(name), Spec: spec}
}

func claimSpec(size string) corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse(size)}},
	}
}

// kinds is one object of every kind that Coxswain makes, with as many fields as it uses.
func (e *engine) kinds() map[string]client.Object {
	tcp := corev1.ProtocolTCP
	return map[string]client.Object{
		"ConfigMap":            e.configMap(map[string]string{"slurm.conf": "ClusterName=a\n", "empty": ""}),
		"ConfigMap with bytes": &corev1.ConfigMap{ObjectMeta: e.meta("bytes"), BinaryData: map[string][]byte{"b": {0, 255}}, Immutable: new(true)},
		"Secret":               &corev1.Secret{ObjectMeta: e.meta("key"), Data: map[string][]byte{"slurm.key": {1, 2, 3}}},
		"Secret with text":     &corev1.Secret{ObjectMeta: e.meta("text"), StringData: map[string]string{"password": "x"}, Type: corev1.SecretTypeOpaque},
		"Service ClusterIP":    e.service("cluster-ip", corev1.ServiceSpec{}),
		"Service headless":     e.service("headless", corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true}),
		"Service NodePort":     e.service("node-port", corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal}),
		"Service LoadBalancer": e.service("load-balancer", corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerSourceRanges: []string{"10.0.0.0/8"}}),
		"StatefulSet":          e.statefulSet(),
		"Deployment":           e.deployment(),
		"DaemonSet": &appsv1.DaemonSet{ObjectMeta: e.meta("agents"), Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "slurm"}}, Template: e.podTemplate(),
		}},
		"Job": e.job(),
		"CronJob": &batchv1.CronJob{ObjectMeta: e.meta("backup"), Spec: batchv1.CronJobSpec{
			Schedule: "0 3 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: e.job().Spec},
		}},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{ObjectMeta: e.meta("budget"), Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "slurm"}},
		}},
		"NetworkPolicy": &networkingv1.NetworkPolicy{ObjectMeta: e.meta("policy"), Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: &tcp, Port: new(intstr.FromInt32(6817))}, {Port: new(intstr.FromString("dns"))}},
				From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}},
			}, {}},
		}},
		"ServiceAccount": &corev1.ServiceAccount{ObjectMeta: e.meta("account"), AutomountServiceAccountToken: new(false), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}},
		"Role": &rbacv1.Role{ObjectMeta: e.meta("role"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"},
		}}},
		"RoleBinding": &rbacv1.RoleBinding{ObjectMeta: e.meta("binding"),
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "role"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "account"}},
		},
		"PersistentVolumeClaim": &corev1.PersistentVolumeClaim{ObjectMeta: e.meta("claim"), Spec: claimSpec("0.5Gi")},
	}
}

func TestApplyingEveryKindASecondTimeWritesNothing(t *testing.T) {
	e := newEngine(t)
	for name, obj := range e.kinds() {
		t.Run(name, func(t *testing.T) {
			e.t = t
			if got := e.apply(obj).Action; got != Created {
				t.Fatalf("first apply: %s, want created", got)
			}
			e.server.Writes.Reset()
			if got := e.apply(obj); got.Action != Unchanged {
				t.Errorf("second apply: %s", Result{Changes: []Change{got}})
			}
			// Without the Applier's memory: the comparison alone has to hold.
			e.forget()
			if got := e.apply(obj); got.Action != Unchanged {
				t.Errorf("apply after a restart: %s", Result{Changes: []Change{got}})
			}
			e.server.Writes.ExpectNone(t)
		})
	}
}
