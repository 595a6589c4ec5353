// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// goesOnToWorkers has a user log in from a login pod to workers, and from one to the other, with the key pair that came with her
// home. They let her in while a job of hers runs there.
func goesOnToWorkers(t *testing.T, _ *slurmCluster, alice *user) {
	alice.isRefused(t, "ssh worker-0")
	_, release := alice.submitsBlocked(t, "--nodes=2")
	for command, want := range map[string]string{
		"ssh worker-0 hostname":                                       "worker-0",
		"ssh worker-1 id -un":                                         "alice",
		"ssh worker-0 ssh worker-1 hostname":                          "worker-1",
		"unshare --user --map-root-user id -u":                        "0",
		"ssh worker-0 unshare --user --map-root-user id -u":           "0",
		"ssh worker-1 'test -e /etc/soperator-jail-populated && pwd'": "/home/alice",
	} {
		if got := alice.runs(t, command+" </dev/null 2>&1"); got != want {
			t.Errorf("%s printed %q, want %q", command, got, want)
		}
	}
	release(t)
	alice.isRefused(t, "ssh worker-0")
	alice.isRefused(t, "ssh worker-1")

	// Workers know an account of the jail from another file than one of the users list.
	alice.runs(t, "sudo createuser --uid 2346 --without-external-ssh erin")
	alice.isRefused(t, "sudo -iu erin ssh worker-0")
	eventually(t, soon, "erin, who has a job on worker-0, to be let in there", func(ctx context.Context) error {
		out, err := alice.Run(ctx, "sudo -iu erin salloc --quiet --nodelist=worker-0 ssh worker-0 id -un </dev/null")
		if err == nil && strings.TrimSpace(out) != "erin" {
			err = fmt.Errorf("she is %q", out)
		}
		return err
	})
}

// isRefused waits until a worker refuses a login, with the reason.
func (u *user) isRefused(t *testing.T, ssh string) {
	t.Helper()
	const want = "you have no active jobs on this node"
	eventually(t, soon, "the worker to refuse "+ssh, func(ctx context.Context) error {
		out, err := u.Run(ctx, ssh+" hostname </dev/null 2>&1 && echo let in || true")
		if err == nil && (strings.Contains(out, "let in") || !strings.Contains(out, want)) {
			err = fmt.Errorf("%s printed %q, want %q", ssh, out, want)
		}
		return err
	})
}

// greets has a user log in to a shell at a terminal. A command is not greeted.
func greets(t *testing.T, c *slurmCluster, alice *user) {
	held := alice.submits(t, "true\n", "--hold")
	alice.awaits(t, held, "PENDING")
	for _, node := range []string{"worker-0", "worker-1"} {
		alice.seesNode(t, node, "idle") // what ran before has completed
	}
	seesBanner(t, c.logsIn, "Cluster demo\r\n  main*        2 idle\r\nYour jobs: 0 running, 1 pending\r\n")
	if got := c.logsIn(t).runs(t, "echo nothing else 2>&1"); got != "nothing else" {
		t.Errorf("a command printed %q", got)
	}
	alice.runs(t, fmt.Sprintf("scancel %d", held))
}

// seesBanner logs in at a terminal until a banner is shown. Where Slurm's commands take more than two seconds, a login goes without, and so
// do those of the half minute that follows.
func seesBanner(t *testing.T, logsIn func(*testing.T) *user, want string) {
	t.Helper()
	eventually(t, patient, "a login at a terminal to show a banner", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, soon)
		defer cancel()
		shown, err := logsIn(t).Terminal(ctx, "exit\n")
		// The terminal shows what is typed when it arrives, which may be in the middle of the banner.
		shown = strings.ReplaceAll(shown, "exit\r\n", "")
		if err == nil && (strings.Contains(shown, "No answer within 2 seconds.") || !strings.Contains(shown, "Your jobs: ")) {
			return fmt.Errorf("it shows %q", shown)
		}
		if err != nil || !strings.Contains(shown, want) {
			t.Errorf("a login at a terminal shows %q (%v), want %q", shown, err, want)
		}
		return nil
	})
}
