// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hyperkube is the Kubernetes of localkube in one file. The control plane, the node's daemons and kubectl share most of
// their code, so one binary links in a third of the time and size of seven.
//
// The component is the base name of argv[0] or, if that is "hyperkube", the
// first argument.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/coxswain-hpc/coxswain/dev/internal/hostcontroller"
)

const usage = `usage: hyperkube COMPONENT [ARGUMENT...]

components: etcd kube-apiserver kube-controller-manager kube-scheduler
            kubelet kube-proxy kubectl host-controller`

func main() {
	name := filepath.Base(os.Args[0])
	if name == "hyperkube" {
		if len(os.Args) < 2 {
			fmt.Fprintln(os.Stderr, usage)
			os.Exit(2)
		}
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	command := componentCommand(name)
	if command == nil {
		fmt.Fprintf(os.Stderr, "hyperkube: unknown component %q\n%s\n", name, usage)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}

// componentCommand returns the cobra command of a component, nil if there is
// none of that name.
func componentCommand(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllermanager.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	case "kube-proxy":
		return proxy.NewProxyCommand()
	case "kubectl":
		return kubectl.NewDefaultKubectlCommand()
	case "host-controller":
		return hostcontroller.NewCommand()
	}
	return nil
}
