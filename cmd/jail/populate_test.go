// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mounted mounts a tmpfs, as which the volume of a jail comes.
func mounted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Skipf("mounting a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func rootFileSystem(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"etc", "usr/bin"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/os-release"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPopulateTellsItsJob(t *testing.T) {
	var got []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+" "+string(body))
		_, _ = w.Write([]byte("{}"))
	}))
	defer server.Close()
	account := t.TempDir()
	for name, content := range map[string][]byte{
		"namespace": []byte("slurm"), "token": []byte("secret\n"),
		"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	} {
		if err := os.WriteFile(filepath.Join(account, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	jail := mounted(t)
	args := []string{
		"populate", "--root", jail, "--source", rootFileSystem(t), "--slurm", "/nowhere", "--mount-point", "/scratch",
		"--job", "c-populate-jail", "--server", server.URL, "--service-account", account,
	}
	if err := run(t.Context(), args, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	want := `PATCH /apis/batch/v1/namespaces/slurm/jobs/c-populate-jail Bearer secret {"metadata":{"annotations":{"coxswain.dev/populate-progress":"{\"files\":4,\"bytes\":3,\"seconds\":`
	if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], want) {
		t.Errorf("the API server got %q, want %s", got, want)
	}
	if _, err := os.Stat(filepath.Join(jail, "scratch")); err != nil {
		t.Error(err)
	}
}

func TestPopulateGoesOnWhenItsJobCannotBeTold(t *testing.T) {
	jail := mounted(t)
	var output bytes.Buffer
	o := populateOptions{root: jail, source: rootFileSystem(t), slurm: "/nowhere", job: "c-populate-jail", serviceAccount: "/nowhere", interval: time.Minute}
	if err := fill(t.Context(), o, slog.New(slog.NewTextHandler(&output, nil))); err != nil {
		t.Fatal(err)
	}
	if strings.Count(output.String(), "Could not write the progress") != 1 {
		t.Errorf("said %s", output.String())
	}
	if _, err := os.Stat(filepath.Join(jail, "etc/soperator-jail-populated")); err != nil {
		t.Error(err)
	}
}
