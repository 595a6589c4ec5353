// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"strings"
	"testing"
)

func TestProblems(t *testing.T) {
	good := Facts{Root: true, FreeBytes: 100 << 30, Directory: "/cache", Overlay: true, CgroupMounts: 1, Built: true}
	for name, test := range map[string]struct {
		change  func(*Facts)
		without bool // nodes
		want    []string
	}{
		"a good machine has none": {func(*Facts) {}, false, nil},
		"nodes need root": {
			func(f *Facts) { f.Root = false }, false, []string{"nodes need root"},
		},
		"a control plane needs no root, overlayfs or cgroups": {
			func(f *Facts) { f.Root, f.Overlay, f.OverlayDirectory, f.CgroupMounts = false, false, true, 0 }, true, nil,
		},
		"packages are named once, with the command": {
			func(f *Facts) { f.Missing = []string{"containerd", "ctr", "runc", "CNI plugin bridge"} }, false,
			[]string{"apt-get install -y --no-install-recommends containerd containernetworking-plugins runc"},
		},
		"Go is asked for": {
			func(f *Facts) { f.NoGo = true }, true, []string{"Go is missing"},
		},
		"a full disk is reported with what is needed": {
			func(f *Facts) { f.FreeBytes = 1 << 29 }, true, []string{"/cache has 0.5 GiB free and 2 are needed to run"},
		},
		"building needs more": {
			func(f *Facts) { f.FreeBytes, f.Built = 5<<30, false }, true, []string{"5.0 GiB free and 10 are needed to build and run"},
		},
		"everything is reported at once": {
			func(f *Facts) { f.Root, f.Overlay, f.OverlayDirectory, f.CgroupMounts = false, false, true, 0 }, false,
			[]string{"nodes need root", "modprobe overlay", "on an overlay file system", "no cgroup hierarchy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := good
			test.change(&f)
			got := Problems(f, Wanted{ControlPlaneOnly: test.without})
			if len(got) != len(test.want) {
				t.Fatalf("got %q", got)
			}
			for i, want := range test.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("problem %d is %q, want something about %q", i, got[i], want)
				}
			}
		})
	}
}

func TestEachProgramHasItsPackage(t *testing.T) {
	t.Setenv("PATH", "/nonexistent")
	f, err := Gather(t.Context(), t.TempDir(), true, Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Missing) == 0 {
		t.Fatal("nothing is missing with an empty PATH")
	}
	for _, m := range f.Missing {
		if packageOf(m) == "" {
			t.Errorf("no package for %s", m)
		}
	}
}
