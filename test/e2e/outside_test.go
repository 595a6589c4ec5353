// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// User ids of the images.
const (
	slurmUID   = 401
	mariadbUID = 999
)

// outside is a root file system made of the images' files, in which Slurm's daemons run as processes of this machine. They are not
// in containers and not on a Kubernetes node: the part of a hybrid cluster outside of Kubernetes. It needs no packages
// beside those of the images: chroot, unshare, mount and tar are on every Debian.
type outside struct {
	root string
	// Name is the host name of the processes, and address where pods reach them.
	name, address string
}

// newOutside makes one of these images. Only a local Kubernetes has its pods reach this machine.
func newOutside(t *testing.T, s *scene, name string, images ...string) *outside {
	t.Helper()
	if !s.Local {
		t.Skip("processes of this machine are out of reach for the pods of another Kubernetes; run it with a local one")
	}
	o := &outside{root: t.TempDir(), name: name, address: s.Host}
	if err := stage.images.Unpack(t.Context(), o.root, images...); err != nil {
		t.Fatal(err)
	}
	o.writes(t, "etc/hosts", 0, "127.0.0.1 localhost\n"+o.address+" "+o.name+"\n")
	for _, dir := range []string{"proc", "dev", "sys"} {
		if err := os.MkdirAll(filepath.Join(o.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// writes writes a file. Only its owner may read it, unless it belongs to root and is no key.
func (o *outside) writes(t *testing.T, path string, uid int, content string) {
	t.Helper()
	file := filepath.Join(o.root, path)
	mode := os.FileMode(0o600)
	if ext := filepath.Ext(path); uid == 0 && ext != ".key" && ext != ".jwks" {
		mode = 0o644
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, uid, uid); err != nil {
		t.Fatal(err)
	}
}

// makes makes a directory that belongs to a user.
func (o *outside) makes(t *testing.T, path string, uid int) {
	t.Helper()
	dir := filepath.Join(o.root, path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, uid, uid); err != nil {
		t.Fatal(err)
	}
}

// enter puts a command into mounts, processes and a host name of its own, and into the root file system. The network is that
// of the machine. The first process ends when its standard input does, and the kernel ends all others with it: nothing
// survives the test, however it ends.
const enter = `set -e
root=$1 name=$2 user=$3
shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
hostname "$name"
chroot --userspec="$user" "$root" "$@" </dev/null &
read -r _ || true
`

// runs starts a daemon, which ends with the test. Its output is logged when the test has failed.
func (o *outside) runs(t *testing.T, uid int, command ...string) {
	t.Helper()
	args := append([]string{
		"--mount", "--pid", "--uts", "--fork", "--kill-child", "bash", "-c", enter, "enter", o.root, o.name, fmt.Sprintf("%d:%d", uid, uid),
	}, command...)
	cmd := exec.Command("unshare", args...)
	said, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	life, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = life.Close()
		_ = cmd.Wait() // it was told to end
		if text, err := os.ReadFile(said.Name()); t.Failed() && err == nil {
			t.Logf("the end of what %v said outside of Kubernetes:\n%s", command, text[max(0, len(text)-4<<10):])
		}
		_ = said.Close()
	})
}

// asks runs a program there and returns what it printed.
func (o *outside) asks(ctx context.Context, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "chroot", append([]string{o.root}, command...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running %v outside of Kubernetes: %w\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// newKey returns a random key.
func newKey(t *testing.T) string {
	t.Helper()
	key := make([]byte, 64)
	if _, err := io.ReadFull(rand.Reader, key); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", key)
}
