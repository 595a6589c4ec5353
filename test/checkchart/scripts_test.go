// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package checkchart

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
)

// scripts is where the chart has its scripts.
const scripts = "../../helm/coxswain-activechecks/scripts"

// tools are programs of the system that scripts may use. All else on their PATH is made by a test.
var tools = []string{"awk", "cat", "chmod", "cp", "dd", "find", "getconf", "grep", "head", "ls", "mkdir", "mktemp", "rm", "sed", "sh", "sort", "tr", "true", "wc"}

// node is a directory with the programs of a machine.
type node struct {
	t   *testing.T
	dir string
	env []string
}

func newNode(t *testing.T, programs map[string]string, env ...string) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir(), env: env}
	for _, name := range tools {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if err := os.MkdirAll(filepath.Join(n.dir, "bin"), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(n.dir, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, script := range programs {
		n.write(filepath.Join("bin", name), "#!/bin/sh\n"+script+"\n")
	}
	return n
}

// write makes a file of the machine, in place of one that is there.
func (n *node) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	_ = os.Remove(path) // a link to a program of the system
	executable.Write(n.t, path, text)
}

// run runs a script of the chart by sh, and returns its exit code and its output.
func (n *node) run(script string) (code int, output string) {
	n.t.Helper()
	command := exec.CommandContext(n.t.Context(), "/bin/sh", filepath.Join(scripts, script))
	command.Env = append([]string{"PATH=" + filepath.Join(n.dir, "bin"), "DIR=" + n.dir, "JAIL=" + n.dir, "SLURMD_NODENAME=worker-0", "SLURM_CLUSTER_REF_NAME=demo"}, n.env...)
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		n.t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), strings.TrimSpace(string(out))
}

// Programs of machines that several tests have.
const (
	eightH100 = `for i in 1 2 3 4 5 6 7 8; do echo NVIDIA H100 80GB HBM3; done`
	sinfo     = `case "$*" in *%T*) cat "$DIR/states" ;; *) cut() { sed 's/|.*//' "$DIR/states"; }; cut ;; esac`
	scontrol  = `case "$*" in
"show config") echo "TopologyParam = (null)"; echo "TopologyPlugin          = ${PLUGIN:-topology/tree}" ;;
"show topology") [ ! -e "$DIR/topology" ] || cat "$DIR/topology" ;;
"show hostnames "*) echo "$3" | tr , '\n' ;;
esac`
)

func TestScripts(t *testing.T) {
	t.Parallel()
	const (
		dcgm   = `TEST=dcgmi diag -r 2 -j`
		status = `FAIL_PATTERN="status" *: *"fail"`
	)
	tests := []struct {
		name, script string
		programs     map[string]string
		files        map[string]string
		env          []string
		code         int
		says         string // the last line begins with it
	}{
		{name: "memory that is fast passes", script: "mem-perf.sh", says: "PASS: worker-0 writes 8192 MiB/s",
			programs: map[string]string{"dd": `[ "$*" = "if=/dev/zero of=/dev/null bs=128M count=32 iflag=fullblock" ] || exit 1
				echo 32+0 records in >&2; echo "4294967296 bytes (4.3 GB, 4.0 GiB) copied, 0.5 s, 8.6 GB/s" >&2`}},
		{name: "memory that is slow fails", script: "mem-perf.sh", code: 1, says: "FAIL: worker-0 writes 819 MiB/s, less than 900", env: []string{"MEM_PERF_MIN_MIBPS=900"},
			programs: map[string]string{"dd": `echo "4294967296 bytes (4.3 GB, 4.0 GiB) copied, 5 s, 859 MB/s" >&2`}},
		{name: "a dd that cannot have its buffer says nothing about the node", script: "mem-perf.sh", says: "ERROR: dd did not say how long it took: dd: memory exhausted",
			programs: map[string]string{"dd": `echo dd: memory exhausted >&2; exit 1`}},
		{name: "the dd of this machine is understood", script: "mem-perf.sh", says: "PASS: worker-0 writes ", env: []string{"MEM_PERF_BUFFER_MIB=1", "MEM_PERF_PASSES=64", "MEM_PERF_MIN_MIBPS=1"}},

		{name: "healthy nodes pass", script: "ensure-healthy-nodes.sh", says: "PASS: 3 nodes are healthy", programs: map[string]string{"sinfo": sinfo},
			files: map[string]string{"states": "worker-0|mixed|none\nworker-0|mixed|none\nworker-1|idle|none\nworker-2|idle~|none\n"}},
		{name: "a node that drains fails", script: "ensure-healthy-nodes.sh", code: 1, says: "FAIL: worker-1 is draining: [node_problem] a|b", programs: map[string]string{"sinfo": sinfo},
			files: map[string]string{"states": "worker-0|mixed|none\nworker-1|draining|[node_problem] a|b\n"}},
		{name: "a node that does not answer fails", script: "ensure-healthy-nodes.sh", code: 1, says: "FAIL: worker-1 is down*: Not responding", programs: map[string]string{"sinfo": sinfo},
			files: map[string]string{"states": "worker-1|down*|Not responding\n"}},
		{name: "a node with a reason fails", script: "ensure-healthy-nodes.sh", code: 1, says: "FAIL: worker-1 is idle: to be looked at", programs: map[string]string{"sinfo": sinfo},
			files: map[string]string{"states": "worker-1|idle|to be looked at\n"}},
		{name: "a slurmctld that does not answer fails", script: "ensure-healthy-nodes.sh", code: 1, says: "sinfo: error", programs: map[string]string{"sinfo": "echo sinfo: error >&2; exit 1"}},

		{name: "the topology of a slurmctld that does not answer is not known", script: "wait-for-topology.sh", code: 1, says: "scontrol: error", programs: map[string]string{"scontrol": "echo scontrol: error >&2; exit 1"}},
		{name: "nodes of a slurmctld that does not answer are not known", script: "wait-for-topology.sh", code: 1, says: "sinfo: error", programs: map[string]string{"scontrol": scontrol, "sinfo": "echo sinfo: error >&2; exit 1"},
			files: map[string]string{"topology": "Nodes=worker-0\n"}},
		{name: "a flat network has no topology", script: "wait-for-topology.sh", says: "SKIP: TopologyPlugin is topology/flat", env: []string{"PLUGIN=topology/flat"}, programs: map[string]string{"scontrol": scontrol}},
		{name: "a tree without switches is flat", script: "wait-for-topology.sh", says: "SKIP: no switch is known", programs: map[string]string{"scontrol": scontrol}},
		{name: "every node is in the tree", script: "wait-for-topology.sh", says: "PASS: every node", programs: map[string]string{"scontrol": scontrol, "sinfo": sinfo},
			files: map[string]string{"states": "worker-0|\nworker-1|\n", "topology": "SwitchName=s0 Level=1 LinkSpeed=1 Nodes=worker-0,worker-1 Switches=s1\nSwitchName=s1 Level=0 LinkSpeed=1 Nodes=worker-0,worker-1\n"}},
		{name: "a node comes into the tree while it is waited for", script: "wait-for-topology.sh", says: "PASS: every node",
			programs: map[string]string{"scontrol": scontrol, "sinfo": sinfo, "sleep": `[ "$1" = 5 ] && echo Nodes=worker-1 >>"$DIR/topology"`},
			files:    map[string]string{"states": "worker-0|\nworker-1|\n", "topology": "SwitchName=s1 Level=0 Nodes=worker-0\n"}},
		{name: "a node stays out of the blocks", script: "wait-for-topology.sh", code: 1, says: "FAIL: nodes that are not in the topology: worker-1 worker-2", env: []string{"PLUGIN=topology/block", "TOPOLOGY_TRIES=3"},
			programs: map[string]string{"scontrol": scontrol, "sinfo": sinfo, "sleep": ""}, files: map[string]string{"states": "worker-0|\nworker-1|\nworker-2|\n", "topology": "BlockName=b0 BlockIndex=0 Nodes=worker-0 BlockSize=1\n"}},

		{name: "every login pod lets in", script: "ssh-check.sh", says: "PASS: logged in to 10.0.0.2", programs: map[string]string{
			"getent": `[ "$*" = "ahosts demo-login-headless-svc" ] && printf '%s\n' "10.0.0.2 STREAM" "10.0.0.1 STREAM" "10.0.0.1 DGRAM"`, "ssh": `[ "$*" = "-n -o BatchMode=yes -o ConnectTimeout=10 -o HostKeyAlias=login $8 true" ]`}},
		{name: "a login pod does not let in", script: "ssh-check.sh", code: 1, says: "PASS: logged in to 10.0.0.2", programs: map[string]string{
			"getent": `printf '%s\n' "10.0.0.1 STREAM" "10.0.0.2 STREAM"`, "ssh": `[ "$8" != 10.0.0.1 ]`}},
		{name: "no login pod is ready", script: "ssh-check.sh", code: 1, says: "FAIL: Service logins has no login pod that is ready", env: []string{"LOGIN_SERVICE=logins"}, programs: map[string]string{"getent": "exit 2"}},

		{name: "a node without GPUs is skipped", script: "gpu-test.sh", says: "SKIP: worker-0 has no nvidia-smi", env: []string{dcgm, status}},
		{name: "a node whose driver does not run is skipped", script: "gpu-test.sh", says: "SKIP: nvidia-smi shows no GPU of worker-0", env: []string{dcgm, status}, programs: map[string]string{"nvidia-smi": "exit 9"}},
		{name: "a GPU that Slurm gave and the driver lacks fails", script: "gpu-test.sh", code: 1, says: "FAIL: Slurm gave the job 8 GPUs of worker-0, and nvidia-smi shows 7", env: []string{dcgm, status, "SLURM_GPUS_ON_NODE=8"},
			programs: map[string]string{"nvidia-smi": "for i in 1 2 3 4 5 6 7; do echo NVIDIA H100; done"}},
		{name: "a program that is not installed is skipped", script: "gpu-test.sh", says: "SKIP: dcgmi is not installed", env: []string{dcgm, status}, programs: map[string]string{"nvidia-smi": eightH100}},
		{name: "a platform that the test is not for is skipped", script: "gpu-test.sh", says: "SKIP: worker-0 is 2xGPU, and the test is for 8xH100 8xH200", env: []string{dcgm, status, "PLATFORMS=8xH100 8xH200"},
			programs: map[string]string{"nvidia-smi": "echo NVIDIA A100-SXM4-80GB; echo NVIDIA A100-SXM4-80GB"}},
		{name: "GPUs of several models are just GPUs", script: "gpu-test.sh", says: "SKIP: worker-0 is 2xGPU,", env: []string{dcgm, status, "PLATFORMS=8xH100"},
			programs: map[string]string{"nvidia-smi": "echo NVIDIA H100 PCIe; echo NVIDIA H200"}},
		{name: "a test that finds nothing passes", script: "gpu-test.sh", says: "PASS: dcgmi diag -r 2 -j on worker-0", env: []string{dcgm, status, "SLURM_GPUS_ON_NODE=8"},
			programs: map[string]string{"nvidia-smi": eightH100, "dcgmi": `[ "$*" = "diag -r 2 -j" ] && echo '{"status" : "Pass"}'`}},
		{name: "a test that finds something fails", script: "gpu-test.sh", code: 1, says: "FAIL: dcgmi diag -r 2 -j on worker-0", env: []string{dcgm, status},
			programs: map[string]string{"nvidia-smi": eightH100, "dcgmi": `echo '{"status" : "Fail"}'; exit 1`}},
		{name: "a test that breaks off says nothing about the node", script: "gpu-test.sh", says: "ERROR: dcgmi diag -r 2 -j ended with 3 on worker-0", env: []string{dcgm, status},
			programs: map[string]string{"nvidia-smi": eightH100, "dcgmi": `echo "no connection to nv-hostengine"; exit 3`}},
		{name: "a test is told the platform and the number of GPUs", script: "gpu-test.sh", says: "PASS: ", env: []string{`TEST=probe $PLATFORM -g $GPUS`, "FAIL_PATTERN=fail", "PLATFORMS=4xGB300 8xH100"},
			programs: map[string]string{"nvidia-smi": eightH100, "probe": `[ "$*" = "8xH100 -g 8" ] || echo fail`}},

		{name: "without enroot no image is pulled", script: "prepull-container-image.sh", says: "SKIP: enroot and pyxis", env: []string{"CONTAINER_IMAGE=debian"}},
		{name: "without pyxis no image is pulled", script: "prepull-container-image.sh", says: "SKIP: enroot and pyxis", programs: map[string]string{"enroot": "", "srun": "echo --nodes"}},
		{name: "without a name no image is pulled", script: "prepull-container-image.sh", says: "SKIP: CONTAINER_IMAGE", programs: map[string]string{"enroot": "", "srun": "echo --container-image"}},
		{name: "an image is pulled", script: "prepull-container-image.sh", says: "PASS: a container runs of debian", env: []string{"CONTAINER_IMAGE=debian"},
			programs: map[string]string{"enroot": "", "srun": `case "$*" in --help) echo "  --container-image=..." ;; *) [ "$*" = "--container-image=debian true" ] ;; esac`}},
		{name: "an image is not there", script: "prepull-container-image.sh", code: 1, says: "FAIL: no container runs of debian", env: []string{"CONTAINER_IMAGE=debian"},
			programs: map[string]string{"enroot": "", "srun": `[ "$*" = --help ] && echo --container-image`}},
		{name: "without enroot there are no containers", script: "enroot-cleanup.sh", says: "SKIP: enroot is not installed"},
		{name: "containers are removed", script: "enroot-cleanup.sh", says: "PASS: removed 2 containers", programs: map[string]string{"enroot": `case $1 in list) printf '%s\n' pyxis_1 pyxis_2 ;; *) [ "$1 $2" = "remove --force" ] ;; esac`}},
		{name: "a container cannot be removed", script: "enroot-cleanup.sh", code: 1, says: "busy", programs: map[string]string{"enroot": `case $1 in list) echo pyxis_1 ;; *) echo busy; exit 1 ;; esac`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, test.programs, test.env...)
			for name, text := range test.files {
				n.write(name, text)
			}
			code, output := n.run(test.script)
			last := output[strings.LastIndex(output, "\n")+1:]
			if code != test.code || !strings.HasPrefix(last, test.says) {
				t.Errorf("exit code %d and\n%s\nwant %d and %s…", code, output, test.code, test.says)
			}
		})
	}
}

func TestOldOutputsAreDeleted(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil, "KEEP_MINUTES=60")
	if code, output := n.run("soperator-outputs-logs-cleaner.sh"); code != 0 || !strings.HasPrefix(output, "SKIP: ") {
		t.Errorf("without outputs: %d %s", code, output)
	}
	old := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{"kept", "opt/soperator-outputs/local/slurm_jobs/old.out", "opt/soperator-outputs/local/slurm_jobs/new.out", "opt/soperator-outputs/deep/er/old.out"} {
		n.write(name, "x")
		if !strings.Contains(name, "new") {
			if err := os.Chtimes(filepath.Join(n.dir, name), old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink(n.dir, filepath.Join(n.dir, "opt/soperator-outputs/link")); err != nil {
		t.Fatal(err)
	}
	if code, output := n.run("soperator-outputs-logs-cleaner.sh"); code != 0 || output != "PASS: deleted 2 files" {
		t.Errorf("%d %s", code, output)
	}
	for name, stays := range map[string]bool{"kept": true, "opt/soperator-outputs/local/slurm_jobs/old.out": false, "opt/soperator-outputs/local/slurm_jobs/new.out": true, "opt/soperator-outputs/deep/er/old.out": false} {
		if _, err := os.Stat(filepath.Join(n.dir, name)); stays != (err == nil) {
			t.Errorf("%s: %v, want it to stay: %v", name, err, stays)
		}
	}
}

func TestTheUserOfChecksIsMadeOnce(t *testing.T) {
	t.Parallel()
	programs := map[string]string{
		"useradd": `echo "$*" >>"$DIR/added"; echo soperatorchecks:x:$4:$4::/opt/soperator-home/soperatorchecks:/bin/bash >>"$DIR/etc/passwd"`,
		// -q -t ed25519 -N '' -C comment -f file
		"ssh-keygen": `echo private >"$9"; echo public >"$9.pub"`,
		"setpriv":    `echo "$1 $2 $3 $4 $5" >>"$DIR/as"; shift 5; exec "$@"`,
		"chown":      `echo "$*" >>"$DIR/owners"`,
		"sleep":      `echo "$1" >>"$DIR/slept"`,
	}
	n := newNode(t, programs, "CHECKS_UID=3100", "WAIT_SECONDS=7")
	n.write("etc/passwd", "root:x:0:0::/root:/bin/bash\nsoperatorchecks2:x:1:1:::\n")
	for _, want := range []string{"PASS: made soperatorchecks as 3100:3100; waiting until slurmctld knows it", "PASS: soperatorchecks is there as 3100:3100"} {
		if code, output := n.run("create-user-soperatorchecks.sh"); code != 0 || output != want {
			t.Fatalf("%d %s, want %s", code, output, want)
		}
	}
	const home = "opt/soperator-home/soperatorchecks"
	for name, want := range map[string]string{
		"added": "--prefix " + n.dir + " --uid 3100 --user-group --no-create-home --home-dir /" + home + " --shell /bin/bash soperatorchecks\n",
		"as":    strings.Repeat("--reuid 3100 --regid 3100 --clear-groups\n", 2), "slept": "7\n",
		home + "/.ssh/id_ed25519": "private\n", home + "/.ssh/authorized_keys": "public\n",
	} {
		text, err := os.ReadFile(filepath.Join(n.dir, name))
		if err != nil || string(text) != want {
			t.Errorf("%s is %q, want %q: %v", name, text, want, err)
		}
	}
	owners, err := os.ReadFile(filepath.Join(n.dir, "owners"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "-h 3100:3100 " + filepath.Join(n.dir, home) + "\n"; !strings.Contains(string(owners), want) {
		t.Errorf("the directories are others':\n%s", owners)
	}
}

func TestAnIDThatIsTakenIsNotGivenToTheUserOfChecks(t *testing.T) {
	t.Parallel()
	n := newNode(t, map[string]string{"useradd": `echo "useradd: UID 3000 is not unique" >&2; exit 4`})
	n.write("etc/passwd", "alice:x:3000:3000::/home/alice:/bin/bash\n")
	if code, output := n.run("create-user-soperatorchecks.sh"); code != 4 || output != "useradd: UID 3000 is not unique" {
		t.Errorf("%d %s", code, output)
	}
}
