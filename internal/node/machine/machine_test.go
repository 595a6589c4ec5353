// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// proc makes a /proc with files.
func proc(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTheBootIDIsThatOfTheKernel(t *testing.T) {
	const id = "0a9d1f3c-5b7e-4c21-9f0e-2d4b6a8c0e13"
	for name, tt := range map[string]struct {
		text, want, refusal string
	}{
		"a boot id":     {text: id + "\n", want: id},
		"an empty file": {text: "", refusal: "is none"},
		"another text":  {text: "42.07 3.1\n", refusal: "is none"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Machine{Proc: proc(t, map[string]string{"sys/kernel/random/boot_id": tt.text})}.Boot()
			if got != tt.want || (err == nil) != (tt.refusal == "") || err != nil && !strings.Contains(err.Error(), tt.refusal) {
				t.Errorf("it is %q, %v", got, err)
			}
		})
	}
	if _, err := (Machine{Proc: t.TempDir()}).Boot(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
	if got, err := (Machine{Proc: "/proc"}).Boot(); err != nil {
		t.Errorf("of this machine: %q, %v", got, err)
	}
}

func TestHowAMachineReboots(t *testing.T) {
	refused := errors.New("operation not permitted")
	for name, tt := range map[string]struct {
		init   string
		signal error
		want   string
		err    error
	}{
		"systemd is told":                             {init: "systemd\n", want: "signal 39 to 1"},
		"another init is not asked":                   {init: "init\n", want: "restart"},
		"a refusal is told, and nothing else happens": {init: "systemd\n", signal: refused, want: "signal 39 to 1", err: refused},
	} {
		t.Run(name, func(t *testing.T) {
			var did []string
			m := Machine{
				Proc: proc(t, map[string]string{"1/comm": tt.init}),
				Signal: func(pid int, signal syscall.Signal) error {
					if pid == 1 && signal == 39 {
						did = append(did, "signal 39 to 1")
					}
					return tt.signal
				},
				Restart: func() error { did = append(did, "restart"); return nil },
			}
			if err := m.Reboot(); !errors.Is(err, tt.err) {
				t.Errorf("it returns %v", err)
			}
			if got := strings.Join(did, ", "); got != tt.want {
				t.Errorf("it did %q, want %q", got, tt.want)
			}
		})
	}
	if err := (Machine{Proc: t.TempDir()}).Reboot(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("where process 1 is not to be seen: %v", err)
	}
}

func TestATestMayLookAtThisMachine(t *testing.T) {
	if err := (Machine{}).Check(); err != nil {
		t.Errorf("process %d: %v", os.Getpid(), err)
	}
}

func FuzzParseBoot(f *testing.F) {
	f.Add("0a9d1f3c-5b7e-4c21-9f0e-2d4b6a8c0e13\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		id, err := parseBoot(text)
		if err == nil && (len(id) != 36 || !strings.Contains(text, id)) {
			t.Errorf("%q of %q", id, text)
		}
	})
}
