// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// scrapesSlurmctld gets the metrics at the paths to which a ServiceMonitor leads Prometheus, and expects of each a series that
// slurmctld 26.05 is known to have.
func (u *user) scrapesSlurmctld(t *testing.T, url string) {
	t.Helper()
	for path, series := range map[string]string{
		"/metrics/jobs": "slurm_jobs_completed ", "/metrics/nodes": `slurm_node_cpus{node="node-0"} `,
		"/metrics/partitions": `slurm_partition_nodes{partition="node"} 2`, "/metrics/scheduler": "slurm_schedule_cycle_cnt ",
	} {
		text, err := u.scrapes(t.Context(), url+path)
		if err != nil {
			t.Error(err)
		} else if !strings.Contains("\n"+text, "\n"+series) {
			t.Errorf("%s has no series %s:\n%s", path, series, text[:min(len(text), 2000)])
		}
	}
}

// scrapes reads metrics from the login node at which the user is logged in.
func (u *user) scrapes(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: u.Through, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // it has been read
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answered with status %d", url, response.StatusCode)
	}
	return string(text), err
}
