// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/passivecheck"
	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
)

// open makes a machine of a directory with files, and with programs of the shell in its /bin.
func open(t *testing.T, files map[string]string) *Machine {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		executable.Write(t, filepath.Join(root, name), content)
	}
	environment := map[string]string{"PATH": filepath.Join(root, "bin"), "SLURMD_NODENAME": "worker-0", "CALLS": filepath.Join(root, "calls")}
	m, err := Open(Options{Root: root, Jail: "/mnt/jail", Environment: environment, Context: passivecheck.Prolog})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// calls returns the arguments that a program which appends them to $CALLS got.
func calls(t *testing.T, m *Machine) string {
	t.Helper()
	content, err := os.ReadFile(m.Environment["CALLS"])
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

const (
	recording = "#!/bin/sh\necho \"$*\" >>$CALLS\n"
	gpu       = "Model: \t\t NVIDIA H200\nIRQ: 7\n"
)

func TestGPUsOfANode(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  string
		fails bool
		asked string
	}{
		{"no driver", nil, "any,CPU", false, ""},
		{"the kernel's files say it, and nothing is run", map[string]string{"proc/driver/nvidia/gpus/a/information": gpu, "proc/driver/nvidia/gpus/b/information": gpu,
			"bin/nvidia-smi": recording}, "any,2xGPU,2xH200", false, ""},
		{"nvidia-smi says it", map[string]string{"bin/nvidia-smi": recording + "echo NVIDIA H100\n"}, "any,1xGPU,1xH100", false, "--query-gpu=name --format=csv,noheader\n"},
		{"nvidia-smi fails", map[string]string{"bin/nvidia-smi": recording + "exit 9\n"}, "any,CPU", true, "--query-gpu=name --format=csv,noheader\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := open(t, test.files)
			for range 2 { // it is asked once
				got, err := m.Platform(t.Context())
				if strings.Join(got.Tags(), ",") != test.want || (err != nil) != test.fails {
					t.Errorf("%v, %v", got.Tags(), err)
				}
			}
			if got := calls(t, m); got != test.asked {
				t.Errorf("called %q", got)
			}
		})
	}
}

func TestSlurmctldIsAskedOnceAndAgainAfterAChange(t *testing.T) {
	m := open(t, map[string]string{"bin/scontrol": recording + "echo '   State=IDLE+DRAIN'\n"})
	ask := func() {
		t.Helper()
		if node, err := m.Node(t.Context()); err != nil || !node.Drained() {
			t.Fatalf("%+v, %v", node, err)
		}
	}
	ask()
	ask()
	for _, action := range []passivecheck.Action{
		{}, {Kind: passivecheck.Drain, Text: "[x] a b"}, {Kind: passivecheck.Undrain}, {Kind: passivecheck.SetComment, Text: "c"},
	} {
		if err := m.Change(t.Context(), action); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	want := "show node worker-0\nupdate nodename=worker-0 state=drain reason=[x] a b\nupdate nodename=worker-0 state=resume\nupdate nodename=worker-0 comment=c\nshow node worker-0\n"
	if diff := cmp.Diff(want, calls(t, m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatSlurmctldDoesNotSayIsAnError(t *testing.T) {
	for name, test := range map[string]struct{ scontrol, want string }{
		"slurmctld refuses":              {recording + "echo denied >&2; exit 1\n", "asking slurmctld for node worker-0: running scontrol: exit status 1: denied"},
		"scontrol prints something else": {recording + "echo maybe\n", "reading what slurmctld says of node worker-0"},
		"scontrol is no program":         {"no program", "asking slurmctld for node worker-0"},
	} {
		m := open(t, map[string]string{"bin/scontrol": test.scontrol})
		if _, err := m.Node(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := open(t, map[string]string{"bin/scontrol": recording + "echo 'Node worker-0 not found'; exit 1\n"})
	if _, err := m.Node(t.Context()); !errors.Is(err, ErrNoNode) {
		t.Errorf("it does not have the node: %v", err)
	}
	if _, err := open(t, nil).Node(t.Context()); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("without scontrol: %v", err)
	}
}

func TestWhereFilesAre(t *testing.T) {
	m := open(t, map[string]string{"mnt/jail/etc/x": "the jail's", "etc/x": "the container's"})
	if m.JailRoot() != m.Path("/mnt/jail") {
		t.Errorf("the jail is %q", m.JailRoot())
	}
	if info, err := m.Files.Lstat("/etc/x"); err != nil || info.Size() != int64(len("the jail's")) {
		t.Errorf("%v, %v", info, err)
	}
	bare := open(t, map[string]string{"etc/x": "the container's"})
	if info, err := bare.Files.Lstat("/etc/x"); err != nil || info.Size() != int64(len("the container's")) || bare.JailRoot() != "" {
		t.Errorf("without a jail: %v, %v", info, err)
	}
}
