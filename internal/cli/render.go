// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/cli/lint"
	"github.com/coxswain-hpc/coxswain/internal/cli/preview"
)

// notKnown is what neither render nor diff can show.
const notKnown = `What is not known without the cluster:
* Secrets. Their values are "***", and digests of keys on pods are "unknown"; so the hash of a worker's revision differs from the real one.
* The flags of the operator. Give --image-registry, --image-tag and --cluster-domain the values that the operator has.
* What runs. One worker is shown for each NodeSet, and not which workers are being removed ("kubectl slurm plan" shows that). The jail is
  assumed to be filled, and the kinds of other operators to be installed.
* The size of Slurm's table of nodes, MaxNodeCount, where it has grown.
* What admission webhooks of others change, and defaults that the API server fills into pods and Services.
* What the operator makes from ActiveChecks, JailedConfigs and NodeSetPowerStates.`

const renderHelp = `Shows the objects that the operator makes from manifests: the components of a SlurmCluster, and for each component the ConfigMaps,
Services, workloads and pods. No kubeconfig is read.

All files are read together. ConfigMaps that the objects refer to must be in the files as well.

` + notKnown + `

Owner references, which the operator adds, are left out. Notes and mistakes are printed on standard error.

Exit codes: 0 nothing is wrong, 1 an error, 2 the operator would refuse an object.`

const renderExamples = `  # Which objects there will be
  kubectl slurm render -f cluster.yaml

  # What is in them
  kubectl slurm render -f cluster.yaml -o yaml

  # slurm.conf
  kubectl slurm render -f cluster.yaml -o json | jq -r '.items[] | select(.metadata.name == "demo-config") | .data["slurm.conf"]'`

// renderFlags are what the operator uses where an object names nothing.
type renderFlags struct {
	files                        []string
	registry, tag, clusterDomain string
}

func (f *renderFlags) addTo(command *cobra.Command) {
	command.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "File, directory, or - for standard input. Required; can be given several times.")
	_ = command.MarkFlagRequired("filename")
	command.Flags().StringVar(&f.registry, "image-registry", "ghcr.io/coxswain-hpc", "Value of the operator's flag of the same name.")
	command.Flags().StringVar(&f.tag, "image-tag", "26.05", "Value of the operator's flag of the same name.")
	command.Flags().StringVar(&f.clusterDomain, "cluster-domain", "cluster.local", "Value of the operator's flag of the same name.")
}

func (f *renderFlags) input(objects []client.Object) preview.Input {
	return preview.Input{Objects: objects, Registry: f.registry, Tag: f.tag, ClusterDomain: f.clusterDomain}
}

func (s *session) renderCommand(ctx context.Context) *cobra.Command {
	var output format
	var flags renderFlags
	command := &cobra.Command{
		Use: "render -f FILE|DIR|-", Short: "Show what the operator makes from manifests", Long: renderHelp, Example: renderExamples, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			sources, err := s.readAll(flags.files)
			if err != nil {
				return err
			}
			objects, problems, err := lint.Read(ctx, s.lintNamespace(), sources)
			if err != nil {
				return err
			}
			out, err := preview.Make(ctx, flags.input(objects))
			if err != nil {
				return err
			}
			if err := s.printMade(out.Made, output); err != nil {
				return err
			}
			return s.complain(problems, out)
		},
	}
	output.addTo(command)
	flags.addTo(command)
	return command
}

// readAll reads all that flag -f names.
func (s *session) readAll(files []string) ([]lint.Source, error) {
	var out []lint.Source
	for _, file := range files {
		more, err := s.read(file)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// printMade prints objects as a table, as YAML documents, or as a list in JSON.
func (s *session) printMade(made []preview.Made, output format) error {
	switch output {
	case formatJSON:
		items := []any{}
		for _, m := range made {
			items = append(items, m.Object.Object)
		}
		_, err := writeData(s.Streams.Out, output, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
		return err
	case formatYAML:
		for _, m := range made {
			text, err := document(m)
			if err != nil {
				return err
			}
			if _, err := s.Streams.Out.Write(append([]byte("---\n"), text...)); err != nil {
				return fmt.Errorf("writing: %w", err)
			}
		}
		return nil
	case formatTable, formatWide:
	}
	out := table{header: []string{"OBJECT", "MADE FROM"}}
	if output == formatWide {
		out.header = []string{"OBJECT", "MADE FROM", "NAMESPACE", "API VERSION"}
	}
	for _, m := range made {
		row := []cell{{text: m.Object.GetKind() + "/" + m.Object.GetName()}, {text: m.Of}}
		if output == formatWide {
			row = append(row, cell{text: m.Object.GetNamespace()}, cell{text: m.Object.GetAPIVersion()})
		}
		out.rows = append(out.rows, row)
	}
	return out.write(s.Streams.Out, s.Colour)
}

// document returns an object in YAML, with a comment that names what it is made from.
func document(m preview.Made) ([]byte, error) {
	text, err := yaml.Marshal(m.Object.Object)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", m.Object.GetKind(), m.Object.GetName(), err)
	}
	return append([]byte("# made from "+m.Of+"\n"), text...), nil
}

// complain prints notes and mistakes on standard error. With mistakes the error is that something is wrong.
func (s *session) complain(problems []lint.Problem, out preview.Output) error {
	var text bytes.Buffer
	for _, note := range out.Notes {
		fmt.Fprintln(&text, "Note:", oneLine(note))
	}
	for _, p := range problems {
		fmt.Fprintln(&text, "Mistake:", oneLine(p.String()))
	}
	for _, mistake := range out.Mistakes {
		fmt.Fprintln(&text, "Mistake:", oneLine(mistake))
	}
	lines := strings.SplitAfter(text.String(), "\n")
	if _, err := io.WriteString(s.Streams.ErrOut, strings.Join(slices.Compact(lines), "")); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	if len(problems) > 0 || len(out.Mistakes) > 0 {
		return exit{code: exitWrong}
	}
	return nil
}
