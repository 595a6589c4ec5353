// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NodeConf is what a dynamic node registers with: the value of slurmd's option --conf. An example is
// Features=gpu Gres=gpu:8 RealMemory=1000. See slurmd(8); the keys are those of slurm.conf(5), NODE CONFIGURATION. The zero
// value is empty.
type NodeConf struct {
	options []Option // sorted by key
}

// nodeKeys are the keys of a node and how they are written. Features also goes by the name of Feature.
const nodeKeys = `BcastAddr Boards CoreSpecCount CoresPerSocket CpuBind CPUs CpuSpecList Features Gres
	MemSpecLimit NodeAddr NodeHostname NodeName Parameters Port Procs RealMemory Reason RestrictedCoresPerGPU Sockets
	SocketsPerBoard State ThreadsPerCore TmpDisk Topology Weight`

// nodeLists are those keys whose values are lists: several are joined. Every other key has one value.
const nodeLists = `CpuSpecList Features Gres Parameters Topology`

// canonicalNodeKey is key as Slurm writes it; unknown keys stay as they are.
func canonicalNodeKey(key string) string {
	if strings.EqualFold(key, "Feature") {
		return "Features"
	}
	for k := range strings.FieldsSeq(nodeKeys) {
		if strings.EqualFold(k, key) {
			return k
		}
	}
	return key
}

// ParseNodeConf reads Key=Value pairs separated by blanks or line breaks, such as spec.extraConf of a NodeSet. Feature and
// Features are one key. A list that comes twice is joined; another key that comes twice with different values is reported.
// So is everything that is not Key=Value or that CheckNodeValue refuses.
func ParseNodeConf(text string) (NodeConf, []Problem) {
	var c NodeConf
	var problems []Problem
	for i, line := range strings.Split(text, "\n") {
		for token := range strings.FieldsSeq(line) {
			if err := c.parseToken(token); err != nil {
				key, _, ok := strings.Cut(token, "=")
				if !ok || CheckKey(key) != nil {
					key = ""
				}
				problems = append(problems, Problem{Line: i + 1, Key: key, Message: err.Error()})
			}
		}
	}
	return c, problems
}

func (c *NodeConf) parseToken(token string) error {
	key, value, ok := strings.Cut(token, "=")
	if !ok {
		return fmt.Errorf("%.80q is not Key=Value", token)
	}
	if err := checkNodeOption(key, value); err != nil {
		return err
	}
	key = canonicalNodeKey(key)
	if old, ok := c.Get(key); ok && old != value && !listed(key, nodeLists) {
		return errors.New("it is given twice with different values")
	}
	c.Add(key, value)
	return nil
}

// CheckNodeValue returns why value cannot be part of slurmd's --conf, or nil. The images hand the list to a shell
// between single quotes, and the kubelet replaces $(NAME) in arguments. So quotes, backslashes, dollar signs, back quotes and
// comment signs are refused, besides blanks and control characters.
func CheckNodeValue(value string) error {
	if strings.Trim(value, ",") == "" {
		return errors.New("it has no value")
	}
	if err := checkText(value); err != nil {
		return err
	}
	if i := strings.IndexAny(value, blanks+"'\"\\$`#"); i >= 0 {
		return fmt.Errorf("the value has the character %q, which cannot be passed to slurmd safely", value[i])
	}
	return nil
}

func checkNodeOption(key, value string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return CheckNodeValue(value)
}

// Get returns the value of key; ok is false if there is none.
func (c NodeConf) Get(key string) (value string, ok bool) {
	if i := c.index(key); i >= 0 {
		return c.options[i].Value, true
	}
	return "", false
}

func (c NodeConf) index(key string) int {
	key = canonicalNodeKey(key)
	return slices.IndexFunc(c.options, func(o Option) bool { return strings.EqualFold(o.Key, key) })
}

// Add joins the items of value with the present ones if key is a list, and replaces the value otherwise. Key and value
// are checked by Text.
func (c *NodeConf) Add(key, value string) {
	key = canonicalNodeKey(key)
	options := slices.Clone(c.options)
	i := c.index(key)
	if i < 0 {
		i = len(options)
		options = append(options, Option{Key: key})
	}
	if listed(key, nodeLists) {
		value = joinDistinct(options[i].Value, value)
	}
	options[i].Value = value
	slices.SortFunc(options, func(a, b Option) int { return strings.Compare(a.Key, b.Key) })
	c.options = options
}

// joinDistinct adds the items of list b that list a does not have.
func joinDistinct(a, b string) string {
	have := splitOutsideParentheses(a)
	for _, item := range splitOutsideParentheses(b) {
		if !slices.Contains(have, item) {
			have = append(have, item)
		}
	}
	return strings.Join(have, ",")
}

// splitOutsideParentheses cuts a list at its commas; those in gpu:2(S:0,1) and cpu[1,3] belong to an item.
func splitOutsideParentheses(s string) []string {
	var items []string
	depth, start := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case ',':
			if depth <= 0 {
				items, start = append(items, s[start:i]), i+1
			}
		}
	}
	items = append(items, s[start:])
	return slices.DeleteFunc(items, func(item string) bool { return item == "" })
}

// GresNames are the names of the generic resources that the node has, such as gpu, sorted. GresTypes of slurm.conf must have
// them for slurmctld to count them.
func (c NodeConf) GresNames() []string {
	value, _ := c.Get("Gres")
	var names []string
	for _, item := range splitOutsideParentheses(value) {
		name, _, _ := strings.Cut(item, ":")
		if name, _, _ = strings.Cut(name, "("); CheckKey(name) == nil {
			names = append(names, strings.ToLower(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Merge puts user on top of c: lists unite, other values replace. An owned key that user sets to another value than c is left out and
// reported.
func (c NodeConf) Merge(user NodeConf, owned Owned) (NodeConf, []Problem) {
	var problems []Problem
	out := c
	for _, o := range user.options {
		if have, ok := c.Get(o.Key); owned.key(o.Key) && (!ok || have != o.Value) {
			problems = append(problems, ownedProblem(Entry{Key: o.Key}))
			continue
		}
		out.Add(o.Key, o.Value)
	}
	return out, problems
}

// Text is the list as slurmd takes it, sorted by key. The error names a key or value that cannot be passed safely.
func (c NodeConf) Text() (string, error) {
	var b strings.Builder
	for i, o := range c.options {
		if err := checkNodeOption(o.Key, o.Value); err != nil {
			return "", fmt.Errorf("writing the node configuration: %s: %w", o.Key, err)
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(o.Key + "=" + o.Value)
	}
	return b.String(), nil
}
