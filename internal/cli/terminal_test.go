// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

// openPTY returns a terminal of 33 lines and 101 columns.
func openPTY(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 101})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal
}

func TestAShellHasTheTerminal(t *testing.T) {
	server := apiserver.Start(t)
	runPod(t, server, execKubelet(t, 0), readyLogin("demo-login-0", "demo-login"))
	terminal := openPTY(t)
	before, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	var out output
	p := program()
	p.Streams = genericiooptions.IOStreams{In: terminal, Out: &out, ErrOut: &out}
	code := cli.Run(t.Context(), p, []string{"--kubeconfig=" + writeKubeconfig(t, server.Config, server.Namespace), "ssh", "--user=alice"})
	want := `demo-login-0 login ["bash" "-c" "…" "become" "alice"]` + "\n" + `a terminal of {"Width":101,"Height":33}` + "\n"
	if code != 0 || out.String() != want {
		t.Errorf("exit code %d, and it printed %q, want %q", code, out.String(), want)
	}
	after, err := term.GetState(int(terminal.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if *after != *before {
		t.Errorf("the terminal is left as %v, and was %v", after, before)
	}
}
