// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
)

func jailedCluster() *nebiusv1.SlurmCluster {
	c := &nebiusv1.SlurmCluster{}
	c.Name, c.Namespace = "demo", "slurm"
	volume := embedded.VolumeSource{RawExtension: embedded.From(map[string]any{"nfs": map[string]any{"server": "nas", "path": "/jail"}})}
	c.Spec.VolumeSources = []nebiusv1.VolumeSource{{Name: "jail", VolumeSource: volume}}
	c.Spec.SlurmNodes.Worker = &nebiusv1.Worker{Size: 1}
	return c
}

func jobIn(out Output) *batchv1.Job {
	for _, o := range out.Objects {
		if job, ok := o.(*batchv1.Job); ok {
			return job
		}
	}
	return nil
}

func compose(c *nebiusv1.SlurmCluster, seen ObservedPopulate) Output {
	return Cluster(Input{Cluster: c, Observed: Observed{Populate: seen}, Images: image.Set{Registry: "r", Tag: "t"}})
}

// ended is a Job as it was composed, with this condition of its controller; empty is none.
func ended(t testing.TB, c *nebiusv1.SlurmCluster, kind batchv1.JobConditionType) *batchv1.Job {
	t.Helper()
	job := jobIn(compose(c, ObservedPopulate{}))
	if job == nil {
		t.Fatal("there is no Job")
	}
	if kind != "" {
		job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
	}
	return job
}

func TestTheJobThatFillsTheJail(t *testing.T) {
	const overwriting = nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail
	for name, test := range map[string]struct {
		// job is how the Job ended that was composed before the change; "none" is no Job.
		job    batchv1.JobConditionType
		change func(*nebiusv1.SlurmCluster)
		users  int
		// want is "made", "kept" or "gone", and whether the pods of the cluster may have the jail.
		want    string
		awaited bool
		reason  string
	}{
		"the first Job is made":                                    {job: "none", want: "made", awaited: true, reason: "Populating"},
		"a Job under way is kept":                                  {want: "kept", awaited: true, reason: "Populating"},
		"a Job that is complete is kept":                           {job: batchv1.JobComplete, want: "kept", reason: "Populated"},
		"a Job that has failed is kept":                            {job: batchv1.JobFailed, want: "kept", awaited: true, reason: "Failed"},
		"another image makes another Job before the jail is there": {job: batchv1.JobFailed, change: func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Image = "x" }, want: "made", awaited: true, reason: "Populating"},
		"another image leaves a jail that is filled alone": {
			job: batchv1.JobComplete, change: func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Image = "x" }, want: "kept", reason: "Populated",
		},
		"another mount point makes another Job while pods run": {
			job: batchv1.JobComplete, users: 3, want: "made", reason: "Populating", change: func(c *nebiusv1.SlurmCluster) {
				c.Spec.SlurmNodes.Worker.Volumes.JailSubMounts = []nebiusv1.NodeVolumeMount{{Name: "d", MountPath: "/mnt/jail.upper/d", VolumeSourceName: "jail"}}
			},
		},
		"another volume is to be filled before pods have it": {
			job: batchv1.JobComplete, want: "made", awaited: true, reason: "Populating", change: func(c *nebiusv1.SlurmCluster) {
				c.Spec.VolumeSources[0].RawExtension = embedded.From(map[string]any{"nfs": map[string]any{"server": "nas", "path": "/other"}})
			},
		},
		"overwrite makes another Job without pods": {job: batchv1.JobComplete, change: func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Overwrite = true }, want: "made", reason: "Populating"},
		"overwrite waits while pods run": {
			job: batchv1.JobComplete, users: 1, change: func(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Overwrite = true }, want: "kept", reason: "Waiting",
		},
		"maintenance that overwrites begins with deleting the Job": {
			job: batchv1.JobComplete, want: "gone", reason: "Waiting", change: func(c *nebiusv1.SlurmCluster) {
				c.Spec.Maintenance = overwriting
				c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: nebiusv1.ConditionPopulateJailMode, Reason: "none"})
			},
		},
		"maintenance that overwrites makes another Job": {job: "none", change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = overwriting }, want: "made", reason: "Populating"},
		"maintenance that overwrites waits until pods have ended": {
			job: "none", users: 1, change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = overwriting }, want: "gone", reason: "Waiting",
		},
		"maintenance leaves the Job alone": {
			job: batchv1.JobComplete, change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceDownscale }, want: "kept", reason: "Populated",
		},
		"maintenance makes no Job": {job: "none", change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceDownscale }, want: "gone", reason: "Waiting"},
		"maintenance deletes the Job": {
			job: batchv1.JobComplete, change: func(c *nebiusv1.SlurmCluster) {
				c.Spec.Maintenance = nebiusv1.MaintenanceDownscaleAndDeletePopulateJail
			}, want: "gone", reason: "Waiting",
		},
		"the jail is skipped while a Job is under way": {
			change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceSkipPopulateJail }, want: "kept", awaited: true, reason: "Skipped",
		},
		"the jail is skipped after a Job has failed": {
			job: batchv1.JobFailed, change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceSkipPopulateJail }, want: "kept", reason: "Skipped",
		},
		"the jail is skipped": {job: "none", change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceSkipPopulateJail }, want: "gone", reason: "Skipped"},
		"a jail that was filled once gets another Job when the first one is gone": {
			job: "none", change: jailIsFilled, want: "made", reason: "Populating",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, seen := jailedCluster(), ObservedPopulate{Users: test.users}
			if test.job != "none" {
				seen.Job = ended(t, c, test.job)
			}
			if test.change != nil {
				test.change(c)
			}
			out := compose(c, seen)
			got := "gone"
			switch {
			case jobIn(out) != nil && out.Jail.Job != nil:
				got = "made and kept"
			case jobIn(out) != nil:
				got = "made"
			case out.Jail.Job != nil:
				got = "kept"
			}
			if got != test.want || out.Jail.Awaited != test.awaited || out.Jail.Condition.Reason != test.reason {
				t.Errorf("it is %s, the jail awaited: %v, %+v", got, out.Jail.Awaited, out.Jail.Condition)
			}
			hasWorkers := slices.ContainsFunc(out.Objects, func(o render.Object) bool { _, ok := o.(*slinkyv1beta1.NodeSet); return ok })
			if hasWorkers == test.awaited {
				t.Errorf("workers are composed: %v", hasWorkers)
			}
		})
	}
}

// TestAJailIsKnownByItsVolume: a Job, or the condition, may be about another volume than the present jail.
func TestAJailIsKnownByItsVolume(t *testing.T) {
	const maintenance = nebiusv1.MaintenanceDownscaleAndDeletePopulateJail
	claimed := func(name string) *nebiusv1.SlurmCluster {
		c := jailedCluster()
		c.Spec.VolumeSources[0].RawExtension = embedded.From(map[string]any{"persistentVolumeClaim": map[string]any{"claimName": name}})
		return c
	}
	for name, test := range map[string]struct {
		// before has been filled by a Job that ended, with the claim UID before; then it is changed to after.
		before, after string
		claim         types.UID
		jobGone       bool
		mode          nebiusv1.MaintenanceMode
		recorded      bool
		awaited, made bool
	}{
		"the claim is the same":                         {before: "a", after: "a", claim: "1", recorded: true},
		"the claim is the same, and the Job is gone":    {before: "a", after: "a", claim: "1", recorded: true, jobGone: true, made: true},
		"the claim is another one":                      {before: "a", after: "b", claim: "2", recorded: true, awaited: true, made: true},
		"the claim is another one, and the Job is gone": {before: "a", after: "b", claim: "2", recorded: true, jobGone: true, awaited: true, made: true},
		"the claim was made again":                      {before: "a", after: "a", claim: "2", recorded: true, awaited: true, made: true},
		"the claim was made again without a Job":        {before: "a", after: "a", claim: "2", recorded: true, jobGone: true, awaited: true, made: true},
		"the claim is gone":                             {before: "a", after: "a", recorded: true, awaited: true, made: true},
		"the jail is skipped, whatever the claim":       {before: "a", after: "b", claim: "2", recorded: true, mode: nebiusv1.MaintenanceSkipPopulateJail},
		"the operator of before recorded nothing":       {before: "a", after: "a", claim: "1", jobGone: true, made: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := claimed(test.before)
			job := ended(t, c, batchv1.JobComplete)
			filled := compose(c, ObservedPopulate{Job: job, Claim: "1"})
			if filled.Jail.Filled == nil || filled.Jail.Filled.ClaimUID != "1" || filled.Jail.Awaited {
				t.Fatalf("the first jail is not filled: %+v", filled.Jail)
			}
			rested := claimed(test.before)
			rested.Status.Conditions = []metav1.Condition{*filled.Jail.Condition}
			if test.recorded {
				rested.Status.PopulatedJail = filled.Jail.Filled
			}
			if test.jobGone {
				job = nil
				rested.Spec.Maintenance = maintenance
				rested.Status.Conditions = []metav1.Condition{*compose(rested, ObservedPopulate{Claim: "1"}).Jail.Condition}
			}
			status := rested.Status
			c = claimed(test.after)
			c.Status, c.Spec.Maintenance = status, test.mode
			out := compose(c, ObservedPopulate{Job: job, Claim: test.claim})
			if out.Jail.Awaited != test.awaited || (jobIn(out) != nil) != test.made || (out.Jail.Filled == nil) != test.awaited {
				t.Errorf("awaited %t, made %t, filled %v", out.Jail.Awaited, jobIn(out) != nil, out.Jail.Filled)
			}
			if made := jobIn(out); made != nil {
				made.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
				if out := compose(c, ObservedPopulate{Job: made, Claim: test.claim}); test.claim != "" && (out.Jail.Awaited || jobIn(out) != nil) {
					t.Errorf("after its Job: awaited %t, made %t", out.Jail.Awaited, jobIn(out) != nil)
				}
			}
		})
	}
}

// TestANewNodeSetTakesNobodysJail is about NodeSets with jails of their own in a cluster that names none.
func TestANewNodeSetTakesNobodysJail(t *testing.T) {
	d := load(t)
	cluster := d.cluster(t, `{}`).Cluster
	set := func(name, path string, age int) nebiusv1alpha1.NodeSet {
		set := d.cluster(t, `{}`, name+` {slurmd: {volumes: {jail: {nfs: {server: nas, path: `+path+`}}}}}`).NodeSets[0]
		if age > 0 {
			set.CreationTimestamp = metav1.NewTime(time.Unix(1_800_000_000-int64(age), 0))
		}
		return set
	}
	jails := func(job *batchv1.Job, sets ...nebiusv1alpha1.NodeSet) (Output, string) {
		out := Cluster(Input{Cluster: cluster, NodeSets: sets, Observed: Observed{Populate: ObservedPopulate{Job: job}}})
		if job := jobIn(out); job != nil {
			return out, job.Spec.Template.Spec.Volumes[0].NFS.Path
		}
		return out, "none"
	}
	out, filled := jails(nil, set("m", "/m", 100))
	if filled != "/m" {
		t.Fatalf("%s is filled", filled)
	}
	before := string(out.Components.Controller.Spec.Jail.VolumeSource.Raw)
	job := jobIn(out)
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	for name, sets := range map[string][]nebiusv1alpha1.NodeSet{
		"a newer NodeSet that comes first": {set("a", "/a", 50), set("m", "/m", 100)},
		"an older NodeSet":                 {set("a", "/a", 200), set("m", "/m", 100)},
	} {
		if out, filled := jails(job, sets...); filled != "none" || out.Jail.Awaited || string(out.Components.Controller.Spec.Jail.VolumeSource.Raw) != before {
			t.Errorf("%s: %s is filled, the workers wait: %t, and slurmctld has %s", name, filled, out.Jail.Awaited, out.Components.Controller.Spec.Jail.VolumeSource.Raw)
		}
	}
	if _, filled := jails(nil, set("a", "/a", 50), set("m", "/m", 100)); filled != "/m" {
		t.Errorf("without a Job %s is filled, and not that of the oldest", filled)
	}
}

func TestAClusterWithoutAJailHasNothingToFill(t *testing.T) {
	c := jailedCluster()
	c.Spec.VolumeSources, c.Spec.PopulateJail.Image = nil, "x"
	out := compose(c, ObservedPopulate{})
	if jobIn(out) != nil || out.Jail.Condition != nil || out.Jail.Awaited {
		t.Errorf("%+v", out.Jail)
	}
	if !slices.ContainsFunc(out.Ignored, func(path string) bool { return strings.HasPrefix(path, "spec.populateJail") }) {
		t.Errorf("nobody is told: %q", out.Ignored)
	}
}

// TestNothingOverwritesAJailThatIsInUse goes through random lives of a cluster: whatever was and is wanted, no Job overwrites the jail
// while pods use it, at most one Job is wanted, and what is settled stays so.
func TestNothingOverwritesAJailThatIsInUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, seen := jailedCluster(), ObservedPopulate{}
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			c.Spec.PopulateJail.Overwrite = rapid.Bool().Draw(t, "overwrite")
			c.Spec.PopulateJail.Image = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "image")
			c.Spec.Maintenance = rapid.SampledFrom([]nebiusv1.MaintenanceMode{
				"", nebiusv1.MaintenanceDownscale, nebiusv1.MaintenanceDownscaleAndDeletePopulateJail,
				nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail, nebiusv1.MaintenanceSkipPopulateJail,
			}).Draw(t, "mode")
			seen.Users = rapid.IntRange(0, 1).Draw(t, "users")
			seen.Writers = rapid.IntRange(0, 1).Draw(t, "writers")
			out := compose(c, seen)
			job := jobIn(out)
			if job != nil && out.Jail.Job != nil {
				t.Fatal("a Job is made and kept")
			}
			if job != nil && seen.Users+seen.Writers > 0 && job.Spec.Template.Spec.Containers[0].Env[0].Value == "1" {
				t.Fatal("a Job overwrites a jail that pods use")
			}
			// What the reconciler does with it.
			c.Status.Conditions = []metav1.Condition{*out.Jail.Condition, {Type: nebiusv1.ConditionPopulateJailMode, Reason: string(c.Spec.Maintenance)}}
			if out.Jail.Job == nil {
				seen.Job = job
			}
			again := compose(c, seen)
			if next := jobIn(again); job != nil && next != nil {
				t.Fatalf("the Job that was just made is made anew: %s, then %s", job.Annotations[annotationPopulateRun], next.Annotations[annotationPopulateRun])
			}
			if seen.Job != nil {
				kind := rapid.SampledFrom([]batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, "Suspended"}).Draw(t, "end")
				seen.Job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: corev1.ConditionTrue}}
			}
			settled := compose(c, seen)
			if job != nil && jobIn(settled) != nil {
				t.Fatal("a Job that has ended is made anew at once")
			}
		}
	})
}

// TestAJobThatFailedInTheMiddleIsFollowedByOneThatOverwrites takes back the wish to overwrite after the first Job has failed, and names
// another image. The next Job goes on with what the first has begun, so that pods of the jail have to end first.
func TestAJobThatFailedInTheMiddleIsFollowedByOneThatOverwrites(t *testing.T) {
	c := jailedCluster()
	c.Spec.PopulateJail.Overwrite = true
	failed := ended(t, c, batchv1.JobFailed)
	c.Spec.PopulateJail.Overwrite, c.Spec.PopulateJail.Image = false, "x"
	if out := compose(c, ObservedPopulate{Job: failed, Users: 2}); jobIn(out) != nil || !out.Jail.ForPods {
		t.Errorf("with two pods that have the jail another Job is made: %s", out.Jail.Condition.Message)
	}
	if next := jobIn(compose(c, ObservedPopulate{Job: failed})); next == nil || !runOf(next).Overwrites {
		t.Errorf("the next Job does not say that it overwrites: %v", next)
	}
	// Only the condition remembers it when the Job is deleted.
	c.Status.Conditions = []metav1.Condition{*compose(c, ObservedPopulate{Job: failed}).Jail.Overwritten}
	if !Overwrites(c, nil) {
		t.Error("nobody counts the pods that have the jail, since the Job has been deleted")
	}
	out := compose(c, ObservedPopulate{})
	if next := jobIn(out); next == nil || !runOf(next).Overwrites || out.Jail.Overwritten.Status != metav1.ConditionFalse {
		t.Errorf("in place of a deleted Job comes %v, and the condition is %v", next, out.Jail.Overwritten)
	}
	c.Spec.Maintenance = nebiusv1.MaintenanceSkipPopulateJail
	if out := compose(c, ObservedPopulate{}); out.Jail.Overwritten != nil {
		t.Errorf("of a jail that somebody else fills it is said: %v", out.Jail.Overwritten)
	}
}

func TestWhatAJobTellsIsRepeated(t *testing.T) {
	for name, test := range map[string]struct {
		kind       batchv1.JobConditionType
		told, want string
	}{
		"how far it is":               {told: `{"files":3,"bytes":5,"seconds":7}`, want: "Job demo-populate-jail: 3 files, 5 bytes in 7 s"},
		"nothing yet":                 {want: "Job demo-populate-jail: its pod has not begun yet"},
		"a text of somebody else":     {told: `three`, want: "Job demo-populate-jail: its pod has not begun yet"},
		"the whole jail":              {kind: batchv1.JobComplete, told: `{"files":3,"bytes":5,"seconds":7}`, want: "Job demo-populate-jail is complete: 3 files, 5 bytes in 7 s"},
		"the jail was filled already": {kind: batchv1.JobComplete, told: `{"files":0,"bytes":0,"seconds":0}`, want: "Job demo-populate-jail is complete: it did not report what it copied"},
	} {
		t.Run(name, func(t *testing.T) {
			c := jailedCluster()
			job := ended(t, c, test.kind)
			metav1.SetMetaDataAnnotation(&job.ObjectMeta, AnnotationPopulateProgress, test.told)
			if got := compose(c, ObservedPopulate{Job: job}).Jail.Condition.Message; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
