// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/coxswain-hpc/coxswain/internal/cli/lint"
)

const lintHelp = `Checks manifests of slurm.nebius.ai and slinky.slurm.net without a cluster. It applies the schema and the CEL rules of the CRDs, as the API
server does, and the rules of the webhook, including those for slurm.conf and partitions. All files are read together. Objects of other
groups are not checked; they are read where an object refers to them, such as a ConfigMap with a file of Slurm. A key of slurm.conf that
makes slurmctld of release --slurm-version exit is an error.

It prints FILE: KIND/NAME: FIELD: MESSAGE. A warning may be harmless, such as a reference to an object that is in none of the files.

Exit codes: 0 nothing is wrong, 1 an error, 2 something is wrong. Warnings alone are 0.`

const lintExamples = `  # All .yaml, .yml and .json files below a directory
  kubectl slurm lint -f clusters/

  # What Helm renders
  helm template demo | kubectl slurm lint -f -`

func (s *session) lintCommand(ctx context.Context) *cobra.Command {
	var output format
	var files []string
	var release string
	command := &cobra.Command{
		Use: "lint -f FILE|DIR|-", Short: "Check manifests without a cluster", Long: lintHelp, Example: lintExamples, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !releasePattern.MatchString(release) {
				return fmt.Errorf("%.40q is not a release of Slurm: give one such as %s", release, lint.NewestRelease)
			}
			sources, err := s.readAll(files)
			if err != nil {
				return err
			}
			problems, err := lint.Check(ctx, s.lintNamespace(), release, sources)
			if err != nil {
				return err
			}
			return s.printProblems(problems, output)
		},
	}
	output.addTo(command)
	command.Flags().StringArrayVarP(&files, "filename", "f", nil, "File, directory, or - for standard input. Required; can be given several times.")
	command.Flags().StringVar(&release, "slurm-version", lint.NewestRelease, "Release of Slurm that will read slurm.conf, such as 24.11.")
	_ = command.MarkFlagRequired("filename")
	return command
}

// releasePattern is a release of Slurm, with or without its patch level.
var releasePattern = regexp.MustCompile(`^\d{2}\.\d{2}(\.\d+)?$`)

// lintNamespace is the namespace of objects without one: --namespace, as with kubectl apply, but no kubeconfig is needed.
func (s *session) lintNamespace() string {
	if s.flags.Namespace != nil && *s.flags.Namespace != "" {
		return *s.flags.Namespace
	}
	return "default"
}

// read reads a file, the files below a directory, or standard input.
func (s *session) read(path string) ([]lint.Source, error) {
	if path == "-" {
		content, err := io.ReadAll(s.Streams.In)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return []lint.Source{{Name: path, Content: content}}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading manifests: %w", err)
	}
	paths := []string{path}
	if info.IsDir() {
		paths = nil
		err = filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
				paths = append(paths, path)
			}
			return err
		})
		if err == nil && len(paths) == 0 {
			err = errors.New("no .yaml, .yml or .json file is there")
		}
		if err != nil {
			return nil, fmt.Errorf("reading directory %s: %w", path, err)
		}
	}
	var out []lint.Source
	for _, path := range paths {
		content, err := os.ReadFile(path) //nolint:gosec // the user names it
		if err != nil {
			return nil, fmt.Errorf("reading manifests: %w", err)
		}
		out = append(out, lint.Source{Name: path, Content: content})
	}
	return out, nil
}

func (s *session) printProblems(problems []lint.Problem, output format) error {
	if problems == nil {
		problems = []lint.Problem{}
	}
	done, err := writeData(s.Streams.Out, output, map[string]any{"problems": problems})
	if err != nil {
		return err
	}
	wrong := false
	for _, p := range problems {
		wrong = wrong || !p.Warning
		if !done {
			fmt.Fprintln(s.Streams.Out, oneLine(p.String()))
		}
	}
	if wrong {
		return exit{code: exitWrong}
	}
	return nil
}
