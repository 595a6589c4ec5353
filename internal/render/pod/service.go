// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/overlay"
)

// Service is the Service of a component: the user's spec with the generated selector and the port named portName. That port
// leads to the container port of the same name. The error is a problem.Problem below path.
func Service(owner metav1.Object, name string, set label.Set, user slinkyv1beta1.ServiceSpec, portName string, port int32, path string) (*corev1.Service, error) {
	spec, err := overlay.ServiceSpec(user.Spec, set.Selector(), corev1.ServicePort{
		Name: portName, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromString(portName), NodePort: user.NodePort,
	}, path+".spec")
	return &corev1.Service{ObjectMeta: ObjectMeta(owner, name, set, user.Metadata), Spec: spec}, err
}
