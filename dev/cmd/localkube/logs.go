// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// logs prints the end of a component's log, or lists all logs.
func logs(ctx context.Context, args []string) error {
	f := newFlags("logs", "[COMPONENT]")
	follow := f.Bool("f", false, "go on printing until interrupted")
	lines := f.Int("n", 100, "number of lines to print")
	if err := f.parse(args, 1); err != nil {
		return err
	}
	c, err := f.open()
	if err != nil {
		return err
	}
	if f.NArg() == 0 {
		return listLogs(c.Logs())
	}
	path := filepath.Join(c.Logs(), filepath.Base(f.Arg(0)))
	if !strings.HasSuffix(path, ".log") {
		path += ".log"
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the log (\"localkube logs\" lists all): %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := seekLines(file, *lines); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	for {
		if _, err := io.Copy(os.Stdout, file); err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		if !*follow {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func listLogs(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("listing logs: there are none in %s", dir)
	}
	if err != nil {
		return fmt.Errorf("listing logs: %w", err)
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.IsDir() {
			continue
		}
		_, _ = fmt.Fprintf(t, "%s\t%d KiB\t%s\n", strings.TrimSuffix(e.Name(), ".log"), (info.Size()+1023)/1024, filepath.Join(dir, e.Name()))
	}
	return t.Flush()
}

// seekLines moves to the start of the last n lines.
func seekLines(f io.ReadSeeker, n int) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	const chunk = 64 << 10
	buffer := make([]byte, chunk)
	for start := end; start > 0; {
		size := min(start, chunk)
		start -= size
		if _, err := f.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.ReadFull(f, buffer[:size]); err != nil {
			return err
		}
		for i := size - 1; i >= 0; i-- {
			// The newline at the very end closes the last line.
			if buffer[i] != '\n' || start+i == end-1 {
				continue
			}
			if n--; n <= 0 {
				_, err := f.Seek(start+i+1, io.SeekStart)
				return err
			}
		}
	}
	_, err = f.Seek(0, io.SeekStart)
	return err
}
