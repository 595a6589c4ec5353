// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
)

// wantedConfig on a slurmctld pod is the digest of the configuration that it should see.
const wantedConfig = "coxswain.dev/wanted-config"

// marks are what the operator writes on a slurmctld pod; an empty one is not there.
type marks struct {
	// config is the digest of the configuration. A kubelet looks at the volumes of a pod again when the pod changes, and
	// otherwise about once a minute, so that this is what makes an edit live in seconds.
	config string
	// active is "true" on the slurmctld that the Service leads to.
	active string
}

func marksOf(p *corev1.Pod) marks {
	return marks{config: p.Annotations[wantedConfig], active: p.Labels[slinkyv1beta1.LabelControllerActive]}
}

// marking is a slurmctld pod and the marks that it is to have.
type marking struct {
	pod  *corev1.Pod
	want marks
}

// mark returns the pods that lack marks. refresh is the digest of the configuration that kubelets have to notice; when it is empty, a mark
// for the configuration stays where it is.
func mark(pods []corev1.Pod, active, refresh string) []marking {
	var out []marking
	for i := range pods {
		p := &pods[i]
		have := marksOf(p)
		want := marks{config: cmp.Or(refresh, have.config)}
		if p.Name == active {
			want.active = "true"
		}
		if p.DeletionTimestamp == nil && have != want {
			out = append(out, marking{pod: p, want: want})
		}
	}
	return out
}

// drive applies what was rendered, asks the Slurm cache for what slurmctld has loaded, and marks pods.
func (r *reconciler) drive(ctx context.Context, c *slinkyv1beta1.Controller, f facts, p *plan, _ *observation) error {
	if err := r.configure(c, f.absences, p); err != nil {
		return err
	}
	err := r.Apply(ctx, c, &p.Plan, made()...)
	r.attend(c, p)
	marks := p.marks
	if err != nil {
		marks = p.led
	}
	for _, m := range marks {
		if err := r.write(ctx, m.pod, m.want); err != nil {
			return err
		}
		if m.want.active != "" && marksOf(m.pod).active == "" {
			log.FromContext(ctx).Info("Led the Service to another slurmctld", "pod", m.pod.Name)
		}
	}
	return err
}

func (r *reconciler) write(ctx context.Context, p *corev1.Pod, want marks) error {
	var marks kube.Marks
	if want.config != "" {
		marks.Annotations = map[string]string{wantedConfig: want.config}
	}
	if want.active != "" {
		marks.Labels = map[string]string{slinkyv1beta1.LabelControllerActive: want.active}
	}
	_, err := kube.Mark(ctx, r.Client, p, kube.FieldManager, marks)
	return reconcile.IgnoreGone(err)
}
