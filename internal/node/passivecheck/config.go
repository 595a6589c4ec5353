// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// maxConfig is how large a file of the configuration may be, in bytes: a ConfigMap holds no more.
const maxConfig = 1 << 20

// platformForm is the form of platforms.
var platformForm = regexp.MustCompile(`^(any|CPU|[1-9][0-9]?x(GPU|H100|H200|B200|B300|GB300))$`)

// Parse reads one file of the configuration: a list of checks as checks.json has it, or a single one. builtin reports which built-in
// checks there are. A check with a mistake is left out and named in the error; the others are returned nevertheless.
func Parse(data []byte, builtin func(name string) bool) ([]Check, error) {
	if len(data) > maxConfig {
		return nil, fmt.Errorf("it has more than %d bytes", maxConfig)
	}
	var entries []json.RawMessage
	switch trimmed := bytes.TrimSpace(data); {
	case len(trimmed) == 0:
		return nil, errors.New("it is empty: write a list of checks, or one check")
	case trimmed[0] == '[':
		if err := json.Unmarshal(data, &entries); err != nil {
			return nil, fmt.Errorf("reading the list of checks: %w", err)
		}
	default:
		entries = []json.RawMessage{trimmed}
	}
	var checks []Check
	var mistakes []error
	for i, entry := range entries {
		check, err := parseOne(entry, builtin)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("check %d (%s): %w", i+1, check.Name, err))
			continue
		}
		checks = append(checks, check)
	}
	return checks, errors.Join(mistakes...)
}

func parseOne(entry []byte, builtin func(string) bool) (Check, error) {
	check := Check{
		Name: defaultName, Platforms: []string{anyValue}, Contexts: []string{anyValue}, NodeStates: []string{anyValue},
		OnFail: reactNot, OnOK: reactNot, ReasonBase: defaultReasonBase, ReasonAppendDetails: true, Log: defaultLog,
	}
	decoder := json.NewDecoder(bytes.NewReader(entry))
	decoder.DisallowUnknownFields()
	if string(entry) == "null" {
		return check, errors.New("it is null; write {} for a check that always passes")
	}
	if err := decoder.Decode(&check); err != nil {
		return check, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return check, errors.New("something follows behind it")
	}
	if check.Command == "" && check.Builtin == "" {
		check.Command = defaultCommand
	}
	return check, check.validate(builtin)
}

// validate finds all mistakes of a check that can be seen without a node.
func (c Check) validate(builtin func(string) bool) error {
	var mistakes []error
	refuse := func(when bool, format string, args ...any) {
		if when {
			mistakes = append(mistakes, fmt.Errorf(format, args...))
		}
	}
	refuse(c.Name == "" || strings.ContainsAny(c.Name, "/\n\x00") || strings.HasPrefix(c.Name, "."), "name %q cannot be part of a file's name", c.Name)
	refuse(c.Command != "" && c.Builtin != "", "it has both a command and a builtin; remove one")
	refuse(strings.ContainsRune(c.Command, 0), "command has a zero byte")
	refuse(c.Builtin != "" && !builtin(c.Builtin), "there is no built-in check %q", c.Builtin)
	mistakes = append(mistakes,
		list("platforms", c.Platforms, platformForm.MatchString, "any, CPU, or a number with xGPU, xH100, xH200, xB200, xB300 or xGB300"),
		list("contexts", c.Contexts, oneOf(anyValue, noContext, string(Prolog), string(Epilog), string(HealthProgram)), "any, none, prolog, epilog or hc_program"),
		list("node_states", c.NodeStates, oneOf(anyValue, stateDrain), "any or drain"),
		list("on_fail", []string{c.OnFail}, oneOf(reactNot, reactDrain, reactComment), "none, drain or comment"),
		list("on_ok", []string{c.OnOK}, oneOf(reactNot, reactUndrain, reactUncomment), "none, undrain or uncomment"))
	known := oneOf(EnvPlatformTag, EnvPlatformTags, EnvNodeStateFlags, EnvNodeReason, EnvNodeComment, EnvNodeRealMemory, EnvJobAllocMemory)
	for _, name := range c.NeedEnv {
		refuse(!known(name), "need_env: check-runner does not know %q", name)
	}
	refuse((c.OnFail != reactNot || c.OnOK != reactNot) && strings.TrimSpace(c.ReasonBase) == "",
		"reason_base is empty: drains of this check could not be told apart from others")
	refuse(!fs.ValidPath(c.Log) || strings.ContainsAny(c.Log, "\n\x00"), "log %q does not stay below the directory for outputs", c.Log)
	return errors.Join(mistakes...)
}

func oneOf(values ...string) func(string) bool {
	return func(v string) bool { return slices.Contains(values, v) }
}

func list(field string, values []string, valid func(string) bool, say string) error {
	if len(values) == 0 {
		return fmt.Errorf("%s is an empty list; write %s", field, say)
	}
	for _, v := range values {
		if !valid(v) {
			return fmt.Errorf("%s: %q is not known; write %s", field, v, say)
		}
	}
	return nil
}
