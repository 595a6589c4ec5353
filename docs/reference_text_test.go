// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxRows is how many rows one table may have. Objects with more below them get sections of their own.
const maxRows = 25

var (
	defaultText = regexp.MustCompile(`(?:^| )Default: (.+?)\.( |$)`)
	webAddress  = regexp.MustCompile(`(?:(?:More info: |See |Slurm: )(?:([^.:,]+), )?)?(https://[^\s,;]+[\w/#])`)
	special     = regexp.MustCompile("[\\\\`*_\\[\\]|<>]")
)

// describe returns the text of a field and its default. Where the text names the default, that is taken, because it includes defaults
// that the operator computes.
func describe(property apiextensionsv1.JSONSchemaProps) (text, fallback string) {
	text = strings.Join(strings.Fields(property.Description), " ")
	if match := defaultText.FindStringSubmatchIndex(text); match != nil {
		fallback = escaped(text[match[2]:match[3]])
		text = text[:match[0]] + " " + text[match[4]:]
	} else if property.Default != nil {
		fallback = "`" + string(property.Default.Raw) + "`"
	}
	return linked(strings.Join(strings.Fields(text), " ")), fallback
}

// first returns the first sentence of a text of Kubernetes, which has documentation of its own.
func first(text string) string {
	sentence, rest, more := strings.Cut(text, ". ")
	if link := strings.Index(rest, "[Kubernetes]("); link >= 0 {
		return sentence + ". " + rest[link:]
	}
	if more {
		sentence += "."
	}
	return sentence
}

// linked returns text as Markdown, with links in place of addresses.
func linked(text string) string {
	var out strings.Builder
	for {
		match := webAddress.FindStringSubmatchIndex(text)
		if match == nil {
			out.WriteString(escaped(text))
			return out.String()
		}
		out.WriteString(escaped(text[:match[0]]))
		address := text[match[4]:match[5]]
		title := titleOf(address)
		if match[2] >= 0 {
			title = text[match[2]:match[3]]
		}
		fmt.Fprintf(&out, "[%s](%s)", escaped(title), address)
		text = text[match[1]:]
	}
}

// titleOf returns a short text for a link: the option of Slurm or the site.
func titleOf(address string) string {
	if _, option, ok := strings.Cut(address, "#OPT_"); ok {
		return option
	}
	if site, _, _ := strings.Cut(strings.TrimPrefix(address, "https://"), "/"); site == "kubernetes.io" {
		return "Kubernetes"
	}
	file := address[strings.LastIndex(address, "/")+1:]
	file, _, _ = strings.Cut(file, "#")
	return strings.TrimSuffix(file, ".html")
}

// escaped is text without anything that Markdown would read as its own.
func escaped(text string) string {
	return special.ReplaceAllStringFunc(text, func(s string) string {
		switch s {
		case "<":
			return "&lt;"
		case ">":
			return "&gt;"
		}
		return `\` + s
	})
}

// ended ends a text, so that a sentence can follow.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, ")") {
		return " "
	}
	return ". "
}

// limits returns what a value has to keep to, as sentences.
func limits(property apiextensionsv1.JSONSchemaProps) string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)+".") }
	if len(property.Enum) > 0 {
		var values []string
		for _, value := range property.Enum {
			var word any
			if json.Unmarshal(value.Raw, &word) == nil {
				values = append(values, fmt.Sprintf("`%v`", word))
			}
		}
		add("One of %s", strings.ReplaceAll(strings.Join(values, ", "), "``", "empty"))
	}
	switch least, most := property.Minimum, property.Maximum; {
	case least != nil && most != nil:
		add("From %s to %s", number(*least), number(*most))
	case least != nil:
		add("At least %s", number(*least))
	case most != nil:
		add("At most %s", number(*most))
	}
	if property.MaxLength != nil {
		add("At most %d characters", *property.MaxLength)
	}
	if property.Pattern != "" {
		add("Matches `%s`", strings.ReplaceAll(property.Pattern, "|", `\|`))
	}
	return strings.Join(out, " ")
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// readers returns the pages that describe what a kind is for.
func readers() map[string]string {
	return map[string]string{
		"Accounting.v1beta1": "users/accounting.md", "Controller.v1beta1": "users/controller.md", "LoginSet.v1beta1": "users/loginset.md",
		"NodeSet.v1beta1": "users/nodeset.md", "RestApi.v1beta1": "users/restapi.md", "Token.v1beta1": "users/token.md",
		"NodeSet.v1alpha1": "users/slurmcluster-workers.md", "SlurmCluster.v1": "users/slurmcluster.md",
	}
}

// writer writes the page of one kind.
type writer struct {
	strings.Builder

	// idle reports whether a path has no effect.
	idle func(path string) bool
}

// referencePage returns the page of a kind. The kind has no effect at all where idle is empty, and fields of the API group slinky.slurm.net
// are not in that list.
func referencePage(t *testing.T, k kind, idle []string) string {
	t.Helper()
	group, version := k.crd.Spec.Group, k.version.Name
	w := writer{idle: func(path string) bool {
		return group == nebiusGroup && slices.ContainsFunc(idle, func(above string) bool { return below(path, above) })
	}}
	object := *k.version.Schema.OpenAPIV3Schema
	fmt.Fprintf(&w, "# %s (%s/%s)\n\n<!-- Generated from the CRD: go test ./docs -update -->\n\n%s\n", k.name(), group, version,
		linked(strings.Join(strings.Fields(object.Description), " ")))
	if page := readers()[k.name()+"."+version]; page != "" {
		fmt.Fprintf(&w, "\n[What it is for](../../%s)\n", page)
	}
	names := k.crd.Spec.Names
	fmt.Fprintf(&w, "\n| in kubectl | scope |\n|---|---|\n| `%s.%s`%s | %s |\n", names.Plural, group,
		shortNames(names.ShortNames), k.crd.Spec.Scope)
	if notServed(group, idle) {
		w.WriteString("\nNothing acts on this kind in this version: no field has an effect, and condition `Ready` is False with reason " +
			"`NotServed`.\n")
		w.idle = func(string) bool { return false }
	}
	for _, f := range fields(t, "", object, k.goType) {
		w.section(f, 2)
	}
	return w.String()
}

func shortNames(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return ", `" + strings.Join(names, "`, `") + "`"
}

// section writes an object: what it is, and its fields, the larger of them in sections of their own.
func (w *writer) section(f field, level int) {
	fmt.Fprintf(w, "\n%s %s\n", strings.Repeat("#", level), f.path)
	if text := w.meaning(f); text != "" {
		fmt.Fprintf(w, "\n%s\n", text)
	}
	if level > 2 {
		about := []string{f.typ}
		if f.fallback != "" {
			about = append(about, "default: "+f.fallback)
		}
		fmt.Fprintf(w, "\n%s.\n", strings.ReplaceAll(strings.Join(about, "; "), "default: required", "required"))
	}
	w.rules(f)
	var rows, sections []field
	for _, b := range f.below {
		if b.count() > 3 && (level == 2 || f.count() > maxRows) && level < 6 {
			sections = append(sections, b)
			continue
		}
		rows = append(rows, b)
	}
	if len(rows) > 0 {
		w.WriteString("\n| field | type | default | meaning |\n|---|---|---|---|\n")
		for _, row := range rows {
			w.row(row)
		}
	}
	for _, b := range sections {
		w.section(b, level+1)
	}
}

// row writes a field and those below it.
func (w *writer) row(f field) {
	text := w.meaning(f)
	for _, rule := range f.rules {
		text += ended(text) + "Rule: " + escaped(rule) + "."
	}
	fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", f.path, f.typ, f.fallback, text)
	for _, b := range f.below {
		w.row(b)
	}
}

func (w *writer) rules(f field) {
	if len(f.rules) > 0 {
		w.WriteString("\nRules:\n\n")
	}
	for _, rule := range f.rules {
		fmt.Fprintf(w, "* %s\n", escaped(rule))
	}
}

// meaning returns the text of a field, with the mark of those that have no effect.
func (w *writer) meaning(f field) string {
	if w.idle(f.path) {
		return strings.TrimSpace("**No effect in this version.** " + f.text)
	}
	return f.text
}

const nebiusGroup = "slurm.nebius.ai"

// below reports whether a path is above or is in it.
func below(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// notServed reports whether nothing acts on a kind: the page of fields without effect lists none of its fields.
func notServed(group string, idle []string) bool { return group == nebiusGroup && len(idle) == 0 }

// readWithoutEffect returns the fields without effect by kind. internal/compose compares that page with what the operator does.
func readWithoutEffect(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("users/without-effect.md")
	if err != nil {
		t.Fatal(err)
	}
	out, name := map[string][]string{}, ""
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			name = strings.TrimSpace(heading)
			out[name] = nil
		}
		if path, ok := strings.CutPrefix(line, "* `"); ok && name != "" {
			out[name] = append(out[name], strings.TrimSuffix(strings.TrimSpace(path), "`"))
		}
	}
	if len(out["SlurmCluster"]) < 10 {
		t.Fatalf("users/without-effect.md lists %v", out)
	}
	return out
}
