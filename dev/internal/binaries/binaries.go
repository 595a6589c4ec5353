// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binaries builds the programs of a cluster from this module and keeps
// them by content: the same sources, versions and compiler are built once.
package binaries

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coxswain-hpc/coxswain/dev/internal/images"
	"github.com/coxswain-hpc/coxswain/dev/internal/layout"
	"github.com/coxswain-hpc/coxswain/dev/internal/progress"
)

// modulePath is how the directory of the sources is recognised.
const modulePath = "module github.com/coxswain-hpc/coxswain/dev"

// sources returns the parts of this module that end up in the programs.
func sources() []string {
	return []string{"go.mod", "go.sum", "cmd/coredns", "cmd/hyperkube", "cmd/pause", "internal/hostcontroller"}
}

// programs returns the packages of the programs that every up needs.
func programs() []string { return []string{"./cmd/hyperkube", "./cmd/coredns", "./cmd/pause"} }

// kwok is the simulator of nodes, built on demand.
const kwok = "sigs.k8s.io/kwok/cmd/kwok"

// FindSource returns the directory of this module: the directory given, or
// else the working directory, an ancestor of it or the dev directory of one.
func FindSource(given string) (string, error) {
	if given != "" {
		if !isSource(given) {
			return "", fmt.Errorf("finding the sources: %s does not hold the Go module coxswain/dev", given)
		}
		return filepath.Abs(given)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the sources: %w", err)
	}
	for {
		for _, candidate := range []string{dir, filepath.Join(dir, "dev")} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the sources: run localkube inside the coxswain repository or give --source DIR")
		}
		dir = parent
	}
}

func isSource(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && strings.HasPrefix(string(b), modulePath+"\n")
}

// Key identifies the programs that source would be built to.
func Key(source, goVersion string) (string, error) {
	h := sha256.New()
	_, _ = fmt.Fprintln(h, goVersion, strings.Join(flags("v0"), " "))
	tree := os.DirFS(source)
	for _, root := range sources() {
		err := fs.WalkDir(tree, root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := fs.ReadFile(tree, path)
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintln(h, path, len(b))
			_, _ = h.Write(b)
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("hashing the sources: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// Options are what Build does beyond the usual.
type Options struct {
	// Kwok adds the node simulator.
	Kwok bool
}

// Locate returns the directory below dir that holds the programs of source,
// or will after Build.
func Locate(ctx context.Context, source, dir string) (out string, built bool, err error) {
	goVersion, err := goCommand(ctx, source, "env", "GOVERSION").Output()
	if err != nil {
		return "", false, fmt.Errorf("asking for Go's version: %w", err)
	}
	key, err := Key(source, strings.TrimSpace(string(goVersion)))
	if err != nil {
		return "", false, err
	}
	out = filepath.Join(dir, key)
	_, err = os.Stat(filepath.Join(out, "complete"))
	return out, err == nil, nil
}

// Build makes sure that the programs of source exist in out.
func Build(ctx context.Context, source, out string, p *progress.Printer, o Options) error {
	release, err := layout.Acquire(ctx, out+".lock", func() { p.Step("another localkube is building, waiting for it") })
	if err != nil {
		return err
	}
	defer release()
	if _, err := os.Stat(filepath.Join(out, "complete")); err != nil {
		if err := build(ctx, source, out, p, programs()); err != nil {
			return err
		}
		if err := finish(out); err != nil {
			return err
		}
	}
	if !o.Kwok {
		return nil
	}
	if _, err := os.Stat(filepath.Join(out, "kwok")); err != nil {
		return build(ctx, source, out, p, []string{kwok})
	}
	return nil
}

// build compiles into a directory beside out and moves the results over, so
// that out never holds half a program.
func build(ctx context.Context, source, out string, p *progress.Printer, packages []string) error {
	names := strings.Join(baseNames(packages), ", ")
	version, err := kubernetesVersion(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("building %s: %w", names, err)
	}
	// One place, so that what a killed build left is removed by the next.
	work := filepath.Join(out, "building")
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("building %s: %w", names, err)
	}
	if err := os.Mkdir(work, 0o750); err != nil {
		return fmt.Errorf("building %s: %w", names, err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	args := slices.Concat([]string{"build", "-v", "-o", work + "/"}, flags(version))
	if err := runBuild(goCommand(ctx, source, append(args, packages...)...), p, names); err != nil {
		return err
	}
	for _, name := range baseNames(packages) {
		if err := os.Rename(filepath.Join(work, name), filepath.Join(out, name)); err != nil {
			return fmt.Errorf("building %s: %w", names, err)
		}
	}
	p.Step("built %s (Kubernetes %s)", names, version)
	return nil
}

// runBuild runs "go build -v", which prints a line per compiled package, and
// reports how far it is.
func runBuild(cmd *exec.Cmd, p *progress.Printer, names string) error {
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("building %s: %w", names, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("building %s: %w", names, err)
	}
	p.Step("building %s, which takes minutes the first time", names)
	var compiled, downloaded atomic.Int64
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
				p.Doing("building %s: %d modules downloaded, %d packages compiled", names, downloaded.Load(), compiled.Load())
			}
		}
	}()
	var complaints []string
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "go: downloading "):
			downloaded.Add(1)
		case strings.ContainsAny(line, " :"):
			complaints = append(complaints, line)
		default:
			compiled.Add(1)
		}
	}
	err = cmd.Wait()
	close(stop)
	<-done
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", names, err, strings.Join(complaints, "\n"))
	}
	return nil
}

// components returns the names under which hyperkube is linked.
func components() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl", "host-controller"}
}

// Images of the programs that run in pods. Their names lead to no registry.
const (
	PauseImage   = "localkube.invalid/pause:1"
	CoreDNSImage = "localkube.invalid/coredns:1"
)

// Archives lists the archives of these images in a directory of programs.
func Archives(out string) []string {
	return []string{filepath.Join(out, "pause.tar"), filepath.Join(out, "coredns.tar")}
}

// finish adds the images and the links to hyperkube and marks the directory as
// complete.
func finish(out string) error {
	for _, i := range [][2]string{{PauseImage, "pause"}, {CoreDNSImage, "coredns"}} {
		program := filepath.Join(out, i[1])
		if err := images.WriteProgram(program+".tar", i[0], program); err != nil {
			return err
		}
	}
	for _, c := range components() {
		if err := os.Symlink("hyperkube", filepath.Join(out, c)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("linking %s: %w", c, err)
		}
	}
	if err := os.WriteFile(filepath.Join(out, "complete"), nil, 0o600); err != nil {
		return fmt.Errorf("finishing the build: %w", err)
	}
	return nil
}

func goCommand(ctx context.Context, source string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = source
	// Static programs: coredns and pause are the only file of their image. With GOGC the compiler collects less of its garbage.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS=linux", "GOGC=400")
	return cmd
}

// kubernetesVersion reads the version of k8s.io/kubernetes from go.mod.
func kubernetesVersion(source string) (string, error) {
	b, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading go.mod: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "k8s.io/kubernetes" {
			return f[1], nil
		}
	}
	return "", errors.New("reading go.mod: it does not require k8s.io/kubernetes")
}

// compileFlags returns the compiler flags of the Makefile, so that Go's cache has the packages once that the operator has as well.
func compileFlags() []string {
	return []string{"-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false"}
}

// flags returns the flags of "go build". Those of the linker set what "kubectl version" and the kubelet report; built without
// them, Kubernetes calls itself v0.0.0-master and refuses its own peers.
func flags(version string) []string {
	link := []string{"-s", "-w"}
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	numbers = append(numbers, "0", "0")
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, set := range [][2]string{
			{"gitVersion", version},
			{"gitMajor", numbers[0]},
			{"gitMinor", numbers[1]},
			{"gitTreeState", "clean"},
			{"gitCommit", "none"},
			{"buildDate", "1970-01-01T00:00:00Z"},
		} {
			link = append(link, "-X", pkg+"."+set[0]+"="+set[1])
		}
	}
	return append(compileFlags(), "-ldflags="+strings.Join(link, " "))
}

// unusedFor is how long programs are kept that no cluster uses, for those who
// switch between branches.
const unusedFor = 7 * 24 * time.Hour

// Prune removes the programs that no cluster has used for a week; inUse are the
// directories of those that are used now.
func Prune(dir string, inUse []string, now time.Time) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing old programs: %w", err)
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if slices.Contains(inUse, strings.TrimSuffix(path, ".lock")) {
			errs = append(errs, os.Chtimes(path, now, now))
			continue
		}
		info, err := e.Info()
		if err == nil && now.Sub(info.ModTime()) > unusedFor {
			err = os.RemoveAll(path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func baseNames(packages []string) []string {
	var names []string
	for _, p := range packages {
		names = append(names, filepath.Base(p))
	}
	return names
}
