// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// writing are scenarios in which ConfigMaps are written as files into a jail.
func writing() []scenario {
	act := func(w *world) {
		w.publish("conf")
		w.publish("scripts")
		w.publish("motd")
		w.jailedConfig("conf", "slurm")
		w.jailedConfig("scripts", "slurm")
		w.jailedConfig("motd", "")
		w.sleep(promptly + w.jail.lag)
		w.expectPrompt()
		w.sleep(4 * time.Minute)
		w.keepFiles()
		w.publish("conf")
		w.sleep(2 * time.Second)
		w.publish("scripts")
		w.sleep(time.Minute)
		w.publish("motd")
		w.publish("conf")
		w.sleep(promptly + w.jail.lag)
		w.expectPrompt()
	}
	return []scenario{
		{name: "files", writes: &fileSystem{}, sparse: 3, leaves: (*world).expectFiles, besides: jailFaults(), act: act},
		{name: "files where names linger and cannot be exchanged", writes: &fileSystem{lag: 16 * time.Second, plain: true}, sparse: 4,
			leaves: (*world).expectFiles, besides: jailFaults(), act: act},
	}
}

// promptly is how soon files are there and read, in addition to the time for which old names stay.
const promptly = 5 * time.Second

// expectPrompt checks that nothing is left to do, unless something goes wrong.
func (w *world) expectPrompt() {
	if w.undisturbed() {
		w.expectFiles()
	}
}

// jailedPaths are where each key of each ConfigMap goes, and the mode there.
var jailedPaths = map[string]map[string]string{
	"conf":    {"a": "/etc/slurm/a.conf", "b": "/etc/slurm/b.conf", "c": "/opt/slurm/c.conf"},
	"scripts": {"prolog": "/etc/slurm/prolog.sh"},
	"motd":    {"motd": "/etc/motd"},
}

const modeInJail = 0o755

// contentOf returns a key of a version of a ConfigMap. No two are of the same length.
func contentOf(name, key string, version int) string {
	return fmt.Sprintf("%s of %s, version %d\n%s", key, name, version, strings.Repeat("# more\n", version))
}

// publish is a user who writes the next version of a ConfigMap.
func (w *world) publish(name string) {
	w.jail.mu.Lock()
	w.jail.versions[name]++
	version := w.jail.versions[name]
	w.jail.mu.Unlock()
	data := map[string]string{}
	for key := range jailedPaths[name] {
		data[key] = contentOf(name, key, version)
	}
	w.touch()
	if _, there := get[corev1.ConfigMap](w, name); there {
		change(w, name, func(m *corev1.ConfigMap) { m.Data = data })
		return
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Data: data}
	if err := w.user.Create(w.ctx, m); err != nil {
		w.t.Errorf("creating ConfigMap %s: %v", name, err)
	}
}

// jailedConfig has a ConfigMap written, and Slurm reread it if it belongs to a group.
func (w *world) jailedConfig(name, group string) {
	var items []string
	for _, key := range slices.Sorted(maps.Keys(jailedPaths[name])) {
		items = append(items, fmt.Sprintf("{key: %s, path: %s}", key, jailedPaths[name][key]))
	}
	labels, actions := "{}", "[]"
	if group != "" {
		labels, actions = fmt.Sprintf("{%s: %s}", nebiusv1alpha1.LabelJailedAggregation, group), "[Reconfigure]"
	}
	create[nebiusv1alpha1.JailedConfig](w, fmt.Sprintf(`{metadata: {name: %s, labels: %s}, spec: {configMap: {name: %s}, defaultMode: %d, updateActions: %s, items: [%s]}}`,
		name, labels, name, modeInJail, actions, strings.Join(items, ", ")))
}

// slurmrestd returns a client of the Slurm that reads the files, for a process.
func (w *world) slurmrestd(p *process) (*rest.Client, error) {
	issuer, err := token.NewSigned([]byte("0123456789abcdef0123456789abcdef"), "slurm", 0)
	if err != nil {
		return nil, err
	}
	return rest.NewClient("http://slurm", issuer, rest.Options{Transport: &tap{w, p, "slurm", slurms{w}}, Timeout: 30 * time.Second})
}

// slurmds returns those that read the files.
func slurmds() []fake.Node { return []fake.Node{{Name: "n-0", CPUs: 4}, {Name: "n-1", CPUs: 4}} }

// jailFaults returns what goes wrong with file systems and with who writes ConfigMaps.
func jailFaults() []fault {
	const long = time.Minute
	broken := func(name string, trouble func(op string) error) fault {
		return fault{name: name, only: "jail", lasts: long, strike: func(w *world, _ call) verdict {
			w.trouble(trouble)
			w.after(long, func() { w.trouble(nil) })
			return verdict{}
		}}
	}
	reads := func(op string) bool { return slices.Contains([]string{"lstat", "read", "names"}, op) }
	return []fault{
		// The next try is some time later.
		{name: "a call of the kernel fails", only: "jail", single: true, lasts: long, strike: func(*world, call) verdict { return verdict{fail: unix.EIO} }},
		broken("the jail is full", func(op string) error {
			if slices.Contains([]string{"create", "write", "mkdir", "link"}, op) {
				return unix.ENOSPC
			}
			return nil
		}),
		broken("the jail is read-only", func(op string) error {
			if reads(op) {
				return nil
			}
			return unix.EROFS
		}),
		broken("the jail fails", func(string) error { return unix.EIO }),
		{name: "the jail does not answer", only: "jail", lasts: long, strike: func(w *world, _ call) verdict {
			answers := make(chan struct{})
			w.stick(answers)
			w.after(long, func() {
				w.stick(nil)
				close(answers)
			})
			return verdict{}
		}},
		{name: "the files change meanwhile", single: true, lasts: long, otherEnd: true, strike: func(w *world, _ call) verdict {
			return verdict{then: func() {
				if w.jail.written("conf") {
					w.publish("conf")
				}
			}}
		}},
		{name: "a ConfigMap is away for a while", lasts: long, otherEnd: true, strike: func(w *world, _ call) verdict {
			return verdict{then: func() {
				remove[corev1.ConfigMap](w, "conf")
				w.after(long, func() { w.publish("conf") })
			}}
		}},
	}
}

func (j *jailed) written(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.versions[name] > 0
}

func (w *world) trouble(f func(op string) error) {
	w.jail.mu.Lock()
	defer w.jail.mu.Unlock()
	w.jail.trouble = f
}

func (w *world) stick(until chan struct{}) {
	w.jail.mu.Lock()
	defer w.jail.mu.Unlock()
	w.jail.stuck = until
}

// keepFiles records that the files that are there stay from now on, in whichever version.
func (w *world) keepFiles() {
	kept := map[string]string{}
	for path, content := range w.look() {
		if !strings.Contains(path, "-sconfigcontroller-") {
			kept[path] = content
		}
	}
	w.jail.mu.Lock()
	defer w.jail.mu.Unlock()
	w.jail.kept = kept
}

// fileVersions returns which version of its ConfigMap each file is, by ConfigMap and path; 0: the file is not there. A file that is not one
// of them is a violation.
func (w *world) fileVersions(when string) map[string]map[string]int {
	seen, out := w.look(), map[string]map[string]int{}
	w.jail.mu.Lock()
	versions, kept := maps.Clone(w.jail.versions), w.jail.kept
	w.jail.mu.Unlock()
	for name, keys := range jailedPaths {
		out[name] = map[string]int{}
		for key, path := range keys {
			got, there := seen[path]
			if !there {
				if kept[path] != "" {
					w.fail("files are old or new", "%s: %s is gone", when, path)
				}
				out[name][path] = 0
				continue
			}
			version := versions[name]
			for version > 0 && got != fmt.Sprintf("%#o %s", modeInJail, contentOf(name, key, version)) {
				version--
			}
			if version == 0 {
				w.fail("files are old or new", "%s: %s is neither: %q", when, path, got)
			}
			out[name][path] = version
		}
	}
	return out
}

// judgeFiles checks that a reader of a file finds an old or a new one, and never a part.
func (w *world) judgeFiles(c call) { w.fileVersions("after " + c.label()) }

// judgeReading checks that Slurm is never asked to read a batch of which only a part is written.
func (w *world) judgeReading() func(call) {
	if w.jail == nil {
		return func(call) {}
	}
	seen, versions := w.look(), w.fileVersions("when Slurm reads them")
	return applied(func(c call) {
		for _, name := range []string{"conf", "scripts"} {
			found := slices.Compact(slices.Sorted(maps.Values(versions[name])))
			if len(found) != 1 {
				w.fail("Slurm reads whole batches", "%s with files of %s in versions %v", c.label(), name, versions[name])
			}
		}
		w.jail.mu.Lock()
		defer w.jail.mu.Unlock()
		w.jail.read = seen
	})
}

// expectFiles checks that the files are as in the ConfigMaps, that nothing is left beside them, that Slurm has read them, and that
// the status shows all of it.
func (w *world) expectFiles() {
	seen, want := w.look(), map[string]string{}
	w.jail.mu.Lock()
	versions, read := maps.Clone(w.jail.versions), w.jail.read
	w.jail.mu.Unlock()
	for name, keys := range jailedPaths {
		for key, path := range keys {
			want[path] = fmt.Sprintf("%#o %s", modeInJail, contentOf(name, key, versions[name]))
			if name != "motd" && read[path] != want[path] {
				w.fail("Slurm has read the files", "%s is %q, and Slurm has read %q", path, want[path], read[path])
			}
		}
		c, _ := get[nebiusv1alpha1.JailedConfig](w, name)
		if !meta.IsStatusConditionTrue(c.Status.Conditions, nebiusv1alpha1.ConditionReady) {
			w.fail("the goal is reached", "JailedConfig %s: %+v", name, c.Status.Conditions)
		}
	}
	if !maps.Equal(seen, want) {
		w.fail("the files are as in the ConfigMaps", "there are %q, want %q", seen, want)
	}
}
