// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// input returns a check of an available cluster, with this spec beside the name of the cluster.
func input(t testing.TB, spec string) Input {
	t.Helper()
	check := manifest.Parse[nebiusv1alpha1.ActiveCheck](t, "{metadata: {name: disk, namespace: slurm, uid: u}, spec: {slurmClusterRefName: demo, "+spec+"}}")
	return Input{
		Check: check, Checks: map[string]*nebiusv1alpha1.ActiveCheck{check.Name: check},
		Cluster: &nebiusv1.SlurmCluster{Status: nebiusv1.SlurmClusterStatus{Phase: nebiusv1.PhaseAvailable}},
	}
}

const plain = "k8sJobSpec: {jobContainer: {image: check, command: [/check]}}"

func TestWhatAChecksIsMadeOf(t *testing.T) {
	for name, test := range map[string]struct {
		spec, template string
	}{
		"defaults": {spec: plain},
		"full": {spec: `
name: disk-space, schedule: "*/5 * * * *", suspend: false, activeDeadlineSeconds: 60, successfulJobsHistoryLimit: 0, failedJobsHistoryLimit: 1,
hostUsers: true, nodeSelector: {zone: a}, tolerations: [{key: gpu, operator: Exists}],
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: Exists}]}]}}},
k8sJobSpec: {jobContainer: {
  image: check, imagePullPolicy: Always, imagePullSecrets: [{name: pull}], command: [/check], args: [--all], workingDir: /tmp, appArmorProfile: localhost/check,
  env: [{name: A, value: b}], volumes: [{name: jail, persistentVolumeClaim: {claimName: jail-pvc}}], volumeMounts: [{name: jail, mountPath: /mnt/jail}]}}`},
		"script": {spec: "k8sJobSpec: {scriptRefName: scripts, jobContainer: {image: check, args: [--all]}}"},
		"podtemplate": {spec: plain + ", podTemplateNameRef: mine", template: `{template: {
metadata: {labels: {team: a, app.kubernetes.io/component: b}, annotations: {note: c, slurm.nebius.ai/activecheck: other}},
spec: {restartPolicy: Always, serviceAccountName: checker, automountServiceAccountToken: true, containers: [
  {name: disk, image: mine, resources: {limits: {memory: 1Gi}}, securityContext: {capabilities: {drop: [ALL]}}}, {name: beside, image: other}]}}}`},
		"slurmjob": {spec: `checkType: slurmJob, name: gpu, suspend: false, activeDeadlineSeconds: 60, failureReactions: {drainSlurmNode: true},
slurmJobSpec: {eachWorkerJobs: true, sbatchScript: "#!/bin/bash\ntrue\n", jobContainer: {env: [{name: A, value: b}, {name: ACTIVE_CHECK_NAME, value: other}]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, test.spec)
			if test.template != "" {
				in.Template = manifest.Parse[corev1.PodTemplate](t, test.template)
			}
			in.CronJob = &batchv1.CronJob{}
			if IsSlurmJob(in.Check) {
				in.CronJob.Spec.JobTemplate.Spec.ManagedBy = new(ManagedBy)
			}
			out := Decide(in)
			if len(out.Problems)+len(out.Ignored) > 0 {
				t.Errorf("problems %v, ignored %v", out.Problems, out.Ignored)
			}
			golden.Check(t, name+".yaml", manifest.YAML(t, out.Objects...))
		})
	}
}

// kinds returns the kinds of what a check is made of.
func kinds(out Output) (kinds []string) {
	for _, o := range out.Objects {
		switch o := o.(type) {
		case *batchv1.CronJob:
			kind := "CronJob"
			if *o.Spec.Suspend {
				kind += " suspended"
			}
			kinds = append(kinds, kind)
		case *batchv1.Job:
			kinds = append(kinds, "Job "+o.Name)
		}
	}
	return kinds
}

func TestWhenACheckRuns(t *testing.T) {
	there := func(in *Input) { in.CronJob = &batchv1.CronJob{} }
	has := func(spec, status string) func(*Input) {
		return func(in *Input) {
			other := manifest.Parse[nebiusv1alpha1.ActiveCheck](t, "{metadata: {name: other}, spec: {"+spec+"}, status: {"+status+"}}")
			in.Check.Spec.DependsOn = []string{"other"}
			in.Checks["other"] = other
		}
	}
	both, first, waiting := []string{"CronJob", "Job disk-initial-run"}, []string{"CronJob"}, []string(nil)
	for name, test := range map[string]struct {
		spec  string
		world []func(*Input)
		want  []string
		// waits is what the gate waits for.
		waits string
	}{
		"a new check has a CronJob":                         {want: first},
		"a check with a CronJob has a first run":            {world: []func(*Input){there}, want: both},
		"the runs by schedule are suspended by default":     {spec: "suspend: true,", want: []string{"CronJob suspended"}},
		"no first run is wanted":                            {spec: "runAfterCreation: false,", want: []string{"CronJob"}},
		"the first run is under way":                        {world: []func(*Input){there, func(in *Input) { in.Jobs = make([]batchv1.Job, 1) }}, want: []string{"CronJob"}},
		"the first run has been, and its Job is deleted":    {world: []func(*Input){there, func(in *Input) { in.Check.Status.K8sJobsStatus = &nebiusv1alpha1.K8sJobsStatus{} }}, want: []string{"CronJob"}},
		"there is no cluster":                               {world: []func(*Input){func(in *Input) { in.Cluster = nil }}, want: waiting, waits: "SlurmCluster demo does not exist"},
		"the cluster is gone":                               {world: []func(*Input){there, func(in *Input) { in.Cluster = nil }}, want: []string{"CronJob suspended"}, waits: "SlurmCluster demo does not exist"},
		"the cluster is not available yet":                  {world: []func(*Input){func(in *Input) { in.Cluster.Status.Phase = "" }}, want: waiting, waits: "SlurmCluster demo is not available yet"},
		"the cluster is not available any more":             {world: []func(*Input){there, func(in *Input) { in.Cluster.Status.Phase = nebiusv1.PhaseNotAvailable }}, want: []string{"CronJob"}, waits: "SlurmCluster demo is not available yet"},
		"the cluster goes into maintenance":                 {world: []func(*Input){there, func(in *Input) { in.Cluster.Spec.Maintenance = nebiusv1.MaintenanceDownscale }}, want: []string{"CronJob suspended"}, waits: "SlurmCluster demo is in maintenance"},
		"the populate-jail Job is skipped":                  {world: []func(*Input){func(in *Input) { in.Cluster.Spec.Maintenance = nebiusv1.MaintenanceSkipPopulateJail }}, want: first},
		"a check before it does not exist":                  {spec: "dependsOn: [other],", want: waiting, waits: "ActiveCheck other does not exist"},
		"a check before it has not run":                     {world: []func(*Input){has("", "")}, want: waiting, waits: `ActiveCheck other has not completed, its last run is "None"`},
		"a check before it has failed":                      {world: []func(*Input){has("", "k8sJobsStatus: {lastJobStatus: Failed}")}, want: waiting, waits: `ActiveCheck other has not completed, its last run is "Failed"`},
		"a check before it is complete":                     {world: []func(*Input){has("", "k8sJobsStatus: {lastJobStatus: Complete}")}, want: first},
		"a check before it runs by schedule only":           {world: []func(*Input){has("runAfterCreation: false", "")}, want: first},
		"a check of Slurm jobs before it is judged by them": {world: []func(*Input){has("checkType: slurmJob", "k8sJobsStatus: {lastJobStatus: Complete}, slurmJobsStatus: {lastRunStatus: Failed}")}, want: waiting, waits: `ActiveCheck other has not completed, its last run is "Failed"`},
		"a check of Slurm jobs before it is complete":       {world: []func(*Input){there, has("checkType: slurmJob", "slurmJobsStatus: {lastRunStatus: Complete}")}, want: both},
		"a check before it fails after the first run":       {world: []func(*Input){there, has("", "k8sJobsStatus: {lastJobStatus: Failed}"), func(in *Input) { in.Jobs = make([]batchv1.Job, 1) }}, want: []string{"CronJob"}, waits: `ActiveCheck other has not completed, its last run is "Failed"`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := test.spec
			if !strings.Contains(spec, "suspend") {
				spec += "suspend: false,"
			}
			in := input(t, spec+plain)
			for _, change := range test.world {
				change(&in)
			}
			out := Decide(in)
			if diff := cmp.Diff(test.want, kinds(out)); diff != "" || len(out.Problems) > 0 {
				t.Errorf("problems %v, made (-want +got):\n%s", out.Problems, diff)
			}
			if waits := strings.TrimSpace(out.Gate.Part + " " + out.Gate.Waits); waits != test.waits {
				t.Errorf("it waits: %q, want %q", waits, test.waits)
			}
		})
	}
}

func TestChecksThatWaitForEachOtherAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		// dependsOn is what each check depends on; "disk" is the check that is looked at.
		dependsOn map[string]string
		want      string
	}{
		"a check depends on itself":                           {dependsOn: map[string]string{"disk": "disk"}, want: "disk -> disk"},
		"two checks depend on each other":                     {dependsOn: map[string]string{"disk": "a", "a": "disk"}, want: "disk -> a -> disk"},
		"three checks depend on each other":                   {dependsOn: map[string]string{"disk": "a", "a": "b", "b": "disk"}, want: "disk -> a -> b -> disk"},
		"one of two dependencies of a check leads in a cycle": {dependsOn: map[string]string{"disk": "a b", "a": "", "b": "a disk"}, want: "disk -> b -> disk"},
		"a check waits for others' cycle":                     {dependsOn: map[string]string{"disk": "a", "a": "b", "b": "a"}},
		"two ways to one check are no cycle":                  {dependsOn: map[string]string{"disk": "a b", "a": "c", "b": "c", "c": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t, plain)
			for from, to := range test.dependsOn {
				if in.Checks[from] == nil {
					in.Checks[from] = &nebiusv1alpha1.ActiveCheck{}
					in.Checks[from].Name = from
				}
				in.Checks[from].Spec.DependsOn = strings.Fields(to)
			}
			out := Decide(in)
			if got := out.Problems.Message(); (got == "") != (test.want == "") || !strings.HasPrefix(got, strings.TrimSuffix("spec.dependsOn: "+test.want+": ", "spec.dependsOn: : ")) {
				t.Errorf("it says %q", got)
			}
			if len(out.Objects) > 0 {
				t.Errorf("%v is made", kinds(out))
			}
		})
	}
}

func TestMistakesAreToldWithTheirField(t *testing.T) {
	for name, test := range map[string]struct {
		spec, template, path string
	}{
		"a container without an image":        {spec: "k8sJobSpec: {jobContainer: {command: [/check]}}", path: "spec.k8sJobSpec.jobContainer.image"},
		"a check without a container":         {spec: "suspend: true", path: "spec.k8sJobSpec.jobContainer.image"},
		"a variable that is none":             {spec: "k8sJobSpec: {jobContainer: {image: i, env: [{nome: A}]}}", path: "spec.k8sJobSpec.jobContainer.env[0]"},
		"a volume that is none":               {spec: "k8sJobSpec: {jobContainer: {image: i, volumes: [{name: a, emptyDirs: {}}]}}", path: "spec.k8sJobSpec.jobContainer.volumes[0]"},
		"a mount that is none":                {spec: "k8sJobSpec: {jobContainer: {image: i, volumeMounts: [{name: a, mountPath: /a}, null]}}", path: "spec.k8sJobSpec.jobContainer.volumeMounts[1]"},
		"an affinity that is none":            {spec: "affinity: {nodes: {}}, " + plain, path: "spec.affinity"},
		"a profile that AppArmor cannot have": {spec: "k8sJobSpec: {jobContainer: {image: i, appArmorProfile: localhost/}}", path: "spec.k8sJobSpec.jobContainer.appArmorProfile"},
		"Slurm jobs without a script":         {spec: "checkType: slurmJob", path: ScriptPath},
		"a script of blanks":                  {spec: `checkType: slurmJob, slurmJobSpec: {sbatchScript: " "}`, path: ScriptPath},
		"a line of a script":                  {spec: `checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/bash\n#SBATCH --no-such-option\n"}`, path: ScriptPath},
		"a drain that is none":                {spec: "checkType: slurmJob, slurmJobSpec: {sbatchScript: true}, failureReactions: {drainSlurmNode: 7}", path: "spec.failureReactions.drainSlurmNode"},
		"a comment that is none":              {spec: "checkType: slurmJob, slurmJobSpec: {sbatchScript: true}, successReactions: {commentSlurmNode: 7}", path: "spec.successReactions.commentSlurmNode"},
		"a variable of Slurm jobs":            {spec: "checkType: slurmJob, slurmJobSpec: {sbatchScript: true, jobContainer: {env: [{nome: A}]}}", path: "spec.slurmJobSpec.jobContainer.env[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := strings.ReplaceAll(test.spec, "sbatchScript: true", `sbatchScript: "#!/bin/true"`)
			out := Decide(input(t, spec))
			if len(out.Problems) != 1 || out.Problems[0].Path != test.path || out.Problems[0].Waiting || len(out.Objects) > 0 {
				t.Errorf("problems %+v, made %v", out.Problems, kinds(out))
			}
		})
	}
}

func TestAPodTemplateMayBringTheImage(t *testing.T) {
	in := input(t, "podTemplateNameRef: mine")
	in.Template = manifest.Parse[corev1.PodTemplate](t, "{template: {spec: {containers: [{name: disk, image: mine}]}}}")
	if out := Decide(in); len(out.Problems) > 0 || len(out.Objects) != 1 {
		t.Errorf("problems %v, made %v", out.Problems, kinds(out))
	}
}

func TestWhatIsAboutSlurmJobsIsToldOfInACheckOfKubernetes(t *testing.T) {
	out := Decide(input(t, `slurmJobSpec: {}, failureReactions: {setCondition: true}, successReactions: {}, reactions: {},
k8sJobSpec: {jobContainer: {image: i}, mungeContainer: {image: munge}}`))
	want := []string{"spec.failureReactions", "spec.k8sJobSpec.mungeContainer", "spec.reactions", "spec.slurmJobSpec", "spec.successReactions"}
	slices.Sort(out.Ignored)
	if diff := cmp.Diff(want, out.Ignored); diff != "" {
		t.Errorf("without effect (-want +got):\n%s", diff)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add([]byte(`{"affinity": {"nodeAffinity": {}}, "k8sJobSpec": {"jobContainer": {"image": "i", "env": [{"name": "A", "valueFrom": null}]}}}`), []byte(`{"containers": [{"name": "disk"}]}`))
	f.Add([]byte(`{"dependsOn": ["disk"], "activeDeadlineSeconds": 9223372036854775807}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, spec, template []byte) {
		in := input(t, plain)
		in.CronJob = &batchv1.CronJob{}
		if fuzzed(spec, &in.Check.Spec) != nil {
			return
		}
		var user corev1.PodTemplate
		if fuzzed(template, &user.Template.Spec) == nil {
			in.Template = &user
		}
		for _, o := range Decide(in).Objects {
			var pod corev1.PodSpec
			var deadline *int64
			switch o := o.(type) {
			case *batchv1.CronJob:
				pod, deadline = o.Spec.JobTemplate.Spec.Template.Spec, o.Spec.JobTemplate.Spec.ActiveDeadlineSeconds
			case *batchv1.Job:
				pod, deadline = o.Spec.Template.Spec, o.Spec.ActiveDeadlineSeconds
			}
			if pod.RestartPolicy != corev1.RestartPolicyNever || len(pod.Containers) == 0 || deadline == nil || orDefault(in.Check.Spec.ActiveDeadlineSeconds, 1) > 0 && *deadline <= 0 {
				t.Errorf("%+v, deadline %v", pod, deadline)
			}
		}
	})
}

func TestACheckOfSoperatorRunsInAnImageOfOurs(t *testing.T) {
	in := input(t, "k8sJobSpec: {jobContainer: {image: k8s_check_job, command: [bash]}, mungeContainer: {image: munge}}")
	in.Stand = &Stand{Image: "ours", Account: "demo-activecheck-sa"}
	in.Access = &Access{Image: "sackd", Key: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "key"}, Key: "slurm.key"}, Endpoint: "demo:6817"}
	out := Output{}
	spec := out.podTemplate(in).Spec
	check := spec.Containers[0]
	if check.Image != "ours" || spec.ServiceAccountName != "demo-activecheck-sa" || !*spec.AutomountServiceAccountToken {
		t.Errorf("it runs %s as %s", check.Image, spec.ServiceAccountName)
	}
	if len(spec.InitContainers) != 1 {
		t.Fatalf("beside it run %+v", spec.InitContainers)
	}
	sackd := spec.InitContainers[0]
	if sackd.Name != "munge" || sackd.Image != "sackd" || *sackd.RestartPolicy != corev1.ContainerRestartPolicyAlways || !slices.Contains(sackd.Command, "demo:6817") {
		t.Errorf("beside it runs %+v", sackd)
	}
	for _, m := range check.VolumeMounts {
		if m.Name == keyVolume {
			t.Error("the check can read the key of the cluster")
		}
	}
	in.Stand, in.Access = nil, nil
	if spec := out.podTemplate(in).Spec; spec.Containers[0].Image != "k8s_check_job" || spec.ServiceAccountName != "" || *spec.AutomountServiceAccountToken || len(spec.InitContainers) > 0 {
		t.Errorf("an image of somebody else runs with %+v", spec)
	}
}
