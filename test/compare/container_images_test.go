// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// busybox is of the Debian package busybox-static.
const busybox = "/bin/busybox"

// commands are the programs of the images.
const commands = "sh true id ls cat chown df echo grep hostname ln mount ping pwd readlink rm sleep sort stat tail touch tr tty"

// testImages are images that several registries hand out.
type testImages struct {
	handler http.Handler
	digest  string // of lab/tools:1
}

// testRegistry is a registry, which the node of a site reaches by a name. It wants a login for images below private.
type testRegistry struct {
	host   string
	images *testImages
	// asked is closed when layers of the image lab/slow are asked for, and they are sent when release is.
	asked, release chan struct{}
	once           sync.Once
}

// newImages makes the images: lab/tools has programs, some files and a configuration; lab/bare has no configuration. The others have digests
// of their own.
func newImages(t *testing.T) *testImages {
	t.Helper()
	images := &testImages{handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	server := httptest.NewServer(images.handler)
	defer server.Close()
	config := v1.Config{
		Env: []string{"PATH=/bin:/opt/bin", "COLOR=image", "HOME=/of-image"}, WorkingDir: "/srv", Entrypoint: []string{"/bin/touch", "/entered"},
		Cmd: []string{"/bin/false"},
	}
	for repository, config := range map[string]v1.Config{
		"lab/tools": config, "lab/bare": {}, "lab/first": {User: "1"}, "lab/slow": {User: "2"}, "private/tools": {User: "3"},
	} {
		image := imageOf(t, files(t, repository), config)
		ref, err := name.NewTag(strings.TrimPrefix(server.URL, "http://")+"/"+repository+":1", name.Insecure)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
		if repository == "lab/tools" {
			digest, err := image.Digest()
			if err != nil {
				t.Fatal(err)
			}
			images.digest = digest.String()
		}
	}
	return images
}

// files returns the files of an image as an archive.
func files(t *testing.T, title string) []byte {
	t.Helper()
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatalf("%v; it is of the Debian package busybox-static", err)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(h tar.Header, content string) {
		h.Size = int64(len(content))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	for dir := range strings.FieldsSeq("bin etc opt opt/bin root run srv srv/inside usr var") {
		add(tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}, "")
	}
	add(tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o4755}, string(program))
	for command := range strings.FieldsSeq(commands) {
		add(tar.Header{Name: "bin/" + command, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, "")
	}
	for link, to := range map[string]string{"lib": "usr/lib", "lib64": "usr/lib64", "elsewhere": "/srv/inside", "outside": "../../mnt/data"} {
		add(tar.Header{Name: link, Typeflag: tar.TypeSymlink, Linkname: to}, "")
	}
	add(tar.Header{Name: "image", Typeflag: tar.TypeReg, Mode: 0o644}, title+"\n")
	add(tar.Header{Name: "opt/bin/only-here", Typeflag: tar.TypeReg, Mode: 0o755}, "#!/bin/sh\necho only here\n")
	add(tar.Header{Name: "etc/passwd", Typeflag: tar.TypeReg, Mode: 0o644}, "www:x:33:33::/srv:/bin/sh\n")
	add(tar.Header{Name: "srv/secret", Typeflag: tar.TypeReg, Mode: 0o600, Uid: 33, Gid: 33}, "of www\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// imageOf makes an image of one layer.
func imageOf(t *testing.T, layer []byte, config v1.Config) v1.Image {
	t.Helper()
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer)), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, made)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	return image
}

// serve starts a registry that ends with the test.
func (i *testImages) serve(t *testing.T, listener net.Listener) *testRegistry {
	t.Helper()
	r := &testRegistry{host: listener.Addr().String(), images: i, asked: make(chan struct{}), release: make(chan struct{})}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: r}}
	server.Start()
	t.Cleanup(server.Close)
	return r
}

// login is what opens the images below private.
const loginName, loginSecret = "alice", "of-the-registry"

// ServeHTTP is part of http.Handler.
func (r *testRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	user, secret, _ := request.BasicAuth()
	open := user == loginName && secret == loginSecret
	if !open && (request.URL.Path == "/v2/" || strings.HasPrefix(request.URL.Path, "/v2/private/")) {
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if strings.HasPrefix(request.URL.Path, "/v2/lab/slow/blobs/") {
		r.once.Do(func() { close(r.asked) })
		<-r.release
	}
	r.images.handler.ServeHTTP(w, request)
}
