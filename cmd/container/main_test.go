// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deadline bounds what is to come soon.
const deadline = 20 * time.Second

// TestMain is the program where a test has started it as such.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && slices.ContainsFunc(commands(), func(c command) bool { return c.name == os.Args[1] }) {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestCommandLine(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		err  string
		said string
	}{
		"no command is given":                 {err: "no command is given", said: "Usage: container COMMAND"},
		"the command is unknown":              {args: []string{"sevre"}, err: `there is no command "sevre"`, said: "serve"},
		"help is asked for":                   {args: []string{"--help"}, err: flag.ErrHelp.Error(), said: "The Coxswain container runs"},
		"help of serve is asked for":          {args: []string{"serve", "--help"}, err: flag.ErrHelp.Error(), said: "-insecure hosts"},
		"help of step is asked for":           {args: []string{"step", "--help"}, err: flag.ErrHelp.Error(), said: "Usage: container step"},
		"help of sleep is asked for":          {args: []string{"sleep", "-h"}, err: flag.ErrHelp.Error(), said: "Usage: container sleep"},
		"a word too many is given":            {args: []string{"serve", "now"}, err: `unexpected argument "now"`},
		"a word too many is given to step":    {args: []string{"step", "now"}, err: `unexpected argument "now"`},
		"a flag is unknown":                   {args: []string{"serve", "--image", "x"}, err: "flag provided but not defined: -image"},
		"squashfuse gets no user":             {args: []string{"squashfuse"}, err: "a user and a group are missing"},
		"squashfuse gets a name":              {args: []string{"squashfuse", "root", "0"}, err: "reading the number of a user or group"},
		"the mount points have no place":      {args: []string{"serve", "--run", "/dev/null/x"}, err: "making a directory for images"},
		"the certificates of a file are none": {args: []string{"serve"}, err: "/nowhere/authorities"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(test.err, "authorities") {
				t.Setenv("SSL_CERT_FILE", test.err)
			}
			var output bytes.Buffer
			err := run(t.Context(), test.args, &output)
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v, want %s", err, test.err)
			}
			if !strings.Contains(output.String(), test.said) {
				t.Errorf("said %q, want %q in it", output.String(), test.said)
			}
		})
	}
	if err := run(t.Context(), []string{"help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
}

func TestRegistriesWithoutTLSAreListedInAnyWay(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"none":                         {nil, nil},
		"an empty list":                {[]string{"--insecure", ""}, nil},
		"one":                          {[]string{"--insecure", "a:5000"}, []string{"a:5000"}},
		"several in one list":          {[]string{"--insecure", "a:5000, b,"}, []string{"a:5000", "b"}},
		"several lists":                {[]string{"--insecure", "a:5000,b", "--insecure=c"}, []string{"a:5000", "b", "c"}},
		"a list as the entrypoint's":   {[]string{"-images", "/i", "-insecure", "a:5000"}, []string{"a:5000"}},
		"an address with a port":       {[]string{"--insecure", "[::1]:5000"}, []string{"[::1]:5000"}},
		"the same one again and again": {[]string{"--insecure", "a,a"}, []string{"a", "a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var o options
			if err := parse("serve", test.args, io.Discard, o.bind); err != nil || !slices.Equal(o.insecure, test.want) {
				t.Errorf("%q, %v, want %q", o.insecure, err, test.want)
			}
		})
	}
}

// TestAServiceListensUntilItIsStopped starts it twice at the same places, as the entrypoint of slurmd does.
func TestAServiceListensUntilItIsStopped(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts images for users")
	}
	dir := t.TempDir()
	mounts, socket := filepath.Join(dir, "mounts"), filepath.Join(dir, "socket")
	t.Cleanup(func() { _ = unix.Unmount(mounts, unix.MNT_DETACH) })
	for range 2 {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, []string{"serve", "--images", dir, "--run", mounts, "--socket", socket, "--insecure", "a,b"}, io.Discard)
		}()
		tick := time.NewTicker(time.Millisecond)
		for end := time.Now().Add(deadline); ; <-tick.C {
			if status, err := os.Stat(socket); err == nil && status.Mode().Perm() == 0o666 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the service does not listen")
			}
		}
		tick.Stop()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// runStep starts "container step" with a request, as the plugin does. It returns the result and the messages.
func runStep(t *testing.T, request string) (result, messages string, err error) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) *os.File {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "step")
	command.ExtraFiles = []*os.File{write("request", request), write("result", ""), write("messages", "")}
	err = command.Run()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	return read("result"), read("messages"), err
}

func TestAStepThatGetsNoContainerReadsWhy(t *testing.T) {
	for request, want := range map[string]string{
		"image=a\x00save=/x\x00": "E--container-save is not supported yet by this release; leave it out\x00",
		"image=a\x00uid=x\x00":   `Ethe request has no number "uid": `,
		"image=a":                "Ethe request is cut off\x00",
		"image=../A:B:C\x00":     "E",
	} {
		result, messages, err := runStep(t, request)
		if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 1 {
			t.Errorf("%q ends with %v", request, err)
		}
		if !strings.HasPrefix(result, want) || strings.Count(result, "\x00") != 1 || messages != "" {
			t.Errorf("%q: the result is %q, messages %q", request, result, messages)
		}
	}
}
