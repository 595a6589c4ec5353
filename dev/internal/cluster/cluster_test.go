// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
	"github.com/coxswain-hpc/coxswain/dev/internal/state"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func testState() state.State {
	p := netip.MustParsePrefix
	return state.State{
		Name: "test", Nodes: 2, Binaries: "/cache/bin/key",
		Ports: state.Ports{API: 20000, Etcd: 20001, EtcdPeer: 20002},
		Network: state.Network{
			Hosts: p("10.3.0.0/24"), LoadBalancers: p("10.3.1.0/24"), Services: p("10.3.128.0/17"), Pods: p("10.2.0.0/16"),
		},
	}
}

func TestFlagsAreAsRecorded(t *testing.T) {
	l := layout.Root("/cache").Cluster("test")
	s := testState()
	without := s
	without.ControlPlaneOnly, without.Nodes = true, 0
	for name, flags := range map[string][]string{
		"etcd":                              etcdFlags(l, s),
		"kube-apiserver":                    apiserverFlags(l, s),
		"kube-apiserver-control-plane-only": apiserverFlags(l, without),
		"kube-controller-manager":           controllerManagerFlags(l, s),
		"kube-scheduler":                    schedulerFlags(l),
		"host-controller":                   hostControllerFlags(l, s),
	} {
		got := strings.Join(flags, "\n") + "\n"
		golden := filepath.Join("testdata", name+".flags")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s differs (-want +got); \"go test -update\" rewrites it:\n%s", name, diff)
		}
	}
}

func TestDecide(t *testing.T) {
	full := testState()
	named := testState()
	named.Names = map[int]string{2: "a.internal"}
	bare := state.State{Name: "test", ControlPlaneOnly: true}
	for name, test := range map[string]struct {
		wish  UpOptions
		old   *state.State
		nodes int
		fails string
		names map[int]string
	}{
		"a new cluster has two nodes":                                    {UpOptions{}, nil, 2, "", nil},
		"a new cluster has the nodes one asks for":                       {UpOptions{Nodes: 5}, nil, 5, "", nil},
		"a new control plane has no nodes":                               {UpOptions{ControlPlaneOnly: true}, nil, 0, "", nil},
		"a cluster keeps its nodes":                                      {UpOptions{}, &full, 2, "", nil},
		"a cluster grows":                                                {UpOptions{Nodes: 3}, &full, 3, "", nil},
		"a cluster does not shrink":                                      {UpOptions{Nodes: 1}, &full, 0, "has 2 nodes", nil},
		"a control plane stays without nodes when nobody asks for nodes": {UpOptions{}, &bare, 0, "", nil},
		"a control plane gets no nodes":                                  {UpOptions{Nodes: 1}, &bare, 0, "has no nodes", nil},
		"a cluster does not become a control plane":                      {UpOptions{ControlPlaneOnly: true}, &full, 0, "has nodes", nil},
		"nodes and no nodes are a contradiction":                         {UpOptions{Nodes: 1, ControlPlaneOnly: true}, nil, 0, "excludes --nodes", nil},
		"a negative number of nodes is refused":                          {UpOptions{Nodes: -1}, nil, 0, "--nodes -1", nil},
		"more nodes than the subnets have room for are refused":          {UpOptions{Nodes: 101}, nil, 0, "--nodes 101", nil},
		"the last nodes of a new cluster get the names":                  {UpOptions{Nodes: 3, Names: []string{"b.c", "a.b"}}, nil, 3, "", map[int]string{2: "b.c", 3: "a.b"}},
		"a new cluster has room for its names":                           {UpOptions{Names: []string{"a.b", "b.c", "c.d"}}, nil, 3, "", map[int]string{1: "a.b", 2: "b.c", 3: "c.d"}},
		"a cluster grows by a node with a name":                          {UpOptions{Nodes: 2, Names: []string{"a.b"}}, &full, 3, "", map[int]string{3: "a.b"}},
		"a cluster grows by more than the name":                          {UpOptions{Nodes: 4, Names: []string{"a.b"}}, &full, 4, "", map[int]string{4: "a.b"}},
		"a cluster keeps the names of its nodes":                         {UpOptions{}, &named, 2, "", named.Names},
		"a name that a node has adds no node":                            {UpOptions{Names: []string{"a.internal"}}, &named, 2, "", named.Names},
		"a second name adds a node":                                      {UpOptions{Names: []string{"b.internal", "a.internal"}}, &named, 3, "", map[int]string{2: "a.internal", 3: "b.internal"}},
		"a name without a domain is refused":                             {UpOptions{Names: []string{"etcd"}}, nil, 0, `--node-names "etcd"`, nil},
		"a name of 64 characters is refused":                             {UpOptions{Names: []string{strings.Repeat("a", 62) + ".b"}}, nil, 0, "of 63 characters", nil},
		"a name that is there twice is refused":                          {UpOptions{Names: []string{"a.b", "a.b"}}, nil, 0, "there twice", nil},
		"a control plane gets no named nodes":                            {UpOptions{Names: []string{"a.b"}}, &bare, 0, "has no nodes", nil},
		"a new control plane gets no named nodes":                        {UpOptions{Names: []string{"a.b"}, ControlPlaneOnly: true}, nil, 0, "excludes", nil},
		"names need room in the subnets":                                 {UpOptions{Names: []string{"a.b"}}, &state.State{Name: "test", Nodes: state.MaxNodes}, 0, "more than 100", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decide("test", test.wish, test.old)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v, want an error about %q", err, test.fails)
				}
				return
			}
			if err != nil || got.Nodes != test.nodes {
				t.Errorf("got %+v, %v, want %d nodes", got, err, test.nodes)
			}
			if got.ControlPlaneOnly != (test.nodes == 0) {
				t.Errorf("control plane only: %v with %d nodes", got.ControlPlaneOnly, got.Nodes)
			}
			if diff := cmp.Diff(test.names, got.Names); diff != "" {
				t.Errorf("the names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRemoveAllButKeepsTheImages(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"var/lib/containerd/a/b", "var/lib/kubelet/c", "var/log/d", "config/e", "images.json", "var/lib/containerd2"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n := layout.Node{Name: "node-1", Dir: dir}
	if err := removeAllBut(dir, n.Containerd(), n.Images()); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			left = append(left, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if diff := cmp.Diff([]string{"images.json", "var/lib/containerd/a/b"}, left); diff != "" || err != nil {
		t.Errorf("left (-want +got), %v:\n%s", err, diff)
	}
}

func TestStatusForPeople(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := Status{
		Server: "https://10.3.0.1:20000", Kubeconfig: "/cache/kubeconfig", Logs: "/cache/logs", Host: "10.3.0.1", Storage: "/cache/storage",
		Components: []ComponentStatus{
			{Name: "etcd", PID: 12, Started: now.Add(-90 * time.Second), Ready: true},
			{Name: "node-1", Problem: "does not run"},
		},
	}
	var b strings.Builder
	if err := s.Print(&b, now); err != nil {
		t.Fatal(err)
	}
	want := `COMPONENT  PID  UPTIME  STATUS
etcd       12   1m30s   ready
node-1     -    -       does not run

apiserver   https://10.3.0.1:20000
kubeconfig  /cache/kubeconfig
logs        /cache/logs
host        10.3.0.1 (for pods)
storage     /cache/storage
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
