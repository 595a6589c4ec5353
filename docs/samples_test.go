// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// TestTheSampleOfTheExporter reads the file that users apply to run the exporter.
func TestTheSampleOfTheExporter(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "config", "samples", "exporter.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var token slinkyv1beta1.Token
	var deployment appsv1.Deployment
	documents := bytes.Split(text, []byte("\n---\n"))
	if len(documents) != 2 {
		t.Fatalf("it has %d objects", len(documents))
	}
	for i, into := range []any{&token, &deployment} {
		if err := yaml.UnmarshalStrict(documents[i], into); err != nil {
			t.Error(err)
		}
	}
	pod := deployment.Spec.Template
	if got, want := pod.Spec.Volumes[0].Secret.SecretName, token.Name+"-jwt-"+token.Spec.Username; got != want {
		t.Errorf("the pod has Secret %s, the Token makes %s", got, want)
	}
	if pod.Labels[slinkyv1beta1.LabelSlurmrestdClient] != "true" || pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("the pod reaches slurmrestd by its labels %v, and has a token of Kubernetes", pod.Labels)
	}
	if got := "--token-file=" + pod.Spec.Containers[0].VolumeMounts[0].MountPath + "/SLURM_JWT"; !slices.Contains(pod.Spec.Containers[0].Args, got) {
		t.Errorf("the program is not told %s", got)
	}
}

// TestSamplesOfTheDatabase reads the files that users apply to keep and to restore the records of jobs. An end-to-end test runs them.
func TestSamplesOfTheDatabase(t *testing.T) {
	var claim corev1.PersistentVolumeClaim
	var backup batchv1.CronJob
	var restore batchv1.Job
	sample := func(name string, into ...any) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("..", "config", "samples", name))
		if err != nil {
			t.Fatal(err)
		}
		documents := bytes.Split(text, []byte("\n---\n"))
		if len(documents) != len(into) {
			t.Fatalf("%s has %d objects, want %d", name, len(documents), len(into))
		}
		for i, document := range documents {
			if err := yaml.UnmarshalStrict(document, into[i]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	sample("database-backup.yaml", &claim, &backup)
	sample("database-restore.yaml", &restore)
	for name, pod := range map[string]corev1.PodSpec{"backup": backup.Spec.JobTemplate.Spec.Template.Spec, "restore": restore.Spec.Template.Spec} {
		if got := pod.Volumes[0].PersistentVolumeClaim.ClaimName; got != claim.Name {
			t.Errorf("%s uses claim %s, want %s", name, got, claim.Name)
		}
		if s := pod.SecurityContext; s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
			t.Errorf("the pod of %s is not restricted: %+v", name, s)
		}
		script := pod.Containers[0].Args[0]
		if out, err := exec.CommandContext(t.Context(), "bash", "-n", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("bash does not read the script of %s: %v: %s", name, err, out)
		}
		if !strings.Contains(script, "set -euo pipefail") || !strings.Contains(script, `grep "Dump completed"`) {
			t.Errorf("%s takes a dump that is cut off:\n%s", name, script)
		}
	}
}
