// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is the value of flag -o.
type format string

const (
	formatTable format = ""
	formatWide  format = "wide"
	formatJSON  format = "json"
	formatYAML  format = "yaml"
)

// addTo adds flag -o to a command.
func (f *format) addTo(command *cobra.Command) {
	formats := []string{string(formatJSON), string(formatYAML), string(formatWide)}
	command.Flags().StringVarP((*string)(f), "output", "o", "", "Output format: json, yaml or wide.")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	command.PreRunE = func(*cobra.Command, []string) error {
		if *f != formatTable && !slices.Contains(formats, string(*f)) {
			return fmt.Errorf("--output is %q: it must be json, yaml or wide", *f)
		}
		return nil
	}
}

// writeData writes a value as JSON or YAML; done is false for another format.
func writeData(w io.Writer, f format, value any) (done bool, err error) {
	var text []byte
	switch f {
	case formatJSON:
		text, err = json.MarshalIndent(value, "", "  ")
		text = append(text, '\n')
	case formatYAML:
		text, err = yaml.Marshal(value)
	case formatTable, formatWide:
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("encoding the output: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return true, fmt.Errorf("writing: %w", err)
	}
	return true, nil
}
