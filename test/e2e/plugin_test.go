// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// plugin runs kubectl-slurm in the namespace of a cluster, as an administrator does.
type plugin struct {
	*slurmCluster
	program string
}

// buildsPlugin builds kubectl-slurm while the test goes on. built waits for it.
func buildsPlugin(t *testing.T) (built func(*testing.T) (program string)) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "kubectl-slurm")
	done := make(chan struct{})
	var said []byte
	var err error
	go func() {
		defer close(done)
		said, err = exec.CommandContext(t.Context(), "go", "build", "-o", program, stage.repository.Path("cmd", "kubectl-slurm")).CombinedOutput()
	}()
	t.Cleanup(func() { <-done })
	return func(t *testing.T) string {
		t.Helper()
		if <-done; err != nil {
			t.Fatalf("building the plugin: %v: %s", err, said)
		}
		return program
	}
}

// answersThePlugin runs the commands of kubectl slurm, and compares what they print with golden files.
func answersThePlugin(t *testing.T, c *slurmCluster, alice *user, program string) {
	p := plugin{c, program}
	alice.seesNoJobs(t)
	for _, worker := range []string{"worker-0", "worker-1"} {
		alice.seesNode(t, worker, "idle")
	}
	// Without a limit one is shown as UNLIMITED, or as 365 days when the backfill scheduler has started it.
	job, release := alice.submitsBlocked(t, "--nodelist=worker-0", "--job-name=train", "--time=30-0")
	eventually(t, soon, "the job before on worker-0 to be over for its pod, too", func(context.Context) error {
		if out, _ := p.runs(t, 0, "explain", "node", "worker-0"); strings.Contains(out, "Completing") {
			return errors.New(out)
		}
		return nil
	})
	sample := stage.repository.Path("config", "samples", "slurmcluster.yaml")
	p.prints(t, "jobs", 0, "jobs")
	p.prints(t, "top", 0, "top")
	p.prints(t, "top-partitions", 0, "top", "partitions")
	p.prints(t, "explain", 0, "explain", "node", "worker-0")
	release(t)
	alice.awaits(t, job, "COMPLETED")
	p.prints(t, "status", 0, "status")
	p.prints(t, "plan", 0, "plan")
	p.prints(t, "lint", 0, "lint", "-f", sample)
	p.prints(t, "render", 0, "render", "-f", sample)
	p.prints(t, "sinfo", 0, "--user", "alice", "sinfo", "--noheader", "--format=%R %D")
	p.prints(t, "drain", 0, "drain", "worker-1", "--reason=a look at its fans")
	alice.seesNode(t, "worker-1", "drained")
	p.prints(t, "undrain", 0, "undrain", "worker-1")
	alice.seesNode(t, "worker-1", "idle")
	p.prints(t, "token-refused", 1, "token", "slurm")
	token, _ := p.runs(t, 0, "token", "alice")
	if out := alice.runs(t, "SLURM_JWT="+strings.TrimSpace(token)+" scontrol ping"); !strings.Contains(out, "is UP") {
		t.Errorf("with the token of kubectl slurm, scontrol ping prints %q", out)
	}
	status, _ := p.runs(t, 0, "exec", "--", "cat", "/proc/self/status")
	if root, err := readRights(status); err != nil || !root.root || root.bounding>>21&1 != 0 {
		t.Errorf("in a login pod with a jail, kubectl slurm exec runs with %s, want root without SYS_ADMIN: %v", root.cells(0), err)
	}
	if out, _ := p.runs(t, 0, "logs", "slurmctld", "--tail=5"); strings.TrimSpace(out) == "" {
		t.Error("the log of slurmctld is empty")
	}
	p.backsUp(t)
	p.bundles(t)
}

// runs runs a command, and expects an exit code.
func (p plugin) runs(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.program, append([]string{"--kubeconfig", p.Kubeconfig, "--namespace", p.namespace}, args...)...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	err := command.Run()
	got := 0
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		got = ended.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != code {
		t.Errorf("kubectl slurm %s ends with %d, want %d: %s%s", strings.Join(args, " "), got, code, out.Bytes(), said.Bytes())
	}
	return out.String(), said.String()
}

// prints compares what a command prints with a golden file.
func (p plugin) prints(t *testing.T, name string, code int, args ...string) {
	t.Helper()
	stdout, stderr := p.runs(t, code, args...)
	golden.Check(t, filepath.Join("kubectl-slurm", name+".txt"), []byte(p.plain(stdout+stderr)))
}

// plain replaces what differs from run to run.
func (p plugin) plain(text string) string {
	text = strings.ReplaceAll(text, p.namespace, "NAMESPACE")
	for _, r := range []struct{ pattern, by string }{
		{`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, "TIME"},
		{`\b\d+:\d\d(:\d\d)?\b`, "DURATION"},
		{`\b(\d+[dhms])+\b`, "DURATION"},
		{`\b(MIXED|ALLOCATED)\b`, "BUSY"},
		{`Slurm's node is (Idle|Mixed|Allocated)`, "Slurm's node is STATE"}, // as the pod has it, which may be a second old
		{`\b0/\d+Gi\b`, "0/MEMORY"},
		{`\b(\d+)/\d+\b( +)`, "$1/N$2"},
		{`(?m)^\d+ +alice`, "ID alice"},
		{`\b(node-\d|ip-[-0-9a-z.]+internal)\b`, "KUBENODE"},
		{` +`, " "},
	} {
		text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.by)
	}
	return text
}

// backsUp writes a backup, and asks what a restore would do.
func (p plugin) backsUp(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup.yaml")
	p.prints(t, "backup", 0, "backup", "-f", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup: %v, %v", info, err)
	}
	p.prints(t, "restore", 0, "restore", "-f", file, "--dry-run")
}

// bundles writes an archive for support, and looks for the secrets of the cluster in it.
func (p plugin) bundles(t *testing.T) {
	t.Helper()
	file, dir := filepath.Join(t.TempDir(), "bundle.tar.gz"), t.TempDir()
	p.runs(t, 0, "support-bundle", "-f", file)
	if out, err := exec.CommandContext(t.Context(), "tar", "xzf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("unpacking the bundle: %v: %s", err, out)
	}
	var secrets corev1.SecretList
	if err := p.List(t.Context(), &secrets, client.InNamespace(p.namespace)); err != nil {
		t.Fatal(err)
	}
	var values [][]byte
	for _, s := range secrets.Items {
		for _, value := range s.Data {
			if value = bytes.TrimSpace(value); len(value) >= 8 {
				values = append(values, value, []byte(base64.StdEncoding.EncodeToString(value)))
			}
		}
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		content, err := os.ReadFile(path)
		for _, value := range values {
			if bytes.Contains(content, value) {
				err = errors.Join(err, fmt.Errorf("%s has the value of a Secret", filepath.Base(path)))
			}
		}
		return err
	})
	if err != nil || files < 20 || len(values) < 8 {
		t.Errorf("%d files, %d values: %v", files, len(values), err)
	}
}
