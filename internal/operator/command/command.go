// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is what the command lines of the manager and of the webhook have in common: reading them, flags of the
// predecessors that have no effect here, lists, and how metrics are served.
package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"strings"
)

// Program is a program that takes flags and nothing else.
type Program struct {
	// Name is the name of the program, and About is what --help prints before the flags.
	Name, About string
	// Ignored are the predecessors' flags that have no meaning here, each with the reason; several lists count as one.
	Ignored []map[string]string
}

// Parse reads a command line without the program's name into the flags that bind declares. What has no effect is reported to
// output. flag.ErrHelp means that help was asked for and written to output.
func (p Program) Parse(args []string, output io.Writer, bind func(*flag.FlagSet)) error {
	fs := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	// Mistakes are reported by the error alone, without the list of all flags around it.
	fs.SetOutput(io.Discard)
	bind(fs)
	ignored := map[string]string{}
	for _, list := range p.Ignored {
		maps.Copy(ignored, list)
	}
	for name, why := range ignored {
		fs.Var(&anything{switches: isSwitch(name)}, name, "accepted without effect: "+why)
	}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fs.SetOutput(output)
			fmt.Fprintf(output, "%s\nUsage: %s [flags]\n\n", p.About, p.Name)
			fs.PrintDefaults()
		}
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: the %s takes flags only, see --help", fs.Arg(0), p.Name)
	}
	fs.Visit(func(f *flag.Flag) {
		if why, ok := ignored[f.Name]; ok {
			fmt.Fprintf(output, "--%s has no effect: %s\n", f.Name, why)
		}
	})
	return nil
}

// isSwitch reports whether a flag without effect stands without a value.
func isSwitch(name string) bool {
	switch name {
	case "enable-topology-controller", "leader-elect", "zap-devel":
		return true
	}
	return false
}

// anything is a flag that takes any value.
type anything struct{ switches bool }

// String is part of flag.Value.
func (*anything) String() string { return "" }

// Set is part of flag.Value.
func (*anything) Set(string) error { return nil }

// IsBoolFlag reports whether the flag may stand alone.
func (a *anything) IsBoolFlag() bool { return a.switches }

// List returns the entries of a comma-separated text, without blanks around them; nil when there are none.
func List(s string) []string {
	var out []string
	for entry := range strings.SplitSeq(s, ",") {
		if entry = strings.TrimSpace(entry); entry != "" {
			out = append(out, entry)
		}
	}
	return out
}

// BindList declares a flag with a comma-separated list.
func BindList(fs *flag.FlagSet, to *[]string, name, usage string) {
	fs.Func(name, usage, func(s string) error {
		*to = List(s)
		return nil
	})
}
