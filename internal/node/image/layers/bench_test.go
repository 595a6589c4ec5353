// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// BenchmarkAMillionEntries reads an image of two layers whose names together are a million, ten to a directory, and reports the heap that
// the tree takes.
func BenchmarkAMillionEntries(b *testing.B) {
	layer := func(from, to int) Layer {
		return Layer{Open: func() (io.ReadCloser, error) {
			in, out := io.Pipe()
			go func() {
				buffered := bufio.NewWriterSize(out, 1<<20)
				w := tar.NewWriter(buffered)
				for i := from; i < to; i++ {
					name := fmt.Sprintf("usr/lib/package-%d/directory-%d", i/1000, i/10)
					h := &tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
					if i%10 != 0 {
						h = &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("%s/module-%d.py", name, i), Mode: 0o644}
					}
					if w.WriteHeader(h) != nil {
						return
					}
				}
				_ = w.Close()
				_ = buffered.Flush()
				_ = out.Close()
			}()
			return in, nil
		}}
	}
	for b.Loop() {
		before := heap()
		image, err := Read(b.Context(), []Layer{layer(0, 600_000), layer(400_000, 1_000_000)}, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		var most runtime.MemStats
		runtime.ReadMemStats(&most)
		after := heap()
		if files := image.Summary().Files; files < 1_000_000 {
			b.Fatalf("%d files", files)
		}
		if err := image.WriteTar(b.Context(), io.Discard); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(after-before)/1e6, "MB-kept")
		b.ReportMetric(float64(most.Sys)/1e6, "MB-of-system")
		runtime.KeepAlive(image)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMerge merges two gzipped layers of 150 MB each, and has sqfstar compress the result.
func BenchmarkMerge(b *testing.B) {
	dir := b.TempDir()
	var layers []Layer
	for n := range 2 {
		file := filepath.Join(dir, fmt.Sprintf("layer-%d", n))
		synthetic(b, file, n)
		layers = append(layers, Layer{Open: func() (io.ReadCloser, error) { return os.Open(file) }})
	}
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			image, err := Read(b.Context(), layers, Limits{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(image.Summary().Uncompressed)
			b.ReportMetric(float64(image.Summary().Compressed)/1e6, "MB-compressed")
		}
	})
	b.Run("merge", func(b *testing.B) {
		for b.Loop() {
			s, err := merge(b.Context(), io.Discard, layers, Limits{})
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(s.Uncompressed)
		}
	})
	for name, c := range map[string][]string{
		"zstd-1": {"zstd", "-Xcompression-level", "1"}, "zstd-3": {"zstd", "-Xcompression-level", "3"}, "lz4": {"lz4"}, "none": {"gzip", "-noI",
			"-noD", "-noF", "-noX"},
	} {
		b.Run("sqfstar-"+name, func(b *testing.B) {
			sqfstar, _ := squashfsTools(b)
			out := filepath.Join(dir, name)
			for b.Loop() {
				image, err := Read(b.Context(), layers, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				_ = os.Remove(out)
				squash(b, sqfstar, image, out, c[0], c[1:]...)
				b.SetBytes(image.Summary().Uncompressed)
			}
			if stat, err := os.Stat(out); err == nil {
				b.ReportMetric(float64(stat.Size())/1e6, "MB-squashfs")
			}
		})
	}
}

// synthetic writes a layer of 150 MB: files of 1 KiB to 1 MiB, of words that repeat, of which gzip makes half.
func synthetic(b *testing.B, file string, seed int) {
	b.Helper()
	out, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	z := gzip.NewWriter(out)
	w := tar.NewWriter(z)
	random := rand.New(rand.NewPCG(uint64(seed), 1))
	words := make([][]byte, 4096)
	for i := range words {
		words[i] = make([]byte, 3+random.IntN(12))
		for j := range words[i] {
			words[i][j] = byte(random.IntN(256))
		}
	}
	written, content := 0, make([]byte, 0, 1<<20)
	for i := 0; written < 150_000_000; i++ {
		size := 1 << (10 + random.IntN(11))
		content = content[:0]
		for len(content) < size {
			content = append(content, words[random.IntN(1+random.IntN(len(words)))]...)
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprintf("usr/lib/%d/%d/%d", seed, i/20, i), Mode: 0o644, Size: int64(size),
			ModTime: time.Unix(1000, 0)}
		if err := w.WriteHeader(h); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Write(content[:size]); err != nil {
			b.Fatal(err)
		}
		written += size
	}
	for _, c := range []io.Closer{w, z, out} {
		if err := c.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
