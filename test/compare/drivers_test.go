// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// issuer signs tokens for a user of the cluster.
func issuer(t testing.TB, user string) token.Issuer {
	t.Helper()
	issuer, err := token.NewSigned([]byte(realslurm.Key), user, 0)
	if err != nil {
		t.Fatal(err)
	}
	return issuer
}

// newSystem makes a system of a driver and the way to its slurmrestd.
func newSystem(t *testing.T, d driver, name string, transport http.RoundTripper) *system {
	t.Helper()
	s := &system{
		driver: d, t: t, name: name, issuer: issuer(t, "slurm"), http: http.Client{Transport: transport},
		times: map[string]int64{}, set: map[string]int{},
	}
	s.client = s.as("slurm")
	return s
}

// imitation returns the fake as a system.
func imitation(t *testing.T, release string, memory bool) *system {
	slurm := fake.New(fake.Options{
		Release: map[string]string{"24.11": fake.Slurm2411, "26.05": fake.Slurm2605}[release], Key: []byte(realslurm.Key), Memory: memory,
		UnknownUsers: []string{stranger},
	})
	return newSystem(t, imitated{slurm}, "the fake", slurm.Transport())
}

// original returns a real Slurm as a system.
func original(t *testing.T, root realslurm.Root, conf string, memory bool) *system {
	selects := "SelectTypeParameters=CR_Core\n"
	if memory {
		selects = "SelectTypeParameters=CR_Core_Memory\n"
	}
	box := realslurm.Start(t, root, selects+conf)
	return newSystem(t, &real{t, box}, "the real one", box.Transport)
}

// imitated drives the fake.
type imitated struct{ *fake.Slurm }

func (i imitated) Reserve(r reservation) string {
	err := i.Slurm.Reserve(fake.Reservation{
		Name: r.name, Nodes: strings.Split(r.nodes, ","), Flags: words(r.flags), Users: []string{"alice"}, Start: time.Now(), End: time.Now().Add(time.Hour),
	})
	return doneOrRefused(err)
}

func (i imitated) Unreserve(name string) string { return doneOrRefused(i.Slurm.Unreserve(name)) }

func doneOrRefused(err error) string {
	if err != nil {
		return "refused"
	}
	return "done"
}

// words returns the entries of a comma separated list, which may be empty.
func words(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ","), func(word string) bool { return word == "" })
}

// real drives a Slurm in a box.
type real struct {
	t   *testing.T
	box *realslurm.Box
}

// Register starts slurmds. They find the CPUs of the Node's Machine; memory is that of the real machine.
func (r *real) Register(nodes ...fake.Node) {
	for _, n := range nodes {
		conf := fmt.Sprintf("RealMemory=%d", n.RealMemory)
		for key, value := range map[string]string{
			"Weight": count(n.Weight), "Feature": strings.Join(n.Features, ","), "Gres": n.Gres,
			"CoreSpecCount": count(n.CoreSpecCount), "MemSpecLimit": count(int(n.MemSpecLimit)),
		} {
			if value != "" {
				conf += " " + key + "=" + value
			}
		}
		var args []string
		for key, value := range map[string]string{"--instance-id": n.InstanceID, "--instance-type": n.InstanceType, "--extra": n.Extra} {
			if value != "" {
				args = append(args, key, value)
			}
		}
		if n.Boot {
			args = append(args, "-b")
		}
		if n.Drained != "" {
			conf += ` State=DRAIN Reason="` + n.Drained + `"`
		}
		cores := n.Machine.CPUs
		if cores == 0 {
			cores = n.CPUs
		} else {
			conf += " CPUs=" + count(n.CPUs)
		}
		r.box.StartSlurmd(n.Name, cores, conf, args...)
	}
}

func (r *real) Leave(names ...string) { r.Lose(names...) }

// Late is nothing to do: a real Slurm reports it by itself.
func (r *real) Late(...string) {}

// Answer is nothing to do, either: a real slurmctld asks every third of SlurmdTimeout.
func (r *real) Answer(...string) {}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (r *real) Lose(names ...string) {
	for _, name := range names {
		r.box.StopSlurmd(name)
	}
}

// script runs until its finish file is there, and exits with the code in it.
const script = `#!/bin/bash
until [ -e /mnt/finish-$SLURM_JOB_ID ]; do sleep 0.2; done
exit $(cat /mnt/finish-$SLURM_JOB_ID)
`

// asAlice returns a command, as alice runs it.
func asAlice(args ...string) []string {
	return append([]string{"setpriv", "--reuid", "2000", "--regid", "2000", "--clear-groups"}, args...)
}

func (r *real) Submit(job fake.Job) int64 {
	r.t.Helper()
	args := asAlice("sbatch", "--parsable", "--output=/dev/null", "--ntasks-per-node=1")
	if len(job.NodeList) > 0 {
		args = append(args, "--nodelist="+strings.Join(job.NodeList, ","), "--nodes="+strconv.Itoa(len(job.NodeList)))
	} else {
		args = append(args, "--nodes="+strconv.Itoa(job.Nodes))
	}
	if job.CPUs == 0 {
		args = append(args, "--exclusive")
	} else {
		args = append(args, "--cpus-per-task="+strconv.Itoa(job.CPUs))
	}
	if job.Partition != "" {
		args = append(args, "--partition="+job.Partition)
	}
	if job.Limit > 0 {
		args = append(args, fmt.Sprintf("--time=%d", int(job.Limit.Minutes())))
	}
	if err := os.WriteFile(r.box.Path("job"), []byte(script), 0o755); err != nil {
		r.t.Fatal(err)
	}
	out := r.box.Run(append(args, "/mnt/job")...)
	id, err := strconv.ParseInt(out, 10, 64)
	if err != nil {
		r.t.Fatalf("sbatch says %q", out)
	}
	return id
}

func (r *real) Finish(id int64) { r.Fail(id, 0) }

// Fail writes the code as a whole: the script reads it as soon as it is there.
func (r *real) Fail(id, code int64) {
	r.t.Helper()
	path := r.box.Path(fmt.Sprintf("finish-%d", id))
	if err := os.WriteFile(path+".new", []byte(strconv.FormatInt(code, 10)), 0o644); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		r.t.Fatal(err)
	}
}

// ForgetJob waits: slurmctld looks for jobs that are older than MinJobAge now and then.
func (r *real) ForgetJob(id int64) {
	r.t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(2 * time.Minute); ; <-tick.C {
		if _, err := r.box.Try("scontrol", "show", "job", strconv.FormatInt(id, 10)); err != nil {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("slurmctld does not forget job %d", id)
		}
	}
}

func (r *real) job(verb string, id int64) {
	r.t.Helper()
	if out, err := r.box.Try("scontrol", verb, strconv.FormatInt(id, 10)); err != nil {
		r.t.Logf("scontrol %s %d: %s", verb, id, out)
	}
}

func (r *real) Cancel(id int64)  { r.box.Run("scancel", strconv.FormatInt(id, 10)) }
func (r *real) Suspend(id int64) { r.job("suspend", id) }
func (r *real) Resume(id int64)  { r.job("resume", id) }
func (r *real) Requeue(id int64) { r.job("requeue", id) }
func (r *real) Hold(id int64)    { r.job("hold", id) }
func (r *real) Release(id int64) { r.job("release", id) }

func (r *real) Reserve(v reservation) string {
	args := []string{
		"scontrol", "create", "reservation", "reservationname=" + v.name, "starttime=now", "duration=60", "user=alice", "nodes=" + v.nodes,
	}
	if v.flags != "" {
		args = append(args, "flags="+v.flags)
	}
	return r.scontrol(args...)
}

func (r *real) Unreserve(name string) string {
	return r.scontrol("scontrol", "delete", "reservationname="+name)
}

func (r *real) scontrol(args ...string) string {
	out, err := r.box.Try(args...)
	if err != nil {
		r.t.Logf("%s: %s", strings.Join(args, " "), out)
	}
	return doneOrRefused(err)
}

func (r *real) Stop() { r.box.StopController() }

// Start starts slurmctld. A slurmd that the one before has asked to register does so with the next one: once. When that has no state, it is
// ended again.
func (r *real) Start(keepState bool) {
	r.t.Helper()
	if keepState {
		r.box.StartController()
		return
	}
	for range 3 {
		r.box.LoseState()
		r.box.StartController()
		if !r.registersByItself() {
			return
		}
		r.box.StopController()
	}
	r.t.Fatalf("slurmds register by themselves, again and again\n%s", r.box.Logs())
}

// registersByItself reports whether a slurmd registers with a slurmctld without state within some seconds.
func (r *real) registersByItself() bool {
	r.t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-tick.C {
		if shown, err := r.box.Try("scontrol", "show", "nodes", "--oneliner"); err == nil && strings.Contains(shown, "NodeName=") {
			return true
		}
	}
	return false
}
