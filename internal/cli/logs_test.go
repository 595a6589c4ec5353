// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// daemonPod returns a pod of a daemon of an object.
func daemonPod(name, daemon, instance string, sidecars ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	p.Labels = map[string]string{"app.kubernetes.io/name": daemon, "app.kubernetes.io/instance": instance}
	p.Spec.Containers = []corev1.Container{{Name: daemon, Image: daemon}}
	for _, sidecar := range sidecars {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: sidecar, Image: sidecar, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
	}
	return p
}

func TestWhoseLogIsPrinted(t *testing.T) {
	active := daemonPod("ha-controller-1", "slurmctld", "ha", "logfile")
	active.Labels[slinkyv1beta1.LabelControllerActive] = "true"
	worker := workerOf("demo-worker-3", "worker-3", "Idle")
	worker.Spec.InitContainers = []corev1.Container{{Name: "logfile"}}
	w := newWorld(t,
		daemonPod("demo-controller-0", "slurmctld", "demo", "logfile", "reconfigure"), daemonPod("ha-controller-0", "slurmctld", "ha", "logfile"), active,
		daemonPod("demo-accounting-0", "slurmdbd", "demo"), daemonPod("demo-login-0", "login", "demo-login"), daemonPod("demo-login-1", "login", "demo-login"), worker)
	for name, tc := range map[string]struct {
		args []string
		// pod and container are those whose log is asked for; empty when that is refused with the error.
		pod, container, err string
	}{
		"the slurmctld of a Controller":               {[]string{"slurmctld", "demo"}, "demo-controller-0", "logfile", ""},
		"another container of the pod of a slurmctld": {[]string{"slurmctld", "demo", "-c", "slurmctld"}, "demo-controller-0", "slurmctld", ""},
		"the slurmctld in charge":                     {[]string{"slurmctld", "ha"}, "ha-controller-1", "logfile", ""},
		"a backup by its pod":                         {[]string{"slurmctld", "ha-controller-0"}, "ha-controller-0", "logfile", ""},
		"one of several Controllers has to be named":  {[]string{"slurmctld"}, "", "", "name one of demo-controller-0, ha-controller-0, ha-controller-1"},
		"the only slurmdbd":                           {[]string{"slurmdbd"}, "demo-accounting-0", "slurmdbd", ""},
		"one of several login pods has to be named":   {[]string{"login"}, "", "", "name one of demo-login-0, demo-login-1"},
		"a login pod":                                 {[]string{"login", "demo-login-1"}, "demo-login-1", "login", ""},
		"a worker by its Slurm node":                  {[]string{"worker", "worker-3"}, "demo-worker-3", "logfile", ""},
		"a worker has to be named":                    {[]string{"worker"}, "", "", "name the Slurm node"},
		"there is no slurmrestd":                      {[]string{"slurmrestd", "demo"}, "", "", "there is no pod of slurmrestd of demo in namespace default"},
		"no component":                                {[]string{"munged"}, "", "", `COMPONENT is "munged": it must be slurmctld, slurmdbd, slurmrestd, login or worker`},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(w.asked())
			got := w.run(t, append([]string{"logs"}, tc.args...)...).check(t, 1) // no kubelet is here that could answer
			if tc.err != "" {
				if !strings.Contains(got.errors, tc.err) {
					t.Errorf("the errors are %q, want %q", got.errors, tc.err)
				}
				return
			}
			want := "GET /api/v1/namespaces/default/pods/" + tc.pod + "/log?container=" + tc.container
			if asked := w.asked()[before:]; asked[len(asked)-1] != want {
				t.Errorf("it asked %q, want %q", asked, want)
			}
		})
	}
	golden.Check(t, "logs/help.txt", w.run(t, "logs", "--help").check(t, 0).golden("logs", "--help"))
}

// The log comes from a kubelet, through a real API server.
func TestLogsAreStreamed(t *testing.T) {
	server := apiserver.Start(t)
	more := make(chan struct{})
	kubelet := http.NewServeMux()
	kubelet.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(out http.ResponseWriter, r *http.Request) {
		_, _ = out.Write([]byte(r.PathValue("pod") + " " + r.PathValue("container") + " " + r.URL.RawQuery + "\n"))
		if r.URL.Query().Get("follow") == "" {
			return
		}
		_ = http.NewResponseController(out).Flush()
		select {
		case <-more:
			_, _ = out.Write([]byte("more\n"))
			_ = http.NewResponseController(out).Flush()
		case <-r.Context().Done():
			return
		}
		<-r.Context().Done()
	})
	runPod(t, server, kubelet, daemonPod("demo-controller-0", "slurmctld", "demo", "logfile"))
	config := as(t, server, "reader",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/log"}, Verbs: []string{"get"}})
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, config, server.Namespace)
	got := run(t.Context(), t, program(), kubeconfig, "logs", "slurmctld", "--tail=7", "--previous").check(t, 0)
	if want := "demo-controller-0 logfile previous=true&tailLines=7\n"; got.out != want {
		t.Errorf("it printed %q, want %q", got.out, want)
	}
	out, errors, stop := start(t, program(), kubeconfig, "logs", "slurmctld", "-f")
	defer stop()
	out.await(t, "follow=true")
	close(more)
	out.await(t, "\nmore\n")
	if code := stop(); code != 0 || errors.String() != "" {
		t.Errorf("exit code %d and the errors %q", code, errors)
	}
}
