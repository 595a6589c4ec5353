// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/observe/exporter"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// User nobody, who has no rights, sees everything that the exporter shows.
func TestTheExporterShowsWhatSlurmSays(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			t.Parallel()
			s := original(t, root, "", true)
			withGPUs(t, s)
			for _, options := range []string{
				"-J train -w a -c 2 --mem=100M --mail-user=alice@example.org --mail-type=END --output=/tmp/out-%j", "-J array --array=3-9%1 -w a -c 1 --mem=100M", "-J held --hold",
			} {
				if said, err := sbatch(s, "#!/bin/bash\n#SBATCH "+options+"\nsleep 600\n"); err != nil {
					t.Fatalf("sbatch %s says %s", options, said)
				}
			}
			if err := s.client.UpdateNodes(t.Context(), "b", rest.NodeUpdate{State: "DRAIN", Reason: "[node_problem] disk"}); err != nil {
				t.Fatal(err)
			}
			l, err := slurmcache.New(slurmcache.Key{Namespace: "ns", Name: "c"}, slurmcache.Config{Endpoint: "http://exported", Issuer: issuer(t, "nobody")}, slurmcache.Options{Transport: s.http.Transport})
			if err != nil {
				t.Fatal(err)
			}
			e := exporter.New(l, exporter.Options{Interval: time.Second})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{}, 2)
			for _, run := range []func(context.Context){l.Run, e.Run} {
				go func() {
					run(ctx)
					ended <- struct{}{}
				}()
			}
			apiserver.Eventually(t, func() error {
				answer := httptest.NewRecorder()
				e.Metrics().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil))
				for _, want := range []string{
					`slurm_node_cpus_allocated{node_name="a"} 3`, `slurm_node_memory_allocated_bytes{node_name="a"} 209715200`, `slurm_node_cpus_total{node_name="b"} 4`,
					`slurm_node_partition{node_name="a",partition="main"} 1`, `slurm_node_gpu_seconds_total{node_name="a",state_base="MIXED",`,
					`reason="[node_problem] disk"`, `slurm_job_info{job_id="1",job_state="RUNNING",job_state_reason="None",slurm_partition="main",job_name="train",user_name="alice",user_mail="alice@example.org",`,
					`job_name="array",user_name="alice",user_mail="",user_id="2000",standard_error=`, `array_job_id="2",array_task_id="3",`,
					`job_state="PENDING",job_state_reason="JobHeldUser"`, `slurm_node_job{job_id="1",node_name="a",`, `slurm_job_cpus{job_id="1"} 2`,
					`slurm_job_memory_bytes{job_id="1"} 104857600`, `slurm_job_duration_seconds{job_id="1"} `,
					`slurm_controller_rpc_calls_total{message_type="REQUEST_SUBMIT_BATCH_JOB"} 3`, `slurm_controller_rpc_user_calls_total{user="alice",user_id="2000"} `,
					"slurm_controller_server_thread_count ",
				} {
					if !strings.Contains(answer.Body.String(), want) {
						return fmt.Errorf("no %s in\n%s", want, answer.Body)
					}
				}
				return e.Healthy()
			})
			stop()
			<-ended
			<-ended
		})
	}
}
