// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// readLists reads all lists. One that cannot be read is as it was when it could.
func (v *View) readLists() (map[string]Files, error) {
	if v.Lists == nil {
		return v.lists, nil
	}
	entries, err := fs.ReadDir(v.Lists, ".")
	if err != nil {
		return v.lists, fmt.Errorf("looking for lists of users: %w", err)
	}
	out := map[string]Files{}
	var errs []error
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, "..") {
			continue // the kubelet keeps the files in ..data, and a link to it for each list
		}
		list, err := readList(v.Lists, name)
		if err != nil {
			errs, list = append(errs, err), v.lists[name]
		}
		out[name] = list
	}
	return out, errors.Join(errs...)
}

func readList(lists fs.FS, name string) (out Files, err error) {
	for _, file := range []struct {
		name string
		to   *string
	}{{"passwd", &out.Passwd}, {"group", &out.Group}} {
		opened, err := lists.Open(path.Join(name, file.name))
		if err != nil {
			return out, fmt.Errorf("opening a list of users: %w", err)
		}
		if *file.to, err = content(opened, file.name+" of list "+name); err != nil {
			return out, err
		}
	}
	return out, nil
}
