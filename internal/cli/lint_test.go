// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/cli/lint"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

func TestLint(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"a_directory":                   {[]string{"lint", "-f", "testdata/manifests"}, 2},
		"a_file":                        {[]string{"lint", "-f", "testdata/manifests/controller.yaml", "-n", "other"}, 2},
		"a_file_yaml":                   {[]string{"lint", "-f", "testdata/manifests/twice.yaml", "-o", "yaml"}, 2},
		"keys_of_the_newest_release":    {[]string{"lint", "-f", "testdata/keys.yaml"}, 2},
		"keys_of_an_older_release":      {[]string{"lint", "-f", "testdata/keys.yaml", "--slurm-version", "24.11.5"}, 2},
		"keys_of_a_release_to_come":     {[]string{"lint", "-f", "testdata/keys.yaml", "--slurm-version", "27.05"}, 2},
		"what_is_no_release":            {[]string{"lint", "-f", "testdata/keys.yaml", "--slurm-version", "v26"}, 1},
		"samples_of_an_older_release":   {[]string{"lint", "-f", "../../config/samples", "--slurm-version", "24.11"}, 0},
		"samples":                       {[]string{"lint", "-f", "../../config/samples"}, 0},
		"samples_json":                  {[]string{"lint", "-f", "../../config/samples", "-o", "json"}, 0},
		"a_file_that_is_not_there":      {[]string{"lint", "-f", "testdata/nothing.yaml"}, 1},
		"a_directory_without_manifests": {[]string{"lint", "-f", "testdata/become"}, 1},
		"no_file":                       {[]string{"lint"}, 1},
		"help":                          {[]string{"lint", "--help"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, "lint/"+name+".txt", run(t.Context(), t, program(), tc.args...).check(t, tc.code).golden(tc.args...))
		})
	}
}

func TestLintReadsStandardInput(t *testing.T) {
	var out, errors bytes.Buffer
	p := program()
	p.Streams = genericiooptions.IOStreams{In: strings.NewReader(`{"apiVersion": "slinky.slurm.net/v1beta1", "kind": "Nodeset", "metadata": {"name": "x"}}`), Out: &out, ErrOut: &errors}
	code := cli.Run(t.Context(), p, []string{"lint", "-f", "-"})
	if want := "-: Nodeset/x: there is no kind Nodeset in slinky.slurm.net/v1beta1\n"; code != 2 || out.String() != want || errors.String() != "" {
		t.Errorf("exit code %d, it printed %q, want %q, and the errors %q", code, out.String(), want, errors.String())
	}
}

// Objects in different files see each other: the warning about a SlurmCluster that is not there goes when another file has it.
func TestFilesAreLookedAtTogether(t *testing.T) {
	set := lint.Source{Name: "set.yaml", Content: []byte("apiVersion: slurm.nebius.ai/v1alpha1\nkind: NodeSet\nmetadata: {name: w}\nspec: {clusterName: c}\n")}
	cluster := lint.Source{Name: "cluster.yaml", Content: []byte(readFile(t, "../../config/samples/slurmcluster-minimal.yaml"))}
	const missing = `SlurmCluster "c" does not exist yet`
	alone := check(t, set)
	if !strings.Contains(alone, missing) {
		t.Errorf("alone: %s", alone)
	}
	cluster.Content = bytes.Replace(cluster.Content, []byte("name: minimal"), []byte("name: c"), 1)
	if together := check(t, set, cluster); strings.Contains(together, missing) {
		t.Errorf("together: %s", together)
	}
}

// check returns what lint prints about files, a line each.
func check(t testing.TB, sources ...lint.Source) string {
	t.Helper()
	problems, err := lint.Check(t.Context(), "default", "26.05", sources)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, p := range problems {
		out.WriteString(p.String() + "\n")
	}
	return out.String()
}

// Whatever stands in a file, lint ends without a panic, and every problem names the file.
func FuzzLint(f *testing.F) {
	f.Add(readFile(f, "testdata/manifests/controller.yaml"))
	f.Add(readFile(f, "testdata/manifests/more/schema.yml"))
	f.Add("kind: List\nitems: [1, {apiVersion: slinky.slurm.net/v1beta1, kind: Controller, metadata: 3, spec: []}]")
	f.Fuzz(func(t *testing.T, text string) {
		problems, err := lint.Check(t.Context(), "default", "26.05", []lint.Source{{Name: "FILE", Content: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if p.File != "FILE" || p.Message == "" {
				t.Errorf("a problem does not say where or what it is: %+v", p)
			}
		}
	})
}
