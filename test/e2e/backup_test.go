// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

// databaseSample applies a file of config/samples for the embedded database of Accounting "slurm".
func (s *scene) databaseSample(t *testing.T, name string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	filled := strings.NewReplacer("demo-", "slurm-", "ghcr.io/coxswain-hpc/mariadb:26.05", stage.images.Registry+"/mariadb:"+stage.images.Tag).Replace(string(text))
	m, err := walk.ParseManifest([]byte(filled))
	if err != nil {
		t.Fatalf("parsing config/samples/%s: %v", name, err)
	}
	s.apply(t, m.In(s.namespace))
}

// succeeds waits until a Job has.
func (s *scene) succeeds(t *testing.T, name string) {
	t.Helper()
	eventually(t, patient, "Job "+name+" to succeed", func(ctx context.Context) error {
		var job batchv1.Job
		if err := s.Get(ctx, s.name(name), &job); err != nil {
			return err
		}
		if job.Status.Succeeded == 0 {
			return fmt.Errorf("it has failed %d times", job.Status.Failed)
		}
		return nil
	})
}

// backsUp runs the backup of docs/users/accounting.md once, now.
func (s *scene) backsUp(t *testing.T) {
	t.Helper()
	s.databaseSample(t, "database-backup.yaml")
	var nightly batchv1.CronJob
	if err := s.Get(t.Context(), s.name("database-backup"), &nightly); err != nil {
		t.Fatal(err)
	}
	now := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "backup-now"}, Spec: nightly.Spec.JobTemplate.Spec}
	if err := s.Create(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	s.succeeds(t, now.Name)
}

// restores loses the embedded database and puts the dump of backsUp back, by docs/users/accounting.md. seen waits for what was
// in the database.
func (s *scene) restores(t *testing.T, accounting *unstructured.Unstructured, seen func()) {
	t.Helper()
	const slurmdbd = "slurm-accounting-0"
	command := func(json string) types.UID {
		uid := s.pod(t, slurmdbd).UID
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"slurmdbd":{"command":`+json+`}}}`))
		if err := s.Patch(t.Context(), accounting.DeepCopy(), patch); err != nil {
			t.Fatal(err)
		}
		return uid
	}
	running := command(`["tini","--","sleep","infinity"]`)
	eventually(t, patient, "slurmdbd to pause", func(ctx context.Context) error {
		var p corev1.Pod
		if err := s.Get(ctx, s.name(slurmdbd), &p); err != nil {
			return err
		}
		if p.UID == running || p.Status.Phase != corev1.PodRunning {
			return errors.New("its pod has not been replaced, or does not run")
		}
		return nil
	})

	mariadb := func(statement string) string {
		out, err := s.Exec(t.Context(), s.name("slurm-database-0"), "mariadb", "mariadb", "--user=mysql", "--skip-column-names", "--execute="+statement)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(out)
	}
	const tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'slurm_acct_db'"
	before := mariadb(tables)
	mariadb("DROP DATABASE slurm_acct_db; CREATE DATABASE slurm_acct_db")
	if got := mariadb(tables); got != "0" || before == "0" {
		t.Fatalf("of %s tables %s are left", before, got)
	}
	s.databaseSample(t, "database-restore.yaml")
	s.succeeds(t, "database-restore")
	if got := mariadb(tables); got != before {
		t.Errorf("%s tables are back, of %s", got, before)
	}

	paused := command("null")
	s.awaitPod(t, slurmdbd, paused)
	s.awaitCondition(t, soon, accounting, "DatabaseReachable", metav1.ConditionTrue)
	seen()
}
