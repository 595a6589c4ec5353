// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// slurm is a check of one Slurm job.
const slurm = `checkType: slurmJob, suspend: false, slurmJobSpec: {sbatchScript: "#!/bin/true"}`

func TestNothingRunsBeforeTheAPIServerKeepsManagedBy(t *testing.T) {
	const dropped, kept = "metadata: {annotations: {coxswain.dev/check-type: slurmJob}}", "metadata: {annotations: {coxswain.dev/check-type: slurmJob}}, spec: {jobTemplate: {spec: {managedBy: " + ManagedBy + "}}}"
	for name, test := range map[string]struct {
		cronJob string
		want    []string
		served  bool
	}{
		"there is no CronJob yet":                   {want: []string{"CronJob suspended"}, served: true},
		"there is one of the time of another type":  {cronJob: "metadata: {name: disk}", want: []string{"CronJob suspended"}, served: true},
		"there is one that the API server has kept": {cronJob: kept, want: []string{"CronJob", "Job disk-initial-run"}, served: true},
		"the API server has dropped managedBy":      {cronJob: dropped, want: []string{"CronJob suspended"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, slurm)
			if test.cronJob != "" {
				in.CronJob = manifest.Parse[batchv1.CronJob](t, "{"+test.cronJob+"}")
			}
			out := Decide(in)
			if diff := cmp.Diff(test.want, kinds(out)); diff != "" || len(out.Problems) > 0 {
				t.Errorf("problems %v, made (-want +got):\n%s", out.Problems, diff)
			}
			problems := NotServed(in)
			if (len(problems) == 0) != test.served || !test.served && !strings.Contains(problems.Message(), "Kubernetes 1.32") {
				t.Errorf("it says %q", problems.Message())
			}
		})
	}
}

func TestWhatIsAboutPodsIsToldOfInACheckOfSlurmJobs(t *testing.T) {
	out := Decide(input(t, `checkType: slurmJob, podTemplateNameRef: mine, affinity: {}, nodeSelector: {a: b}, tolerations: [{}], hostUsers: true, k8sJobSpec: {},
failureReactions: {commentSlurmNode: true, drainSlurmNode: true}, reactions: {commentSlurmNode: false},
slurmJobSpec: {sbatchScript: "#!/bin/true", mungeContainer: {image: munge}, jobContainer: {image: i, imagePullPolicy: Always, imagePullSecrets: [{name: a}], command: [a],
args: [a], workingDir: /, volumes: [{name: a, emptyDir: {}}], volumeMounts: [{name: a, mountPath: /a}], appArmorProfile: runtime/default,
env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}`))
	want := strings.Fields(`spec.affinity spec.hostUsers spec.k8sJobSpec spec.nodeSelector spec.podTemplateNameRef spec.reactions
spec.slurmJobSpec.jobContainer.appArmorProfile spec.slurmJobSpec.jobContainer.args spec.slurmJobSpec.jobContainer.command spec.slurmJobSpec.jobContainer.env[1].valueFrom
spec.slurmJobSpec.jobContainer.image spec.slurmJobSpec.jobContainer.imagePullPolicy spec.slurmJobSpec.jobContainer.imagePullSecrets spec.slurmJobSpec.jobContainer.volumeMounts
spec.slurmJobSpec.jobContainer.volumes spec.slurmJobSpec.jobContainer.workingDir spec.slurmJobSpec.mungeContainer spec.tolerations`)
	slices.Sort(out.Ignored)
	if diff := cmp.Diff(want, out.Ignored); diff != "" || len(out.Problems) > 0 {
		t.Errorf("problems %v, without effect (-want +got):\n%s", out.Problems, diff)
	}
}

func TestWhereTheJobsOfAClusterGo(t *testing.T) {
	for name, test := range map[string]struct {
		spec, hidden, background string
	}{
		"the built-in partitions":                {hidden: "hidden", background: "hidden"},
		"the partitions of the first generation": {spec: "slurmNodes: {worker: {size: 1}}", hidden: "hidden", background: "background"},
		"partitions of one's own without hidden": {spec: "partitionConfiguration: {configType: structured, partitions: [{name: main, isAll: true}]}"},
		"partitions of one's own with hidden":    {spec: "partitionConfiguration: {configType: structured, partitions: [{name: hidden, isAll: true}]}", hidden: "hidden", background: "hidden"},
		"lines of one's own with hidden":         {spec: `partitionConfiguration: {configType: custom, rawConfig: ["PartitionName=main Nodes=ALL", " partitionname=hidden Nodes=ALL", "PartitionName=background"]}`, hidden: "hidden", background: "background"},
		"lines of one's own without hidden":      {spec: `partitionConfiguration: {configType: custom, rawConfig: ["PartitionName=hidden2", ""]}`},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := manifest.Parse[nebiusv1.SlurmCluster](t, "{spec: {"+test.spec+"}}")
			if hidden, background := partitions(cluster); hidden != test.hidden || background != test.background {
				t.Errorf("hidden is %q, background %q", hidden, background)
			}
		})
	}
}

func TestTheVariablesOfARunAreThoseOfItsJob(t *testing.T) {
	job := aRun(t, "")
	job.Spec.Template.Spec.Containers[0].Env = append(job.Spec.Template.Spec.Containers[0].Env,
		corev1.EnvVar{Name: "RESERVATION_NAME", Value: "suspicious-a"}, corev1.EnvVar{Name: "PATH", Value: "/mine"}, corev1.EnvVar{Name: "B", ValueFrom: &corev1.EnvVarSource{}})
	run, problems := RunOf(input(t, slurm), job)
	want := []string{"A=b", "HOME=/opt/soperator-home/soperatorchecks", "LOGNAME=soperatorchecks", "PATH=/mine", "RESERVATION_NAME=suspicious-a", "SHELL=/bin/bash", "USER=soperatorchecks"}
	if diff := cmp.Diff(want, run.Environment); diff != "" || run.Reservation != "suspicious-a" || len(problems) > 0 {
		t.Errorf("reservation %q, problems %v, (-want +got):\n%s", run.Reservation, problems, diff)
	}
}

func TestAScriptSaysWhatItsJobsNeed(t *testing.T) {
	in := input(t, `checkType: slurmJob, slurmJobSpec: {eachWorkerJobs: true, sbatchScript: "#!/bin/bash\n#SBATCH --gpus-per-node=8 --time=10 --partition=mine --comment=mine\ntrue\n"}`)
	run, problems := RunOf(in, aRun(t, ""))
	nodes := nodesOf("a:IDLE", "b:IDLE")
	nodes[0].Gres = "shard:8,gpu:h100:8(S:0-1)"
	jobs := Submissions(run, nodes, chanceOf(aRun(t, "")))
	if len(problems) > 0 || len(jobs) != 1 {
		t.Fatalf("problems %v, jobs %+v", problems, jobs)
	}
	if j := jobs[0]; j.GPUsPerNode != "8" || j.TimeLimit != 10*time.Minute || j.Partition != "hidden" || j.Comment != ManagedBy+" u a comment=mine" || j.Requeue == nil || *j.Requeue {
		t.Errorf("the job is %+v", j)
	}
	in.Cluster.Spec.PartitionConfiguration = nebiusv1.PartitionConfiguration{ConfigType: nebiusv1.PartitionConfigStructured}
	run, _ = RunOf(in, aRun(t, ""))
	if j := Submissions(run, nodes, chanceOf(aRun(t, "")))[0]; j.Partition != "mine" {
		t.Errorf("without partition hidden it goes to %q", j.Partition)
	}
}

func TestVariablesOfSbatchAreOptionsOfTheJobs(t *testing.T) {
	in := input(t, `checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/bash\n#SBATCH --time=10 --error=/tmp/e\ntrue\n", jobContainer: {env: [
{name: SBATCH_TIMELIMIT, value: "20"}, {name: SBATCH_OUTPUT, value: /tmp/o}, {name: SBATCH_PARTITION, value: mine}]}}`)
	run, problems := RunOf(in, jobOf(t, in))
	j := Submissions(run, nil, nil)[0]
	if len(problems) > 0 || j.TimeLimit != 20*time.Minute || j.Partition != "hidden" || j.Output != jobOutput || j.Error != "" || !slices.Contains(j.Environment, "SBATCH_TIMELIMIT=20") {
		t.Errorf("problems %v, the job is %+v", problems, j)
	}
	in = input(t, `checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/bash\ntrue\n", jobContainer: {env: [{name: SBATCH_QOS, value: high}]}}`)
	if got := Decide(in).Problems.Message(); got != "spec.slurmJobSpec.sbatchScript: variable SBATCH_QOS is not supported" {
		t.Errorf("an option that cannot be carried over is told as %q", got)
	}
}

// jobOf returns a run of a check, whose Job is as the CronJob makes it.
func jobOf(t *testing.T, in Input) *batchv1.Job {
	t.Helper()
	job, out := aRun(t, ""), Output{}
	job.Namespace, job.Spec.Template = "slurm", out.slurmTemplate(in)
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	return job
}

func TestWhatVariablesReferTo(t *testing.T) {
	in := input(t, `checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/bash\ntrue\n", jobContainer: {env: [
{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}},
{name: UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}, {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a']"}}},
{name: IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}, {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}},
{name: CM, valueFrom: {configMapKeyRef: {name: c, key: k}}}, {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}},
{name: NONE, valueFrom: {configMapKeyRef: {name: none, key: k, optional: true}}}]}}`)
	job := jobOf(t, in)
	job.Labels = map[string]string{"a": "b"}
	_, problems := RunOf(in, job)
	if got := problems.Message(); !strings.Contains(got, "variable CM needs key k of ConfigMap c") || !strings.Contains(got, "variable S needs key k of Secret s") || strings.Contains(got, "NONE") {
		t.Errorf("what is missing is told as %q", got)
	}
	in.Sources = map[Source]string{{"ConfigMap", "c", "k"}: "from c", {"Secret", "s", "k"}: ""}
	run, problems := RunOf(in, job)
	got := slices.DeleteFunc(slices.Clone(run.Environment), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "ACTIVE_CHECK_NAME"}, name)
	})
	want := []string{"CM=from c", "LABEL=b", "NAMESPACE=slurm", "POD=" + job.Name, "S=", "UID=" + string(job.UID)}
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, (-want +got):\n%s", problems, diff)
	}
}

func TestARunThatNeedsGPUsIsSkippedWhereThereAreNone(t *testing.T) {
	const script = `"#!/bin/bash\n#SBATCH --gres=gpu:1\ntrue\n"`
	for name, test := range map[string]struct {
		spec, gres string
		gpus       bool
		there      []SubmittedJob
		want       nebiusv1alpha1.SlurmRunStatus
		jobs       int
	}{
		"a variable asks for GPUs, and the cluster has none":           {spec: `sbatchScript: "#!/bin/bash\n", jobContainer: {env: [{name: SBATCH_GPUS_PER_NODE, value: "8"}]}`, want: "Skipped"},
		"the script asks for GPUs, and the cluster has none":           {spec: "sbatchScript: " + script, want: "Skipped"},
		"the job asks for no GPUs":                                     {spec: `sbatchScript: "#!/bin/bash\n"`, want: "InProgress", jobs: 1},
		"a node has GPUs":                                              {spec: "sbatchScript: " + script, gres: "gpu:1", want: "InProgress", jobs: 1},
		"workers with GPUs are still to come":                          {spec: "sbatchScript: " + script, gpus: true, want: "InProgress", jobs: 1},
		"each worker is wanted, and those with GPUs are still to come": {spec: "eachWorkerJobs: true, sbatchScript: " + script, gpus: true, want: "Error"},
		"a job is there already":                                       {spec: "sbatchScript: " + script, there: []SubmittedJob{{ID: "7"}}, want: "InProgress"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, "checkType: slurmJob, slurmJobSpec: {"+test.spec+"}")
			in.GPUs = test.gpus
			nodes := nodesOf("a:IDLE")
			nodes[0].Gres = test.gres
			plan := PlanRun(in, false, RunInput{RunFacts: RunFacts{Job: jobOf(t, in), Now: began, Reachable: true, Known: true}, Nodes: nodes, There: test.there})
			record := plan.Record
			for range plan.Submit {
				record.IDs = append(record.IDs, "17")
			}
			if got := result(record); got != test.want || len(plan.Submit) != test.jobs {
				t.Errorf("it is %s with %d jobs: %+v", got, len(plan.Submit), plan)
			}
			if again := ReadRecord(record.Annotations()); !cmp.Equal(again, record) {
				t.Errorf("the annotations of %+v are read as %+v", record, again)
			}
		})
	}
}

func TestACheckThatHadNothingToDoHoldsUpNoOther(t *testing.T) {
	in := input(t, "dependsOn: [gpu]")
	gpu := manifest.Parse[nebiusv1alpha1.ActiveCheck](t, `{metadata: {name: gpu}, spec: {checkType: slurmJob}, status: {slurmJobsStatus: {lastRunStatus: Skipped}}}`)
	in.Checks["gpu"] = gpu
	if g := gate(in); !g.Open() {
		t.Errorf("a skipped check of Slurm jobs holds up another one: %+v", g)
	}
	gpu.Status.SlurmJobsStatus.LastRunStatus = nebiusv1alpha1.SlurmRunError
	if g := gate(in); g.Open() {
		t.Error("a check that could not run holds up no other")
	}
}
