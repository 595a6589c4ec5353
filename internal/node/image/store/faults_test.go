// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
	"github.com/coxswain-hpc/coxswain/internal/testing/imageregistry"
)

// deadline bounds what a test waits for.
const deadline = 30 * time.Second

// random returns text that no compressor makes shorter.
func random(size int) string {
	var b bytes.Buffer
	x := uint64(88172645463325252)
	for b.Len() < size {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		fmt.Fprintf(&b, "%c%c%c%c", byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
	}
	return b.String()
}

// disk mounts a file system in memory of a size.
func disk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no small disk was made: this user may not mount: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

func TestAFullDiskIsNamedAndKeepsNothing(t *testing.T) {
	r := imageregistry.Start(t)
	noise := imageregistry.Layer(t, map[string]string{"noise": random(3 << 20)})
	digest, _ := r.Push(t, "team/app:1", v1.Config{}, noise)
	for name, test := range map[string]struct{ size, want string }{
		"while a layer is fetched":  {"1M", "keeping a layer: write "},
		"while sqfstar writes":      {"4M", "sqfstar: "},
		"while sqfstar still reads": {"5M", "sqfstar: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{Dir: disk(t, test.size)}
			_, _, err := get(t.Context(), t, s, r.Host)
			if err == nil || !strings.HasPrefix(err.Error(), "importing "+r.Host+"/team/app:1: ") || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(strings.ToLower(err.Error()), "no space left on device") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v", err)
			}
			expectNames(t, s)
			if err := unix.Mount("tmpfs", s.Dir, "tmpfs", unix.MS_REMOUNT, "size=64M"); err != nil {
				t.Fatal(err)
			}
			if _, _, err := get(t.Context(), t, s, r.Host); err != nil {
				t.Error(err)
			}
			expectNames(t, s, digest+".json", digest+".sqsh")
		})
	}
}

func TestALayerThatIsNotTheImagesIsRefused(t *testing.T) {
	r := imageregistry.Start(t)
	layer := imageregistry.Layer(t, map[string]string{"a": random(64 << 10), "b": "c"})
	digest, blobs := r.Push(t, "team/app:1", v1.Config{}, layer)
	for name, test := range map[string]struct {
		body []byte
		want string
	}{
		"it is cut off":            {layer[:len(layer)/2], "push the image again"},
		"its end is cut off":       {layer[:len(layer)-512], "push the image again"},
		"one byte of it is wrong":  {append(bytes.Clone(layer[:1000]), append([]byte{layer[1000] + 1}, layer[1001:]...)...), "sends other bytes for image"},
		"it has more":              {append(bytes.Clone(layer), 0), "push the image again"},
		"it is empty":              {nil, "push the image again"},
		"it is an error of a page": {[]byte("<html>"), "push the image again"},
	} {
		for _, length := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, with its length %v", name, length), func(t *testing.T) {
				r.Before(func(w http.ResponseWriter, request *http.Request) bool {
					if !strings.HasSuffix(request.URL.Path, blobs[0]) {
						return false
					}
					if length {
						w.Header().Set("Content-Length", fmt.Sprint(len(test.body)))
					} else {
						w.(http.Flusher).Flush()
					}
					_, _ = w.Write(test.body)
					return true
				})
				s := &Store{Dir: t.TempDir()}
				_, _, err := get(t.Context(), t, s, r.Host)
				if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("the error is %v", err)
				}
				expectNames(t, s)
				r.Before(nil)
				if _, _, err := get(t.Context(), t, s, r.Host); err != nil {
					t.Errorf("with the right bytes: %v", err)
				}
				expectNames(t, s, digest+".json", digest+".sqsh")
			})
		}
	}
}

func TestAnSqfstarThatFailsIsTold(t *testing.T) {
	r := imageregistry.Start(t)
	r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"noise": random(8 << 20)}))
	for name, test := range map[string]struct{ program, want string }{
		"it ends at once":                {"exit 3", "making a squashfs: sqfstar: exit status 3: "},
		"it reads all and fails":         {"cat >/dev/null; echo first >&2; echo second >&2; exit 1", "sqfstar: exit status 1: first, second"},
		"it prints more than is kept":    {"yes no such thing | head -n 100000 >&2; echo why >&2; exit 1", "no such thing, why"},
		"it is killed":                   {"kill -9 $$", "signal: killed"},
		"it succeeds without reading":    {"exit 0", "broken pipe"},
		"it succeeds and writes nothing": {"cat >/dev/null", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			executable.Write(t, filepath.Join(bin, "sqfstar"), "#!/bin/sh\n"+test.program+"\n")
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			s := &Store{Dir: t.TempDir()}
			_, _, err := get(t.Context(), t, s, r.Host)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 2000 {
				t.Errorf("the error is %.3000v", err)
			}
			expectNames(t, s)
		})
	}
	t.Run("it is not there", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		s := &Store{Dir: t.TempDir()}
		if _, _, err := get(t.Context(), t, s, r.Host); err == nil || !strings.Contains(err.Error(), "starting sqfstar: ") {
			t.Errorf("the error is %v", err)
		}
		expectNames(t, s)
	})
}

func TestAnImportEndsWithItsContext(t *testing.T) {
	r := imageregistry.Start(t)
	layer := imageregistry.Layer(t, map[string]string{"noise": random(8 << 20)})
	_, blobs := r.Push(t, "team/app:1", v1.Config{}, layer)
	why := errors.New("the service ends")
	t.Run("while a layer is fetched", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		r.Before(func(w http.ResponseWriter, request *http.Request) bool {
			if !strings.HasSuffix(request.URL.Path, blobs[0]) {
				return false
			}
			w.Header().Set("Content-Length", fmt.Sprint(len(layer)))
			_, _ = w.Write(layer[:1<<20])
			w.(http.Flusher).Flush()
			cancel(why)
			<-request.Context().Done()
			return true
		})
		defer r.Before(nil)
		s := &Store{Dir: t.TempDir()}
		if _, _, err := get(ctx, t, s, r.Host); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v", err)
		}
		expectNames(t, s)
	})
	t.Run("while sqfstar runs", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		bin := t.TempDir()
		executable.Write(t, filepath.Join(bin, "sqfstar"), "#!/bin/sh\necho >"+bin+"/started; exec sleep 1000\n")
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		go func() {
			defer cancel(why)
			for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if _, err := os.Stat(bin + "/started"); err == nil {
					return
				}
			}
		}()
		s := &Store{Dir: t.TempDir()}
		if _, _, err := get(ctx, t, s, r.Host); !errors.Is(err, why) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v", err)
		}
		expectNames(t, s)
	})
	t.Run("while another imports the image", func(t *testing.T) {
		s := &Store{Dir: t.TempDir()}
		release, err := s.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		defer release()
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if _, err := s.lock(ctx, "a"); !errors.Is(err, why) {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestARegistryThatNeverEndsKeepsNobodyFromItsImages has an image of another registry, as everybody can get and hand it out.
func TestARegistryThatNeverEndsKeepsNobodyFromItsImages(t *testing.T) {
	good, evil := imageregistry.Start(t), imageregistry.Start(t)
	layer := imageregistry.Layer(t, map[string]string{"x": "y"})
	digest, _ := good.Push(t, "team/app:1", v1.Config{}, layer)
	same, blobs := evil.Push(t, "team/app:1", v1.Config{}, layer)
	if digest != same {
		t.Fatal("the images are different")
	}
	asked, end := make(chan struct{}), make(chan struct{})
	evil.Before(func(_ http.ResponseWriter, request *http.Request) bool {
		if strings.HasSuffix(request.URL.Path, blobs[0]) {
			close(asked)
			<-end
		}
		return false
	})
	s := &Store{Dir: t.TempDir()}
	ended := make(chan error, 1)
	go func() {
		_, _, err := get(t.Context(), t, s, evil.Host)
		ended <- err
	}()
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	image, _, err := get(ctx, t, s, good.Host)
	if err != nil {
		t.Errorf("while another registry hangs: %v", err)
	}
	close(end)
	if err := <-ended; err != nil {
		t.Errorf("the other one: %v", err)
	}
	expectNames(t, s, digest+".json", digest+".sqsh")
	if image != nil && content(t, image.Path, "x") != "y" {
		t.Error("the image is another one")
	}
}

func TestWhatARegistryRefusesIsNotHandedOutThoughItIsThere(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	if _, _, err := get(t.Context(), t, s, r.Host); err != nil {
		t.Fatal(err)
	}
	r.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "{}")
		return true
	})
	if image, _, err := get(t.Context(), t, s, r.Host); err == nil || image != nil {
		t.Errorf("the image is %+v, %v", image, err)
	}
}
