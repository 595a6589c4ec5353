// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package realslurm

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Listen listens at a port of the loopback device of the box: what runs in the box reaches this test there.
func (b *Box) Listen() net.Listener {
	b.t.Helper()
	type result struct {
		listener net.Listener
		err      error
	}
	made := make(chan result)
	go func() {
		// The thread stays in the box, and so ends with the goroutine.
		runtime.LockOSThread()
		listener, err := b.listen()
		made <- result{listener, err}
	}()
	r := <-made
	if r.err != nil {
		b.t.Fatalf("listening in the box: %v", r.err)
	}
	return r.listener
}

func (b *Box) listen() (net.Listener, error) {
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", b.init.Process.Pid))
	if err != nil {
		return nil, err
	}
	defer network.Close() //nolint:errcheck // it was only read
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, err
	}
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
}

// StartImages starts what hands out images to the containers of steps, as the pod of a slurmd has it. The images are below /mnt/images. It may
// ask a registry by HTTP. options are further ones of the program.
func (b *Box) StartImages(registry string, options ...string) {
	b.t.Helper()
	b.Run("sh", "-c", `mkdir -p /run/coxswain/containers /mnt/images
		mknod -m 666 /dev/fuse c 10 229
		mknod /dev/loop-control c 10 237
		for n in $(seq 0 63); do echo "/dev/loop$n b 7 $n"; done | xargs -n 4 mknod`)
	b.start("images", fmt.Sprintf("exec /usr/local/lib/coxswain/slurm/libexec/container serve -images /mnt/images -insecure %s %s",
		registry, strings.Join(options, " ")))
	b.Wait("the service of images", func() bool {
		_, err := b.Try("test", "-S", "/run/coxswain/containers/images.sock")
		return err == nil
	})
}
