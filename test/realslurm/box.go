// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package realslurm

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

//go:embed box.sh
var script string

// patience bounds every wait.
const patience = 90 * time.Second

// Key signs the tokens for slurmrestd.
const Key = "the-key-of-the-cluster-in-the-box"

// Box is a Slurm cluster.
type Box struct {
	t       testing.TB
	root    Root
	dir     string // seen as /mnt inside
	init    *exec.Cmd
	daemons map[string]*daemon
	ports   map[string]int
	// Transport reaches slurmrestd, whatever the host of an URL is.
	Transport http.RoundTripper
}

// daemon is a process in the box.
type daemon struct {
	cmd  *exec.Cmd
	done chan struct{}
}

// Start starts a box with slurmctld and slurmrestd, which ends with the test. extra are further lines of slurm.conf.
func Start(t testing.TB, root Root, extra string) *Box {
	t.Helper()
	b := Open(t, root, extra)
	b.StartController()
	b.Transport = b.StartRest("slurmrestd", "openapi/slurmctld")
	return b
}

// Open makes a box in which nothing runs yet. It ends with the test.
func Open(t testing.TB, root Root, extra string) *Box {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "slurm") // short, for the socket's sake
	if err != nil {
		t.Fatal(err)
	}
	b := &Box{t: t, root: root, dir: dir, daemons: map[string]*daemon{}, ports: map[string]int{}}
	t.Cleanup(b.close)
	b.files(extra)
	b.init = exec.CommandContext(context.Background(), "bash", "-c", script, "box.sh", root.Dir, dir) //nolint:gosec // a script of ours
	b.init.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig:  syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
	}
	var out bytes.Buffer
	b.init.Stdout, b.init.Stderr = &out, &out
	ended, started := make(chan struct{}), make(chan error, 1)
	go func() {
		// The death signal is sent when the starting thread ends, not the process: keep the thread as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := b.init.Start()
		started <- err
		if err == nil {
			_ = b.init.Wait()
		}
		close(ended)
	}()
	if err := <-started; err != nil {
		t.Fatalf("starting a box: %v", err)
	}
	b.daemons["init"] = &daemon{b.init, ended}
	b.Wait("the box", func() bool {
		select {
		case <-ended:
			t.Fatalf("the box ended: %s", &out)
		default:
		}
		_, err := os.Stat(filepath.Join(dir, "ready"))
		return err == nil
	})
	return b
}

// With returns the box for a part of its test, which ends if something in the box does not go as it should. The box does not end with it.
func (b *Box) With(t testing.TB) *Box {
	part := *b
	part.t = t
	return &part
}

// files writes what the daemons read.
func (b *Box) files(extra string) {
	b.t.Helper()
	if out, err := exec.CommandContext(b.t.Context(), "cp", "-a", filepath.Join(b.root.Dir, "etc"), b.dir+"/etc").CombinedOutput(); err != nil { //nolint:gosec // our own directories
		b.t.Fatalf("copying /etc: %s", out)
	}
	uid := b.user("slurm")
	conf := configuration + extra + "\n"
	for name, content := range map[string]string{
		"etc/slurm/slurm.conf": conf, "etc/slurm/cgroup.conf": "CgroupPlugin=disabled\n", "etc/slurm/slurm.key": strings.Repeat(Key, 40),
		"etc/slurm/jwt_hs256.key": Key, "etc/hosts": "127.0.0.1 localhost\n10.9.8.7 box\n", "etc/resolv.conf": "", "etc/hostname": "box\n",
	} {
		path := filepath.Join(b.dir, name)
		mode := os.FileMode(0o644)
		if filepath.Ext(name) == ".key" {
			mode = 0o600
		}
		_ = os.Remove(path)                                            // it may be a link
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // daemons read it as other users
			b.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			b.t.Fatal(err)
		}
		if mode == 0o600 {
			b.give(path, uid)
		}
	}
	users, err := os.OpenFile(b.dir+"/etc/passwd", os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := users.WriteString("alice:x:2000:2000::/tmp:/bin/bash\n"); err != nil {
		b.t.Fatal(err)
	}
	if err := users.Close(); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Mkdir(b.dir+"/state", 0o755); err != nil { //nolint:gosec // as above
		b.t.Fatal(err)
	}
	b.give(b.dir+"/state", uid)
	if err := os.Chmod(b.dir, 0o777); err != nil { //nolint:gosec // daemons of several users write there
		b.t.Fatal(err)
	}
}

func (b *Box) give(path string, uid int) {
	b.t.Helper()
	if err := os.Chown(path, uid, uid); err != nil {
		b.t.Fatal(err)
	}
}

// user returns the number of a user of the images.
func (b *Box) user(name string) int {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.root.Dir, "etc/passwd"))
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, ":"); fields[0] == name {
			uid, err := strconv.Atoi(fields[2])
			if err != nil {
				b.t.Fatal(err)
			}
			return uid
		}
	}
	b.t.Fatalf("%s has no user %s", b.root.Dir, name)
	return 0
}

// configuration is a slurm.conf for a box, quick where the product's is patient.
const configuration = `ClusterName=box
SlurmctldHost=box
AuthType=auth/slurm
CredType=cred/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key
SlurmUser=slurm
StateSaveLocation=/mnt/state
SlurmdSpoolDir=/var/spool/slurmd/%n
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
SlurmdPidFile=/run/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
ReturnToService=2
MaxNodeCount=1024
GresTypes=gpu
SlurmdTimeout=3600
KillWait=1
SchedulerParameters=batch_sched_delay=0,sched_interval=2
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
`

// command makes a command that runs in the box as root.
func (b *Box) command(ctx context.Context, args ...string) *exec.Cmd {
	enter := []string{
		"--target", strconv.Itoa(b.init.Process.Pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wdns=/tmp",
		"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp",
	}
	return exec.CommandContext(ctx, "nsenter", append(enter, args...)...) //nolint:gosec // commands of tests
}

// Run runs a command in the box and returns what it prints; one that fails ends the test.
func (b *Box) Run(args ...string) string {
	b.t.Helper()
	out, err := b.Try(args...)
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Try runs a command in the box.
func (b *Box) Try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := b.command(ctx, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// StartController starts slurmctld and waits until it answers.
func (b *Box) StartController() {
	b.t.Helper()
	b.LaunchController()
	b.Wait("slurmctld", func() bool {
		out, err := b.Try("scontrol", "ping")
		return err == nil && strings.Contains(out, "UP")
	})
}

// LaunchController starts slurmctld, whatever becomes of it.
func (b *Box) LaunchController() {
	b.t.Helper()
	b.start("slurmctld", "exec setpriv --reuid slurm --regid slurm --init-groups slurmctld -D")
}

// StopController ends slurmctld, which saves its state, when it owes no answer: a slurmd whose registration it does not answer
// registers again, with the next slurmctld.
func (b *Box) StopController() {
	b.t.Helper()
	b.Wait("slurmctld to have answered", func() bool { return !b.asksController("tcp") && !b.asksController("tcp6") })
	b.stop("slurmctld", "TERM")
}

// asksController reports whether a process in the box is connected to slurmctld, by a table of the kernel (its document proc_net_tcp).
func (b *Box) asksController(protocol string) bool {
	b.t.Helper()
	const port, established = ":1AA1", "01" // 6817
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", b.init.Process.Pid, protocol))
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); strings.HasSuffix(fields[2], port) && fields[3] == established {
			return true
		}
	}
	return false
}

// LoseState deletes what a slurmctld that does not run has saved.
func (b *Box) LoseState() {
	b.t.Helper()
	b.Run("sh", "-c", "rm -rf /mnt/state/*")
}

// log returns all that a daemon has printed.
func (b *Box) log(name string) string {
	text, err := os.ReadFile(filepath.Join(b.dir, name+".log")) //nolint:gosec // below our own directory
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return string(text)
}

// start runs a line of shell in the background; what it prints goes to a file of its name.
func (b *Box) start(name, line string) {
	b.t.Helper()
	b.stop(name, "KILL")
	log, err := os.OpenFile(filepath.Join(b.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) //nolint:gosec // below our own directory
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the process has it
	cmd := b.command(context.Background(), "bash", "-c", "echo $$ >/run/"+name+".pid; "+line)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		b.t.Fatalf("starting %s: %v", name, err)
	}
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	b.daemons[name] = &daemon{cmd, done}
}

// stop sends a signal to a daemon that start started, and waits until it has ended.
func (b *Box) stop(name, signal string) {
	b.t.Helper()
	d := b.daemons[name]
	if d == nil {
		return
	}
	delete(b.daemons, name)
	_, _ = b.Try("sh", "-c", "kill -"+signal+" $(cat /run/"+name+".pid)") // it may have ended by itself
	select {
	case <-d.done:
	case <-time.After(patience):
		b.t.Fatalf("%s does not end", name)
	}
}

// runs reports whether a daemon that was started has not ended.
func (b *Box) runs(name string) bool {
	d := b.daemons[name]
	if d == nil {
		return false
	}
	select {
	case <-d.done:
		return false
	default:
		return true
	}
}

// Wait waits for something to be so, for 90 seconds at most.
func (b *Box) Wait(what string, so func() bool) {
	b.t.Helper()
	deadline, tick := time.NewTimer(patience), time.NewTicker(50*time.Millisecond)
	defer deadline.Stop()
	defer tick.Stop()
	for !so() {
		select {
		case <-deadline.C:
			b.t.Fatalf("waiting for %s (%s): not so after %s\n%s", what, b.root.Release, patience, b.Logs())
		case <-tick.C:
		}
	}
}

// Logs returns the end of all that the daemons have printed.
func (b *Box) Logs() string {
	var out strings.Builder
	files, _ := filepath.Glob(filepath.Join(b.dir, "*.log"))
	for _, file := range files {
		if filepath.Base(file) == "slurmrestd.log" {
			continue // it tells every call
		}
		text, _ := os.ReadFile(file) //nolint:gosec // written by start
		fmt.Fprintf(&out, "== %s\n%s\n", filepath.Base(file), text[max(0, len(text)-4000):])
	}
	return out.String()
}

// close ends all processes of the box with its first one.
func (b *Box) close() {
	if b.init != nil && b.init.Process != nil {
		_ = b.init.Process.Kill()
		for _, d := range b.daemons {
			<-d.done
		}
	}
	if b.t.Failed() {
		b.t.Log(b.Logs())
	}
	_ = os.RemoveAll(b.dir)
}

// Path returns where a file below /mnt is outside of the box.
func (b *Box) Path(name string) string { return filepath.Join(b.dir, name) }
