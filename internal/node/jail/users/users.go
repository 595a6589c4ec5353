// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package users shows a pod the users of a jail, and those of lists that Kubernetes mounts. It reads passwd, group and shadow of
// the jail, see passwd(5), as data: who owns the jail wrote them. What it writes is what the pod's own name service reads.
package users

import (
	"strconv"
	"strings"
	"unicode"
)

// Files are the contents of passwd, group and shadow.
type Files struct{ Passwd, Group, Shadow string }

// firstUID and lastUID are the first and the last uid of people on Debian and most others, see UID_MIN and UID_MAX in
// login.defs(5). Accounts of daemons belong to the image.
const (
	firstUID = 1000
	lastUID  = 4294967293
	nobody   = 65534
)

// Merge returns the accounts of the image with the people of the jail behind them. An account of the image wins over one of
// the jail that has its name. A group of the jail with members is taken over whatever its number: files in the jail belong
// to its numbers. No password leaves the jail.
func Merge(image, jail Files) Files {
	own := names(image.Passwd)
	people := map[string]bool{}
	passwd := keep(jail.Passwd, 7, func(fields []string) bool {
		uid, ok := number(fields[2])
		_, gidOK := number(fields[3])
		if !ok || !gidOK || uid < firstUID || uid > lastUID || uid == nobody || own[fields[0]] || people[fields[0]] || !isName(fields[0]) {
			return false
		}
		people[fields[0]] = true
		fields[1] = "x"
		return true
	})
	groups := names(image.Group)
	group := keep(jail.Group, 4, func(fields []string) bool {
		_, ok := number(fields[2])
		fields[1] = "x"
		return ok && isName(fields[0]) && (fields[3] != "" || !groups[fields[0]])
	})
	shadow := keep(jail.Shadow, 9, func(fields []string) bool {
		fields[1] = "*"
		return people[fields[0]]
	})
	aged := names(shadow)
	for name := range strings.Lines(passwd) {
		// The account phase of PAM refuses an account that shadow does not have.
		if name, _, _ = strings.Cut(name, ":"); !aged[name] {
			shadow += name + ":*:19000:0:99999:7:::\n"
		}
	}
	return Files{Passwd: image.Passwd + passwd, Group: image.Group + group, Shadow: image.Shadow + shadow}
}

// Append returns passwd and group with the people and the groups of a list behind them. One that is there wins over one of the list
// that has its name or its number, and so does the first of two in the list.
func Append(shown, list Files) Files {
	list = Merge(Files{}, list)
	return Files{Passwd: shown.Passwd + others(shown.Passwd, list.Passwd, 7), Group: shown.Group + others(shown.Group, list.Group, 4)}
}

// others returns the lines with that number of fields whose name and number are in no line of shown, and in no line before them.
func others(shown, list string, fields int) string {
	named, numbered := names(shown), map[uint64]bool{}
	keep(shown, fields, func(parts []string) bool {
		n, ok := number(parts[2])
		numbered[n] = numbered[n] || ok
		return false
	})
	return keep(list, fields, func(parts []string) bool {
		n, ok := number(parts[2])
		if !ok || named[parts[0]] || numbered[n] {
			return false
		}
		named[parts[0]], numbered[n] = true, true
		return true
	})
}

// keep returns the lines with that number of fields that the function wants, which may change them.
func keep(text string, fields int, wants func([]string) bool) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		parts := strings.Split(line, ":")
		if len(parts) != fields || strings.ContainsFunc(line, unicode.IsControl) || !wants(parts) {
			continue
		}
		b.WriteString(strings.Join(parts, ":") + "\n")
	}
	return b.String()
}

// names are the first fields of the lines.
func names(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, ":")
		out[name] = true
	}
	return out
}

// number is a uid or gid. The last one, -1, means none.
func number(text string) (uint64, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	return n, err == nil && n < 1<<32-1
}

// isName reports whether the name service and Slurm take the name: no blanks, and not one that reads as an option, a
// comment or a line of NIS.
func isName(name string) bool {
	return name != "" && !strings.ContainsAny(name[:1], "-+#~") && !strings.ContainsFunc(name, unicode.IsSpace) && !strings.Contains(name, "/")
}
