// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package jailedconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

func TestFilesFollowTheirConfigMap(t *testing.T) {
	w := start(t, never)
	w.files("scripts", map[string]string{"a.sh": "one", "b": "two"})
	w.config("scripts", "", `{configMap: {name: scripts}, defaultMode: 416, items: [{key: a.sh, path: /etc/slurm/a.sh, mode: 493}, {key: b, path: /opt/deep/b}]}`)
	w.expect("scripts", written, nebiusv1alpha1.ReasonSuccess)
	w.expect("scripts", acted, nebiusv1alpha1.ReasonMissingAction)
	w.expect("scripts", nebiusv1alpha1.ConditionReady, "Available")
	if a, b := w.read("etc/slurm/a.sh", "one"), w.read("opt/deep/b", "two"); a != 0o755 || b != 0o640 {
		t.Errorf("modes %v and %v", a, b)
	}
	w.change("scripts", map[string]string{"a.sh": "other", "b": "two"})
	w.read("etc/slurm/a.sh", "other")
	w.expect("scripts", written, nebiusv1alpha1.ReasonSuccess)
	if n := w.reconfigured(); n != 0 {
		t.Errorf("Slurm was reconfigured %d times without being asked for", n)
	}
}

func TestAGroupIsOneBatchAndOneReconfigure(t *testing.T) {
	w := start(t, never)
	w.slurm.Register(fake.Node{Name: "a"}, fake.Node{Name: "b"}, fake.Node{Name: "lost"})
	w.slurm.Lose("lost")
	w.slurm.KeepRunning(true)
	w.files("conf", map[string]string{"slurm.conf": "A=1"})
	w.config("conf", "common", `{configMap: {name: conf}, items: [{key: slurm.conf, path: /etc/slurm/slurm.conf}], updateActions: [Reconfigure]}`)
	w.config("topology", "common", `{configMap: {name: topology}, items: [{key: t, path: /etc/slurm/topology.conf}]}`)
	if got := w.expect("topology", written, nebiusv1alpha1.ReasonNotFound); got != "ConfigMap topology does not exist" {
		t.Error(got)
	}
	w.expectReconfigured(1)
	w.expectSaying("conf", acted, nebiusv1alpha1.ReasonRefresh, "slurmds reread")
	restart := func() { w.slurm.Register(fake.Node{Name: "a"}, fake.Node{Name: "b"}) }
	later(t, restart) // slurmds count whole seconds
	w.expect("conf", acted, nebiusv1alpha1.ReasonSuccess)

	before := w.reconfigured()
	w.files("topology", map[string]string{"t": "SwitchName=s"})
	w.read("etc/slurm/topology.conf", "SwitchName=s")
	w.expectReconfigured(before + 1) // the group asks for it, although this member does not
	w.expect("topology", written, nebiusv1alpha1.ReasonSuccess)
	w.expect("topology", acted, nebiusv1alpha1.ReasonMissingAction)
	w.expect("conf", acted, nebiusv1alpha1.ReasonRefresh)
	later(t, restart)
	w.expect("conf", acted, nebiusv1alpha1.ReasonSuccess)
}

// later does something a second later than before, by the clock of Slurm.
func later(t *testing.T, do func()) {
	t.Helper()
	from := time.Now().Unix()
	apiserver.Eventually(t, func() error {
		if time.Now().Unix() <= from {
			return errors.New("the second is not over")
		}
		do()
		return nil
	})
}

func TestSlurmdsThatAreLateAreNamedAndAskedAgain(t *testing.T) {
	w := start(t, moment)
	w.slurm.Register(fake.Node{Name: "slow"})
	w.slurm.KeepRunning(true)
	w.files("conf", map[string]string{"c": "A=1"})
	w.config("conf", "", `{configMap: {name: conf}, items: [{key: c, path: /etc/slurm/c}], updateActions: [Reconfigure]}`)
	apiserver.Eventually(t, func() error {
		if n := w.reconfigured(); n < 2 {
			return fmt.Errorf("reconfigured %d times", n)
		}
		return nil
	})
	w.expectSaying("conf", acted, nebiusv1alpha1.ReasonRefresh, "1 of 1 slurmds have not reread their configuration within 1.5s, and are asked again: slow")
	w.slurm.Lose("slow")
	w.expect("conf", acted, nebiusv1alpha1.ReasonSuccess)
}

func TestSlurmThatDoesNotAnswerIsTriedAgain(t *testing.T) {
	w := start(t, moment) // a slurmd of this very second is asked again
	w.slurm.Register(fake.Node{Name: "a"})
	w.slurm.SetFault(func(*http.Request) *fake.Fault { return &fake.Fault{Status: http.StatusBadGateway} })
	w.files("conf", map[string]string{"c": "A=1"})
	w.config("conf", "", `{configMap: {name: conf}, items: [{key: c, path: /etc/slurm/c}], updateActions: [Reconfigure]}`)
	w.expect("conf", written, nebiusv1alpha1.ReasonSuccess)
	w.expectSaying("conf", acted, nebiusv1alpha1.ReasonRefresh, "unavailable")
	w.slurm.SetFault(nil)
	w.expect("conf", acted, nebiusv1alpha1.ReasonSuccess)
}

func TestAMistakeOfOneMemberHoldsTheGroup(t *testing.T) {
	for name, test := range map[string]struct{ spec, reason, want string }{
		"a key that is not there": {`{configMap: {name: conf}, items: [{key: gone, path: /gone}]}`, nebiusv1alpha1.ReasonNotFound, "ConfigMap conf has no key gone"},
		"no items":                {`{configMap: {name: conf}}`, nebiusv1alpha1.ReasonNotWritten, `"c" of a file is not absolute`},
		"a symbolic link":         {`{configMap: {name: conf}, items: [{key: c, path: /link/x}]}`, nebiusv1alpha1.ReasonNotWritten, "/link/x of the jail: a part of it is a symbolic link"},
		"a path of another":       {`{configMap: {name: conf}, items: [{key: c, path: /good}]}`, nebiusv1alpha1.ReasonNotWritten, "/good is written by JailedConfig a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, never)
			if err := os.Symlink("/proc/1/root", filepath.Join(w.dir, "link")); err != nil {
				t.Fatal(err)
			}
			w.config("bad", "g", test.spec)
			w.config("a", "g", `{configMap: {name: conf}, items: [{key: c, path: /good}]}`)
			// Both are known before there is anything to write.
			for _, name := range []string{"bad", "a"} {
				w.expect(name, written, nebiusv1alpha1.ReasonNotFound)
			}
			w.files("conf", map[string]string{"c": "A=1"})
			w.expectSaying("bad", written, test.reason, test.want)
			w.expect("a", written, nebiusv1alpha1.ReasonNotWritten)
			if _, err := os.Stat(filepath.Join(w.dir, "good")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a file of the group was written: %v", err)
			}
		})
	}
}

func TestAtRestNothingIsWritten(t *testing.T) {
	w := start(t, never)
	w.files("conf", map[string]string{"c": "A=1"})
	w.config("conf", "", `{configMap: {name: conf}, items: [{key: c, path: /etc/slurm/c}], updateActions: [Reconfigure]}`)
	w.expect("conf", acted, nebiusv1alpha1.ReasonSuccess)
	was, err := os.Stat(filepath.Join(w.dir, "etc/slurm/c"))
	if err != nil {
		t.Fatal(err)
	}
	reconfigured := w.reconfigured()
	w.Writes.Reset()
	w.files("marker", map[string]string{"m": "x"})
	w.change("conf", map[string]string{"c": "A=1", "unused": "x"}) // wakes the group
	w.config("marker", "", `{configMap: {name: marker}, items: [{key: m, path: /m}]}`)
	w.read("m", "x")
	w.expect("marker", written, nebiusv1alpha1.ReasonSuccess)
	is, err := os.Stat(filepath.Join(w.dir, "etc/slurm/c"))
	if err != nil || !os.SameFile(was, is) || w.reconfigured() != reconfigured {
		t.Errorf("a file that is right was written: %v, reconfigured %d times", err, w.reconfigured()-reconfigured)
	}
	for _, write := range w.Writes.Of("jailedconfigs") {
		if strings.Contains(write.Path, "/conf/") {
			t.Errorf("the status of what did not change was written: %s", write)
		}
	}
}

// slurmctld ends a job that waits and names a node of which it has no record, when it rereads its configuration.
func TestNoReconfigureEndsAJobThatNamesANodeWithoutARecord(t *testing.T) {
	w := start(t, moment) // a slurmd of this very second is asked again
	w.slurm.Register(fake.Node{Name: "a"}, fake.Node{Name: "b"})
	runs := w.slurm.Submit(fake.Job{NodeList: []string{"b"}})
	w.slurm.Hold(w.slurm.Submit(fake.Job{NodeList: []string{"b"}}))
	w.slurm.Finish(runs)
	if err := w.slurm.Delete("b"); err != nil {
		t.Fatal(err)
	}
	w.files("conf", map[string]string{"c": "A=1"})
	w.config("conf", "", `{configMap: {name: conf}, items: [{key: c, path: /etc/slurm/c}], updateActions: [Reconfigure]}`)
	w.expectSaying("conf", acted, nebiusv1alpha1.ReasonRefresh, "slurmctld has no record of b, and would end pending jobs that name it")
	if n := w.reconfigured(); n != 0 {
		t.Errorf("Slurm was reconfigured %d times", n)
	}
	w.slurm.Register(fake.Node{Name: "b"})
	w.expect("conf", acted, nebiusv1alpha1.ReasonSuccess)
}
