// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// exportsAccounted has an exporter show a job that slurmdbd knows, and removes the exporter again.
func exportsAccounted(t *testing.T, c *slurmCluster, alice *user) {
	job := alice.submits(t, "true\n")
	alice.awaits(t, job, "COMPLETED")
	alice.seesAccounted(t, job)
	at := []string{"spec", "slurmNodes", "exporter"}
	c.change(t, map[string]any{"enabled": true, "collectionInterval": "2s", "jobSource": "accounting", "accountingJobsLookback": "2h"}, at...)
	c.awaitCondition(t, patient, c.sample.Cluster, "ExporterAvailable", metav1.ConditionTrue)
	exporter := c.name(c.sample.Cluster.GetName() + "-exporter")
	eventually(t, soon, "the exporter to show the job", func(ctx context.Context) error {
		text, err := c.exported(ctx)
		want := fmt.Sprintf(`slurm_job_info{job_id="%d",job_state="COMPLETED",job_state_reason="None",slurm_partition="main",`, job)
		if err == nil && !strings.Contains(text, want) {
			err = fmt.Errorf("there is no %s in\n%s", want, text)
		}
		return err
	})
	c.change(t, map[string]any{"enabled": false}, at...)
	eventually(t, soon, "the exporter and its token to go", func(ctx context.Context) error {
		for _, o := range []client.Object{&appsv1.Deployment{}, &slinkyv1beta1.Token{}} {
			if err := c.Get(ctx, exporter, o); !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("%T is there", o), err)
			}
		}
		return nil
	})
}

// exported returns the metrics that the exporter of a cluster serves.
func (c *slurmCluster) exported(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(c.namespace), client.MatchingLabels{"app.kubernetes.io/component": "exporter"}); err != nil {
		return "", err
	}
	if len(pods.Items) != 1 {
		return "", fmt.Errorf("there are %d pods of exporters", len(pods.Items))
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+pods.Items[0].Status.PodIP+":8080/metrics", nil)
	if err != nil {
		return "", err
	}
	_, text, err := reads(http.DefaultClient, request)
	return text, err
}
