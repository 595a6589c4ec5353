// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dev_test brings real clusters up and down and looks at the machine
// before and after.
package dev_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/dev/internal/images"
	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
)

// testCluster is in the user's cache, beside the user's own clusters, and
// shares the built programs with them.
const testCluster = "localkube-test"

// besideCluster has no nodes, and is there for a while beside testCluster.
const besideCluster = testCluster + "-2"

const probeImage = "localkube.invalid/probe:1"

// localkube is the program under test.
type localkube struct {
	path string
}

func build(t *testing.T, out, pkg string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), out)
	cmd := exec.Command("go", "build", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building %s: %v\n%s", pkg, err, b)
	}
	return path
}

func (l localkube) command(args ...string) *exec.Cmd {
	cmd := exec.Command(l.path, args...)
	cmd.Env = append(os.Environ(), "LOCALKUBE_NAME="+testCluster)
	return cmd
}

// run runs localkube and returns its standard output.
func (l localkube) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := l.command(args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	start := time.Now()
	out, err := cmd.Output()
	t.Logf("localkube %s: %.1f s\n%s", strings.Join(args, " "), time.Since(start).Seconds(), stderr.String())
	if err != nil {
		t.Fatalf("localkube %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// pids returns the processes of the components.
func (l localkube) pids(t *testing.T) map[string]int {
	t.Helper()
	var status struct {
		Components []struct {
			Name string
			PID  int
		}
	}
	// An unhealthy cluster makes it end with 1, after it printed.
	out, _ := l.command("status", "--json").Output()
	if err := json.Unmarshal(out, &status); err != nil {
		t.Fatal(err)
	}
	pids := map[string]int{}
	for _, c := range status.Components {
		pids[c.Name] = c.PID
	}
	return pids
}

func TestCluster(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("nodes need root")
	}
	root, err := layout.Default()
	if err != nil {
		t.Fatal(err)
	}
	id := root.Cluster(testCluster).ID()
	l := localkube{path: build(t, "localkube", "./cmd/localkube")}
	// A run of these tests that was killed has left its clusters.
	l.run(t, "down", "--name", besideCluster, "--purge")
	l.run(t, "down", "--purge")
	t.Cleanup(func() { l.run(t, "down", "--purge") })
	// The first up of all loads kernel modules, which bring settings of their own.
	l.run(t, "up", "--nodes", "1")
	l.run(t, "down", "--purge")
	before := lookAt(t, id)

	// The steps build upon each other.
	for _, step := range []struct {
		name string
		test func(*testing.T, localkube)
	}{
		{"pods run on both nodes of a new cluster", testPods},
		{"a second up changes nothing", testUpTwice},
		{"up repairs whatever was killed", testRepair},
		{"a cluster without nodes runs beside it", testControlPlaneBeside},
		{"pods run again after down and up, with the images still there", testDownAndUp},
		{"an up that is cut short is completed by the next", testInterrupted},
		{"a node has the name that one gives it", testNamedNode},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, l) }) {
			return
		}
	}
	l.run(t, "down")
	if diff := cmp.Diff(before, lookAt(t, id)); diff != "" {
		t.Errorf("the host after down differs from before (-before +after):\n%s", diff)
	}
	l.run(t, "down", "--purge")
	if _, err := os.Stat(root.Cluster(testCluster).Dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there after down --purge: %v", err)
	}
}

func testPods(t *testing.T, l localkube) {
	l.run(t, "up", "--nodes", "2")
	archive := filepath.Join(t.TempDir(), "probe.tar")
	if err := images.WriteProgram(archive, probeImage, build(t, "probe", "./testdata/probe")); err != nil {
		t.Fatal(err)
	}
	l.run(t, "load", archive)
	l.run(t, "load", archive)
	runProbe(t, l)
}

// runProbe runs a pod on each node and asks one through a load balancer for
// the traces of both in a shared volume. It leaves nothing.
func runProbe(t *testing.T, l localkube) {
	t.Helper()
	l.run(t, "kubectl", "apply", "-f", "testdata/probe.yaml")
	l.run(t, "kubectl", "rollout", "status", "daemonset/probe", "--timeout=120s")
	address := l.run(t, "kubectl", "get", "service", "probe", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
	eventually(t, "http://"+address, func(answer string) bool {
		return strings.HasSuffix(answer, " sees node-1 node-2\n")
	})
	clusterIP := l.run(t, "kubectl", "get", "service", "probe", "-o", "jsonpath={.spec.clusterIP}")
	eventually(t, "http://"+clusterIP+"/resolve?host=probe", func(answer string) bool {
		return strings.TrimSpace(answer) == clusterIP
	})
	// slurmctld asks five times when a name server fails, and stands still meanwhile.
	eventually(t, "http://"+clusterIP+"/resolve?host=nobody", func(answer string) bool {
		return strings.HasSuffix(answer, ": no such host\n")
	})
	l.run(t, "kubectl", "delete", "-f", "testdata/probe.yaml", "--timeout=60s")
	l.run(t, "kubectl", "wait", "--for=delete", "persistentvolume", "--all", "--timeout=60s")
	root, err := layout.Default()
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(root.Cluster(testCluster).Storage()); err != nil || len(left) > 0 {
		t.Errorf("the storage holds %v after the claim was deleted (%v)", left, err)
	}
}

// eventually asks until the answer is good: kube-proxy learns of endpoints a
// moment after the rollout does.
func eventually(t *testing.T, url string, good func(answer string) bool) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	last := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		response, err := client.Get(url)
		if err != nil {
			last = err.Error()
			continue
		}
		b, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if last = string(b); err == nil && good(last) {
			return
		}
	}
	t.Errorf("%s answered %q", url, last)
}

func testUpTwice(t *testing.T, l localkube) {
	before := l.pids(t)
	l.run(t, "up")
	if diff := cmp.Diff(before, l.pids(t)); diff != "" {
		t.Errorf("processes changed (-before +after):\n%s", diff)
	}
}

func testRepair(t *testing.T, l localkube) {
	for _, component := range slices.Sorted(maps.Keys(l.pids(t))) {
		t.Run(component, func(t *testing.T) {
			pid := l.pids(t)[component]
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			l.run(t, "up")
			if l.pids(t)[component] == pid {
				t.Error("the process is still there")
			}
		})
	}
	for _, daemon := range []string{"containerd", "kubelet", "kube-proxy"} {
		t.Run(daemon, func(t *testing.T) {
			l.run(t, "shell", "node-1", "pkill", "-KILL", "-x", daemon)
			l.run(t, "up")
		})
	}
	runProbe(t, l)
}

func testControlPlaneBeside(t *testing.T, l localkube) {
	t.Cleanup(func() { l.run(t, "down", "--name", besideCluster, "--purge") })
	kubeconfig := strings.TrimSpace(l.run(t, "up", "--name", besideCluster, "--control-plane-only"))
	if nodes := l.run(t, "kubectl", "--name", besideCluster, "get", "nodes", "-o", "name"); nodes != "" {
		t.Errorf("the control plane has nodes: %s", nodes)
	}
	if _, err := os.Stat(kubeconfig); err != nil {
		t.Errorf("up printed %q, which is no kubeconfig: %v", kubeconfig, err)
	}
	l.run(t, "status")
}

func testDownAndUp(t *testing.T, l localkube) {
	l.run(t, "down")
	if err := l.command("status").Run(); exitCode(err) != 3 {
		t.Errorf("status after down: %v, want exit code 3", err)
	}
	l.run(t, "up", "--nodes", "2")
	runProbe(t, l)
}

// testInterrupted ends up at many moments, by signals of both kinds.
func testInterrupted(t *testing.T, l localkube) {
	for i, after := range []time.Duration{20, 100, 300, 800, 2000, 4000, 6000} {
		signal := []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM}[i%2]
		t.Run(fmt.Sprintf("%v after %d ms", signal, after), func(t *testing.T) {
			l.run(t, "down")
			ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
			defer cancel()
			cmd := exec.CommandContext(ctx, l.path, "up", "--nodes", "2", "--name", testCluster)
			cmd.Cancel = func() error { return cmd.Process.Signal(signal) }
			out, err := cmd.CombinedOutput()
			if err != nil && signal == syscall.SIGTERM && exitCode(err) != 130 {
				t.Errorf("up ended with %v, want exit code 130:\n%s", err, out)
			}
			if i%3 == 0 {
				return // Taken down by the next round.
			}
			l.run(t, "up", "--nodes", "2")
		})
	}
}

func testNamedNode(t *testing.T, l localkube) {
	const name = "ip-10-0-0-1.eu-west-1.compute.internal"
	l.run(t, "up", "--node-names", name)
	before := l.pids(t)
	l.run(t, "up", "--node-names", name)
	if diff := cmp.Diff(before, l.pids(t)); diff != "" {
		t.Errorf("processes changed (-before +after):\n%s", diff)
	}
	want := "node/" + name + "\nnode/node-1\nnode/node-2\n"
	if got := l.run(t, "kubectl", "get", "nodes", "--output=name"); got != want {
		t.Errorf("the nodes are %q, want %q", got, want)
	}
	if got := l.run(t, "shell", name, "hostname"); got != name+"\n" {
		t.Errorf("the host name of %s is %q", name, got)
	}
	l.run(t, "kubectl", "wait", "node/"+name, "--for=condition=Ready", "--timeout=60s")
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}
