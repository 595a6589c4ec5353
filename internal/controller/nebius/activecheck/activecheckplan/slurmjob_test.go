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
env: [{name: A, value: b}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}}`))
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
	jobs := Submissions(run, nodesOf("a:IDLE"), chanceOf(aRun(t, "")))
	if len(problems) > 0 || len(jobs) != 1 {
		t.Fatalf("problems %v, jobs %+v", problems, jobs)
	}
	if j := jobs[0]; j.GPUsPerNode != "8" || j.TimeLimit != 10*time.Minute || j.Partition != "hidden" || j.Comment != ManagedBy+" u a comment=mine" || j.Requeue == nil || *j.Requeue {
		t.Errorf("the job is %+v", j)
	}
	in.Cluster.Spec.PartitionConfiguration = nebiusv1.PartitionConfiguration{ConfigType: nebiusv1.PartitionConfigStructured}
	run, _ = RunOf(in, aRun(t, ""))
	if j := Submissions(run, nodesOf("a:IDLE"), chanceOf(aRun(t, "")))[0]; j.Partition != "mine" {
		t.Errorf("without partition hidden it goes to %q", j.Partition)
	}
}
