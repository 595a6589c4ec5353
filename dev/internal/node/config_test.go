// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func testConfig() Config {
	return Config{
		Name: "node-1", Dir: "/cache/nodes/node-1/config", PKI: "/cache/pki", CgroupRoot: "/localkube-1a2b3c/node-1",
		PauseImage: "localkube.invalid/pause:1", CNIPlugins: "/usr/lib/cni", KeepOOMScores: true,
		Host: netip.MustParseAddr("10.3.0.1"), DNS: netip.MustParseAddr("10.3.128.10"),
		NodePods: netip.MustParsePrefix("10.2.1.0/24"), Pods: netip.MustParsePrefix("10.2.0.0/16"),
	}
}

func TestFilesAreAsRecorded(t *testing.T) {
	files, err := testConfig().Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range files {
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs (-want +got); \"go test -update\" rewrites it:\n%s", name, diff)
		}
	}
}

func TestPrivilegedHostsKeepTheKubeletsPriority(t *testing.T) {
	c := testConfig()
	c.KeepOOMScores = false
	files, err := c.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"kubelet.yaml":    "oomScoreAdj: -999",
		"kube-proxy.yaml": "oomScoreAdj: -999",
		"containerd.toml": "restrict_oom_score_adj = false",
	} {
		if !strings.Contains(string(files[name]), want) {
			t.Errorf("no %q in %s", want, name)
		}
	}
}

func TestWritePutsTheNetworkApart(t *testing.T) {
	c := testConfig()
	c.Dir = t.TempDir()
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"containerd.toml", "cni/10-bridge.conflist"} {
		if _, err := os.Stat(filepath.Join(c.Dir, file)); err != nil {
			t.Error(err)
		}
	}
}

func TestSpecSurvivesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "node.json")
	want := Spec{
		Name: "node-1", Root: "/cache", Var: "/cache/var", Cgroup: "localkube-1a2b3c/node-1/daemons",
		Daemons: []Daemon{{Name: "kubelet", Path: "/bin/kubelet", Args: []string{"kubelet", "--x"}, Log: "/log", AfterAPI: true}},
	}
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := loadSpec(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
