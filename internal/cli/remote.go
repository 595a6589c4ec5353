// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
)

//go:embed become.sh
var becomeScript string

// remote is a program to run in a login pod.
type remote struct {
	// user is who runs it; empty for root of the container, who may not mount in a login pod with a jail.
	user string
	// command is the program with its arguments; empty for the login shell of user.
	command []string
	// stdin is true if the program gets our standard input, tty if it has a terminal.
	stdin, tty bool
}

// confineScript runs a command. Programs of Slurm load what the configuration names, and root in the jail can write that; so where there is
// a jail nothing runs with the right to mount, which would be root of the Kubernetes node.
const confineScript = `[ -z "${COXSWAIN_JAIL-}" ] || set -- setpriv --bounding-set=-sys_admin "$@"; exec "$@"`

// argv returns what the container runs.
func (r remote) argv(container string) []string {
	switch {
	case r.user != "":
		return append([]string{"bash", "-c", becomeScript, "become", r.user}, r.command...)
	case container == slinkyv1beta1.NameLogin:
		return append([]string{"sh", "-c", confineScript, "confine"}, r.command...)
	}
	return r.command
}

// loginPod returns a ready login pod. Pods of one LoginSet are alike; of several LoginSets a user has to name one.
func loginPod(pods []corev1.Pod, name, namespace string) (*corev1.Pod, error) {
	ready := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool {
		c := workerpod.Condition(&p, corev1.PodReady)
		return p.DeletionTimestamp != nil || c == nil || c.Status != corev1.ConditionTrue
	})
	slices.SortFunc(ready, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	of := ""
	if name != "" {
		of = " of " + name
	}
	switch {
	case len(pods) == 0:
		return nil, fmt.Errorf("there is no login pod%s in namespace %s", of, namespace)
	case len(ready) == 0:
		return nil, fmt.Errorf("none of the %d login pods%s in namespace %s is ready", len(pods), of, namespace)
	case !sameInstance(ready):
		var sets []string
		for _, p := range ready {
			sets = append(sets, p.Labels[labelInstance])
		}
		return nil, fmt.Errorf("there are several LoginSets in namespace %s: choose one with --login: %s", namespace, strings.Join(slices.Compact(sets), ", "))
	}
	return &ready[0], nil
}

// findLogin returns the login pod in which programs run.
func (s *session) findLogin(ctx context.Context, c *connection) (*corev1.Pod, error) {
	pods, err := podsOf(ctx, c, slinkyv1beta1.NameLogin, s.login)
	if err != nil {
		return nil, err
	}
	return loginPod(pods, s.login, c.namespace)
}

// runRemote runs a program in a login pod. The error has the program's exit code when it is not 0.
func (s *session) runRemote(ctx context.Context, r remote) error {
	c, err := s.connect()
	if err != nil {
		return err
	}
	pod, err := s.findLogin(ctx, c)
	if err != nil {
		return err
	}
	executor, err := newExecutor(c.config, pod, slinkyv1beta1.NameLogin, r)
	if err != nil {
		return err
	}
	err = s.attach(ctx, executor, r)
	var status exec.CodeExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status):
		return exit{code: status.Code}
	}
	return fmt.Errorf("running a program in pod %s/%s: %w", pod.Namespace, pod.Name, err)
}

// attach runs the program with our inputs and outputs.
func (s *session) attach(ctx context.Context, executor remotecommand.Executor, r remote) error {
	options := remotecommand.StreamOptions{Stdout: s.Streams.Out, Stderr: s.Streams.ErrOut, Tty: r.tty}
	if r.stdin {
		options.Stdin = s.Streams.In
	}
	if !r.tty {
		return executor.StreamWithContext(ctx, options)
	}
	options.Stderr = nil // a terminal has one output
	local, err := openTerminal(ctx, s.Streams.In)
	if err != nil {
		return err
	}
	defer local.close()
	options.TerminalSizeQueue = local
	return executor.StreamWithContext(ctx, options)
}

// capture returns the output of a program in a container of a pod. The error has the program's standard error.
func capture(ctx context.Context, c *connection, pod *corev1.Pod, container string, command ...string) ([]byte, error) {
	executor, err := newExecutor(c.config, pod, container, remote{command: command})
	if err != nil {
		return nil, err
	}
	var out, complaints bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &complaints})
	if err != nil {
		err = fmt.Errorf("running %s in container %s of pod %s/%s: %w", command[0], container, pod.Namespace, pod.Name, err)
		if said := strings.TrimSpace(complaints.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, oneLine(said))
		}
	}
	return out.Bytes(), err
}

// newExecutor speaks WebSockets, and SPDY to servers and proxies that do not.
func newExecutor(config *rest.Config, pod *corev1.Pod, container string, r remote) (remotecommand.Executor, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container, Command: r.argv(container), Stdin: r.stdin, Stdout: true, Stderr: !r.tty, TTY: r.tty,
		}, scheme.ParameterCodec).URL()
	spdy, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, url)
	if err != nil {
		return nil, fmt.Errorf("preparing SPDY: %w", err)
	}
	websocket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, url.String())
	if err != nil {
		return nil, fmt.Errorf("preparing a WebSocket: %w", err)
	}
	return remotecommand.NewFallbackExecutor(websocket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// isTerminal reports whether a stream is one.
func isTerminal(stream io.Reader) bool {
	_, ok := terminalOf(stream)
	return ok
}
