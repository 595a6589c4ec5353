// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// survivesAFreeze lets the machine of the active slurmctld stand still for a while. A backup takes over, and what users gave it
// meanwhile is there when the first one continues as if nothing had happened.
func (s *scene) survivesAFreeze(t *testing.T, alice *user, running int) {
	t.Helper()
	primary := s.pod(t, "slurm-controller-0")
	frozen := slurmctldOf(primary)
	begin := time.Now()
	thaw := s.freeze(t, primary)
	alice.seesSlurm(t, running, begin)
	t.Logf("squeue answered %s after the machine of the active slurmctld froze", time.Since(begin).Round(100*time.Millisecond))
	meanwhile := alice.submitsSoon(t)
	took := time.Since(begin).Round(100 * time.Millisecond)
	if t.Logf("a job was accepted %s after it froze", took); took > time.Minute {
		t.Errorf("a job was accepted only %s after the machine of the active slurmctld froze", took)
	}
	alice.awaits(t, meanwhile, "COMPLETED")
	held, release := alice.submitsBlocked(t)
	thaw()
	begin = time.Now()
	s.awaitAnother(t, primary.Name, frozen)
	s.awaitActive(t, "slurm-controller-0")
	for _, job := range []int{running, held} {
		alice.seesSlurm(t, job, begin)
	}
	release(t)
	alice.awaits(t, held, "COMPLETED")
}

// slurmctldOf returns the status of the container of slurmctld.
func slurmctldOf(p *corev1.Pod) corev1.ContainerStatus {
	for _, c := range p.Status.ContainerStatuses {
		if c.Name == slinkyv1beta1.NameSlurmctld {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// awaitAnother waits until slurmctld of a pod is ready in another container than before. It may have started before the command that thawed
// the former one has ended.
func (s *scene) awaitAnother(t *testing.T, name string, before corev1.ContainerStatus) {
	t.Helper()
	eventually(t, patient, "slurmctld of "+name+" to start again", func(context.Context) error {
		is := slurmctldOf(s.pod(t, name))
		if !is.Ready || is.ContainerID == before.ContainerID {
			return fmt.Errorf("container %s, ready: %t, started %d times again", is.ContainerID, is.Ready, is.RestartCount)
		}
		return nil
	})
}

// inPod runs a command for each process in the container of slurmctld, with its number in $p, on its Kubernetes node.
const inPod = `space=
for d in /proc/[0-9]*; do
  if [ "$(cat $d/comm 2>/dev/null)" = slurmctld ] && grep -q "/pods/%[1]s/" $d/mountinfo; then space=$(readlink $d/ns/pid); fi
done
[ -n "$space" ] || exit 1
for d in /proc/[0-9]*; do
  p=${d#/proc/}
  [ "$(readlink $d/ns/pid)" != "$space" ] || { %[2]s; }
done`

// freeze makes slurmctld of a pod what it is on a machine that stands still: nothing in its container runs, and its address is
// silent. It does so until thaw is called, or the test ends.
func (s *scene) freeze(t *testing.T, p *corev1.Pod) (thaw func()) {
	t.Helper()
	do := func(ctx context.Context, command string) error {
		_, err := s.localkube(ctx, "shell", p.Spec.NodeName, "sh", "-c", fmt.Sprintf(inPod, p.UID, command))
		return err
	}
	const (
		freezing = "kill -STOP $p; nsenter -t $p -n iptables -C INPUT -j DROP || nsenter -t $p -n sh -c 'iptables -I INPUT -j DROP; iptables -I OUTPUT -j DROP'"
		thawing  = "nsenter -t $p -n iptables -F; kill -CONT $p"
	)
	frozen := true
	t.Cleanup(func() {
		if frozen {
			_ = do(context.WithoutCancel(t.Context()), thawing)
		}
	})
	if err := do(t.Context(), freezing); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := do(t.Context(), thawing); err != nil {
			t.Fatal(err)
		}
		frozen = false
	}
}
