// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func TestWhatOthersChangeInOurFieldsIsSetRight(t *testing.T) {
	e := newEngine(t)
	deployment := e.deployment()
	tests := map[string]func(*appsv1.Deployment){
		"spec.replicas": func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 },
		"spec.template.spec.containers[slurmctld].image": func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "other" },
		"metadata.labels.app.kubernetes.io/name":         func(d *appsv1.Deployment) { delete(d.Labels, "app.kubernetes.io/name") },
		"spec.template.spec.volumes[host]":               func(d *appsv1.Deployment) { d.Spec.Template.Spec.Volumes = d.Spec.Template.Spec.Volumes[:3] },
		"spec.template.spec.nodeSelector":                func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector["zone"] = "a" },
		"spec.template.spec.tolerations": func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{Key: "x", Operator: "Exists"})
		},
		"spec.template.spec.containers[slurmctld].command":      func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Command = []string{"sh", "-c", "true"} },
		"metadata.ownerReferences[" + string(e.owner.UID) + "]": func(d *appsv1.Deployment) { d.OwnerReferences = nil },
	}
	e.apply(deployment)
	before := e.live(deployment).(*appsv1.Deployment)
	for path, change := range tests {
		t.Run(path, func(t *testing.T) {
			e.t = t
			edit(e, deployment, change)
			got := e.apply(deployment)
			if got.Action != Updated || !strings.HasPrefix(got.Path, path) {
				t.Errorf("got %s at %q, want updated at %q", got.Action, got.Path, path)
			}
			if diff := cmp.Diff(before.Spec, e.live(deployment).(*appsv1.Deployment).Spec); diff != "" {
				t.Errorf("drift left (-before +now):\n%s", diff)
			}
			e.server.Writes.Reset()
			e.apply(deployment)
			e.server.Writes.ExpectNone(t)
		})
	}
}

// TestWhatOthersPutInPlaceOfOursIsSetRight has what server-side apply alone cannot correct: a foreign member that excludes ours, and
// something in an emptyDir.
func TestWhatOthersPutInPlaceOfOursIsSetRight(t *testing.T) {
	e := newEngine(t)
	deployment := e.deployment()
	template := &deployment.Spec.Template.Spec
	scratch, files := len(template.Volumes), len(template.Volumes)+1
	template.Volumes = append(template.Volumes,
		corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "files"},
		}}})
	template.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "1"}}
	template.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1)}}}
	host := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
	tests := map[string]func(*corev1.PodSpec){
		"volumes[scratch].emptyDir": func(s *corev1.PodSpec) { s.Volumes[scratch].EmptyDir.Medium = corev1.StorageMediumMemory },
		"volumes[scratch]":          func(s *corev1.PodSpec) { s.Volumes[scratch].VolumeSource = host },
		"volumes[files]":            func(s *corev1.PodSpec) { s.Volumes[files].VolumeSource = host },
		"containers[slurmctld].env[A]": func(s *corev1.PodSpec) {
			s.Containers[0].Env[0] = corev1.EnvVar{Name: "A", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}
		},
		"containers[slurmctld].livenessProbe": func(s *corev1.PodSpec) {
			s.Containers[0].LivenessProbe.ProbeHandler = corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}
		},
	}
	e.apply(deployment)
	before := e.live(deployment).(*appsv1.Deployment)
	for path, change := range tests {
		t.Run(path, func(t *testing.T) {
			e.t = t
			edit(e, deployment, func(d *appsv1.Deployment) { change(&d.Spec.Template.Spec) })
			got := e.apply(deployment)
			if got.Action != Updated || !strings.HasPrefix(got.Path, "spec.template.spec."+path) {
				t.Errorf("got %s at %q, want updated at %q", got.Action, got.Path, path)
			}
			if diff := cmp.Diff(before.Spec, e.live(deployment).(*appsv1.Deployment).Spec); diff != "" {
				t.Errorf("drift left (-before +now):\n%s", diff)
			}
			e.server.Writes.Reset()
			e.apply(deployment)
			e.server.Writes.ExpectNone(t)
		})
	}
	e.t = t
	template.Volumes[scratch].VolumeSource = template.Volumes[files].VolumeSource
	e.apply(deployment)
	if got := e.live(deployment).(*appsv1.Deployment).Spec.Template.Spec.Volumes[scratch]; got.ConfigMap == nil || got.EmptyDir != nil {
		t.Errorf("after a change of ours the volume is %v", got)
	}
}

func TestWhatOthersAddStays(t *testing.T) {
	e := newEngine(t)
	deployment := e.deployment()
	e.apply(deployment)
	edit(e, deployment, func(d *appsv1.Deployment) {
		d.Labels["team"] = "a"
		d.Annotations["note"] = "b"
		d.Spec.MinReadySeconds = 5
		spec := &d.Spec.Template.Spec
		spec.Containers = append([]corev1.Container{{Name: "injected", Image: "mesh"}}, spec.Containers...)
		spec.Containers[1].Env = append([]corev1.EnvVar{{Name: "INJECTED", Value: "1"}}, spec.Containers[1].Env...)
	})
	e.server.Writes.Reset()
	if got := e.apply(deployment); got.Action != Unchanged {
		t.Errorf("additions of others caused %s at %s", got.Action, got.Path)
	}
	e.server.Writes.ExpectNone(t)

	// And they stay when something of ours changes.
	deployment.Spec.Template.Spec.Containers[0].Image = "slurm:2"
	if got := e.apply(deployment); got.Action != Updated || got.Path != "spec.template.spec.containers[slurmctld].image" {
		t.Errorf("got %+v", got)
	}
	live := e.live(deployment).(*appsv1.Deployment)
	images := map[string]string{}
	for _, c := range live.Spec.Template.Spec.Containers {
		images[c.Name] = c.Image
	}
	if diff := cmp.Diff(map[string]string{"injected": "mesh", "slurmctld": "slurm:2"}, images); diff != "" {
		t.Errorf("containers (-want +got):\n%s", diff)
	}
	if live.Labels["team"] != "a" || live.Annotations["note"] != "b" || live.Spec.MinReadySeconds != 5 {
		t.Errorf("fields of others were lost: %v %v %d", live.Labels, live.Annotations, live.Spec.MinReadySeconds)
	}
}

func TestWhatLeavesTheIntentLeavesTheObject(t *testing.T) {
	e := newEngine(t)
	e.apply(e.configMap(map[string]string{"a": "1", "b": "2"}))
	edit(e, e.configMap(nil), func(cm *corev1.ConfigMap) { cm.Data["theirs"] = "3" })
	if got := e.apply(e.configMap(map[string]string{"a": "1"})); got.Action != Updated {
		t.Errorf("got %+v, want an update", got)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "theirs": "3"}, e.live(e.configMap(nil)).(*corev1.ConfigMap).Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}

	deployment := e.deployment()
	e.apply(deployment)
	spec := &deployment.Spec.Template.Spec
	spec.Containers[0].Env, spec.InitContainers, deployment.Labels = spec.Containers[0].Env[1:], nil, nil
	e.apply(deployment)
	live := e.live(deployment).(*appsv1.Deployment)
	if len(live.Spec.Template.Spec.Containers[0].Env) != 3 || len(live.Spec.Template.Spec.InitContainers) != 0 || len(live.Labels) != 0 {
		t.Errorf("left over: env %v, init containers %v, labels %v", live.Spec.Template.Spec.Containers[0].Env,
			live.Spec.Template.Spec.InitContainers, live.Labels)
	}
}

func TestTheSameQuantityWrittenOtherwiseIsNoDifference(t *testing.T) {
	e := newEngine(t)
	deployment := e.deployment()
	e.apply(deployment)
	e.forget()
	e.server.Writes.Reset()
	deployment.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	if got := e.apply(deployment); got.Action != Unchanged {
		t.Errorf("got %+v", got)
	}
	e.server.Writes.ExpectNone(t)
}

func TestARefusalOfTheServerNamesTheObjectAndIsAProblem(t *testing.T) {
	e := newEngine(t)
	deployment := e.deployment()
	deployment.Spec.Template.Spec.Containers[0].Image = ""
	_, err := e.Apply(t.Context(), e.owner, deployment)
	got := expectError[*RejectedError](t, err)
	if !strings.Contains(got.Error(), "spec.template.spec.containers[0].image") {
		t.Errorf("the message does not name the field: %v", got)
	}
	expectProblem(t, err, ReasonRejected)
}

func TestAnObjectThatTheServerStoresDifferentlyIsAppliedOncePerVersionAndReportedOnce(t *testing.T) {
	e := newEngine(t)
	binding := e.kinds()["RoleBinding"].(*rbacv1.RoleBinding)
	binding.RoleRef.APIGroup = "" // the server fills it in
	var logged []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	apply := func() Action {
		t.Helper()
		result, err := e.Apply(ctx, e.owner, binding)
		if err != nil {
			t.Fatal(err)
		}
		e.catchUp()
		return result.Changes[0].Action
	}
	if got := apply(); got != Created {
		t.Errorf("got %s", got)
	}
	e.forget()
	for range 3 {
		e.server.Writes.Reset()
		for range 3 {
			if got := apply(); got != Unchanged {
				t.Errorf("got %s", got)
			}
		}
		if writes := e.server.Writes.All(); len(writes) != 1 {
			t.Errorf("calls for one version of the object: %v", writes)
		}
		edit(e, binding, func(b *rbacv1.RoleBinding) { metav1.SetMetaDataLabel(&b.ObjectMeta, "touched", b.ResourceVersion) })
	}
	if len(logged) != 1 || !strings.Contains(logged[0], "roleRef.apiGroup") {
		t.Errorf("logged: %q", logged)
	}
}

func TestAStrategyWithoutRollingUpdateLosesTheDefaultsOfOne(t *testing.T) {
	e := newEngine(t)
	deployment, set, agents := e.deployment(), e.statefulSet(), e.kinds()["DaemonSet"].(*appsv1.DaemonSet)
	e.apply(deployment, set, agents)
	deployment.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	agents.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	e.apply(deployment, set, agents)
	if live := e.live(deployment).(*appsv1.Deployment); live.Spec.Strategy.RollingUpdate != nil {
		t.Errorf("left: %v", live.Spec.Strategy)
	}
	e.forget()
	e.server.Writes.Reset()
	e.apply(deployment, set, agents)
	e.server.Writes.ExpectNone(t)
}

// The digest of a Secret that is kept in its annotation leaves out the values; the Applier's memory must not.
func TestAChangedValueOfASecretIsApplied(t *testing.T) {
	e := newEngine(t)
	secret := e.kinds()["Secret"].(*corev1.Secret)
	e.apply(secret)
	for _, value := range []string{"one", "two"} {
		secret.Data = map[string][]byte{"password": []byte(value)}
		if change := e.apply(secret.DeepCopy()); change.Action != Updated {
			t.Errorf("the password changed to %s: %s, want %s", value, change.Action, Updated)
		}
		if got := string(e.live(secret).(*corev1.Secret).Data["password"]); got != value {
			t.Errorf("the password is %s, want %s", got, value)
		}
	}
}
