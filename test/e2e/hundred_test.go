// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// knowsAHundred makes a hundred users at one login pod. Some of them log in at the other one, and their jobs are theirs everywhere.
func (s *scene) knowsAHundred(t *testing.T, root *user) {
	other := map[string]string{"login-0": "login-1", "login-1": "login-0"}[root.runs(t, "hostname")]
	var crew []string
	for i := range 100 {
		crew = append(crew, fmt.Sprintf("crew%d", i))
	}
	begun := time.Now()
	root.runs(t, fmt.Sprintf("set -e; for i in $(seq 0 99); do createuser --uid $((5000 + i)) --without-sudo --groups video --ssh-key '%s' crew$i; done",
		strings.TrimSpace(stage.key.AuthorizedKey())))
	made := time.Now()
	s.knows(t, crew...)
	t.Logf("a hundred accounts were made in %.1f s; all pods know them %.1f s after the last", made.Sub(begun).Seconds(), time.Since(made).Seconds())
	for _, i := range []int{0, 42, 99} {
		name := crew[i]
		u := s.enterAt(t, "login", other, name)
		want := fmt.Sprintf("%d(%s) %s video users /home/%s", 5000+i, name, name, name)
		const who = `echo "$(id -u)($(id -un)) $(id -nG) $PWD"`
		if got := u.runs(t, who); got != want {
			t.Errorf("%s is %q on %s, want %q", name, got, other, want)
		}
		if got := u.runs(t, "srun --nodes=2 sh -c '"+who+"'"); got != want+"\n"+want {
			t.Errorf("%s is %q in jobs, want %q twice", name, got, want)
		}
		eventually(t, soon, "the job of "+name+" to be accounted by name", func(ctx context.Context) error {
			out, err := root.Run(ctx, "sacct --noheader --allocations --parsable2 --user="+name+" --format=User,UID,State,NNodes")
			if want := fmt.Sprintf("%s|%d|COMPLETED|2\n", name, 5000+i); err == nil && out != want {
				err = fmt.Errorf("sacct says %q, not %q", out, want)
			}
			return err
		})
	}
}

// enterAt logs in to a pod of a LoginSet until the test ends.
func (s *scene) enterAt(t *testing.T, loginSet, pod, name string) *user {
	t.Helper()
	door, err := walk.NewDoor(t.Context(), s.Kubernetes, s.name(loginSet), loginSet)
	if err != nil {
		t.Fatal(err)
	}
	var entered *user
	eventually(t, soon, name+" to log in at "+pod, func(ctx context.Context) error {
		session, leave, err := walk.LogIn(ctx, s.Kubernetes, door, name, stage.key)
		if err != nil {
			return err
		}
		host, err := session.Run(ctx, "hostname")
		if host = strings.TrimSpace(host); err != nil || host != pod {
			leave()
			return fmt.Errorf("the Service led to %q: %w", host, err)
		}
		t.Cleanup(leave)
		entered = &user{Session: session}
		return nil
	})
	return entered
}
