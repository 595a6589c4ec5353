// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// maxFileSize is how much of a file is read: some 100,000 users.
const maxFileSize = 16 << 20

// Jail opens files below the root of a jail, for reading. Package jail's Root is one.
type Jail interface {
	Open(path string) (*os.File, error)
}

// View keeps the files of a pod's name service as those of the jail and of the lists.
type View struct {
	// Jail is nil for none.
	Jail Jail
	// Lists has a directory for each list, with passwd and group; nil for none. Lists stand behind the jail, by their names, and have no
	// shadow.
	Lists fs.FS
	// Image are the accounts of the image, which stand first.
	Image Files
	// Dir is where passwd, group and shadow are written; WithShadow is whether shadow is.
	Dir        string
	WithShadow bool
	// Also is a directory that gets passwd and group, too; empty for none.
	Also string
	Log  *slog.Logger

	// read and lists are what the jail and each list had when they were read last, and wrote is true if written is in the files.
	read, written Files
	lists         map[string]Files
	wrote         bool
	said          string
}

// Follow updates the files until the context ends, each interval. The file system is shared with other machines, whose
// changes cause no event. What cannot be read is logged once, and its users stay as they were.
func (v *View) Follow(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		v.say(v.Update())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (v *View) say(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != v.said && text != "" {
		v.Log.Warn("Users cannot be read; those read before stay", "error", text)
	} else if text != v.said {
		v.Log.Info("All users can be read again")
	}
	v.said = text
}

// Update reads the jail and the lists, and writes those files of the pod that have changed, each by a rename.
func (v *View) Update() error {
	jail, err := v.readJail()
	if err != nil && v.Lists == nil {
		return err
	}
	if err != nil {
		jail = v.read // its users wait for the jail, those of the lists do not
	}
	lists, listsErr := v.readLists()
	if err = errors.Join(err, listsErr); v.wrote && jail == v.read && maps.Equal(lists, v.lists) {
		return err
	}
	now := Merge(v.Image, jail)
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		added := Append(now, lists[name])
		now.Passwd, now.Group = added.Passwd, added.Group
	}
	if err := v.write(now); err != nil {
		return err
	}
	v.read, v.lists = jail, lists
	return err
}

func (v *View) write(now Files) error {
	// A user is there when all that belongs to the user is.
	type file struct{ name, was, is string }
	files := []file{{"group", v.written.Group, now.Group}, {"passwd", v.written.Passwd, now.Passwd}}
	if v.WithShadow {
		files = append([]file{{"shadow", v.written.Shadow, now.Shadow}}, files...)
	}
	for _, f := range files {
		if v.wrote && f.was == f.is {
			continue
		}
		if err := replace(filepath.Join(v.Dir, f.name), f.is); err != nil {
			return err
		}
		if v.Also != "" && f.name != "shadow" {
			if err := replace(filepath.Join(v.Also, f.name), f.is); err != nil {
				return err
			}
		}
	}
	v.written, v.wrote = now, true
	return nil
}

func (v *View) readJail() (out Files, err error) {
	if v.Jail == nil {
		return out, nil
	}
	if out.Passwd, err = v.readFile("etc/passwd"); err != nil {
		return out, err
	}
	if out.Group, err = v.readFile("etc/group"); err != nil {
		return out, err
	}
	if v.WithShadow {
		// A jail may have none.
		if out.Shadow, err = v.readFile("etc/shadow"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
	}
	return out, nil
}

func (v *View) readFile(path string) (string, error) {
	file, err := v.Jail.Open(path)
	if err != nil {
		return "", err
	}
	return content(file, "/"+path+" of the jail")
}

// content reads a regular file to its end; anything else could make the reader wait.
func content(file fs.File, what string) (string, error) {
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("looking at %s: %w", what, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", what)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", what, err)
	}
	if len(data) > maxFileSize {
		return "", fmt.Errorf("%s has more than %d MiB", what, maxFileSize>>20)
	}
	return string(data), nil
}

// replace writes a file of the pod so that readers see the old or the new one. The modes are those that Debian has.
func replace(path, content string) (err error) {
	mode := fs.FileMode(0o644)
	if filepath.Base(path) == "shadow" {
		mode = 0o600
	}
	next := path + ".next"
	if err := os.WriteFile(next, []byte(content), mode); err != nil {
		return fmt.Errorf("writing the users of the pod: %w", err)
	}
	if err := os.Rename(next, path); err != nil {
		return fmt.Errorf("replacing the users of the pod: %w", err)
	}
	return nil
}
