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
	"os"
	"path/filepath"
	"time"
)

// maxFileSize is how much of a file of the jail is read: some 100,000 users.
const maxFileSize = 16 << 20

// Jail opens files below the root of a jail, for reading. Package jail's Root is one.
type Jail interface {
	Open(path string) (*os.File, error)
}

// View keeps the files of a pod's name service as those of the jail.
type View struct {
	Jail Jail
	// Image are the accounts of the image, which stand first.
	Image Files
	// Dir is where passwd, group and shadow are written; WithShadow says whether shadow is.
	Dir        string
	WithShadow bool
	// Also is a directory that gets passwd and group, too; empty for none.
	Also string
	Log  *slog.Logger

	written, read Files
	said          string
}

// Follow updates the files until the context ends, each interval. The file system is shared with other machines, whose
// changes no event tells. What cannot be read is said once, and the files stay as they were.
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
		v.Log.Warn("The users of the jail cannot be read; those read before stay", "error", text)
	} else if text != v.said {
		v.Log.Info("The users of the jail can be read again")
	}
	v.said = text
}

// Update reads the files of the jail and writes those of the pod that have changed, each by a rename.
func (v *View) Update() error {
	jail, err := v.readJail()
	if err != nil {
		return err
	}
	if jail == v.read && v.written != (Files{}) {
		return nil
	}
	now := Merge(v.Image, jail)
	// A user is there when all that belongs to the user is.
	type file struct{ name, was, is string }
	files := []file{{"group", v.written.Group, now.Group}, {"passwd", v.written.Passwd, now.Passwd}}
	if v.WithShadow {
		files = append([]file{{"shadow", v.written.Shadow, now.Shadow}}, files...)
	}
	for _, f := range files {
		if f.was == f.is && f.is != "" {
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
	v.read, v.written = jail, now
	return nil
}

func (v *View) readJail() (Files, error) {
	var out Files
	var err error
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

// readFile reads a regular file of the jail; anything else could make the reader wait.
func (v *View) readFile(path string) (string, error) {
	file, err := v.Jail.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return "", fmt.Errorf("looking at /%s of the jail: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("/%s of the jail is no regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return "", fmt.Errorf("reading /%s of the jail: %w", path, err)
	}
	if len(data) > maxFileSize {
		return "", fmt.Errorf("/%s of the jail has more than %d MiB", path, maxFileSize>>20)
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
