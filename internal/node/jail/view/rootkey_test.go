// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/jail/view"
)

// keysOf returns root's keys in a jail, and looks whether they belong together.
func keysOf(t *testing.T, dir string) (public, authorized string) {
	t.Helper()
	files := map[string]string{}
	for name, mode := range map[string]fs.FileMode{"id_ecdsa": 0o600, "id_ecdsa.pub": 0o644, "authorized_keys": 0o600} {
		path := filepath.Join(dir, "root/.ssh", name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := modeOf(t, path); got != mode {
			t.Errorf("%s has mode %s", name, got)
		}
		files[name] = string(text)
	}
	signer, err := ssh.ParsePrivateKey([]byte(files["id_ecdsa"]))
	if err != nil {
		t.Fatal(err)
	}
	key, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(files["id_ecdsa.pub"]))
	if err != nil || comment != "root@soperator-internal" || !bytes.Equal(key.Marshal(), signer.PublicKey().Marshal()) {
		t.Errorf("the public key is %q, %v", files["id_ecdsa.pub"], err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "root/.ssh"))
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, there are %v", err, entries)
	}
	return files["id_ecdsa.pub"], files["authorized_keys"]
}

func TestRootHasAKeyPair(t *testing.T) {
	for name, test := range map[string]struct{ before, want string }{
		"there are no keys":              {"", "%"},
		"there are keys of others":       {"ssh-ed25519 AAAA me\n", "ssh-ed25519 AAAA me\n%"},
		"the last line of keys is short": {"ssh-ed25519 AAAA me", "ssh-ed25519 AAAA me\n%"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, root := openJail(t)
			if test.before != "" {
				if err := os.MkdirAll(filepath.Join(dir, "root/.ssh"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "root/.ssh/authorized_keys"), []byte(test.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := view.MakeRootKey(root); err != nil {
				t.Fatal(err)
			}
			public, authorized := keysOf(t, dir)
			if want := strings.ReplaceAll(test.want, "%", public); authorized != want {
				t.Errorf("authorized are %q, want %q", authorized, want)
			}
			if err := view.MakeRootKey(root); err != nil {
				t.Fatal(err)
			}
			if again, still := keysOf(t, dir); again != public || still != authorized {
				t.Error("another start changes the keys")
			}
		})
	}
}

func TestAnInterruptedKeyPairIsFinished(t *testing.T) {
	dir, root := openJail(t)
	if err := view.MakeRootKey(root); err != nil {
		t.Fatal(err)
	}
	public, _ := keysOf(t, dir)
	for _, left := range []string{"id_ecdsa.pub", "authorized_keys"} {
		if err := os.Remove(filepath.Join(dir, "root/.ssh/id_ecdsa.pub")); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(dir, "root/.ssh", left))
		if err := view.MakeRootKey(root); err != nil {
			t.Fatal(err)
		}
		if again, authorized := keysOf(t, dir); again != public || authorized != public {
			t.Errorf("without %s: the key is %q, authorized are %q", left, again, authorized)
		}
	}
}

func TestPodsThatStartAtOnceMakeOneKeyPair(t *testing.T) {
	dir, root := openJail(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := view.MakeRootKey(root); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	public, authorized := keysOf(t, dir)
	if strings.ReplaceAll(authorized, public, "") != "" || authorized == "" {
		t.Errorf("authorized are %q, the key is %q", authorized, public)
	}
}

// onNFS runs do on a thread for which renameat2 with flags fails, as on NFS and on most other network file systems.
func onNFS(t *testing.T, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its filter
		program := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_RENAMEAT2, Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
		}
		if err == nil {
			do()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestAJailOnNFSHasAKeyPair(t *testing.T) {
	dir, root := openJail(t)
	var err error
	onNFS(t, func() {
		if denied := root.RenameNew("/a", "/b"); !errors.Is(denied, errors.ErrUnsupported) {
			t.Errorf("the test's NFS renames: %v", denied)
		}
		err = view.MakeRootKey(root)
	})
	if err != nil {
		t.Fatal(err)
	}
	if public, authorized := keysOf(t, dir); authorized != public {
		t.Errorf("authorized are %q, the key is %q", authorized, public)
	}
}

func TestAKeyPairFollowsNoLinks(t *testing.T) {
	for _, link := range []string{"root/.ssh/authorized_keys", "root/.ssh/id_ecdsa", "root/.ssh"} {
		dir, root := openJail(t)
		outside := filepath.Join(t.TempDir(), "outside")
		if err := os.WriteFile(outside, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, link)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
		if err := view.MakeRootKey(root); err == nil || !strings.Contains(err.Error(), "making the key pair of root: ") {
			t.Errorf("with a link at %s: %v", link, err)
		}
		if text, err := os.ReadFile(outside); err != nil || string(text) != "precious" {
			t.Errorf("what the link at %s leads to is %q, %v", link, text, err)
		}
	}
}
