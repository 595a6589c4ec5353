// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reach returns the address at which the first port of a Service is reached from this machine. That is the Service's where the
// Kubernetes is local, else a forwarded port, which lasts until release is called.
func (k *Kubernetes) Reach(ctx context.Context, name types.NamespacedName) (address string, release func(), err error) {
	var service corev1.Service
	if err := k.Get(ctx, name, &service); err != nil {
		return "", nil, fmt.Errorf("reading the Service %s: %w", name, err)
	}
	if len(service.Spec.Ports) == 0 {
		return "", nil, fmt.Errorf("the Service %s has no port", name)
	}
	port := service.Spec.Ports[0]
	if k.Local && service.Spec.ClusterIP != corev1.ClusterIPNone {
		return net.JoinHostPort(service.Spec.ClusterIP, strconv.Itoa(int(port.Port))), func() {}, nil
	}
	pod, err := k.readyPod(ctx, &service)
	if err != nil {
		return "", nil, err
	}
	local, release, err := k.forward(ctx, pod, containerPort(pod, port))
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(local))), release, err
}

// readyPod returns a pod of a Service that is ready.
func (k *Kubernetes) readyPod(ctx context.Context, service *corev1.Service) (*corev1.Pod, error) {
	var pods corev1.PodList
	if err := k.List(ctx, &pods, client.InNamespace(service.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return nil, fmt.Errorf("listing the pods of the Service %s/%s: %w", service.Namespace, service.Name, err)
	}
	for _, p := range pods.Items {
		if IsReady(&p) {
			return &p, nil
		}
	}
	return nil, fmt.Errorf("the Service %s/%s has no ready pod", service.Namespace, service.Name)
}

// containerPort returns the number of a Service's target port in a pod.
func containerPort(pod *corev1.Pod, port corev1.ServicePort) int32 {
	if n := port.TargetPort.IntVal; n != 0 {
		return n
	}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == port.TargetPort.StrVal {
				return p.ContainerPort
			}
		}
	}
	return port.Port
}

// forward forwards a free port of this machine to a port of a pod.
func (k *Kubernetes) forward(ctx context.Context, pod *corev1.Pod, port int32) (local uint16, release func(), err error) {
	transport, upgrader, err := spdy.RoundTripperFor(k.Config)
	if err != nil {
		return 0, nil, fmt.Errorf("forwarding a port: %w", err)
	}
	url := k.Clientset.CoreV1().RESTClient().Post().
		Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	stop, ready, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{"0:" + strconv.Itoa(int(port))}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, fmt.Errorf("forwarding a port to %s: %w", pod.Name, err)
	}
	go func() {
		ended <- forwarder.ForwardPorts()
		close(ended)
	}()
	release = func() {
		close(stop)
		for range ended { // until it is closed; why it ended does not matter any more
		}
	}
	select {
	case <-ready:
	case err := <-ended:
		return 0, nil, fmt.Errorf("forwarding a port to %s: %w", pod.Name, errors.Join(err, errors.New("it ended at once")))
	case <-ctx.Done():
		release()
		return 0, nil, fmt.Errorf("forwarding a port to %s: %w", pod.Name, context.Cause(ctx))
	}
	ports, err := forwarder.GetPorts()
	if err != nil || len(ports) == 0 {
		release()
		return 0, nil, fmt.Errorf("forwarding a port to %s: %w", pod.Name, errors.Join(err, errors.New("no port")))
	}
	return ports[0].Local, release, nil
}
