// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package batch reads the #SBATCH lines of a batch script. sbatch does that before it submits a script, and slurmrestd does not:
// without this package a script that is submitted by REST would run with neither its time limit nor its GPUs.
//
// It follows sbatch(1), and refuses what it does not understand: each error names the line and the option. Test/compare submits
// scripts by sbatch and by this package, and compares the jobs.
package batch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// maxScript bounds a script, in bytes: slurmctld takes no longer one by default (max_script_size).
const maxScript = 4 << 20

// prefix begins a line with options.
const prefix = "#SBATCH"

// Parse returns the Submission of a script with the options of its #SBATCH lines, and with those of variables, by name, which win over the
// lines, as sbatch(1), INPUT ENVIRONMENT VARIABLES, has it. Variables that sbatch does not read are left out. Its errors are joined.
func Parse(script string, variables map[string]string) (rest.Submission, error) {
	s := rest.Submission{Script: script}
	switch {
	case strings.TrimSpace(script) == "":
		return s, errors.New("the script is empty")
	case len(script) > maxScript:
		return s, fmt.Errorf("the script has more than %d MiB", maxScript>>20)
	case !strings.HasPrefix(script, "#!"):
		return s, errors.New("line 1: the first line must be #! and the path of an interpreter")
	case strings.Contains(script, "\r\n"):
		return s, errors.New("the script has DOS line breaks (\\r\\n)")
	case strings.ContainsRune(script, 0):
		return s, errors.New("the script has a NUL character")
	}
	var errs []error
	number := 0
	for line := range strings.Lines(script) {
		number++
		line = strings.TrimRight(line, "\n")
		if text := strings.TrimLeft(line, " \t"); text != "" && text[0] != '#' {
			break // a command
		}
		if err := readLine(&s, line); err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", number, err))
		}
	}
	errs = append(errs, readVariables(&s, variables)...)
	return s, errors.Join(append(errs, exclude(s)...)...)
}

// exclude returns an error for each pair of options that exclude each other.
func exclude(s rest.Submission) (errs []error) {
	if s.MemoryPerNode != nil && s.MemoryPerCPU != nil {
		errs = append(errs, errors.New("--mem and --mem-per-cpu exclude each other"))
	}
	if s.GPUsPerNode != "" && slices.ContainsFunc(s.Gres, rest.IsGPU) {
		errs = append(errs, errors.New("--gpus-per-node and --gres=gpu exclude each other"))
	}
	return errs
}

// readLine reads one line before the first command.
func readLine(s *rest.Submission, line string) error {
	for _, other := range []string{"#PBS", "#BSUB"} {
		if strings.HasPrefix(line, other) {
			return fmt.Errorf("%s lines are not supported, write %s", other, prefix)
		}
	}
	rest, ok := strings.CutPrefix(line, prefix)
	if !ok {
		return nil
	}
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return fmt.Errorf("there must be a blank after %s", prefix)
	}
	words, err := split(rest)
	if err != nil {
		return err
	}
	return readOptions(s, words)
}

// split splits a line into words, as sbatch does: blanks in quotes belong to a word, a backslash makes the next character literal, and
// an unquoted # begins a comment.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != '\'' && c == '\\':
			if i++; i == len(line) {
				return nil, errors.New("it ends with a backslash")
			}
			word.WriteByte(line[i])
			inWord = true
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		case c == '#' && !inWord:
			return words, nil
		default:
			word.WriteByte(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

// readOptions reads the options of one line. Of several for the same thing the last one counts.
func readOptions(s *rest.Submission, words []string) error {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		o, name, value, given, err := find(word)
		if err != nil {
			return err
		}
		switch {
		case o.takes == nothing && given:
			return fmt.Errorf("%s takes no value", name)
		case o.takes == something && !given && len(words) == 0:
			return fmt.Errorf("%s needs a value", name)
		case o.takes == something && !given:
			value, words = words[0], words[1:]
		}
		if err := o.set(s, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// find returns the option of a word, and the value if the word has one.
func find(word string) (o option, name, value string, given bool, err error) {
	if long, ok := strings.CutPrefix(word, "--"); ok {
		long, value, given = strings.Cut(long, "=")
		for _, o := range options() {
			if o.long == long {
				return o, "--" + long, value, given, nil
			}
		}
		return option{}, "", "", false, fmt.Errorf("option --%s is not supported", long)
	}
	if len(word) < 2 || word[0] != '-' {
		return option{}, "", "", false, fmt.Errorf("%q is no option", word)
	}
	for _, o := range options() {
		if o.short != 0 && o.short == word[1] {
			return o, word[:2], word[2:], len(word) > 2, nil
		}
	}
	return option{}, "", "", false, fmt.Errorf("option -%c is not supported", []rune(word[1:])[0])
}
