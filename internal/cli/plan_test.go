// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

func TestPlan(t *testing.T) {
	dry := &slinkyv1beta1.NodeSet{ObjectMeta: named("dry")}
	dry.Annotations = map[string]string{slinkyv1beta1.AnnotationDryRun: "true"}
	dry.Status.Planned = 1
	dry.Status.Plan = []slinkyv1beta1.NodeSetStep{{Pod: "dry-0", Action: "Delete", Cause: "scale-in", Message: "nothing runs in it"}}
	still := &slinkyv1beta1.NodeSet{ObjectMeta: named("still")}
	w := newWorld(t, planned(), dry, still)
	for name, tc := range map[string]struct {
		args []string
		code int
	}{
		"all_nodesets":          {[]string{"plan"}, 0},
		"all_nodesets_wide":     {[]string{"plan", "-o", "wide"}, 0},
		"one_nodeset_json":      {[]string{"plan", "dry", "-o", "json"}, 0},
		"one_nodeset_yaml":      {[]string{"plan", "still", "-o", "yaml"}, 0},
		"nothing_is_planned":    {[]string{"plan", "still"}, 0},
		"there_is_no_such_name": {[]string{"plan", "nothing"}, 1},
		"help":                  {[]string{"plan", "--help"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, "plan/"+name+".txt", w.run(t, tc.args...).check(t, tc.code).golden(tc.args...))
		})
	}
}

// output collects what a program prints while it runs.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// patience is how long a test waits for what a program is to print.
const patience = 2 * time.Minute

// await waits until the output has a text.
func (o *output) await(t testing.TB, text string) {
	t.Helper()
	if !eventually(func() bool { return strings.Contains(o.String(), text) }) {
		t.Fatalf("after %s it has not printed %q, but %q", patience, text, o.String())
	}
}

// eventually reports whether something comes true while a test has patience.
func eventually(isSo func() bool) bool {
	deadline, tick := time.After(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for !isSo() {
		select {
		case <-deadline:
			return false
		case <-tick.C:
		}
	}
	return true
}

// start runs the program until stop is called, which returns its exit code.
func start(t testing.TB, p cli.Program, args ...string) (out, errors *output, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, errors = &output{}, &output{}
	p.Streams = genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: errors}
	code := make(chan int, 1)
	go func() { code <- cli.Run(ctx, p, args) }()
	return out, errors, sync.OnceValue(func() int { cancel(); return <-code })
}

func TestPlanIsFollowed(t *testing.T) {
	server := apiserver.Start(t)
	c := server.Client(t, newScheme(t))
	set := &slinkyv1beta1.NodeSet{}
	set.Name, set.Namespace = "cpu", server.Namespace
	set.Spec.ControllerRef = ref("demo")
	if err := c.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	out, errors, stop := start(t, program(), "--kubeconfig="+writeKubeconfig(t, server.Config, server.Namespace), "plan", "cpu", "--watch")
	defer stop()
	out.await(t, "Nothing is planned.\n")
	set.Status.Plan, set.Status.Planned = []slinkyv1beta1.NodeSetStep{{Pod: "cpu-0", Action: "Create"}}, 1
	if err := c.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	out.await(t, "cpu-0   Create")
	set.Status.ReadyReplicas = 1 // no change of the plan
	if err := c.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	set.Status.Plan, set.Status.Planned = nil, 0
	if err := c.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	out.await(t, "Create\n\n2026-11-25T12:00:00Z\nNothing is planned.\n")
	if got := strings.Count(out.String(), "cpu-0"); got != 1 {
		t.Errorf("the plan with cpu-0 was printed %d times: %q", got, out)
	}
	if code := stop(); code != 0 || errors.String() != "" {
		t.Errorf("exit code %d and the errors %q", code, errors)
	}
}

// A watch that the server ends, or begins too late, is begun anew, and what changed meanwhile is shown.
func TestPlanIsFollowedWhenWatchesEnd(t *testing.T) {
	w := newWorld(t, planned())
	w.expired = 2
	out, errors, stop := start(t, program(), "--kubeconfig="+w.kubeconfig, "plan", "--watch")
	defer stop()
	out.await(t, "38 more steps")
	w.awaitWatches(t, 3)
	w.sim.Disconnect()
	set := planned()
	set.Status.Plan, set.Status.Planned = nil, 0
	w.put(t, set)
	out.await(t, "Nothing is planned.")
	if code := stop(); code != 0 || errors.String() != "" {
		t.Errorf("exit code %d and the errors %q", code, errors)
	}
}
