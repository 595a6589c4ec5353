// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		err  string
		said string
	}{
		"no command is given":                      {err: "no command is given", said: "Usage: jail COMMAND"},
		"the command is unknown":                   {args: []string{"moutn"}, err: `there is no command "moutn"`, said: "mount"},
		"help is asked for":                        {args: []string{"--help"}, err: flag.ErrHelp.Error(), said: "users"},
		"help of a command is asked for":           {args: []string{"mount", "--help"}, err: flag.ErrHelp.Error(), said: "-upper directory"},
		"a word too many is given":                 {args: []string{"users", "now"}, err: `unexpected argument "now"`},
		"lists are given for an image's own files": {args: []string{"users", "--listed", "/lists"}, err: "--listed needs --extrausers"},
		"no jail and no lists are given":           {args: []string{"users", "--root", "", "--extrausers", "/users"}, err: "--root is empty, and there is no --listed"},
		"the lists are not mounted":                {args: []string{"users", "--root", "", "--extrausers", "/users", "--listed", "/nowhere"}, err: "opening the lists of users: open /nowhere"},
		"the home is that of nobody":               {args: []string{"home", "--root", "/", "--path", "/home/nobody"}, err: "making the home /home/nobody: uid 0, gid 0 are not a user's"},
		"a bind is no path":                        {args: []string{"mount", "--bind", "spool"}, err: "must be absolute"},
		"the jail is not mounted":                  {args: []string{"mount", "--root", "/nowhere"}, err: "nothing is mounted at /nowhere, where the volume of the jail should be"},
	} {
		t.Run(name, func(t *testing.T) {
			var output bytes.Buffer
			err := run(t.Context(), test.args, &output)
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%v, want %s", err, test.err)
			}
			if !strings.Contains(output.String(), test.said) {
				t.Errorf("said %q, want %q in it", output.String(), test.said)
			}
		})
	}
	if err := run(t.Context(), []string{"help"}, &bytes.Buffer{}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("help: %v", err)
	}
}

// TestTheAccountsOfTheImageAreThoseOfTheFirstStart has a second start, after the files have got users of the jail.
func TestTheAccountsOfTheImageAreThoseOfTheFirstStart(t *testing.T) {
	etc, kept := t.TempDir(), filepath.Join(t.TempDir(), "image")
	write := func(content string) {
		for _, name := range []string{"passwd", "group", "shadow"} {
			if err := os.WriteFile(filepath.Join(etc, name), []byte(content+name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("image ")
	for range 2 {
		got, err := ownAccounts(etc, kept)
		if err != nil {
			t.Fatal(err)
		}
		if got.Passwd != "image passwd" || got.Group != "image group" || got.Shadow != "image shadow" {
			t.Errorf("%+v", got)
		}
		write("with the jail ")
	}
}
