// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmd

import (
	"testing"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

func TestCloudConf(t *testing.T) {
	machine := rest.Hardware{CPUs: 8, Sockets: 2, Cores: 2, Threads: 2, RealMemory: 4000, CoreSpecCount: 1, MemSpecLimit: 100, Gres: "gpu:a100:2(S:0-1),fs:1"}
	for _, tt := range []struct {
		name, extra string
		machine     rest.Hardware
		want        string
	}{
		{"what is known of the machine", "", machine,
			"CPUs=8 CoreSpecCount=1 CoresPerSocket=2 Features=w Gres=gpu:a100:2,fs:1 MemSpecLimit=100 RealMemory=4000 Sockets=2 ThreadsPerCore=2"},
		{"what the spec says counts more", "Weight=3 Gres=gpu:a100:1 RealMemory=1000 Feature=x CpuSpecList=0", machine,
			"CPUs=8 CoresPerSocket=2 CpuSpecList=0 Features=w,x Gres=gpu:a100:1 MemSpecLimit=100 RealMemory=1000 Sockets=2 ThreadsPerCore=2 Weight=3"},
		{"boards are those of the spec", "Boards=1 SocketsPerBoard=2", machine,
			"Boards=1 CPUs=8 CoreSpecCount=1 CoresPerSocket=2 Features=w Gres=gpu:a100:2,fs:1 MemSpecLimit=100 RealMemory=4000 SocketsPerBoard=2 ThreadsPerCore=2"},
		{"nothing is known", "", rest.Hardware{}, "Features=w"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := &slinkyv1beta1.NodeSet{}
			n.Name, n.Spec.ExtraConf = "w", tt.extra
			if got, err := CloudConf(n, tt.machine); err != nil || got != tt.want {
				t.Errorf("%q, %v; want %q", got, err, tt.want)
			}
		})
	}
	n := &slinkyv1beta1.NodeSet{}
	n.Name, n.Spec.ExtraConf = "w", "NodeName=x"
	if got, err := CloudConf(n, machine); err == nil {
		t.Errorf("a spec that is refused gives %q", got)
	}
}
