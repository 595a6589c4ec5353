// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestUsersLogInToTheWorkersOfAClusterWithAJail(t *testing.T) {
	d := load(t)
	const cluster = `
metadata: {name: demo}
kind: SlurmCluster
spec:
  volumeSources: [{name: VOLUME, nfs: {server: s, path: /}}]
  secrets: {SECRET}
  slurmNodes: {login: {size: 1}}
---
kind: NodeSet
metadata: {name: gpu}
spec: {slurmd: {image: {repository: r, tag: t}}}
`
	for name, c := range map[string]struct{ volume, secret, want string }{
		"workers with a jail have the generated host keys":                {volume: "jail", want: "demo-login-ssh-host-keys"},
		"workers with a jail have the host keys of a Secret of one's own": {volume: "jail", secret: "sshdKeysName: mine", want: "mine"},
		"workers without a jail have no host keys":                        {volume: "data"},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.input(t, strings.NewReplacer("VOLUME", c.volume, "SECRET", c.secret).Replace(cluster))
			jailIsFilled(in.Cluster)
			parts := Cluster(in).Components
			set := parts.NodeSets[0]
			worker, err := set.Spec.Slurmd.Decode()
			if err != nil {
				t.Fatal(err)
			}
			login, err := parts.LoginSet.Spec.Login.Decode()
			if err != nil {
				t.Fatal(err)
			}
			if got := set.Spec.SSH.Enabled; got != (c.want != "") {
				t.Errorf("sshd runs on workers: %v", got)
			}
			template, err := set.Spec.Template.Spec.Decode()
			if err != nil {
				t.Fatal(err)
			}
			secret := ""
			for _, v := range template.Volumes {
				if v.Name == hostKeysVolume {
					secret = v.Secret.SecretName
				}
			}
			if secret != c.want {
				t.Errorf("the host keys of workers are from Secret %q, want %q", secret, c.want)
			}
			hosts, onLogin := valueOf(worker.Env, sshHostsVariable), valueOf(login.Env, sshHostsVariable)
			if hosts != onLogin || (hosts != "") != (c.want != "") {
				t.Errorf("workers know hosts %q, login pods %q", hosts, onLogin)
			}
		})
	}
}

// TestTheStartOfWorkersIsPutOff: the kubelet waits for the random time and for the start.
func TestTheStartOfWorkersIsPutOff(t *testing.T) {
	d := load(t)
	for seconds, want := range map[string]struct {
		delay   string
		allowed int32
	}{"0": {}, "90": {"90", 690}, "2147483647": {"2147483647", 2147483647}} {
		in := d.input(t, "kind: SlurmCluster\nmetadata: {name: demo}\nspec: {}\n---\nkind: NodeSet\nmetadata: {name: gpu}\n"+
			"spec: {workerInitRandomDelaySeconds: "+seconds+", slurmd: {image: {repository: r, tag: t}}}\n")
		slurmd, err := NodeSet(in.Cluster, &in.NodeSets[0]).Object.Spec.Slurmd.Decode()
		if err != nil {
			t.Fatal(err)
		}
		var allowed int32
		if slurmd.StartupProbe != nil {
			allowed = slurmd.StartupProbe.FailureThreshold
		}
		if delay := valueOf(slurmd.Env, "WORKER_INIT_RANDOM_DELAY_SECONDS"); delay != want.delay || allowed != want.allowed {
			t.Errorf("%s: the variable is %q, the probe may fail %d times", seconds, delay, allowed)
		}
	}
}

// TestTheHostKeysAreThoseOfTheClusterAlone asks OpenSSH which hosts the names mean.
func TestTheHostKeysAreThoseOfTheClusterAlone(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip(err)
	}
	in := load(t).input(t, "metadata: {name: demo}\nkind: SlurmCluster\nspec: {}\n")
	const key = " ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGFsaWNlYWxpY2VhbGljZWFsaWNlYWxpY2VhbGljZWFs\n"
	file := filepath.Join(t.TempDir(), "ssh_known_hosts")
	if err := os.WriteFile(file, []byte(strings.Join(append(strings.Fields(sshHosts(in.Cluster).Value), ""), key)), 0o600); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"worker-0": true, "gpu-17": true, "login-0": true,
		"worker-0.slurm-workers-demo.slurm":                               true,
		"worker-0.slurm-workers-demo.slurm.svc.cluster.local":             true,
		"demo-login-0.demo-login-headless-svc.slurm.svc.example.internal": true,
		"worker-0.slurm-workers-other.slurm.svc":                          false,
		"worker-0.slurm-workers-demo.other.svc":                           false,
		"worker-0.slurm-workers-demo.slurm.example.com":                   false,
		"github.com":        false,
		"192.0.2.1":         false,
		"2001:db8::1":       false,
		"[localhost]:2222":  false,
		"[worker-0]:2222":   false,
		"worker-0.evil.com": false,
	} {
		// It exits with status 1 if no line matches the host.
		err := exec.CommandContext(t.Context(), keygen, "-f", file, "-F", host).Run()
		if got := err == nil; got != want {
			t.Errorf("the host keys are those of %s: %v (%v), want %v", host, got, err, want)
		}
	}
}

func valueOf(env []corev1.EnvVar, name string) string {
	i := slices.IndexFunc(env, func(e corev1.EnvVar) bool { return e.Name == name })
	if i < 0 {
		return ""
	}
	return env[i].Value
}

func TestLoginPodsAndWorkersHaveTheSshdConfigOfTheUser(t *testing.T) {
	d := load(t)
	const cluster = `
metadata: {name: demo}
kind: SlurmCluster
spec:
  volumeSources: [{name: VOLUME, nfs: {server: s, path: /}}]
  slurmNodes: {login: {size: 1, sshdConfigMapRefName: a}, worker: {size: 1, sshdConfigMapRefName: b}}
---
kind: NodeSet
metadata: {name: gpu}
spec: {slurmd: {image: {repository: r, tag: t}}, configMapRefSshd: c}
`
	named := func(name string) *corev1.ConfigMapKeySelector {
		return &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "sshd_config"}
	}
	for name, c := range map[string]struct {
		volume            string
		worker, nodeSet   *corev1.ConfigMapKeySelector
		ignored, ofTheirs []string
	}{
		"workers with a jail have their sshd_config": {volume: "jail", worker: named("b"), nodeSet: named("c")},
		"workers without a jail have no sshd_config": {volume: "data", ignored: []string{"spec.slurmNodes.worker.sshdConfigMapRefName (without a jail)"},
			ofTheirs: []string{"spec.configMapRefSshd (without a jail)"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := d.input(t, strings.ReplaceAll(cluster, "VOLUME", c.volume))
			jailIsFilled(in.Cluster)
			out, set := Cluster(in), NodeSet(in.Cluster, &in.NodeSets[0])
			if diff := cmp.Diff(named("a"), out.Components.LoginSet.Spec.SshdConfigRef); diff != "" {
				t.Errorf("login pods: %s", diff)
			}
			if diff := cmp.Diff(c.worker, out.Components.NodeSets[0].Spec.SSH.SshdConfigRef); diff != "" {
				t.Errorf("slurmNodes.worker: %s", diff)
			}
			if diff := cmp.Diff(c.nodeSet, set.Object.Spec.SSH.SshdConfigRef); diff != "" {
				t.Errorf("the NodeSet: %s", diff)
			}
			if diff := cmp.Diff([][]string{c.ignored, c.ofTheirs}, [][]string{out.Ignored, set.Ignored}); diff != "" {
				t.Error(diff)
			}
		})
	}
}
