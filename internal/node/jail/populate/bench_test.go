// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var benchFiles = flag.Int("populate.files", 6_000, "files that BenchmarkCopy copies; 30 are a megabyte")

// BenchmarkCopy copies files, and compares with cp -a, each until the disk has them. 60,000 files are the 2 GB of a distribution:
//
//	go test ./internal/node/jail/populate -run '^$' -bench Copy -benchtime 3x -populate.files 60000
func BenchmarkCopy(b *testing.B) {
	root := b.TempDir()
	source := filepath.Join(root, "image")
	plantImage(b, source, *benchFiles)
	settled := func(dir string, copied func() error) (copying, synced time.Duration) {
		unix.Sync()
		start := time.Now()
		if err := copied(); err != nil {
			b.Fatal(err)
		}
		copying = time.Since(start)
		unix.Sync()
		synced = time.Since(start)
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		return copying, synced
	}
	var ours, cp, cpSynced time.Duration
	for range b.N {
		dir := filepath.Join(root, "cp")
		copying, synced := settled(dir, func() error { return exec.Command("cp", "-a", source, dir).Run() })
		cp, cpSynced = cp+copying, cpSynced+synced
		jail := filepath.Join(root, "jail")
		_, synced = settled(jail, func() error {
			if err := os.Mkdir(jail, 0o755); err != nil {
				return err
			}
			return Run(Options{Source: source, Jail: jail, Workers: 2 * runtime.NumCPU(), Now: time.Now()}, &Progress{})
		})
		ours += synced
	}
	n := float64(b.N)
	b.ReportMetric(float64(*benchFiles), "files")
	b.ReportMetric(ours.Seconds()/n, "s/populate")
	b.ReportMetric(cp.Seconds()/n, "s/cp")
	b.ReportMetric(cpSynced.Seconds()/n, "s/cp+sync")
	b.ReportMetric(ours.Seconds()/cpSynced.Seconds(), "ratio")
}

// plantImage makes files in directories of a few levels. Most of them are small, as in a distribution.
func plantImage(b *testing.B, source string, files int) {
	b.Helper()
	const mean = 2 << 30 / 60_000
	random := rand.New(rand.NewPCG(1, 2))
	content := make([]byte, 8*mean)
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	for i := range files {
		dir := filepath.Join(source, []string{"usr", "etc", "opt"}[i%3], fmt.Sprint("d", i/600), fmt.Sprint("e", i/60))
		if i%60 < 3 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		size := 2 * mean / 9
		if i%10 == 0 {
			size = 8 * mean
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), content[:size], 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
