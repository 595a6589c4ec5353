// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// settled is the time without a write after which a cluster counts as being at rest.
const settled = 15 * time.Second

// windows is how often a cluster is watched at most: beside the rest of the gate, slurmrestd may be silent in several of them.
const windows = 6

// A cluster at rest costs the API server no write: neither the operator writes for it, nor does
// anything else write in its namespace.
func TestRest(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	if s.AuditLog == "" {
		t.Skip("only a local Kubernetes keeps an audit log that can be read here")
	}
	c := s.slurmCluster(t)
	// Another test moves Kubernetes nodes in the network meanwhile, and Slurm would get the change.
	c.change(t, "", "spec", "slurmConfig", "topologyPlugin")
	s.hasLoaded(t, "slurm.conf", func(conf string) bool { return !strings.Contains(conf, "TopologyPlugin=") })
	c.logsIn(t).runs(t, "srun hostname")

	for n := range windows {
		begin := s.rests(t)
		before := s.conditionsOf(t, "demo")
		s.watches(t)
		wrote := none(s.writes(t, begin))
		if wrote == nil {
			return
		}
		silent := s.slurmWasSilent(t, begin)
		if !silent || n == windows-1 {
			t.Fatalf("in %s at rest: %v; what is said of the Controller (slurmrestd was silent: %t): %s", *restFor, wrote, silent,
				changes(before, s.conditionsOf(t, "demo")))
		}
		t.Logf("watching again: slurmrestd did not answer for a while, which was told: %v", wrote)
	}
}

// conditionsOf returns the conditions of a Controller.
func (s *scene) conditionsOf(t *testing.T, name string) []metav1.Condition {
	t.Helper()
	c := &slinkyv1beta1.Controller{}
	if err := s.Get(t.Context(), s.name(name), c); err != nil {
		t.Fatal(err)
	}
	return c.Status.Conditions
}

// changes lists the conditions that are not as they were, in one line.
func changes(before, after []metav1.Condition) string {
	var out []string
	for _, is := range after {
		was := meta.FindStatusCondition(before, is.Type)
		if was == nil || *was != is {
			out = append(out, fmt.Sprintf("%s is %s since %s (%s: %s)", is.Type, is.Status, is.LastTransitionTime.Format(time.TimeOnly), is.Reason, is.Message))
		}
	}
	return strings.Join(out, "; ")
}

// hasLoaded waits until a file of the configuration is as wanted and slurmctld has loaded it: a kubelet brings it up to a minute later, and
// the operator reports it.
func (s *scene) hasLoaded(t *testing.T, file string, is func(string) bool) {
	t.Helper()
	eventually(t, patient, "slurmctld to load "+file, func(ctx context.Context) error {
		var config corev1.ConfigMap
		c := &slinkyv1beta1.Controller{}
		if err := errors.Join(s.Get(ctx, s.name("demo-config"), &config), s.Get(ctx, s.name("demo"), c)); err != nil {
			return err
		}
		applied := meta.FindStatusCondition(c.Status.Conditions, slinkyv1beta1.ConditionConfigApplied)
		if !is(config.Data[file]) || c.Status.ObservedGeneration != c.Generation || applied == nil || applied.Status != metav1.ConditionTrue ||
			c.Status.ConfigDigest == "" || !strings.HasSuffix(applied.Message, c.Status.ConfigDigest) {
			return fmt.Errorf("generation %d of %d, digest %s, %+v", c.Status.ObservedGeneration, c.Generation, c.Status.ConfigDigest, applied)
		}
		return nil
	})
}

// rests waits until the cluster has come to rest, and returns when that was. One whose slurmctld is not known to have loaded its
// configuration is not at rest: at a busy slurmrestd's the operator asks less often, and writes the answers.
func (s *scene) rests(t *testing.T) time.Time {
	t.Helper()
	// The log is long: look at it less often.
	err := walk.Poll(t.Context(), patient, 3*time.Second, fmt.Sprintf("%s without a write", settled), func(context.Context) error {
		if !meta.IsStatusConditionTrue(s.conditionsOf(t, "demo"), slinkyv1beta1.ConditionConfigApplied) {
			return errors.New("slurmctld is not known to have loaded its configuration")
		}
		return none(s.writes(t, time.Now().Add(-settled)))
	})
	if err != nil {
		t.Fatal(err)
	}
	return time.Now()
}

// watches lets the time pass for which a cluster at rest is watched.
func (s *scene) watches(t *testing.T) {
	t.Helper()
	t.Logf("at rest; watching for %s", *restFor)
	select {
	case <-time.After(*restFor):
	case <-t.Context().Done():
		t.Fatal("stopped")
	}
}

// slurmWasSilent reports whether slurmrestd did not answer within the operator's patience at some time since then: on a machine on
// which everything waits, a cluster is not at rest.
func (s *scene) slurmWasSilent(t *testing.T, since time.Time) bool {
	t.Helper()
	c := &unstructured.Unstructured{}
	c.SetAPIVersion("slinky.slurm.net/v1beta1")
	c.SetKind("Controller")
	c.SetName("demo")
	reachable := s.awaitCondition(t, patient, c, "SlurmReachable", metav1.ConditionTrue)
	return !reachable.LastTransitionTime.Time.Before(since.Truncate(time.Second))
}

// none is nil when there are no writes.
func none(writes []write) error {
	var errs []error
	for _, w := range writes {
		errs = append(errs, errors.New(w.String()))
	}
	return errors.Join(errs...)
}

// write is what an audit log has about a write.
type write struct {
	Stage          string
	StageTimestamp time.Time
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
}

func (w write) String() string {
	return fmt.Sprintf("%s %s %s %s/%s %s (%d) by %s", w.StageTimestamp.Format(time.TimeOnly), w.Verb, w.ObjectRef.Resource, w.ObjectRef.Namespace, w.ObjectRef.Name,
		w.ObjectRef.Subresource, w.ResponseStatus.Code, w.User.Username)
}

// concerns is true for a write in a namespace, and for one of the operator that belongs to no namespace. What the
// operator does in other namespaces is the affair of other tests, and the scheduler ends series of its events many
// minutes later.
func (w write) concerns(namespace string) bool {
	if w.ObjectRef.Resource == "events" && w.User.Username != walk.OperatorUser {
		return false
	}
	return w.ObjectRef.Namespace == namespace || w.ObjectRef.Namespace == "" && w.User.Username == walk.OperatorUser
}

// writes returns the writes since then that concern the scene, leases aside. Reviews of tokens and permissions are not
// writes, though they are posted.
func (s *scene) writes(t *testing.T, since time.Time) []write {
	t.Helper()
	// A full log is moved aside, with the time in its name.
	files, err := filepath.Glob(strings.TrimSuffix(s.AuditLog, ".log") + "*.log")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding the audit log %s: %v", s.AuditLog, err)
	}
	var out []write
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		found, err := readWrites(f, s.namespace, since)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}
		out = append(out, found...)
	}
	return out
}

func readWrites(r io.Reader, namespace string, since time.Time) ([]write, error) {
	var out []write
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil // the rest of the line is still being written
		}
		if err != nil {
			return nil, err
		}
		var w write
		if err := json.Unmarshal(line, &w); err != nil {
			return nil, err
		}
		switch w.Verb {
		case "get", "list", "watch":
			continue
		}
		if w.Stage != "ResponseComplete" || w.ObjectRef.Resource == "leases" || strings.HasSuffix(w.ObjectRef.Resource, "reviews") || w.StageTimestamp.Before(since) || !w.concerns(namespace) {
			continue
		}
		out = append(out, w)
	}
}
