// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact takes secrets out of texts and objects before they leave a cluster: values that are known, and whatever looks like a
// password, a token or a key.
//
// It takes out rather too much than too little. Names of Secrets, digests in hexadecimal digits and certificates stay.
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Removed replaces a secret.
const Removed = "[removed]"

// minLiteral is the least number of bytes of a known value that is looked for: a shorter one is part of words.
const minLiteral = 6

// secretName is how the name of a field, a variable or an option ends whose value is a secret.
const secretName = `(?:pass|passwd|password|passphrase|secret|token|jwt|authtok|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|secret[_-]?key|signing[_-]?key|` +
	`credentials?|auth|cookie|authorization)`

// Redactor takes secrets out. The zero value knows no values.
type Redactor struct {
	known *strings.Replacer
	rules []rule
	name  *regexp.Regexp
	key   *regexp.Regexp
}

// rule replaces what a pattern finds.
type rule struct {
	pattern *regexp.Regexp
	with    string
}

// New makes a Redactor that knows the values of Secrets: it finds them as they are, in base64 and in hexadecimal digits.
func New(values ...[]byte) *Redactor {
	var literals []string
	for _, value := range values {
		for _, v := range [][]byte{value, []byte(strings.TrimSpace(string(value)))} {
			if len(v) < minLiteral {
				continue
			}
			escaped, _ := json.Marshal(string(v))
			literals = append(literals, string(v), string(escaped[1:len(escaped)-1]), hex.EncodeToString(v), base64.StdEncoding.EncodeToString(v),
				base64.RawStdEncoding.EncodeToString(v), base64.URLEncoding.EncodeToString(v), base64.RawURLEncoding.EncodeToString(v))
		}
	}
	// The longest first: one may be a part of another.
	slices.SortFunc(literals, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, literal := range slices.Compact(literals) {
		pairs = append(pairs, literal, Removed)
	}
	// In YAML the value of the next field is not that of this one, but the first line of a block is.
	const value = `(?:[|>][+-]?[ \t]*\r?\n[ \t]+[^\n]+|"(?:[^"\\]|\\.)*"?|'[^']*'?|[^\s,;&"']+)`
	return &Redactor{
		known: strings.NewReplacer(pairs...),
		name:  regexp.MustCompile(`(?i:^(?:.*[^a-z])?` + secretName + `$)|(?:[a-z0-9])(?:Pass|Passwd|Password|Passphrase|Secret|Token|Jwt|JWT|ApiKey|AccessKey|PrivateKey|SecretKey|Credentials?)$`),
		key:   regexp.MustCompile(`[A-Za-z0-9+/_-]{40,}={0,2}`),
		rules: []rule{
			// A block that is cut off ends with the text.
			{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z0-9 ]*-----.*?(?:-----END [A-Z0-9 ]*-----|$)`), Removed},
			{regexp.MustCompile(`eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`), Removed},
			{regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)(\s+)[A-Za-z0-9._~+/-]{6,}=*`), "$1$2" + Removed},
			{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:)[^\s@/]+@`), "$1" + Removed + "@"},
			// "k" and the parts of a private RSA key in a JSON web key.
			{regexp.MustCompile(`(\\?"(?:k|d|p|q|dp|dq|qi)\\?"\s*:\s*\\?")[A-Za-z0-9_-]{16,}`), "$1" + Removed},
			// In a JSON text that stands in a JSON text.
			{regexp.MustCompile(`(?i)([A-Za-z0-9_.-]*` + secretName + `\\"\s*:\s*\\")(?:[^"\\]|\\\\.)*`), "$1" + Removed},
			{regexp.MustCompile(`(?i)([A-Za-z0-9_.-]*` + secretName + `["']?[ \t]*[=:][ \t]*)` + value), "$1" + Removed},
			{regexp.MustCompile(`(?i)(--?[a-z0-9_-]*` + secretName + `(?:[ \t]|\\\n)+)` + value), "$1" + Removed},
			{regexp.MustCompile(`(?i)(identified by\s+)` + value), "$1" + Removed},
		},
	}
}

// Text returns a text without secrets.
func (r *Redactor) Text(text string) string {
	text = r.known.Replace(text)
	for _, rule := range r.rules {
		text = rule.pattern.ReplaceAllString(text, rule.with)
	}
	return r.key.ReplaceAllStringFunc(text, func(found string) string {
		if randomLooking(found) {
			return Removed
		}
		return found
	})
}

// randomLooking reports whether a long word is not one that people write: it mixes small and capital letters with digits.
func randomLooking(word string) bool {
	var lower, upper, digit int
	for _, c := range word {
		switch {
		case unicode.IsLower(c):
			lower++
		case unicode.IsUpper(c):
			upper++
		case unicode.IsDigit(c):
			digit++
		}
	}
	return lower > 3 && upper > 3 && digit > 1
}

// Object takes secrets out of a decoded object, in place: from all its texts, from the values of fields, variables and options with the
// name of a secret, and from JSON in texts. What tools have written down of the whole object is dropped.
func (r *Redactor) Object(object map[string]any) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
		if annotations, ok := metadata["annotations"].(map[string]any); ok {
			for name := range annotations {
				if strings.HasSuffix(name, "/last-applied-configuration") {
					annotations[name] = Removed
				}
			}
		}
	}
	r.fields(object)
}

// fields takes secrets out of the fields of an object.
func (r *Redactor) fields(object map[string]any) {
	for name, value := range object {
		switch text, ok := value.(string); {
		case ok && text != "" && r.name.MatchString(name):
			object[name] = Removed
		default:
			object[name] = r.value(value)
		}
	}
	// A variable of a container, or a header of a probe.
	name, _ := object["name"].(string)
	if value, ok := object["value"].(string); ok && value != "" && r.name.MatchString(name) {
		object["value"] = Removed
	}
}

// value returns a value without secrets.
func (r *Redactor) value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		r.fields(v)
	case []any:
		for i := range v {
			option, _ := v[max(i-1, 0)].(string)
			if text, ok := v[i].(string); ok && i > 0 && text != "" && strings.HasPrefix(option, "-") && r.name.MatchString(option) {
				v[i] = Removed
				continue
			}
			v[i] = r.value(v[i])
		}
	case string:
		return r.json(v)
	}
	return value
}

// json returns a text without secrets; where it is JSON, that of its fields.
func (r *Redactor) json(text string) string {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		var inner any
		if json.Unmarshal([]byte(trimmed), &inner) == nil {
			if out, err := json.Marshal(r.value(inner)); err == nil {
				text = string(out)
			}
		}
	}
	return r.Text(text)
}
