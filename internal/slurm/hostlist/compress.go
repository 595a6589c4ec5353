// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"slices"
	"strconv"
	"strings"
)

// maxSpan is the largest number of hosts that Slurm accepts in one range ("Too many hosts in range").
const maxSpan = 64 * 1024

// maxShort is how much of an expression Short returns, in bytes: it goes into a message of about a thousand.
const maxShort = 512

// Short compresses names for people: a long expression is cut.
func Short(names []string) string {
	list := Compress(names)
	if len(list) > maxShort {
		return list[:maxShort] + "…"
	}
	return list
}

// Compress writes names as one expression, in natural order (see Compare) and without repetitions. The trailing numbers of names
// with equal beginnings share a bracket. Equal brackets below several beginnings are folded into another one where that is shorter:
// rack1n[1-2],rack2n[1-2] becomes rack[1-2]n[1-2]. Zero padding is kept. The same set of names always gives the same text. Names
// are taken as they are; check foreign ones with CheckName.
func Compress(names []string) string {
	sorted := slices.Clone(names)
	slices.SortFunc(sorted, Compare)
	sorted = slices.Compact(sorted)

	groups := groupByPrefix(sorted)
	for {
		folded, changed := foldPrefixes(groups)
		if !changed {
			break
		}
		groups = folded
	}
	var b strings.Builder
	for i, g := range groups {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(g.String())
	}
	return b.String()
}

// group is a set of names that are written as one term: prefix, then tail. Only prefix still is plain text in which
// another number can be found; unfolded is what was cut off it by earlier rounds without gaining anything.
type group struct {
	prefix   string
	unfolded string
	// tail is empty or ends in a bracket or in digits.
	tail string
	// bracketed is true if tail ends in a bracket, without which older versions of Slurm accept no other bracket.
	bracketed bool
}

func (g group) String() string { return g.prefix + g.unfolded + g.tail }

// groupByPrefix brings together the names that differ in their trailing number only. Groups are in the order of their
// first names.
func groupByPrefix(sorted []string) []group {
	var order []string
	numbers := make(map[string][]string)
	for _, name := range sorted {
		prefix, _ := splitNumber(name)
		if _, ok := numbers[prefix]; !ok {
			order = append(order, prefix)
		}
		numbers[prefix] = append(numbers[prefix], name[len(prefix):])
	}
	groups := make([]group, 0, len(order))
	for _, prefix := range order {
		n := numbers[prefix]
		if len(n) == 1 {
			groups = append(groups, group{prefix: prefix, tail: n[0]})
			continue
		}
		if n[0] == "" {
			// A name that is all prefix ("w" beside "w1") has no place in a bracket.
			groups = append(groups, group{prefix: prefix})
			n = n[1:]
		}
		if len(n) == 1 {
			groups = append(groups, group{prefix: prefix, tail: n[0]})
			continue
		}
		groups = append(groups, group{prefix: prefix, tail: bracket(n), bracketed: true})
	}
	return groups
}

// splitNumber cuts name before its trailing number; ok is false if there is none that fits into a bracket.
func splitNumber(name string) (prefix string, ok bool) {
	i := len(name)
	for i > 0 && isDigit(name[i-1]) {
		i--
	}
	if i == len(name) || len(name)-i > maxDigits {
		return name, false
	}
	return name[:i], true
}

// foldPrefixes takes one more number off each prefix and joins the groups that are equal otherwise. It reports whether
// there was any number left.
func foldPrefixes(groups []group) ([]group, bool) {
	type key struct{ head, rest string }
	var order []key
	members := make(map[key][]int)
	numbers := make([]string, len(groups))
	changed := false
	for i, g := range groups {
		k := key{head: g.prefix, rest: "\x00" + g.unfolded + g.tail}
		if head, number, text, ok := lastNumber(g.prefix); ok && g.tail != "" {
			k = key{head: head, rest: text + g.unfolded + asBracket(g)}
			numbers[i] = number
			changed = true
		}
		if _, ok := members[k]; !ok {
			order = append(order, k)
		}
		members[k] = append(members[k], i)
	}
	if !changed {
		return groups, false
	}
	out := make([]group, 0, len(groups))
	for _, k := range order {
		out = append(out, join(k.head, k.rest, groups, numbers, members[k])...)
	}
	return out, true
}

// join folds the groups at indexes, which are equal but for one number, into one if that makes the text shorter.
func join(head, rest string, groups []group, numbers []string, indexes []int) []group {
	apart := make([]group, 0, len(indexes))
	length := -1
	wanted := make([]string, 0, len(indexes))
	for _, i := range indexes {
		g := groups[i]
		length += len(g.String()) + 1
		if numbers[i] != "" {
			g.unfolded = g.prefix[len(head):] + g.unfolded
			g.prefix = head
			wanted = append(wanted, numbers[i])
		}
		apart = append(apart, g)
	}
	if len(wanted) < 2 {
		return apart
	}
	one := group{prefix: head, tail: bracket(wanted) + rest, bracketed: true}
	if len(one.String()) >= length {
		return apart
	}
	return []group{one}
}

// asBracket is the tail of g in a form that may follow another bracket.
func asBracket(g group) string {
	if g.bracketed {
		return g.tail
	}
	return "[" + g.tail + "]"
}

// lastNumber finds the last number in prefix: prefix = head + number + text.
func lastNumber(prefix string) (head, number, text string, ok bool) {
	end := strings.LastIndexAny(prefix, "0123456789") + 1
	head, ok = splitNumber(prefix[:end])
	if !ok {
		return prefix, "", "", false
	}
	return head, prefix[len(head):end], prefix[end:], true
}

// bracket writes numbers, sorted by Compare and without repetitions, as [1-3,07-09].
func bracket(numbers []string) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := 0; i < len(numbers); {
		j := i + 1
		for j < len(numbers) && j-i < maxSpan && follows(numbers[j-1], numbers[j], len(numbers[i])) {
			j++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(numbers[i])
		if j-i > 1 {
			b.WriteByte('-')
			b.WriteString(numbers[j-1])
		}
		i = j
	}
	b.WriteByte(']')
	return b.String()
}

// follows reports whether b is the number behind a in a range whose first number has width digits.
func follows(a, b string, width int) bool {
	n, err := strconv.ParseUint(a, 10, 64)
	if err != nil {
		return false
	}
	var text [24]byte
	return string(appendNumber(text[:0], n+1, width)) == b
}
