// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/predecessors"
	"github.com/coxswain-hpc/coxswain/internal/workerpod"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// charts is an installation by Soperator's charts, with two workers. Its commands are those of Soperator's acceptance suite:
// docs/contributors/predecessors/soperator-installation.md#the-acceptance-suite.
type charts struct{ *scene }

// TestSoperatorCharts applies what Soperator's charts render, with stand-ins for their scripts that do what the originals do, and then
// does what Soperator's acceptance suite does that needs neither GPUs nor containers. TestSlurmCluster has its scenario about the topology.
func TestSoperatorCharts(t *testing.T) {
	t.Parallel()
	c := charts{newScene(t)}
	c.installs(t)
	c.isReady(t)
	c.checksNodes(t)
	c.runsHooks(t)
	c.reachesWorkers(t)
	c.noticesMemory(t)
	c.runsChecks(t)
}

// scripts returns the stand-ins by key of the ConfigMap with scripts.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join("testdata", "soperator-scripts")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(text)
	}
	return out
}

// installs applies the objects of the charts, first those beside the custom resources. The other order is one of test/integration.
func (c charts) installs(t *testing.T) {
	t.Helper()
	files := predecessors.Manifests(t)
	var cluster *unstructured.Unstructured
	for _, u := range slices.Concat(files["soperator-5.0-chart-objects.yaml"], files["soperator-5.0-small.yaml"]) {
		switch u.GetKind() {
		case "PersistentVolume", "DaemonSet", "StorageClass":
			continue // they mount disks of a cloud on Kubernetes nodes
		case "Job":
			continue // it waits for ActiveChecks, which are not here
		case "PersistentVolumeClaim":
			for _, field := range []string{"storageClassName", "volumeName", "selector"} {
				unstructured.RemoveNestedField(u.Object, "spec", field)
			}
		case "ConfigMap":
			c.fillScripts(t, u)
		case "NodeSet":
			mountScripts(t, u)
		case "SlurmCluster":
			cluster = u
			// Kubernetes has one such port, and another test may have it.
			unstructured.RemoveNestedField(u.Object, "spec", "slurmNodes", "login", "sshdServiceNodePort")
		}
		predecessors.Move(u.Object, "soperator", c.namespace)
		if mapping, err := c.RESTMapper().RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version); meta.IsNoMatchError(err) && u.GetKind() == "ServiceMonitor" {
			continue
		} else if err != nil {
			t.Fatal(err)
		} else if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			u.SetNamespace(c.namespace)
		}
		if err := client.IgnoreAlreadyExists(c.Create(t.Context(), u)); err != nil {
			t.Fatalf("creating %s %s: %v", u.GetKind(), u.GetName(), err)
		}
	}
	c.startsSoperatorChecks(t)
	err := walk.AwaitAvailable(t.Context(), c.Kubernetes, walk.NewProgress(logWriter{t}), client.ObjectKeyFromObject(cluster), patient)
	if err != nil {
		t.Fatal(err)
	}
}

// startsSoperatorChecks has the chart soperatorchecks start the operator's image. isReady waits for its pod.
func (c charts) startsSoperatorChecks(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "soperatorchecks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := walk.ParseManifest(bytes.ReplaceAll(text, []byte("IMAGE"), []byte(*registry+"/operator:"+*tag)))
	if err != nil {
		t.Fatal(err)
	}
	c.apply(t, manifest)
}

// fillScripts puts the stand-ins into the ConfigMap of scripts.
func (c charts) fillScripts(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	if u.GetName() != "soperator-slurm-scripts" {
		return
	}
	all := scripts(t)
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	for name := range data {
		// Containers of pyxis are not tested here.
		if data[name] = all[name]; data[name] == "" && name != "pyxis_caching_importer.sh" {
			t.Fatalf("there is no stand-in for %s", name)
		}
		delete(all, name)
	}
	if len(all) > 0 {
		t.Fatalf("the chart has no scripts %v", all)
	}
	if err := unstructured.SetNestedStringMap(u.Object, data, "data"); err != nil {
		t.Fatal(err)
	}
}

// mountScripts mounts the scripts in pod and jail of workers, which no chart does by itself, and lets users in.
func mountScripts(t *testing.T, u *unstructured.Unstructured) {
	t.Helper()
	var mounts []any
	for name, path := range map[string]string{"slurm-scripts": "/opt/slurm_scripts", "slurm-scripts-jail": "/mnt/jail.upper/opt/slurm_scripts"} {
		mounts = append(mounts, map[string]any{
			"name": name, "mountPath": path, "readOnly": true,
			"volumeSource": map[string]any{"configMap": map[string]any{"name": "soperator-slurm-scripts", "defaultMode": int64(0o755)}},
		})
	}
	// Users without a job get in, as in Soperator: docs/users/slurmcluster-ssh.md.
	env := []any{map[string]any{"name": "PAM_SLURM_ADOPT_OPTIONS", "value": "action_no_jobs=ignore"}}
	err := errors.Join(
		unstructured.SetNestedSlice(u.Object, mounts, "spec", "slurmd", "volumes", "customVolumeMounts"),
		unstructured.SetNestedSlice(u.Object, env, "spec", "slurmd", "customEnv"),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// commandTime is how long a command of the suite may take.
const commandTime = time.Minute

// controller runs a command beside slurmctld, jail one as root in the jail of the login pod, and worker one by ssh on a worker.
func (c charts) controller(ctx context.Context, command string) (string, error) {
	return c.kubectl(ctx, "exec", "--namespace="+c.namespace, "soperator-controller-0", "--", "bash", "-lc", command)
}

func (c charts) jail(ctx context.Context, command string) (string, error) {
	return c.kubectl(ctx, "exec", "--namespace="+c.namespace, "soperator-login-0", "--", "chroot", "/mnt/jail", "bash", "-lc", command)
}

func (c charts) worker(node string) func(context.Context, string) (string, error) {
	return func(ctx context.Context, command string) (string, error) {
		return c.jail(ctx, "ssh "+node+" '"+command+"' </dev/null")
	}
}

// must runs a command of the suite that has to succeed.
func must(t *testing.T, run func(context.Context, string) (string, error), command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*commandTime)
	defer cancel()
	out, err := run(ctx, command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.TrimSpace(out)
}

// chartNodes are the Slurm nodes of both workers.
func chartNodes() []string { return []string{"worker-cpu-0", "worker-cpu-1"} }

// isReady is scenario "cluster is ready", but for ActiveChecks and their users, which runsChecks has.
func (c charts) isReady(t *testing.T) {
	t.Helper()
	eventually(t, patient, "all pods to be ready", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(c.namespace)); err != nil {
			return err
		}
		var errs []error
		for i := range pods.Items {
			p := &pods.Items[i]
			ready, owner := workerpod.Condition(p, corev1.PodReady), metav1.GetControllerOfNoCopy(p)
			if (ready == nil || ready.Status != corev1.ConditionTrue) && p.Status.Phase != corev1.PodSucceeded && (owner == nil || owner.Kind != "Job") {
				errs = append(errs, fmt.Errorf("pod %s is %s", p.Name, p.Status.Phase))
			}
		}
		return errors.Join(errs...)
	})
	kubectl := func(ctx context.Context, command string) (string, error) {
		return c.kubectl(ctx, append(strings.Fields(command), "--namespace="+c.namespace)...)
	}
	conditions := must(t, kubectl, `get slurmclusters -o jsonpath={range.items[*].status.conditions[*]}{.type}={.status},{end}{.items[0].status.phase}`)
	for _, want := range []string{"ControllersAvailable=True,", "LoginAvailable=True,", "SConfigControllerAvailable=True,"} {
		if !strings.Contains(conditions, want) {
			t.Errorf("the cluster does not say %s: %s", want, conditions)
		}
	}
	if strings.Contains(conditions, "CommonAvailable=False") || !strings.HasSuffix(conditions, "Available") {
		t.Errorf("the cluster says %s", conditions)
	}
	eventually(t, patient, "the NodeSet to be ready", func(ctx context.Context) error {
		out, err := kubectl(ctx, "get nset -o jsonpath={.items[*].status.phase}/{.items[*].status.replicas}/{.items[*].spec.replicas}")
		if err == nil && out != "Ready/2/2" {
			err = errors.New(out)
		}
		return err
	})
	shown := must(t, c.controller, "scontrol show partitions --oneliner && sinfo -Nel")
	for name, wants := range map[string][]string{"main": {"Default=YES", "State=UP"}, "hidden": {"Hidden=YES", "State=UP"}} {
		at := slices.IndexFunc(strings.Split(shown, "\n"), func(line string) bool { return strings.HasPrefix(line, "PartitionName="+name+" ") })
		if at < 0 {
			t.Errorf("there is no partition %s:\n%s", name, shown)
			continue
		}
		for _, want := range wants {
			if line := strings.Split(shown, "\n")[at]; !strings.Contains(line, want) {
				t.Errorf("partition %s has not %s: %s", name, want, line)
			}
		}
	}
	if out := must(t, c.controller, "sinfo -hN -p main -o %N"); out != strings.Join(chartNodes(), "\n") {
		t.Errorf("the nodes of main are %q", out)
	}
	c.awaitUsable(t)
	for _, node := range chartNodes() {
		machine := must(t, kubectl, "get pod soperator-"+node+" -o jsonpath={.spec.nodeName}")
		if out := must(t, c.controller, "scontrol show node "+node); !slices.Contains(strings.Fields(out), "InstanceId="+machine) {
			t.Errorf("node %s does not say that it is on %s:\n%s", node, machine, out)
		}
	}
	out := must(t, func(ctx context.Context, command string) (string, error) {
		return c.kubectl(ctx, "exec", "--namespace="+c.namespace, "soperator-login-0", "--", "sh", "-lc", command)
	}, "/etc/update-motd.d/00-welcome && /etc/update-motd.d/20-slurm-stats")
	for _, want := range []string{"Welcome to Soperator cluster", "Slurm nodes:", "main"} {
		if !strings.Contains(out, want) {
			t.Errorf("the welcome has not %q:\n%s", want, out)
		}
	}
	for _, command := range []string{"srun -N 1 hostname", "srun -N 1 -p hidden hostname", "srun -w worker-cpu-0 hostname"} {
		if out := must(t, c.jail, "timeout 120 "+command); !strings.HasPrefix(out, "worker-cpu-") {
			t.Errorf("%s prints %q", command, out)
		}
	}
}

// awaitUsable waits until no node has a state that the suite takes for broken.
func (c charts) awaitUsable(t *testing.T) {
	t.Helper()
	eventually(t, patient, "all nodes to be usable", func(ctx context.Context) error {
		out, err := c.controller(ctx, "scontrol show nodes --oneliner")
		if err != nil {
			return err
		}
		states := regexp.MustCompile(`State=(\S+)`).FindAllString(out, -1)
		if len(states) != len(chartNodes()) || regexp.MustCompile("NOT_RESPONDING|DOWN|DRAIN|FAIL|INVALID_REG").MatchString(strings.Join(states, " ")) {
			return errors.New(out)
		}
		return nil
	})
}

// checksNodes is that HealthCheckProgram runs on each worker, and that no check fails.
func (c charts) checksNodes(t *testing.T) {
	t.Helper()
	config := must(t, c.jail, "scontrol show config")
	if !regexp.MustCompile(`HealthCheckProgram\s*= /opt/slurm_scripts/hc_program.sh`).MatchString(config) || !regexp.MustCompile(`HealthCheckInterval\s*= 120`).MatchString(config) {
		t.Errorf("no program checks the nodes:\n%s", config)
	}
	for _, node := range chartNodes() {
		c.awaitHealthy(t, node, "hc_program", 3*time.Minute)
	}
}

// awaitHealthy waits until checks in a context have passed on a node, as the suite reads it, and returns what they wrote.
func (c charts) awaitHealthy(t *testing.T, node, at string, patience time.Duration, wants ...string) (out string) {
	t.Helper()
	eventually(t, patience, "the checks of "+at+" on "+node, func(ctx context.Context) (err error) {
		out, err = c.worker(node)(ctx, "cat /opt/soperator-outputs/local/slurm_scripts/"+node+".check_runner."+at+".out")
		for _, want := range append(wants, "INFO: Started", "INFO: Finished in", ": OK") {
			if err == nil && !strings.Contains(out, want) {
				err = fmt.Errorf("it has no %q:\n%s", want, out)
			}
		}
		return err
	})
	if regexp.MustCompile(`Check \S+: FAIL|ERROR:`).MatchString(out) {
		t.Errorf("a check of %s fails on %s:\n%s", at, node, out)
	}
	paths := regexp.MustCompile(`logging to (\S+)`).FindAllStringSubmatch(out, -1)
	if len(paths) == 0 {
		t.Errorf("no check of %s on %s has a log:\n%s", at, node, out)
	}
	for _, path := range paths {
		must(t, c.worker(node), "test -f "+strings.TrimPrefix(path[1], "/mnt/jail"))
	}
	return out
}

// submits submits a job as the suite does, and waits until it has ended well.
func (c charts) submits(t *testing.T, name, node, wrap string) string {
	t.Helper()
	const dir = "/opt/soperator-outputs/shared/acceptance"
	id := must(t, c.jail, "mkdir -p "+dir+" && sbatch --parsable --job-name="+name+" -o "+dir+"/%x-%j.out -e "+dir+"/%x-%j.err -N 1 --nodelist="+node+" --wrap='"+wrap+"'")
	eventually(t, 3*time.Minute, "job "+id+" to end", func(ctx context.Context) error {
		out, err := c.jail(ctx, "scontrol show job "+id+" --oneliner")
		if err == nil && !strings.Contains(out, "JobState=COMPLETED") {
			err = errors.New(out)
		}
		return err
	})
	return id
}

// runsHooks is the scenarios about Prolog, TaskProlog and Epilog: of a job that root submits, and of the first one of another user.
func (c charts) runsHooks(t *testing.T) {
	t.Helper()
	node := chartNodes()[0]
	id := c.submits(t, "hooks", node, `echo $SLURM_JOB_ID && test -d /mnt/memory/job_$SLURM_JOB_ID`)
	for _, at := range []string{"prolog", "epilog"} {
		out := c.awaitHealthy(t, node, at, 3*time.Minute, `Environment SLURM_JOB_ID="`+id+`"`)
		if strings.Contains(out, "gpu_health_check") {
			t.Errorf("the GPUs of a job without any were looked at:\n%s", out)
		}
		if at == "epilog" && !strings.Contains(out, "Check drop_page_cache: OK") {
			t.Errorf("the page cache was not dropped:\n%s", out)
		}
	}
	eventually(t, time.Minute, "the memory of the job to be given back", func(ctx context.Context) error {
		_, err := c.worker(node)(ctx, "test ! -e /mnt/memory/job_"+id+" -a ! -e /mnt/jail/mnt/memory/job_"+id)
		return err
	})
	must(t, c.jail, "id alice || echo | createuser --without-external-ssh alice")
	eventually(t, soon, "a job of alice to run with its TaskProlog", func(ctx context.Context) error {
		out, err := c.jail(ctx, "su - alice -c 'srun -N 2 hostname'")
		if err == nil && len(strings.Fields(out)) != 2 {
			err = errors.New(out)
		}
		return err
	})
	if out := must(t, c.jail, "stat -c %U /opt/soperator-outputs/local/task_prolog/* | sort -u"); out != "alice\nroot" {
		t.Errorf("TaskProlog wrote as %q", out)
	}
}

// reachesWorkers is scenario "internal ssh": a user without a job reaches a worker from the login pod.
func (c charts) reachesWorkers(t *testing.T) {
	t.Helper()
	must(t, c.jail, "id bob || echo | createuser --without-external-ssh bob")
	eventually(t, soon, "bob to reach a worker", func(ctx context.Context) error {
		out, err := c.jail(ctx, "su - bob -c 'ssh-keygen -R worker-cpu-1; timeout 30 ssh worker-cpu-1 hostname </dev/null'")
		if err == nil && !strings.Contains(out, "worker-cpu-1") {
			err = errors.New(out)
		}
		return err
	})
}
