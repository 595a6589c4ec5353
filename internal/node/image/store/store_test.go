// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
	"github.com/coxswain-hpc/coxswain/internal/testing/imageregistry"
)

func newClient(t *testing.T, hosts ...string) *registry.Client {
	t.Helper()
	client, err := registry.New(registry.Options{Insecure: hosts, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// get asks a store for the image team/app:1 of a registry.
func get(ctx context.Context, t *testing.T, s *Store, host string) (*Image, []string, error) {
	t.Helper()
	ref, err := reference.Parse(host + "#team/app:1")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	got, err := s.Get(ctx, newClient(t, host), ref, nil, func(line string) { said = append(said, line) })
	return got, said, err
}

// content returns a file of a squashfs.
func content(t *testing.T, squashfs, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "unsquashfs", "-cat", squashfs, name).Output()
	if err != nil {
		t.Fatalf("reading %s of %s: %v", name, squashfs, err)
	}
	return string(out)
}

// names returns the files of a store but its locks.
func names(t *testing.T, s *Store) []string {
	t.Helper()
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			out = append(out, e.Name())
		}
	}
	return out
}

func expectNames(t *testing.T, s *Store, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := names(t, s); !slices.Equal(got, want) {
		t.Errorf("the store has %q, want %q", got, want)
	}
}

func TestAnImageOfTwoLayersIsImportedOnceByManyAtOnce(t *testing.T) {
	r := imageregistry.Start(t)
	digest, blobs := r.Push(t, "team/app:1", v1.Config{Env: []string{"A=b"}},
		imageregistry.Layer(t, map[string]string{"etc/a": "low", "etc/b": "low"}), imageregistry.Layer(t, map[string]string{"etc/a": "high"}))
	dir := t.TempDir()
	var all sync.WaitGroup
	var lock sync.Mutex
	var said []string
	for range 16 {
		all.Go(func() {
			s := &Store{Dir: dir} // as several services have it
			image, lines, err := get(t.Context(), t, s, r.Host)
			lock.Lock()
			defer lock.Unlock()
			said = append(said, lines...)
			if err != nil || image.Digest != digest || !strings.Contains(string(image.Config), `"A=b"`) {
				t.Errorf("an image is %+v, %v", image, err)
			}
		})
	}
	all.Wait()
	name := r.Host + "/team/app:1"
	if want := []string{"importing docker image: " + name, "imported docker image: " + name}; !slices.Equal(said, want) {
		t.Errorf("all together were told %q, want %q", said, want)
	}
	for _, blob := range blobs {
		if n := r.Requests("GET /v2/team/app/blobs/" + blob); n != 1 {
			t.Errorf("a layer was fetched %d times", n)
		}
	}
	// A start asks for the manifest, and for nothing else.
	if n := r.Requests("GET /v2/team/app/blobs/"); n != len(blobs)+1 {
		t.Errorf("%d blobs were fetched, of %d layers and a configuration", n, len(blobs))
	}
	s := &Store{Dir: dir}
	expectNames(t, s, digest+".json", digest+".sqsh")
	if a, b := content(t, s.path(digest, ".sqsh"), "etc/a"), content(t, s.path(digest, ".sqsh"), "etc/b"); a != "high" || b != "low" {
		t.Errorf("the image has %q and %q", a, b)
	}
}

func TestATagThatHasMovedIsAnotherImage(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	var digests []string
	for _, text := range []string{"old", "new"} {
		digest, _ := r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": text}))
		digests = append(digests, digest)
		image, _, err := get(t.Context(), t, s, r.Host)
		if err != nil || image.Digest != digest || content(t, image.Path, "x") != text {
			t.Errorf("the image is %+v, %v", image, err)
		}
	}
	expectNames(t, s, digests[0]+".json", digests[0]+".sqsh", digests[1]+".json", digests[1]+".sqsh")
}

func TestNobodyElseReadsImagesOrLocksThem(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	defer syscall.Umask(syscall.Umask(0))
	if _, _, err := get(t.Context(), t, s, r.Host); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(s.Dir, "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("there are %q, %v", files, err)
	}
	for _, file := range files {
		if status, err := os.Stat(file); err != nil || status.Mode() != 0o600 {
			t.Errorf("%s has the mode %v, %v", file, status.Mode(), err)
		}
	}
}

func TestAnImageWhoseConfigurationIsGoneIsImportedAgain(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	digest, _ := r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	for range 2 {
		image, said, err := get(t.Context(), t, s, r.Host)
		if err != nil || image == nil || len(said) != 2 {
			t.Fatalf("the image is %+v, it says %q, %v", image, said, err)
		}
		if err := os.Remove(s.path(digest, ".json")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheConfigurationIsThereBeforeTheImage(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	digest, _ := r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	// The configuration cannot get its name.
	if err := os.MkdirAll(filepath.Join(s.path(digest, ".json"), "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if image, _, err := get(t.Context(), t, s, r.Host); err == nil {
		t.Errorf("the image is %+v", image)
	}
	expectNames(t, s, digest+".json")
}

func TestAnImageThatIsThereStaysTheSameFile(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for _, text := range []string{"first", "second"} {
		file := filepath.Join(s.Dir, text)
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), place(file, s.path("d", ".sqsh"))); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(s.path("d", ".sqsh")); err != nil || string(got) != "first" {
		t.Errorf("the image has %q, %v: whoever has it mounted has lost it", got, err)
	}
}

func TestAnImportWaitsForItsTurnAndAnImageThatIsThereDoesNot(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	turns, running := 0, 0
	s.Turn = func(context.Context) (func(), error) {
		turns, running = turns+1, running+1
		return func() { running-- }, nil
	}
	for range 2 {
		if _, _, err := get(t.Context(), t, s, r.Host); err != nil {
			t.Fatal(err)
		}
	}
	if turns != 1 || running != 0 {
		t.Errorf("%d turns were taken, %d are not over", turns, running)
	}
	s.Dir = t.TempDir()
	s.Turn = func(context.Context) (func(), error) { return nil, context.Canceled }
	if _, _, err := get(t.Context(), t, s, r.Host); !errors.Is(err, context.Canceled) {
		t.Errorf("without a turn: %v", err)
	}
}

func TestADirectoryInThePlaceOfAnImageIsNone(t *testing.T) {
	r, s := imageregistry.Start(t), &Store{Dir: t.TempDir()}
	digest, _ := r.Push(t, "team/app:1", v1.Config{}, imageregistry.Layer(t, map[string]string{"x": "y"}))
	if err := os.Symlink("/etc/passwd", s.path(digest, ".sqsh")); err != nil {
		t.Fatal(err)
	}
	if image, _, err := get(t.Context(), t, s, r.Host); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("a link is the image %+v, %v", image, err)
	}
}
