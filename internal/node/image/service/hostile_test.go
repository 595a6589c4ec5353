// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/testing/imageregistry"
)

// files returns how many files this process has open.
func files(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// pair returns both ends of a connection.
func pair(t testing.TB) (near, far *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		conn, err := net.FileConn(f)
		_ = f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		ends[i] = conn.(*net.UnixConn)
	}
	return ends[0], ends[1]
}

// rights returns n files to send along.
func rights(n int) []byte {
	fds := make([]int, n)
	if n == 0 {
		return nil
	}
	return unix.UnixRights(fds...)
}

func TestPacketsOfStrangersAreRefusedAndTheServiceGoesOn(t *testing.T) {
	r := imageregistry.Start(t)
	r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	n := start(t, r, deadline)
	if _, _, err := n.get(t, user, r.Host+"#team/app:1", anonymous); err != nil {
		t.Fatal(err)
	}
	expectSoon(t, "the user is gone", n.asking.empty)
	before := files(t)
	for name, packet := range map[string]struct {
		text  string
		files int
	}{
		"no JSON":                     {"\x00\xff", 0},
		"JSON of something else":      {"[1,2]", 0},
		"the end of JSON is missing":  {`{"image":"docker://a`, 0},
		"no image":                    {"{}", 0},
		"an image that is none":       {`{"image":"docker://../../../etc/passwd"}`, 0},
		"an image of another scheme":  {`{"image":"file:///etc/shadow"}`, 0},
		"a path":                      {`{"image":"/etc/shadow"}`, 0},
		"an image of a daemon":        {`{"image":"dockerd://app"}`, 0},
		"a file that nobody wants":    {`{"image":"docker://:"}`, 1},
		"two files":                   {"{}", 2},
		"as many files as there may":  {"{}", 253},
		"too long":                    {`{"image":"` + strings.Repeat("a", maxPacket) + `"}`, 0},
		"too long, with files":        {`{"image":"` + strings.Repeat("a", maxPacket) + `"}`, 2},
		"as long as a packet may be":  {`{"image":"` + strings.Repeat("a", maxPacket-12) + `"}`, 0},
		"a name that is deeply wrong": {strings.Repeat("[", 100_000), 0},
	} {
		t.Run(name, func(t *testing.T) {
			conn := n.connect(t, other)
			if _, _, err := conn.WriteMsgUnix([]byte(packet.text), rights(packet.files), nil); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(deadline)); err != nil {
				t.Fatal(err)
			}
			var a answer
			if _, err := receive(conn, &a); err == nil && a.Error == "" || err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
				t.Errorf("the answer is %+v, %v", a, err)
			}
			_ = conn.Close()
		})
	}
	expectSoon(t, "all files are closed", func() bool { return files(t) <= before })
	if _, _, err := n.get(t, user, r.Host+"#team/app:1", anonymous); err != nil {
		t.Error(err)
	}
}

func TestUsersWhoLeaveAtAnyTimeLeaveNothing(t *testing.T) {
	r := imageregistry.Start(t)
	r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	n := start(t, r, deadline)
	if _, _, err := n.get(t, user, r.Host+"#team/app:1", anonymous); err != nil {
		t.Fatal(err)
	}
	expectSoon(t, "the user is gone", n.asking.empty)
	before := files(t)
	for range 20 {
		_ = n.connect(t, other).Close()
		asked := n.connect(t, other)
		if err := send(asked, question{Image: "docker://" + r.Host + "#team/app:1"}); err != nil {
			t.Fatal(err)
		}
		_ = asked.Close()
		answered := n.connect(t, other)
		if err := errors.Join(send(answered, question{Image: "docker://" + r.Host + "#team/app:1"}), send(answered, login{})); err != nil {
			t.Fatal(err)
		}
		_ = answered.Close() // with the mount on its way
	}
	expectSoon(t, "all are gone", n.asking.empty)
	// The client of the registry keeps a connection or two.
	expectSoon(t, "all files are closed", func() bool { return files(t) <= before+4 })
}

func TestUsersWhoSayNothingAreNotWaitedForForever(t *testing.T) {
	r := imageregistry.Start(t)
	r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	n := start(t, r, 50*time.Millisecond)
	silent, waiting := n.connect(t, user), n.connect(t, user)
	if err := send(waiting, question{Image: "docker://" + r.Host + "#team/app:1"}); err != nil {
		t.Fatal(err)
	}
	for _, conn := range []*net.UnixConn{silent, waiting} {
		if err := conn.SetReadDeadline(time.Now().Add(deadline)); err != nil {
			t.Fatal(err)
		}
		for {
			var a answer
			_, err := receive(conn, &a)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	expectSoon(t, "both are gone", n.asking.empty)
}

func TestAUserWhoDoesNotReadIsNotWaitedForForever(t *testing.T) {
	near, _ := pair(t)
	ended := make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			err = sendWithin(near, 20*time.Millisecond, answer{Progress: strings.Repeat("a", maxPacket/2)})
		}
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(deadline):
		t.Error("sending does not end")
	}
}

func TestAPacketIsReceivedWithItsFileOrNotAtAll(t *testing.T) {
	before := files(t)
	for _, n := range []int{0, 1, 2, 3, 253} {
		near, far := pair(t)
		if _, _, err := near.WriteMsgUnix([]byte("{}"), rights(n), nil); err != nil {
			t.Fatal(err)
		}
		file, err := receive(far, &struct{}{})
		if (err == nil) != (n < 2) || (file != nil) != (n == 1) {
			t.Errorf("with %d files come %v, %v", n, file, err)
		}
		if file != nil {
			_ = file.Close()
		}
		_, _ = near.Close(), far.Close()
	}
	if after := files(t); after != before {
		t.Errorf("%d files are open, %d were", after, before)
	}
}

func TestAUserImportsTwoImagesAtATime(t *testing.T) {
	var all turns
	var done []func()
	for range maxImports {
		one, err := all.take(t.Context(), user)
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, one)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := all.take(ended, user); !errors.Is(err, context.Canceled) {
		t.Errorf("one more begins: %v", err)
	}
	another, err := all.take(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan func(), 1)
	go func() {
		one, err := all.take(t.Context(), user)
		if err != nil {
			t.Error(err)
		}
		next <- one
	}()
	done[0]()
	for _, one := range append(done[1:], another, <-next) {
		one()
	}
	if len(all.users) != 0 {
		t.Errorf("%d users are remembered", len(all.users))
	}
}

func TestImportsOfOneUserDoNotTakeAllOfTheNode(t *testing.T) {
	r := imageregistry.Start(t)
	layer := imageregistry.Layer(t, map[string]string{"x": "y"})
	_, blobs := r.Push(t, "team/app:1", v1.Config{}, layer)
	for _, tag := range []string{"2", "3", "4"} {
		r.Push(t, "team/app:"+tag, v1.Config{Env: []string{"TAG=" + tag}}, layer)
	}
	end := make(chan struct{})
	begin := sync.OnceFunc(func() { close(end) })
	defer begin()
	r.Before(func(_ http.ResponseWriter, request *http.Request) bool {
		if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, blobs[0]) {
			<-end
		}
		return false
	})
	n := start(t, r, deadline)
	ended := make(chan error, 4)
	for _, tag := range []string{"1", "2", "3"} {
		go func() {
			_, _, err := n.get(t, user, r.Host+"#team/app:"+tag, anonymous)
			ended <- err
		}()
	}
	const path = "GET /v2/team/app/blobs/"
	expectSoon(t, "three wait", func() bool {
		n.importing.mutex.Lock()
		defer n.importing.mutex.Unlock()
		return n.importing.users[user] != nil && n.importing.users[user].wanted == 3
	})
	expectSoon(t, "two import", func() bool { return r.Requests(path+blobs[0]) == maxImports })
	go func() {
		_, _, err := n.get(t, other, r.Host+"#team/app:4", anonymous)
		ended <- err
	}()
	expectSoon(t, "another user imports", func() bool { return r.Requests(path+blobs[0]) == maxImports+1 })
	begin()
	for range 4 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestAServiceWithoutRoomForFilesListensAgainLater(t *testing.T) {
	r := imageregistry.Start(t)
	n := start(t, r, deadline)
	conn := n.connect(t, user)
	if err := send(conn, question{Image: "no image"}); err != nil {
		t.Fatal(err)
	}
	if a := answerOf(t, conn); a.Error == "" {
		t.Fatalf("the answer is %+v", a)
	}
	expectSoon(t, "the user is gone", n.asking.empty)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was) })
	limited := was
	limited.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limited); err != nil {
		t.Fatal(err)
	}
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: n.socket})
	expectSoon(t, "the service tries in vain", func() bool { return n.log.has("A user was not listened to") })
	if err = errors.Join(err, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)); err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "socket")
	again, err := net.FileConn(file)
	_ = file.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if err := send(again.(*net.UnixConn), question{Image: "no image"}); err != nil {
		t.Fatal(err)
	}
	if a := answerOf(t, again.(*net.UnixConn)); a.Error == "" {
		t.Errorf("the answer is %+v", a)
	}
}

func FuzzReceive(f *testing.F) {
	for _, text := range []string{`{"image":"docker://a"}`, `{"progress":"p"}`, `{"login":{"host":"h","repository":"r"}}`, `{"User":"u","Password":"p","error":"e"}`,
		`{"image":{"digest":"d","config":{"env":["a=b"]}}}`, `{"file":true}`, "", "null", "[]"} {
		for _, n := range []byte{0, 1, 2} {
			f.Add([]byte(text), n)
		}
	}
	near, far := pair(f)
	before := files(f)
	f.Fuzz(func(t *testing.T, packet []byte, n byte) {
		if len(packet) == 0 {
			return // nothing is sent then
		}
		for _, message := range []any{&question{}, &answer{}, &login{}} {
			if _, _, err := near.WriteMsgUnix(packet, rights(int(n)), nil); err != nil {
				t.Skip(err)
			}
			file, err := receive(far, message)
			if err != nil && file != nil {
				t.Errorf("there are a file and an error: %v", err)
			}
			if file != nil {
				_ = file.Close()
			}
		}
		if after := files(t); after > before+4 {
			t.Fatalf("%d files are open, %d were", after, before)
		}
	})
}
