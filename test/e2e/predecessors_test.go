// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/predecessors"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

// What the predecessors' charts render comes up as it is, but for sizes, images, the names of nodes and what the machine of the
// tests lacks. Files that need a database which no chart brings (slinky-1.3-rich, soperator-5.0-external-db) are admitted, which
// internal/webhook tests, and not brought up here. Kinds that are not served are applied, too.

func TestManifestsOfSlinkySeed(t *testing.T) {
	t.Parallel()
	needsTime(t)
	newPredecessor(t).comesUp(t, 1, "slinky-first-default.yaml")
}

func TestManifestsOfSlinky(t *testing.T) {
	t.Parallel()
	newPredecessor(t).comesUp(t, 2, "slinky-1.3-default.yaml")
}

func TestManifestsOfSoperatorSeed(t *testing.T) {
	t.Parallel()
	needsTime(t)
	newPredecessor(t).comesUp(t, 2, "soperator-first-slurm-cluster.yaml", "soperator-first-activechecks.yaml", "soperator-first-nodeconfigurator.yaml")
}

func TestManifestsOfSoperator(t *testing.T) {
	t.Parallel()
	newPredecessor(t).comesUp(t, 4, "soperator-5.0-slurm-cluster.yaml", "soperator-5.0-nodesets.yaml", "soperator-5.0-activechecks.yaml", "soperator-5.0-nodeconfigurator.yaml")
}

// predecessor is a scene with what the charts render beside custom resources.
type predecessor struct {
	*scene
	files map[string][]*unstructured.Unstructured
}

func newPredecessor(t *testing.T) *predecessor {
	t.Helper()
	files := predecessors.Manifests(t)
	p := &predecessor{scene: newScene(t), files: files}
	random := make([]byte, 1024)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	script := map[string]string{}
	for _, name := range []string{"hc_program.sh", "prolog.sh", "epilog.sh", "task_prolog.sh"} {
		script[name] = "#!/bin/sh\nexit 0\n"
	}
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: p.namespace, Name: name} }
	p.have(t,
		&corev1.Secret{ObjectMeta: meta("slurm-auth-slurm"), Data: map[string][]byte{"slurm.key": random}},
		&corev1.Secret{ObjectMeta: meta("slurm-auth-jwt"), Data: map[string][]byte{"jwt.key": random[:32]}},
		&corev1.Secret{ObjectMeta: meta("slurm-auth-jwths256"), Data: map[string][]byte{"jwt_hs256.key": random[:32]}},
		&corev1.ConfigMap{ObjectMeta: meta("cgroup"), Data: map[string]string{"cgroup.conf": withoutCgroups}},
		&corev1.Secret{ObjectMeta: meta("slurm-sssd-conf"), StringData: map[string]string{"sssd.conf": sssdConf}},
		&corev1.ConfigMap{ObjectMeta: meta("slurm-scripts"), Data: script},
		&corev1.ConfigMap{ObjectMeta: meta("slurm1-slurm-scripts"), Data: script},
		&corev1.ServiceAccount{ObjectMeta: meta("slurm1-slurm-controller")},
		&corev1.ServiceAccount{ObjectMeta: meta("slurm1-sconfigcontroller")},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("jail-pvc"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
		}},
	)
	for _, name := range []string{"compute-csi-network-ssd-ext4", "nebius-network-ssd"} {
		p.have(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "localkube.coxswain.dev/directory"})
	}
	for _, name := range []string{"slurm1-slurm-worker", "slurm1-slurm-controller", "slurm1-slurm-login", "slurm1-slurm-accounting", "slurm1-slurm-rest", "slurm1-slurm-populate-jail", "slurm1-slurm-sconfigcontroller", "soperator-worker-high-priority"} {
		p.have(t, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: 1000})
	}
	return p
}

// sssdConf is what Slinky's chart puts into the Secret by default.
const sssdConf = `[sssd]
config_file_version = 2
services = nss, pam
domains = DEFAULT

[nss]
filter_groups = root,slurm
filter_users = root,slurm

[pam]

[domain/DEFAULT]
auth_provider = proxy
id_provider = proxy
proxy_lib_name = files
proxy_pam_target = sssd-shadowutils
`

// withoutCgroups is cgroup.conf for machines that have none which a pod can use, as in the other tests.
const withoutCgroups = "CgroupPlugin=disabled\n"

// have makes objects that may be there already.
func (p *predecessor) have(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := client.IgnoreAlreadyExists(p.Create(t.Context(), o)); err != nil {
			t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
		}
	}
}

// comesUp applies files and waits until everything in them is ready, or shows that it is not served, and until so many workers
// have run jobs, in every partition.
func (p *predecessor) comesUp(t *testing.T, workers int, files ...string) {
	t.Helper()
	var all walk.Manifest
	for _, file := range files {
		if len(p.files[file]) == 0 {
			t.Fatalf("there is no file %s", file)
		}
		for _, u := range p.files[file] {
			p.fit(u.Object)
			predecessors.FillClaims(u.Object)
			p.fitMachine(u)
			predecessors.Move(u.Object, u.GetNamespace(), p.namespace)
			all = append(all, u)
		}
	}
	predecessors.JoinChecks(all)
	p.apply(t, all)
	served := []string{"SlurmCluster", "NodeSet", "Controller", "LoginSet", "RestApi", "Accounting"}
	for _, u := range all {
		before, _, _ := unstructured.NestedStringSlice(u.Object, "spec", "dependsOn")
		runs := u.GetKind() == "ActiveCheck"
		if runs && len(before) > 0 {
			continue // it waits for others, and these for images and users of Soperator, which are not here
		}
		switch {
		case runs, slices.Contains(served, u.GetKind()):
			p.awaitCondition(t, patient, u, "Ready", metav1.ConditionTrue)
		case u.GetKind() == "NodeConfigurator":
			// A chart makes the ServiceAccount of its pods, and gives it rights on nodes. Without it there are no pods.
			p.awaitCondition(t, patient, u, "Stalled", metav1.ConditionFalse)
		default:
			if got := p.awaitCondition(t, patient, u, "Ready", metav1.ConditionFalse); got.Reason != "NotServed" {
				t.Errorf("%s %s is not ready: %s: %s", u.GetKind(), u.GetName(), got.Reason, got.Message)
			}
		}
	}
	p.removeChecks(t, all)
	p.sound(t)
	p.awaitIdle(t, workers)
	p.runsJobs(t, workers)
}

// removeChecks deletes the ActiveChecks, whose pods want images of Soperator, which are not here. What they made goes with them.
func (p *predecessor) removeChecks(t *testing.T, all []*unstructured.Unstructured) {
	t.Helper()
	for _, u := range all {
		if u.GetKind() != "ActiveCheck" {
			continue
		}
		if err := p.Delete(t.Context(), u, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			t.Fatalf("deleting ActiveCheck %s: %v", u.GetName(), err)
		}
	}
}

// awaitIdle waits until so many pods of workers show that their nodes are idle.
func (p *predecessor) awaitIdle(t *testing.T, workers int) {
	t.Helper()
	eventually(t, patient, fmt.Sprintf("%d workers to be idle in Slurm", workers), func(ctx context.Context) error {
		var pods corev1.PodList
		if err := p.List(ctx, &pods, client.InNamespace(p.namespace), client.MatchingLabels{"app.kubernetes.io/name": "slurmd"}); err != nil {
			return err
		}
		idle := 0
		for i := range pods.Items {
			for _, c := range pods.Items[i].Status.Conditions {
				if c.Type == "SlurmNodeStateIdle" && c.Status == corev1.ConditionTrue {
					idle++
				}
			}
		}
		if idle != workers || len(pods.Items) != workers {
			return fmt.Errorf("%d of %d pods are", idle, len(pods.Items))
		}
		return nil
	})
}

// runsJobs runs a job on so many workers at once, and one on all nodes of each partition: slurmd drains a node that has no prolog.
func (p *predecessor) runsJobs(t *testing.T, workers int) {
	t.Helper()
	var pods corev1.PodList
	if err := p.List(t.Context(), &pods, client.InNamespace(p.namespace), client.MatchingLabels{"app.kubernetes.io/name": "slurmctld"}); err != nil || len(pods.Items) != 1 {
		t.Fatalf("finding slurmctld: %d pods, %v", len(pods.Items), err)
	}
	run := func(command ...string) []string {
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()
		out, err := p.Exec(ctx, client.ObjectKeyFromObject(&pods.Items[0]), "slurmctld", command...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(out), "\n")
	}
	if ran := run("srun", fmt.Sprintf("--nodes=%d", workers), "hostname"); len(ran) != workers {
		t.Errorf("the job ran on %d workers, want %d: %v", len(ran), workers, ran)
	}
	// srun reaches slurmctld in the same pod through the Service, and slurmctld cannot call back to where that comes from. It ends a job
	// that has to wait for nodes ("Killing interactive JobId=3: Communication connection failure"). So nothing may wait.
	free := func() {
		eventually(t, soon, "the nodes to be free again", func(context.Context) error {
			if busy := run("sinfo", "--all", "--noheader", "--states=allocated,mixed,completing", "--format=%N"); busy[0] != "" {
				return fmt.Errorf("%v are not", busy)
			}
			return nil
		})
	}
	for _, partition := range run("sinfo", "--all", "--noheader", "--summarize", "--format=%R %D") {
		name, nodes, _ := strings.Cut(partition, " ")
		free()
		ran := run("srun", "--partition="+name, "--nodes="+nodes, "sh", "-c", "echo $SLURM_JOB_PARTITION")
		if fmt.Sprint(len(ran)) != nodes || ran[0] != name {
			t.Errorf("the job in partition %s printed %v, not its name for each of %s nodes", name, ran, nodes)
		}
		t.Logf("a job has run on %s nodes of partition %s", nodes, name)
	}
}

var cores = regexp.MustCompile(`CoresPerSocket=\d+`)

// fitMachine sets what the machines of these tests need: they have neither cgroups that a pod can use nor user namespaces for
// pods. docs/users/slurmcluster.md describes the same for others.
func (p *predecessor) fitMachine(u *unstructured.Unstructured) {
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	switch group := u.GroupVersionKind().Group; {
	case u.GetKind() == "Controller":
		spec["configFileRefs"] = []any{map[string]any{"name": "cgroup"}}
	case u.GetKind() == "SlurmCluster":
		spec["customCgroupConfig"] = withoutCgroups
		if worker, found, _ := unstructured.NestedMap(spec, "slurmNodes", "worker"); found {
			worker["hostUsers"] = true
			_ = unstructured.SetNestedMap(spec, worker, "slurmNodes", "worker")
		}
	case u.GetKind() == "NodeSet" && group == "slurm.nebius.ai":
		spec["enableHostUserNamespace"] = true
	}
	u.Object["spec"] = spec
}

// fit changes sizes, images and names of nodes, in place.
func (p *predecessor) fit(value any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			p.fit(item)
		}
	case map[string]any:
		p.fitFields(value)
		for _, below := range value {
			p.fit(below)
		}
	}
}

func (p *predecessor) fitFields(fields map[string]any) {
	switch image := fields["image"].(type) {
	case string:
		fields["image"] = ourImage(image)
		if fields["restartPolicy"] == "Always" {
			// A side-car of another image has another command.
			fields["command"], fields["args"] = []any{"sleep", "infinity"}, nil
		}
	case map[string]any:
		if repository, ok := image["repository"].(string); ok && ourImage(repository) != repository {
			image["repository"], image["tag"], _ = strings.Cut(ourImage(repository), ":")
		}
	}
	if list, ok := fields["resources"].(map[string]any); ok && list["memory"] != nil {
		fields["resources"] = map[string]any{"cpu": "100m", "memory": "400Mi"}
	}
	if affinity, ok := fields["nodeSelectorTerms"]; ok && affinity != nil {
		fields["nodeSelectorTerms"] = []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/os", "operator": "Exists"}}}}
	}
	for name, size := range map[string]any{"sharedMemorySize": "64Mi", "nodeSelector": map[string]any{"kubernetes.io/os": "linux"}, "defMemPerNode": int64(100)} {
		if _, ok := fields[name]; ok {
			fields[name] = size
		}
	}
	for _, name := range []string{"size", "replicas"} {
		if n, ok := fields[name].(float64); ok {
			fields[name] = min(n, 2)
		}
	}
	if static, ok := fields["static"].(string); ok {
		fields["static"] = cores.ReplaceAllString(static, "CoresPerSocket=1")
	}
}

// ourImage returns the image that replaces one of a predecessor, by its role. The operator itself puts ours in place of those
// of Soperator that have a role, and runs no munged of Soperator's.
func ourImage(name string) string {
	for _, own := range []string{"controller_slurmctld", "controller_slurmdbd", "login_sshd", "populate_jail", "sconfigcontroller", "soperator/munge", "soperator/slurmrestd", "worker_slurmd"} {
		if strings.Contains(name, own) {
			return name
		}
	}
	// Of the images that are not of Slurm most run as root.
	role := "login"
	for _, known := range []string{"slurmdbd", "slurmrestd", "slurmctld", "slurmd", "login"} {
		if strings.Contains(name, known) {
			role = known
			break
		}
	}
	return fmt.Sprintf("%s/%s:%s", stage.images.Registry, role, stage.images.Tag)
}
