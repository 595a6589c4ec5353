// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// rights are what processes may do, see capabilities(7) and proc_pid_status(5).
type rights struct {
	// bounding has a bit for each capability that a process can have, or come to by a program.
	bounding uint64
	root     bool
	// gains is whether one can have more by a program, such as sudo. unfiltered is whether it may ask the kernel for everything.
	gains, unfiltered bool
}

// add makes them the union with another process's rights.
func (r *rights) add(other rights) {
	r.bounding |= other.bounding
	r.root = r.root || other.root
	r.gains = r.gains || other.gains
	r.unfiltered = r.unfiltered || other.unfiltered
}

// readRights reads /proc/N/status.
func readRights(status string) (rights, error) {
	fields := map[string]string{}
	for line := range strings.Lines(status) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.TrimSpace(value)
	}
	bounding, err := strconv.ParseUint(fields["CapBnd"], 16, 64)
	uids := strings.Fields(fields["Uid"])
	if err != nil || len(uids) == 0 || fields["NoNewPrivs"] == "" || fields["Seccomp"] == "" {
		return rights{}, fmt.Errorf("the rights are not told: %w", errors.Join(err, errors.New(status)))
	}
	return rights{bounding: bounding, root: slices.Contains(uids, "0"), gains: fields["NoNewPrivs"] == "0", unfiltered: fields["Seccomp"] == "0"}, nil
}

// capabilities are their names by number, of those that containers of ours have without having all.
var capabilities = map[int]string{
	0: "CHOWN", 1: "DAC_OVERRIDE", 2: "DAC_READ_SEARCH", 3: "FOWNER", 4: "FSETID", 5: "KILL", 6: "SETGID", 7: "SETUID", 8: "SETPCAP",
	10: "NET_BIND_SERVICE", 13: "NET_RAW", 18: "SYS_CHROOT", 19: "SYS_PTRACE", 21: "SYS_ADMIN", 27: "MKNOD", 29: "AUDIT_WRITE", 31: "SETFCAP",
}

// byDefault are those that container runtimes give.
var byDefault = []string{
	"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "NET_RAW", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
}

// cells returns the rights as a row of the table has them. all are those of the machine.
func (r rights) cells(all uint64) string {
	var names []string
	for n := range 64 {
		if r.bounding>>n&1 == 0 {
			continue
		}
		name, known := capabilities[n]
		if !known {
			name = strconv.Itoa(n)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(byDefault, name) })
	said := strings.Join(names, ", ")
	switch {
	case len(names) == 0:
		said = "none"
	case r.bounding == all:
		said = "all"
	case len(names) == len(byDefault)+len(others):
		said = strings.Join(append([]string{"the runtime's defaults"}, others...), ", ")
	}
	word := map[bool]string{true: "yes", false: "no"}
	return fmt.Sprintf("%s | %s | %s | %s", word[r.root], said, word[r.gains], word[!r.unfiltered])
}

// itsInit is behind the container in the row of its first process.
const itsInit = ", its init"

const rightsHead = "| pod | container | root | capabilities at most | may gain more by a program | seccomp |\n|---|---|---|---|---|---|\n"

// givesRights compares what each process of each container may do, by the kernel's account, with the table for administrators. They are
// looked at while the cluster is used: alice is logged in, and a job of hers runs.
func givesRights(t *testing.T, c *slurmCluster, alice *user) {
	if !c.Local {
		t.Skip("only of a local Kubernetes can processes be looked at from outside")
	}
	running, release := alice.submitsBlocked(t)
	defer release(t)
	alice.awaits(t, running, "RUNNING")
	containers := c.containers(t)
	self, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	own, err := readRights(string(self))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	seen := seenRights(t, containers)
	for who, r := range seen {
		if container, isInit := strings.CutSuffix(who, itsInit); isInit && seen[container] == r {
			continue
		}
		rows = append(rows, fmt.Sprintf("| %s | %s |\n", who, r.cells(own.bounding)))
	}
	slices.Sort(rows)
	text, err := os.ReadFile(stage.repository.Path("docs", "administrators", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), rightsHead)
	table, _, _ = strings.Cut(table, "\n\n")
	if diff := cmp.Diff(strings.TrimSuffix(table, "\n")+"\n", strings.Join(rows, "")); diff != "" {
		t.Errorf("processes have other rights than docs/administrators/security.md says (-said +seen):\n%s\nseen:\n%s%s", diff, rightsHead, strings.Join(rows, ""))
	}
}

// containers returns who each running container of the cluster and of the operator is, by its id.
func (c *slurmCluster) containers(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, namespace := range []string{c.namespace, walk.Operator.Namespace} {
		var pods corev1.PodList
		if err := c.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		for _, p := range pods.Items {
			for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
				if _, id, _ := strings.Cut(s.ContainerID, "://"); id != "" && s.State.Running != nil {
					out[id] = p.Labels["app.kubernetes.io/name"] + " | " + s.Name
				}
			}
		}
	}
	return out
}

// seenRights looks at all processes of these containers. Each has one at least.
func seenRights(t *testing.T, containers map[string]string) map[string]rights {
	t.Helper()
	out := map[string]rights{}
	eventually(t, soon, "a process in each container", func(context.Context) error {
		groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
		if err != nil {
			return err
		}
		missing := maps.Clone(containers)
		for _, path := range groups {
			group, _ := os.ReadFile(path)
			id := containerOf(group, containers)
			status, err := os.ReadFile(filepath.Join(filepath.Dir(path), "status"))
			if id == "" || err != nil {
				continue // of somebody else, or it has ended
			}
			r, err := readRights(string(status))
			if err != nil {
				return err
			}
			delete(missing, id)
			who := containers[id]
			if strings.HasPrefix(string(status), "Name:\ttini\n") {
				// It has what the container started with, reads nothing and starts no second program. A process with fewer rights cannot reach it.
				who += itsInit
			}
			seen := out[who]
			seen.add(r)
			out[who] = seen
		}
		if len(missing) > 0 {
			return fmt.Errorf("there is none in %v", slices.Sorted(maps.Values(missing)))
		}
		return nil
	})
	return out
}

// containerOf returns the container that a control group belongs to; "" when it is none of them.
func containerOf(group []byte, containers map[string]string) string {
	for id := range containers {
		if bytes.Contains(group, []byte(id)) {
			return id
		}
	}
	return ""
}
