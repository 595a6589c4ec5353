// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAStrangersFirstLookPasses runs "go test ./..." in a clean clone as somebody who is not root and has built nothing.
func TestAStrangersFirstLookPasses(t *testing.T) {
	if !*buildImages {
		t.Skip("takes minutes; run by \"make clean-clone\"")
	}
	clone := string(cleanClone(t))
	home := filepath.Join(clone, "out", "home")
	if err := os.MkdirAll(home, 0o750); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(clone); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { // the stranger has to get there
			t.Fatal(err)
		}
	}
	const nobody = "65534"
	if out, err := exec.CommandContext(t.Context(), "chown", "-R", nobody+":"+nobody, clone).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	look := exec.CommandContext(t.Context(), "setpriv", "--reuid="+nobody, "--regid="+nobody, "--clear-groups",
		"env", "-i", "HOME="+home, "PATH="+os.Getenv("PATH"), "GOPROXY="+os.Getenv("GOPROXY"), "go", "test", "./...")
	look.Dir = clone
	out, err := look.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "left out:") {
		t.Errorf("%v:\n%s", err, out)
	}
}
