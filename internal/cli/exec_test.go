// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/coxswain-hpc/coxswain/internal/cli"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/executable"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// execKubelet returns a kubelet whose containers run one program: it prints its arguments, and what it reads, and ends with a code.
func execKubelet(t *testing.T, code int) http.Handler {
	t.Helper()
	return answeringKubelet(t, code, func(pod, container string, command []string) string {
		if len(command) > 3 && command[1] == "-c" {
			command = slices.Concat([]string{command[0], "-c", "…"}, command[3:])
		}
		return fmt.Sprintf("%s %s %q\n", pod, container, command)
	})
}

// answeringKubelet returns a kubelet whose containers run programs that print an answer to their arguments, and end with a code.
func answeringKubelet(t *testing.T, code int, answer func(pod, container string, command []string) string) http.Handler {
	t.Helper()
	kubelet := http.NewServeMux()
	kubelet.HandleFunc("/exec/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		arrived := make(chan httpstream.Stream, 4)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
			arrived <- s
			return nil
		})
		if connection == nil {
			t.Error("the connection was not upgraded")
			return
		}
		defer connection.Close() //nolint:errcheck // the test is over
		query, streams := r.URL.Query(), map[string]httpstream.Stream{}
		want := 1
		for _, flag := range []string{"input", "output", "error", "tty"} {
			if query.Get(flag) == "1" {
				want++
			}
		}
		for len(streams) < want {
			select {
			case s := <-arrived:
				streams[s.Headers().Get("streamType")] = s
			case <-time.After(patience):
				t.Errorf("only %d of %d streams arrived", len(streams), want)
				return
			}
		}
		fmt.Fprint(streams["stdout"], answer(r.PathValue("pod"), r.PathValue("container"), query["command"]))
		if complaints := streams["stderr"]; complaints != nil {
			fmt.Fprintln(complaints, "a complaint")
		}
		if size := streams["resize"]; size != nil {
			var first json.RawMessage
			if err := json.NewDecoder(size).Decode(&first); err != nil {
				t.Error(err)
			}
			fmt.Fprintf(streams["stdout"], "a terminal of %s\n", first)
		} else if in := streams["stdin"]; in != nil {
			read, _ := io.ReadAll(in)
			fmt.Fprintf(streams["stdout"], "read %q\n", read)
		}
		status := metav1.Status{Status: metav1.StatusSuccess}
		if code != 0 {
			status = metav1.Status{
				Status: metav1.StatusFailure, Reason: "NonZeroExitCode", Message: "it ended",
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "ExitCode", Message: fmt.Sprint(code)}}},
			}
		}
		text, _ := json.Marshal(status)
		_, _ = streams["error"].Write(text)
		for _, s := range streams {
			_ = s.Close()
		}
		<-connection.CloseChan()
	})
	return kubelet
}

// commandOf returns what a login pod runs, without what confines it.
func commandOf(argv []string) []string {
	if len(argv) > 4 && argv[3] == "confine" {
		return argv[4:]
	}
	return argv
}

func readyLogin(name, set string) *corev1.Pod {
	p := daemonPod(name, "login", set)
	says(p, corev1.PodReady, corev1.ConditionTrue, "", "")
	return p
}

// Programs run through a real API server, which asks the kubelet of the test.
func TestProgramsRunInALoginPod(t *testing.T) {
	server := apiserver.Start(t)
	starting := daemonPod("demo-login-0", "login", "demo-login")
	runPod(t, server, execKubelet(t, 0), starting)
	runPod(t, server, execKubelet(t, 3), readyLogin("demo-login-1", "demo-login"))
	config := as(t, server, "user",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/exec"}, Verbs: []string{"get", "create"}})
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, config, server.Namespace)
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"exec without a user runs as root of the container": {
			[]string{"exec", "--", "hostname", "-f"}, `demo-login-1 login ["sh" "-c" "…" "confine" "hostname" "-f"]` + "\n",
		},
		"exec with a user becomes the user": {
			[]string{"exec", "--user", "alice", "hostname", "-f"}, `demo-login-1 login ["bash" "-c" "…" "become" "alice" "hostname" "-f"]` + "\n",
		},
		"exec passes standard input on when it is asked to": {
			[]string{"exec", "-i", "cat"}, `demo-login-1 login ["sh" "-c" "…" "confine" "cat"]` + "\nread \"\"\n",
		},
		"flags behind the name of a program are the program's": {
			[]string{"--user=alice", "squeue", "--user=bob", "-o", "%i", "--help"},
			`demo-login-1 login ["bash" "-c" "…" "become" "alice" "squeue" "--user=bob" "-o" "%i" "--help"]` + "\n",
		},
		"sbatch reads a script": {
			[]string{"--user=alice", "sbatch"}, `demo-login-1 login ["bash" "-c" "…" "become" "alice" "sbatch"]` + "\nread \"\"\n",
		},
		"ssh is the login shell of the user": {
			[]string{"ssh", "--user=alice"}, `demo-login-1 login ["bash" "-c" "…" "become" "alice"]` + "\nread \"\"\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t.Context(), t, program(), append([]string{kubeconfig}, tc.args...)...).check(t, 3)
			if got.out != tc.want || got.errors != "a complaint\n" {
				t.Errorf("it printed %q, want %q, and the errors %q", got.out, tc.want, got.errors)
			}
		})
	}
}

func TestInWhichLoginPodProgramsRun(t *testing.T) {
	gone := readyLogin("a-0", "a")
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		args []string
		err  string
	}{
		"there is no login pod":                    {nil, []string{"sinfo"}, "there is no login pod in namespace default"},
		"no login pod is ready":                    {[]*corev1.Pod{daemonPod("a-0", "login", "a")}, []string{"sinfo"}, "none of the 1 login pods in namespace default is ready"},
		"one of several LoginSets has to be named": {[]*corev1.Pod{gone, readyLogin("b-0", "b")}, []string{"sinfo"}, "choose one with --login: a, b"},
		"there is no login pod of the name":        {[]*corev1.Pod{gone}, []string{"--login=c", "sinfo"}, "there is no login pod of c in namespace default"},
		"a shell is somebody's":                    {[]*corev1.Pod{gone}, []string{"ssh"}, "--user NAME is required"},
		"a terminal needs a terminal":              {[]*corev1.Pod{gone}, []string{"exec", "-t", "sh"}, "standard input is not a terminal: leave out --tty"},
		"status has no such user":                  {[]*corev1.Pod{gone}, []string{"status", "--user=admin"}, "--user and --login are for programs in login pods"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, p := range tc.pods {
				w.put(t, p)
			}
			if got := w.run(t, tc.args...).check(t, 1); !strings.Contains(got.errors, tc.err) {
				t.Errorf("the errors are %q, want %q", got.errors, tc.err)
			}
		})
	}
	w := newWorld(t, gone, readyLogin("b-0", "b"))
	w.run(t, "--login=b", "sinfo").check(t, 1) // nobody is here that could run it
	asked := w.asked()
	if last := asked[len(asked)-1]; !strings.Contains(last, "&command=confine&command=sinfo&container=login") {
		t.Errorf("it asked %q", last)
	}
	for _, command := range []string{"exec", "ssh"} {
		golden.Check(t, "exec/help_"+command+".txt", w.run(t, command, "--help").check(t, 0).golden(command, "--help"))
	}
	golden.Check(t, "exec/help_sbatch.txt", w.run(t, "help", "sbatch").check(t, 0).golden("help", "sbatch"))
}

// The script runs with programs in place of getent, setpriv and chroot that print how they were called.
func TestHowAUserIsBecome(t *testing.T) {
	script := readFile(t, "become.sh")
	const path = "export PATH=/usr/local/sbin:"
	if !strings.Contains(script, path) {
		t.Fatalf("the script does not set its PATH by %q", path)
	}
	bin := t.TempDir()
	script = strings.Replace(script, path, "export PATH="+bin+":/usr/local/sbin:", 1)
	for name, text := range map[string]string{
		"getent":  `[ "$*" = "passwd -- alice" ] && echo "alice:x:2000:2001:Alice,,,:/home/alice:/bin/zsh"`,
		"id":      `echo "2001 27 3000"`,
		"setpriv": `printf '%s\n' setpriv "$@"`,
	} {
		executable.Write(t, filepath.Join(bin, name), "#!/bin/sh\n"+text+"\n")
	}
	for name, tc := range map[string]struct {
		jail string
		args []string
		code int
	}{
		"a_command":             {"", []string{"alice", "echo", "two words", "$HOME; exit 7"}, 0},
		"a_shell":               {"", []string{"alice"}, 0},
		"a_command_in_a_jail":   {"/mnt/jail", []string{"alice", "sbatch", "job.sh"}, 0},
		"nobody_of_that_name":   {"", []string{"bob", "id"}, 1},
		"a_name_like_an_option": {"", []string{"--help", "id"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "bash", append([]string{"-c", script, "become"}, tc.args...)...)
			command.Env = []string{"TERM=xterm", "COXSWAIN_JAIL=" + tc.jail, "SECRET_OF_THE_CONTAINER=x", "PATH=/usr/bin:/bin"}
			out, err := command.CombinedOutput()
			if code := command.ProcessState.ExitCode(); code != tc.code {
				t.Fatalf("exit code %d, want %d: %v: %s", code, tc.code, err, out)
			}
			golden.Check(t, "become/"+name+".txt", out)
		})
	}
}

// The script runs with a program in place of setpriv that prints how it was called.
func TestRootOfALoginPodWithAJailMayNotMount(t *testing.T) {
	bin := t.TempDir()
	executable.Write(t, filepath.Join(bin, "setpriv"), "#!/bin/sh\necho setpriv \"$@\"\n")
	for name, tc := range map[string]struct {
		container, jail string
		want            string
	}{
		"of a login pod with a jail":      {"login", "COXSWAIN_JAIL=/mnt/jail", "setpriv --bounding-set=-sys_admin echo two  words\n"},
		"of a login pod without a jail":   {"login", "COXSWAIN_JAIL=", "two  words\n"},
		"of a login pod of another image": {"login", "A=b", "two  words\n"},
		"of slurmctld":                    {"slurmctld", "COXSWAIN_JAIL=/mnt/jail", "two  words\n"},
	} {
		t.Run(name, func(t *testing.T) {
			argv := cli.RemoteArgv(tc.container, "echo", "two  words")
			command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			command.Env = []string{tc.jail, "PATH=" + bin + ":/usr/bin:/bin"}
			if out, err := command.CombinedOutput(); err != nil || string(out) != tc.want {
				t.Errorf("it printed %q, want %q: %v", out, tc.want, err)
			}
		})
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
