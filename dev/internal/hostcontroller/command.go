// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostcontroller is what a cloud would do for a cluster: it provides
// directories for PersistentVolumeClaims and addresses for Services of type
// LoadBalancer. It runs on the host, beside the control plane.
package hostcontroller

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// NewCommand returns the command host-controller.
func NewCommand() *cobra.Command {
	var kubeconfig, storage, pool string
	command := &cobra.Command{
		Use:           "host-controller",
		Short:         "Provide volumes and load balancer addresses from the host",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			prefix, err := netip.ParsePrefix(pool)
			if err != nil {
				return fmt.Errorf("parsing --load-balancers: %w", err)
			}
			if !filepath.IsAbs(storage) {
				return fmt.Errorf("parsing --storage: %q is not an absolute path", storage)
			}
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("reading --kubeconfig: %w", err)
			}
			config.QPS, config.Burst = 100, 200
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("making the client: %w", err)
			}
			factory := informers.NewSharedInformerFactory(client, 0)
			stop := command.Context().Done()
			workers := []*worker{
				newBalancer(client, factory, prefix),
				newProvisioner(client, factory, storage),
				newRemover(client, factory, storage),
			}
			factory.Start(stop)
			factory.WaitForCacheSync(stop)
			for _, w := range workers {
				go w.run(command.Context())
			}
			klog.Background().Info("Started", "storage", storage, "loadBalancers", prefix)
			<-stop
			return nil
		},
	}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file of the kubeconfig")
	command.Flags().StringVar(&storage, "storage", "", "absolute path of the directory that holds the volumes")
	command.Flags().StringVar(&pool, "load-balancers", "", "subnet of the addresses for Services of type LoadBalancer")
	return command
}

// retry returns how often and how fast an object that failed is tried again.
func retry() workqueue.TypedRateLimiter[cache.ObjectName] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](50*time.Millisecond, 30*time.Second)
}
