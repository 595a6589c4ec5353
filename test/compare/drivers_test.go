// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/slurm/fake"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// imitation is the fake as a system.
func imitation(t *testing.T, release string, memory bool) *system {
	key := []byte("the-key-of-the-cluster-in-the-box")
	slurm := fake.New(fake.Options{Release: map[string]string{"24.11": fake.Slurm2411, "26.05": fake.Slurm2605}[release], Key: key, Memory: memory})
	issuer, err := token.NewSigned(key, "slurm", 0)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.NewClient("http://fake", issuer, rest.Options{Transport: slurm.Transport()})
	if err != nil {
		t.Fatal(err)
	}
	return &system{
		driver: slurm, t: t, name: "the fake", client: client, issuer: issuer, http: http.Client{Transport: slurm.Transport()},
		times: map[string]int64{}, set: map[string]int{},
	}
}

// original is a real Slurm as a system.
func original(t *testing.T, root realslurm.Root, conf string, memory bool) *system {
	selects := "SelectTypeParameters=CR_Core\n"
	if memory {
		selects = "SelectTypeParameters=CR_Core_Memory\n"
	}
	box := realslurm.Start(t, root, selects+conf)
	return &system{
		driver: &real{t, box}, t: t, name: "the real one", client: box.Client(), issuer: box.Issuer(), http: http.Client{Transport: box.Transport},
		times: map[string]int64{}, set: map[string]int{},
	}
}

// real drives a Slurm in a box.
type real struct {
	t   *testing.T
	box *realslurm.Box
}

// Register starts slurmds. What they find is what the Node's Machine says of CPUs; memory is that of the real machine.
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
		cores := n.Machine.CPUs
		if cores == 0 {
			cores = n.CPUs
		} else {
			conf += " CPUs=" + count(n.CPUs)
		}
		r.box.StartSlurmd(n.Name, cores, conf, args...)
	}
}

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

// script runs until somebody says that it is to end.
const script = `#!/bin/bash
until [ -e /mnt/finish-$SLURM_JOB_ID ]; do sleep 0.2; done
`

func (r *real) Submit(job fake.Job) int64 {
	r.t.Helper()
	args := []string{"setpriv", "--reuid", "2000", "--regid", "2000", "--clear-groups", "sbatch", "--parsable", "--output=/dev/null", "--ntasks-per-node=1"}
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

func (r *real) Finish(id int64) {
	r.t.Helper()
	if err := os.WriteFile(r.box.Path(fmt.Sprintf("finish-%d", id)), nil, 0o644); err != nil {
		r.t.Fatal(err)
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

func (r *real) Stop() { r.box.StopController() }

func (r *real) Start(keepState bool) {
	if !keepState {
		r.box.LoseState()
	}
	r.box.StartController()
}
