// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package dev_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// host is what a cluster could have changed on the machine: lines by subject.
type host map[string][]string

// lookAt records the host. What belongs to other clusters is left out, as they
// may come and go meanwhile.
func lookAt(t *testing.T, id string) host {
	t.Helper()
	h := host{
		"sysctls":        sysctls(),
		"mounts":         mounts(t),
		"links":          output(t, "ip", "-oneline", "link", "show"),
		"addresses":      output(t, "ip", "-oneline", "address", "show"),
		"routes":         output(t, "ip", "route", "show", "table", "all"),
		"rules":          output(t, "ip", "rule", "show"),
		"nftables rules": output(t, "nft", "list", "ruleset"),
		"iptables rules": output(t, "iptables-save"),
		"cgroups":        cgroups(t),
		"processes":      processes(),
		"files":          files(),
	}
	foreign := regexp.MustCompile(`\b(lk|localkube-)[0-9a-f]{6}\b`)
	volatile := regexp.MustCompile(`(valid_lft|preferred_lft|expires|age) \S+|\[\d+:\d+\]|^# .*$`)
	for subject, lines := range h {
		var kept []string
		for _, line := range lines {
			if other := foreign.FindString(line); other != "" && !strings.HasSuffix(other, id) {
				continue
			}
			if line = strings.TrimSpace(volatile.ReplaceAllString(line, "")); line != "" {
				kept = append(kept, line)
			}
		}
		slices.Sort(kept)
		h[subject] = kept
	}
	return h
}

// changing are settings that the kernel itself changes all the time, or that
// belong to the interfaces of others.
var changing = regexp.MustCompile(`random/|ns_last_pid|-nr$|-state$|_count$|/conf/(lk|veth)|/neigh/(lk|veth)|pty/nr|bpf_stats|cap_last_cap|/cad_pid|drop_caches|compact_memory|sched_domain|dropped|epoll/|fs/quota/|inotify|sunrpc`)

func sysctls() []string {
	var lines []string
	_ = filepath.WalkDir("/proc/sys", func(path string, d fs.DirEntry, err error) error {
		// What cannot be read now cannot be compared.
		if err != nil || d.IsDir() || changing.MatchString(path) {
			return nil //nolint:nilerr // See above.
		}
		if b, err := os.ReadFile(path); err == nil {
			lines = append(lines, path+" = "+strings.TrimSpace(string(b)))
		}
		return nil
	})
	return lines
}

// ourMounts are at the places that a node covers, or in localkube's directory.
// Elsewhere, others may mount and unmount meanwhile.
var ourMounts = regexp.MustCompile(`^/((etc|proc|run|sys|var|dev|opt|usr)(/|$)|$)|localkube`)

// mounts leaves out the numbers, which depend on what was mounted before.
func mounts(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, line := range output(t, "cat", "/proc/1/mountinfo") {
		if f := strings.Fields(line); len(f) > 6 && ourMounts.MatchString(f[4]) {
			lines = append(lines, strings.Join(f[3:], " "))
		}
	}
	return lines
}

func cgroups(t *testing.T) []string {
	t.Helper()
	return output(t, "find", "/sys/fs/cgroup", "-maxdepth", "3", "-type", "d", "-name", "*localkube*")
}

// processes returns those that a cluster leaves when it leaves any.
func processes() []string {
	var lines []string
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		line := strings.ReplaceAll(string(b), "\x00", " ")
		if strings.Contains(line, "clusters/"+testCluster) {
			lines = append(lines, line)
		}
	}
	return lines
}

// files are names in the places where Kubernetes and its relatives usually
// leave something.
func files() []string {
	var names []string
	for _, dir := range []string{
		"/etc/cni", "/etc/containerd", "/etc/kubernetes", "/etc/nri", "/opt", "/run", "/usr/libexec/kubernetes",
		"/var/lib/cni", "/var/lib/containerd", "/var/lib/kubelet", "/var/lib/kube-proxy", "/var/log", "/var/run",
	} {
		entries, err := os.ReadDir(dir)
		if err == nil {
			names = append(names, dir)
		}
		for _, e := range entries {
			names = append(names, filepath.Join(dir, e.Name()))
		}
	}
	return names
}

func output(t *testing.T, name string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.Split(string(out), "\n")
}
