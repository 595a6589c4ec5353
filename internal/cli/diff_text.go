// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-hpc/coxswain/internal/cli/preview"
)

// contextLines is how many lines a difference shows before and behind it, as diff -u does.
const contextLines = 3

// compare prints how an object changes; of is what it is made from, and empty for one of a file. Either may be nil.
func (d *differ) compare(of string, before, after *unstructured.Unstructured) error {
	object := after
	if object == nil {
		object = before
	}
	name := object.GetKind() + "/" + object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	was, is, err := texts(before, after)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	if was == is {
		return nil
	}
	d.differs = true
	if of != "" {
		name += " (made from " + of + ")"
	}
	from, to := "now/"+name, "then/"+name
	if before == nil {
		from = "/dev/null"
	}
	if after == nil {
		to = "/dev/null"
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: lines(was), B: lines(is), FromFile: from, ToFile: to, Context: contextLines,
	})
	if err != nil {
		return fmt.Errorf("comparing %s: %w", name, err)
	}
	if _, err := io.WriteString(d.Streams.Out, coloured(harmless(text), d.Colour)); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// texts returns two objects in YAML; nil becomes empty. Of Secrets it only shows which values differ.
func texts(before, after *unstructured.Unstructured) (was, is string, err error) {
	pair := [2]*unstructured.Unstructured{}
	for i, u := range []*unstructured.Unstructured{before, after} {
		if u != nil {
			pair[i] = plainObject(u)
		}
	}
	hideSecrets(pair[0], pair[1])
	var out [2]string
	for i, u := range pair {
		if u == nil {
			continue
		}
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return "", "", err
		}
		out[i] = string(text)
	}
	return out[0], out[1], nil
}

// hideSecrets hides the values of a Secret before and after a change, and marks those that differ.
func hideSecrets(before, after *unstructured.Unstructured) {
	var differ []string
	if before != nil && after != nil && before.GetKind() == "Secret" {
		was, _, _ := unstructured.NestedMap(before.Object, "data")
		is, _, _ := unstructured.NestedMap(after.Object, "data")
		for key, value := range was {
			if other, ok := is[key]; ok && !reflect.DeepEqual(value, other) {
				differ = append(differ, key)
			}
		}
	}
	for _, u := range []*unstructured.Unstructured{before, after} {
		if u != nil {
			preview.Hide(u)
		}
	}
	for _, key := range differ {
		_ = unstructured.SetNestedField(before.Object, preview.Hidden+" (now)", "data", key)
		_ = unstructured.SetNestedField(after.Object, preview.Hidden+" (then)", "data", key)
	}
}

// lines returns the lines of a text, each with its line break.
func lines(text string) []string {
	out := strings.SplitAfter(text, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// coloured colours what a difference adds and removes.
func coloured(text string, coloured bool) string {
	if !coloured {
		return text
	}
	var out strings.Builder
	for _, line := range lines(text) {
		line, end := strings.TrimSuffix(line, "\n"), "\n"
		c := cell{text: line}
		switch {
		case strings.HasPrefix(line, "+"):
			c.colour = green
		case strings.HasPrefix(line, "-"):
			c.colour = red
		case strings.HasPrefix(line, "@@"):
			c.colour = yellow
		}
		out.WriteString(painted(c, true) + end)
	}
	return out.String()
}
