// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// imageRegistry is Debian's docker-registry on this machine, which pods reach.
type imageRegistry struct {
	// host is its name in images. image is one that it has: Debian, with a file and a variable.
	host, image string
	log         string
}

// startRegistry starts a registry that ends with the test.
func (s *scene) startRegistry(t *testing.T) *imageRegistry {
	t.Helper()
	if s.Host == "" {
		t.Skip("pods of this Kubernetes do not reach a registry on this machine")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(s.Host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	r := &imageRegistry{host: listener.Addr().String(), log: filepath.Join(t.TempDir(), "registry.log")}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config.yml")
	text := fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: '%s'}\n", t.TempDir(), r.host)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(r.log)
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.CommandContext(t.Context(), "docker-registry", "serve", config)
	daemon.Stdout, daemon.Stderr = log, log
	if err := daemon.Start(); err != nil {
		t.Fatalf("%v; \"make deps\" installs the Debian package docker-registry", err)
	}
	t.Cleanup(func() { _, _, _ = daemon.Process.Kill(), daemon.Wait(), log.Close() })
	eventually(t, soon, "the registry to answer", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.host+"/v2/", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
	r.push(t)
	return r
}

// push gives the registry the image of the jail, which is Debian, with one layer more.
func (r *imageRegistry) push(t *testing.T) {
	t.Helper()
	from, err := name.NewTag(stage.images.Registry + "/jail:" + stage.images.Tag)
	if err != nil {
		t.Fatal(err)
	}
	image, err := tarball.ImageFromPath(stage.images.Archive("slurm"), &from)
	if err != nil {
		t.Fatal(err)
	}
	const text = "of the image\n"
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "only-here", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	added, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.AppendLayers(image, added); err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.Config(image, v1.Config{Env: []string{"PATH=/usr/bin:/bin", "GREETING=hello"}, WorkingDir: "/usr"}); err != nil {
		t.Fatal(err)
	}
	to, err := name.NewTag(r.host+"/debian/files:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(to, image, remote.WithContext(t.Context())); err != nil {
		t.Fatal(err)
	}
	r.image = r.host + "#debian/files:1"
}

var fetch = regexp.MustCompile(`"GET /v2/debian/files/blobs/`)

// fetches is how many blobs the registry has handed out.
func (r *imageRegistry) fetches(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(r.log)
	if err != nil {
		t.Fatal(err)
	}
	return len(fetch.FindAll(text, -1))
}

// runsContainers runs steps and a batch script in containers, as one who is logged in.
func (u *user) runsContainers(t *testing.T, r *imageRegistry) {
	const both = "srun --nodes=2 --container-image="
	look := " sh -c 'echo $GREETING $(cat /only-here) $(id -un) $(pwd); touch /written'"
	want := "hello of the image alice /usr"
	if got := u.runs(t, both+r.image+look); got != want+"\n"+want {
		t.Errorf("a step of two tasks prints %q", got)
	}
	fetched := r.fetches(t)
	if fetched == 0 {
		t.Error("nobody has fetched the image")
	}
	if got := u.runs(t, both+r.image+" --ntasks=8 --overcommit cat /only-here | sort | uniq -c"); got != "8 of the image" {
		t.Errorf("eight tasks print %q", got)
	}
	if again := r.fetches(t); again != fetched {
		t.Errorf("the image was fetched again: %d blobs, and then %d", fetched, again)
	}

	job := u.submits(t, "cat /only-here; echo $GREETING\n", "--container-image="+r.image, "--output=in-container.out", "--wait")
	if got := u.runs(t, "cat in-container.out"); got != "of the image\nhello" {
		t.Errorf("the script of job %d prints %q", job, got)
	}

	one := "srun --ntasks=1 --container-image=" + r.image + " "
	for _, step := range []struct{ name, command, want string }{
		{"root of the container is the user outside", one + "--container-remap-root --container-mounts=$HOME:/data sh -c 'id -u; touch /data/of-root'; stat -c %U of-root", "0\nalice"},
		{"a mount is read-only if it is to be", one + "--container-mounts=$HOME:/data:ro sh -c 'touch /data/x || echo refused' 2>/dev/null", "refused"},
		{"an exit code is that of the step", one + "sh -c 'exit 7' 2>/dev/null; echo $?", "7"},
		{"nobody else's file is changed", "srun --ntasks=1 sh -c 'test -e /written || test -e /only-here || echo none'", "none"},
		{"what the registry does not have starts nothing", "srun --ntasks=1 --container-image=" + r.host + "#no/such:1 echo started 2>/dev/null; test $? != 0 && echo failed", "failed"},
	} {
		if got := u.runs(t, step.command); got != step.want {
			t.Errorf("%s: %q, want %q", step.name, got, step.want)
		}
	}
}

// runsContainersInJail runs a step in containers on workers that have a jail, by Slurm's commands of slurmctld's pod. See runsInEachPartition
// for the time that srun has.
func (s *scene) runsContainersInJail(t *testing.T, r *imageRegistry) {
	const look = "echo $GREETING $(cat /only-here) $SLURM_PROCID; test ! -e /etc/soperator-jail-populated"
	eventually(t, soon, "a step to run in containers", func(ctx context.Context) error {
		out, err := s.slurm(ctx, "srun", "--nodes=2", "--immediate=5", "--label", "--container-image="+r.image, "sh", "-c", look)
		if err == nil && (!strings.Contains(out, "0: hello of the image 0") || !strings.Contains(out, "1: hello of the image 1")) {
			return fmt.Errorf("it prints %q", out)
		}
		return err
	})
}
