// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

func TestFilesAreWrittenWhenTheJailIsFilledAndNobodyElseWritesThere(t *testing.T) {
	const overwriting = nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail
	for name, test := range map[string]struct {
		job     batchv1.JobConditionType // "none" is no Job
		users   int
		writers int
		change  func(*nebiusv1.SlurmCluster)
		// want is the number of pods, or -1 without a Deployment.
		want int32
		// overwrites is true if a Job is made that overwrites the jail.
		overwrites bool
	}{
		"the jail is not filled yet":                    {job: "none", want: -1},
		"the jail is filled":                            {job: batchv1.JobComplete, want: 1},
		"the jail is filled by other means":             {job: "none", want: 1, change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceSkipPopulateJail }},
		"there is no jail":                              {job: "none", want: -1, change: func(c *nebiusv1.SlurmCluster) { c.Spec.VolumeSources = nil }},
		"nobody wants a pod":                            {job: batchv1.JobComplete, want: 0, change: func(c *nebiusv1.SlurmCluster) { c.Spec.SConfigController.Node.Size = new(int32(0)) }},
		"more than one pod is wanted":                   {job: batchv1.JobComplete, want: 1, change: func(c *nebiusv1.SlurmCluster) { c.Spec.SConfigController.Node.Size = new(int32(3)) }},
		"maintenance":                                   {job: batchv1.JobComplete, want: 0, change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = nebiusv1.MaintenanceDownscale }},
		"an overwriting run waits for workers":          {job: batchv1.JobComplete, users: 1, writers: 1, want: 1, change: overwrite},
		"an overwriting run waits for the pod":          {job: batchv1.JobComplete, writers: 1, want: 0, change: overwrite},
		"an overwriting run begins":                     {job: batchv1.JobComplete, want: 0, change: overwrite, overwrites: true},
		"maintenance that overwrites waits for the pod": {job: "none", writers: 1, want: 0, change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = overwriting }},
		"maintenance that overwrites begins":            {job: "none", want: 0, change: func(c *nebiusv1.SlurmCluster) { c.Spec.Maintenance = overwriting }, overwrites: true},
	} {
		t.Run(name, func(t *testing.T) {
			c, seen := jailedCluster(), ObservedPopulate{Users: test.users, Writers: test.writers}
			if test.job != "none" {
				seen.Job = ended(t, c, test.job)
			}
			if test.change != nil {
				test.change(c)
			}
			out := compose(c, seen)
			got := int32(-1)
			if d := out.Components.SConfigController; d != nil {
				got = *d.Spec.Replicas
			}
			if got != test.want {
				t.Errorf("%d pods, want %d", got, test.want)
			}
			if job := jobIn(out); (job != nil && job.Spec.Template.Spec.Containers[0].Env[0].Value == "1") != test.overwrites {
				t.Errorf("the Job that is made: %v", job)
			}
		})
	}
}

func overwrite(c *nebiusv1.SlurmCluster) { c.Spec.PopulateJail.Overwrite = true }

func TestFilesAreNotWrittenWhileAnOverwritingRunIsUnderWay(t *testing.T) {
	c := jailedCluster()
	jailIsFilled(c)
	overwrite(c)
	running := jobIn(compose(c, ObservedPopulate{}))
	out := compose(c, ObservedPopulate{Job: running})
	if got := *out.Components.SConfigController.Spec.Replicas; got != 0 || !out.Jail.Paused {
		t.Errorf("%d pods, paused: %v", got, out.Jail.Paused)
	}
}

func TestTheWriterOfFilesHasNoMoreRightsThanItUses(t *testing.T) {
	c := jailedCluster()
	c.Spec.Maintenance = nebiusv1.MaintenanceSkipPopulateJail
	pod := func() corev1.PodSpec {
		return compose(c, ObservedPopulate{}).Components.SConfigController.Spec.Template.Spec
	}
	own := pod().Containers[0].SecurityContext
	if s := pod().SecurityContext; *s.RunAsUser != 0 || *s.RunAsNonRoot || s.FSGroup != nil ||
		!slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) || *own.AllowPrivilegeEscalation || !*own.ReadOnlyRootFilesystem {
		t.Errorf("%+v, %+v", s, own)
	}
	c.Spec.SConfigController.RunAsUID, c.Spec.SConfigController.RunAsGID = new(int64(1001)), new(int64(1002))
	if s := pod().SecurityContext; *s.RunAsUser != 1001 || *s.RunAsGroup != 1002 || !*s.RunAsNonRoot {
		t.Errorf("%+v", s)
	}
	if n := len(pod().InitContainers); n != 1 {
		t.Fatalf("%d containers give the directory away", n)
	}
	giver := pod().InitContainers[0]
	if s := giver.SecurityContext; *s.RunAsUser != 0 || !slices.Equal(s.Capabilities.Add, []corev1.Capability{"CHOWN"}) || !slices.Contains(giver.Args, "--give-config-directory=1001:1002") {
		t.Errorf("%+v", giver)
	}
	c.Spec.SConfigController.ServiceAccountName = "mine"
	for _, o := range compose(c, ObservedPopulate{}).Objects {
		switch o := o.(type) {
		case *corev1.ServiceAccount:
			t.Errorf("ServiceAccount %s is made beside the one that the spec names", o.Name)
		case *rbacv1.RoleBinding:
			if o.Subjects[0].Name != "mine" {
				t.Errorf("%+v", o)
			}
		case *rbacv1.Role:
			for _, rule := range o.Rules {
				if slices.Contains(rule.Resources, "secrets") && !slices.Equal(rule.ResourceNames, []string{"demo-auth-jwt"}) {
					t.Errorf("%+v", rule)
				}
			}
		}
	}
}

func TestWritesFiles(t *testing.T) {
	c := jailedCluster()
	if !WritesFiles(Input{Cluster: c}) {
		t.Error("a cluster with a jail does")
	}
	c.Spec.SConfigController.Node.Size = new(int32(0))
	if WritesFiles(Input{Cluster: c}) {
		t.Error("nobody wants it")
	}
	c = jailedCluster()
	c.Spec.VolumeSources = nil
	if WritesFiles(Input{Cluster: c}) || strings.Contains(strings.Join(compose(c, ObservedPopulate{}).Ignored, " "), "sConfigController") {
		t.Error("there is no jail, and nothing is set")
	}
}
