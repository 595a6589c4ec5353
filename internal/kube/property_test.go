// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func drawConfigMap(t *rapid.T, meta metav1.ObjectMeta) *corev1.ConfigMap {
	key := rapid.StringMatching(`[a-z]([-a-z0-9_.]{0,8}[a-z0-9])?`)
	return &corev1.ConfigMap{ObjectMeta: meta,
		Data: rapid.MapOfN(key, rapid.StringMatching(`[ -~\n\täλ]{0,20}`), 0, 5).Draw(t, "data"),
	}
}

func drawDeployment(t *rapid.T, meta metav1.ObjectMeta) *appsv1.Deployment {
	labels := map[string]string{"app": "slurm"}
	containers := rapid.SliceOfNDistinct(rapid.Custom(drawContainer), 1, 4, func(c corev1.Container) string { return c.Name }).Draw(t, "containers")
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas:             optional(t, "replicas", rapid.Int32Range(0, 5)),
		Selector:             &metav1.LabelSelector{MatchLabels: labels},
		MinReadySeconds:      rapid.Int32Range(0, 3).Draw(t, "minReadySeconds"),
		RevisionHistoryLimit: optional(t, "history", rapid.Int32Range(0, 3)),
		Strategy:             rapid.SampledFrom([]appsv1.DeploymentStrategy{{}, {Type: appsv1.RecreateDeploymentStrategyType}, {Type: appsv1.RollingUpdateDeploymentStrategyType}}).Draw(t, "strategy"),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: rapid.MapOfN(rapid.StringMatching(`[a-z]{1,5}`), rapid.StringMatching(`[ -~\n\täλ]{0,9}`), 0, 3).Draw(t, "annotations")},
			Spec: corev1.PodSpec{
				Containers:                    containers,
				TerminationGracePeriodSeconds: optional(t, "grace", rapid.Int64Range(0, 60)),
				HostNetwork:                   rapid.Bool().Draw(t, "hostNetwork"),
				NodeSelector:                  rapid.MapOfN(rapid.StringMatching(`[a-z]{1,5}`), rapid.StringMatching(`[a-z]{0,5}`), 0, 2).Draw(t, "nodeSelector"),
				SecurityContext:               rapid.SampledFrom([]*corev1.PodSecurityContext{nil, {}, {RunAsUser: new(int64(0))}}).Draw(t, "securityContext"),
				Volumes: []corev1.Volume{
					{Name: "v", VolumeSource: rapid.SampledFrom([]corev1.VolumeSource{
						{EmptyDir: &corev1.EmptyDirVolumeSource{}},
						{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, Optional: new(false)}},
						{Secret: &corev1.SecretVolumeSource{SecretName: "s", Items: []corev1.KeyToPath{{Key: "k", Path: "p"}}}},
					}).Draw(t, "volume")},
				},
			},
		},
	}}
}

func drawContainer(t *rapid.T) corev1.Container {
	quantity := rapid.Custom(func(t *rapid.T) resource.Quantity {
		return resource.MustParse(rapid.SampledFrom([]string{"1", "1000m", "0.5", "1Gi", "1024Mi", "1e3", "100M"}).Draw(t, "quantity"))
	})
	return corev1.Container{
		Name: rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "name"), Image: "i",
		Args: rapid.SliceOfN(rapid.StringMatching(`[a-z$() ]{0,6}`), 0, 3).Draw(t, "args"),
		Env: rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) corev1.EnvVar {
			return corev1.EnvVar{Name: rapid.StringMatching(`[A-Z]{1,2}`).Draw(t, "env"), Value: rapid.StringMatching(`[a-z]{0,3}`).Draw(t, "value")}
		}), 0, 4, func(e corev1.EnvVar) string { return e.Name }).Draw(t, "envs"),
		Ports: rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) corev1.ContainerPort {
			return corev1.ContainerPort{ContainerPort: rapid.Int32Range(1, 4).Draw(t, "port"), Protocol: rapid.SampledFrom([]corev1.Protocol{"", "UDP", "SCTP"}).Draw(t, "protocol")}
		}), 0, 3, func(p corev1.ContainerPort) string { return fmt.Sprint(p.ContainerPort, p.Protocol) }).Draw(t, "ports"),
		Resources: corev1.ResourceRequirements{Limits: rapid.MapOfN(rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu"}),
			quantity, 0, 2).Filter(func(m map[corev1.ResourceName]resource.Quantity) bool {
			q := m["nvidia.com/gpu"]
			return q.MilliValue()%1000 == 0
		}).Draw(t, "limits")},
		ReadinessProbe: rapid.SampledFrom([]*corev1.Probe{nil, {PeriodSeconds: 3, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(1)}}}}).Draw(t, "probe"),
		VolumeMounts:   rapid.SampledFrom([][]corev1.VolumeMount{nil, {{Name: "v", MountPath: "/b"}, {Name: "v", MountPath: "/a", ReadOnly: true}}}).Draw(t, "mounts"),
	}
}

func optional[T any](t *rapid.T, name string, of *rapid.Generator[T]) *T {
	if rapid.Bool().Draw(t, "has "+name) {
		return new(of.Draw(t, name))
	}
	return nil
}

// Whatever is applied, and whatever was applied before: the object then has all of it, and applying it again, with
// nothing remembered, does nothing.
func TestApplyingTwiceIsApplyingOnce(t *testing.T) {
	e := newEngine(t)
	direct := e.server.Client(t, scheme.Scheme)
	kinds := map[string]func(*rapid.T) client.Object{
		"ConfigMap":  func(t *rapid.T) client.Object { return drawConfigMap(t, e.meta("random")) },
		"Deployment": func(t *rapid.T) client.Object { return drawDeployment(t, e.meta("random")) },
	}
	for name, draw := range kinds {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				desired := draw(t)
				if _, err := NewApplier(direct, direct).Apply(e.t.Context(), e.owner, desired); err != nil {
					t.Fatal(err)
				}
				e.server.Writes.Reset()
				result, err := NewApplier(direct, direct).Apply(e.t.Context(), e.owner, desired)
				if err != nil || result.Wrote() || len(e.server.Writes.All()) > 0 {
					t.Fatalf("second apply: %s, %v", result, err)
				}
			})
		})
	}
}
