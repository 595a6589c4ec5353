// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin is a manifest of krew: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels struct {
					OS   string `json:"os"`
					Arch string `json:"arch"`
				} `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// platforms returns those that the Makefile builds for.
func platforms(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^PLUGIN_PLATFORMS := (.*)$`).FindSubmatch(text)
	if found == nil {
		t.Fatal("the Makefile names no platforms")
	}
	return strings.Fields(string(found[1]))
}

// pack packs files in the place of programs, and returns the directory with the archives.
func pack(t *testing.T, version string) (string, error) {
	t.Helper()
	binaries, out := t.TempDir(), t.TempDir()
	for _, platform := range platforms(t) {
		if err := os.Mkdir(filepath.Join(binaries, platform), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(binaries, platform, "kubectl-slurm"), []byte("for "+platform), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	text, err := exec.CommandContext(t.Context(), "../../hack/plugin-archives", binaries, out, version, "https://example.com/"+version).CombinedOutput()
	if err != nil {
		return out, errors.New(string(text))
	}
	return out, nil
}

func TestTheManifestOfKrewIsWellFormed(t *testing.T) {
	out, err := pack(t, "v1.2.3-rc.1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "slurm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict(text, &p); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Metadata.Name != "slurm" || p.Spec.Version != "v1.2.3-rc.1" {
		t.Errorf("it is %s %s %s of version %s", p.APIVersion, p.Kind, p.Metadata.Name, p.Spec.Version)
	}
	if s := p.Spec.ShortDescription; s == "" || len(s) > 50 || strings.ContainsAny(s, "\n\r") || strings.HasSuffix(s, ".") {
		t.Errorf("krew does not take the short description %q", s)
	}
	if p.Spec.Description == "" || !strings.HasPrefix(p.Spec.Homepage, "https://") {
		t.Errorf("description %q, homepage %q", p.Spec.Description, p.Spec.Homepage)
	}
	var found []string
	for _, platform := range p.Spec.Platforms {
		name := platform.Selector.MatchLabels.OS + "-" + platform.Selector.MatchLabels.Arch
		found = append(found, name)
		archive, err := os.ReadFile(filepath.Join(out, path.Base(platform.URI)))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(archive)
		if platform.SHA256 != hex.EncodeToString(sum[:]) || !strings.HasPrefix(platform.URI, "https://example.com/v1.2.3-rc.1/kubectl-slurm_") {
			t.Errorf("%s: %s with digest %s, which is %x", name, platform.URI, platform.SHA256, sum)
		}
		checkArchive(t, archive, platform.Bin, "for "+name)
	}
	wanted := platforms(t)
	slices.Sort(found)
	slices.Sort(wanted)
	if !slices.Equal(found, wanted) || len(found) < 4 {
		t.Errorf("it is for %v, want %v", found, wanted)
	}
}

// checkArchive looks for the program and the license, which krew wants in the archive.
func checkArchive(t *testing.T, archive []byte, program, content string) {
	t.Helper()
	zip, err := gzip.NewReader(strings.NewReader(string(archive)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for reader := tar.NewReader(zip); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == program && (header.Mode != 0o755 || string(text) != content) {
			t.Errorf("%s has mode %o and is %q, want %q", program, header.Mode, text, content)
		}
	}
	if !slices.Equal(names, []string{program, "LICENSE"}) {
		t.Errorf("the archive has %v", names)
	}
}

func TestTheSameProgramsGiveTheSameArchives(t *testing.T) {
	var sums []string
	for range 2 {
		out, err := pack(t, "v0.1.0")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, "sha256sums.txt"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
	}
	if sums[0] != sums[1] || strings.Count(sums[0], "\n") != len(platforms(t)) {
		t.Errorf("the digests are\n%s and\n%s", sums[0], sums[1])
	}
}

func TestKrewTakesNoOtherVersion(t *testing.T) {
	for _, version := range []string{"1.2.3", "v1.2", "latest", "v1.2.3;id"} {
		if _, err := pack(t, version); err == nil || !strings.Contains(err.Error(), "is no version such as v1.2.3") {
			t.Errorf("%s: %v", version, err)
		}
	}
}
