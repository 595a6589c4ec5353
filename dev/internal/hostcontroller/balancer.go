// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostcontroller

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// balancer gives each Service of type LoadBalancer an address of the pool.
// The host routes the pool to the first node, whose kube-proxy does the rest.
type balancer struct {
	client   kubernetes.Interface
	services corelisters.ServiceLister
	pool     netip.Prefix
	// given are the addresses by Service, which the cache may not show yet.
	given map[cache.ObjectName]netip.Addr
}

func newBalancer(client kubernetes.Interface, factory informers.SharedInformerFactory, pool netip.Prefix) *worker {
	informer := factory.Core().V1().Services()
	b := &balancer{client: client, services: informer.Lister(), pool: pool, given: map[cache.ObjectName]netip.Addr{}}
	return newWorker("load balancer", informer.Informer(), b.sync)
}

func (b *balancer) sync(ctx context.Context, name cache.ObjectName) error {
	service, err := b.services.Services(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		delete(b.given, name)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the Service %s: %w", name, err)
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		// The apiserver clears the status of a Service that changes its type.
		delete(b.given, name)
		return nil
	}
	if service.Spec.LoadBalancerClass != nil || len(service.Status.LoadBalancer.Ingress) > 0 {
		return nil
	}
	address, err := b.choose(name)
	if err != nil {
		return fmt.Errorf("choosing an address for the Service %s: %w", name, err)
	}
	service = service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address.String()}}
	_, err = b.client.CoreV1().Services(name.Namespace).UpdateStatus(ctx, service, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("giving %s to the Service %s: %w", address, name, err)
	}
	klog.FromContext(ctx).Info("Gave an address to a Service", "service", name, "address", address)
	return nil
}

func (b *balancer) choose(name cache.ObjectName) (netip.Addr, error) {
	if address, ok := b.given[name]; ok {
		return address, nil
	}
	services, err := b.services.List(labels.Everything())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("listing Services: %w", err)
	}
	used := map[netip.Addr]bool{}
	for _, address := range b.given {
		used[address] = true
	}
	for _, s := range services {
		for _, ingress := range s.Status.LoadBalancer.Ingress {
			if address, err := netip.ParseAddr(ingress.IP); err == nil {
				used[address] = true
			}
		}
	}
	address, err := firstFree(b.pool, used)
	if err == nil {
		b.given[name] = address
	}
	return address, err
}

// firstFree returns the lowest address of the pool that is not used, the
// network's own first address aside.
func firstFree(pool netip.Prefix, used map[netip.Addr]bool) (netip.Addr, error) {
	for a := pool.Masked().Addr().Next(); pool.Contains(a); a = a.Next() {
		if !used[a] {
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all addresses of %s are taken", pool)
}
