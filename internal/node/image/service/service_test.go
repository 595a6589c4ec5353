// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry/credentials"
	"github.com/coxswain-hpc/coxswain/internal/node/image/squash"
	"github.com/coxswain-hpc/coxswain/internal/node/image/store"
	"github.com/coxswain-hpc/coxswain/internal/testing/imageregistry"
)

// node is a service of images with all that it needs.
type node struct {
	*Server
	socket string
	log    logged
	// stop ends the service, and waits for it.
	stop func() error
}

// start starts a service that may ask a registry by HTTP. It waits for users with patience.
func start(t *testing.T, r *imageregistry.Registry, patience time.Duration) *node {
	t.Helper()
	dir := reachable(t)
	mounter, err := squash.New(filepath.Join(dir, "mounts"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(mounter.Dir, unix.MNT_DETACH) })
	client, err := registry.New(registry.Options{Insecure: []string{r.Host}, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	images := filepath.Join(dir, "images")
	if err := os.Mkdir(images, 0o755); err != nil {
		t.Fatal(err)
	}
	n := &node{socket: filepath.Join(dir, "socket")}
	n.Server = &Server{
		Store: &store.Store{Dir: images}, Mounter: mounter, Client: client, Log: slog.New(slog.NewTextHandler(&n.log, nil)), patience: patience,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(ctx, n.socket) }()
	n.stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	t.Cleanup(func() {
		if err := n.stop(); err != nil {
			t.Error(err)
		}
	})
	expectSoon(t, "the service listens", func() bool {
		status, err := os.Stat(n.socket)
		return err == nil && status.Mode().Perm() == 0o666
	})
	return n
}

// logged is what a service has logged.
type logged struct {
	lock sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(p)
}

func (l *logged) has(text string) bool {
	l.lock.Lock()
	defer l.lock.Unlock()
	return strings.Contains(l.text.String(), text)
}

// as runs a function in a thread of a user, which ends then.
func as(uid uint32, run func()) {
	var done sync.WaitGroup
	done.Go(func() {
		runtime.LockOSThread()
		for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
			if _, _, e := unix.RawSyscall(call, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
				panic(e)
			}
		}
		run()
	})
	done.Wait()
}

// get asks for an image as a user, as "team/app:1".
func (n *node) get(t *testing.T, uid uint32, image string, login registry.Login) (mounted *Mounted, said []string, err error) {
	t.Helper()
	ref, err := reference.Parse(image)
	if err != nil {
		t.Fatal(err)
	}
	as(uid, func() {
		mounted, err = Get(t.Context(), n.socket, ref, login, func(line string) { said = append(said, line) })
	})
	if mounted != nil {
		t.Cleanup(func() { _ = mounted.Mount.Close() })
	}
	return mounted, said, err
}

// connect connects as a user.
func (n *node) connect(t *testing.T, uid uint32) *net.UnixConn {
	t.Helper()
	var conn net.Conn
	var err error
	as(uid, func() { conn, err = (&net.Dialer{}).DialContext(t.Context(), "unixpacket", n.socket) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.UnixConn)
}

// expectFile looks at the file x of a mount.
func expectFile(t *testing.T, mount *os.File, content string, owner uint32) {
	t.Helper()
	path := fmt.Sprintf("/proc/self/fd/%d/x", mount.Fd())
	var status unix.Stat_t
	if err := unix.Stat(path, &status); err != nil || status.Uid != owner || status.Gid != owner {
		t.Errorf("the file is of user %d, group %d, want %d (%v)", status.Uid, status.Gid, owner, err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != content {
		t.Errorf("the file has %q, %v", got, err)
	}
}

func anonymous(string, string) (credentials.Credentials, error) {
	return credentials.Credentials{}, nil
}

// private lets alice in alone.
func private(w http.ResponseWriter, r *http.Request) bool {
	if user, password, _ := r.BasicAuth(); user == "alice" && password == "s3cr3t" {
		return false
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
	w.WriteHeader(http.StatusUnauthorized)
	return true
}

func TestAUserGetsAnImageByTheirOwnLogin(t *testing.T) {
	r := imageregistry.Start(t)
	config := v1.Config{Env: []string{"A=b"}, Entrypoint: []string{"/e"}, Cmd: []string{"c"}, WorkingDir: "/w"}
	digest, _ := r.Push(t, "team/app:1", config, imageregistry.Layer(t, map[string]string{"x": "y"}))
	r.Before(private)
	n := start(t, r, deadline)
	var asked []string
	alice := func(host, repository string) (credentials.Credentials, error) {
		asked = append(asked, host+" "+repository)
		return credentials.Credentials{User: "alice", Password: "s3cr3t"}, nil
	}
	image, said, err := n.get(t, user, r.Host+"#team/app:1", alice)
	if err != nil {
		t.Fatal(err)
	}
	name := r.Host + "/team/app:1"
	if want := []string{"importing docker image: " + name, "imported docker image: " + name}; !slices.Equal(said, want) {
		t.Errorf("the user was told %q, want %q", said, want)
	}
	if want := []string{r.Host + " team/app"}; !slices.Equal(asked, want) {
		t.Errorf("the user was asked for the logins of %q, want %q", asked, want)
	}
	if got := fmt.Sprint(image.Digest, image.Config); got != fmt.Sprint(digest, Config{Env: []string{"A=b"}, Entrypoint: []string{"/e"}, Cmd: []string{"c"}, WorkingDir: "/w"}) {
		t.Errorf("the image is %s", got)
	}
	expectFile(t, image.Mount, "y", user)
	for name, login := range map[string]registry.Login{
		"without a login": anonymous,
		"with a wrong one": func(string, string) (credentials.Credentials, error) {
			return credentials.Credentials{User: "alice", Password: "guessed"}, nil
		},
		"with a login that cannot be read": func(string, string) (credentials.Credentials, error) {
			return credentials.Credentials{}, errors.New("the file of logins is no JSON")
		},
	} {
		image, _, err := n.get(t, other, r.Host+"#team/app:1", login)
		if err == nil || image != nil || strings.Contains(err.Error(), "guessed") {
			t.Errorf("another user %s gets %+v, %v", name, image, err)
		}
		if strings.Contains(name, "read") && !strings.Contains(err.Error(), "the file of logins is no JSON") {
			t.Errorf("another user %s reads %v", name, err)
		}
	}
}

func TestTheKernelTellsWhoAsks(t *testing.T) {
	r := imageregistry.Start(t)
	r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	n := start(t, r, deadline)
	for _, uid := range []uint32{user, other} {
		conn := n.connect(t, uid)
		text := `{"image":"docker://` + r.Host + `#team/app:1","uid":0,"gid":0,"owner":{"UID":0},"Owner":0}`
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		image := answerOf(t, conn)
		if image.Image == nil {
			t.Fatalf("the answer is %+v", image)
		}
		expectFile(t, image.Image.Mount, "y", uid)
	}
}

// answerOf returns the last answer of the service. Logins that it asks for are empty.
func answerOf(t *testing.T, conn *net.UnixConn) answer {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	for {
		var a answer
		file, err := receive(conn, &a)
		switch {
		case err != nil:
			t.Fatal(err)
		case a.Login != nil:
			if err := send(conn, login{}); err != nil {
				t.Fatal(err)
			}
		case a.Image != nil:
			a.Image.Mount = file
			t.Cleanup(func() { _ = file.Close() })
			return a
		case a.Error != "":
			return a
		}
	}
}

func TestManyUsersAtOnceGetOneImage(t *testing.T) {
	r := imageregistry.Start(t)
	_, blobs := r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	n := start(t, r, deadline)
	var all sync.WaitGroup
	for i := range uint32(64) {
		all.Go(func() {
			uid := user + i%4
			image, _, err := n.get(t, uid, r.Host+"#team/app:1", anonymous)
			if err != nil {
				t.Error(err)
				return
			}
			expectFile(t, image.Mount, "y", uid)
		})
	}
	all.Wait()
	if got := r.Requests("GET /v2/team/app/blobs/" + blobs[0]); got != 1 {
		t.Errorf("the layer was fetched %d times", got)
	}
}

func TestAnImportGoesOnWithoutTheUserWhoAsked(t *testing.T) {
	r := imageregistry.Start(t)
	digest, blobs := r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	asked, left := make(chan struct{}), make(chan struct{})
	r.Before(func(_ http.ResponseWriter, request *http.Request) bool {
		if strings.HasSuffix(request.URL.Path, blobs[0]) {
			close(asked)
			<-left
		}
		return false
	})
	n := start(t, r, deadline)
	ref, err := reference.Parse(r.Host + "#team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if image, err := Get(ctx, n.socket, ref, anonymous, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("the user gets %+v, %v", image, err)
	}
	close(left)
	expectSoon(t, "the image is imported", func() bool {
		_, err := os.Stat(filepath.Join(n.Store.Dir, digest+".sqsh"))
		return err == nil
	})
}

func TestAnImageWhoseEnvironmentIsTooLongIsRefusedWithASentence(t *testing.T) {
	r := imageregistry.Start(t)
	r.Push(t, "team/app:1", v1.Config{Env: []string{"A=" + strings.Repeat("b", maxPacket)}}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	n := start(t, r, deadline)
	if image, _, err := n.get(t, user, r.Host+"#team/app:1", anonymous); err == nil || !strings.Contains(err.Error(), "are too long: build it with shorter ones") {
		t.Errorf("the user gets %+v, %v", image, err)
	}
}

func TestAServiceEndsWithItsContextWhateverItsUsersDo(t *testing.T) {
	before := runtime.NumGoroutine()
	r := imageregistry.Start(t)
	_, blobs := r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	asked := make(chan struct{})
	r.Before(func(_ http.ResponseWriter, request *http.Request) bool {
		if strings.HasSuffix(request.URL.Path, blobs[0]) {
			close(asked)
			<-request.Context().Done()
		}
		return false
	})
	n := start(t, r, time.Hour)
	_ = n.connect(t, user) // asks nothing
	importing := n.connect(t, user)
	if err := send(importing, question{Image: "docker://" + r.Host + "#team/app:1"}); err != nil {
		t.Fatal(err)
	}
	go func() { // gives its login
		var a answer
		_, _ = receive(importing, &a)
		_ = send(importing, login{})
	}()
	<-asked
	waiting := n.connect(t, other) // never answers the question for its login
	if err := send(waiting, question{Image: "docker://" + r.Host + "#team/app:2"}); err != nil {
		t.Fatal(err)
	}
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	for _, conn := range []*net.UnixConn{importing, waiting} {
		_ = conn.Close()
	}
	// Those of the registry, and of connections to it that nobody uses.
	expectSoon(t, "all goroutines of the service end", func() bool {
		return !strings.Contains(stacks(), "image/service.(*Server)") && runtime.NumGoroutine() < before+20
	})
}

// stacks returns what all goroutines do.
func stacks() string {
	text := make([]byte, 1<<20)
	return string(text[:runtime.Stack(text, true)])
}
