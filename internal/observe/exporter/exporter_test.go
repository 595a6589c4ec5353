// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

var update = flag.Bool("update", false, "write the golden files")

// fixed is a source whose answers a test sets.
type fixed struct {
	mu       sync.Mutex
	snapshot *slurmcache.Snapshot
	jobs     slurmcache.JobRecords
	jobsErr  error
	// accounted are the jobs of slurmdbd, and lookback is what it was asked for.
	accounted slurmcache.JobRecords
	lookback  time.Duration
	diag      rest.Diag
	diagErr   error
	asked     time.Time // when diag was last given without an error
	hangs     bool      // CollectJobs does not answer
}

// Snapshot is part of Source.
func (f *fixed) Snapshot() *slurmcache.Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.snapshot
}

// CollectJobs is part of Source.
func (f *fixed) CollectJobs(ctx context.Context) (slurmcache.JobRecords, error) {
	f.mu.Lock()
	hangs, jobs, err := f.hangs, f.jobs, f.jobsErr
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return slurmcache.JobRecords{}, ctx.Err()
	}
	return jobs, err
}

// CollectAccountingJobs is part of Source.
func (f *fixed) CollectAccountingJobs(_ context.Context, lookback time.Duration) (slurmcache.JobRecords, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookback = lookback
	return f.accounted, nil
}

// CollectDiag is part of Source.
func (f *fixed) CollectDiag(context.Context) (rest.Diag, time.Time, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.diagErr == nil {
		f.asked = time.Now()
	}
	return f.diag, f.asked, f.diagErr
}

// set changes the answers.
func (f *fixed) set(edit func(*fixed)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit(f)
}

func aNode(name, state string, edit func(*rest.Node)) rest.Node {
	n := rest.Node{
		Name: name, Address: "10.0.0.1", InstanceID: "i-" + name, State: strings.Split(state, "+"), Partitions: []string{"main", "gpu"},
		CPUs: 64, EffectiveCPUs: 62, AllocCPUs: 8, RealMemory: 512000, AllocMemory: 8000, SpecializedMemory: 1000, FreeMemory: -1,
		TRES: "cpu=64,mem=500G,billing=64,gres/gpu=8,gres/gpu:h100=8",
	}
	edit(&n)
	return n
}

// aCluster returns a source with three nodes and three jobs.
func aCluster(now time.Time) *fixed {
	return &fixed{
		snapshot: slurmcache.NewSnapshot(
			now, slurmcache.Fresh,
			aNode("a", "MIXED", func(n *rest.Node) {
				n.FreeMemory, n.Comment = 1000, `{"namespace":"ns","podName":"gpu-0","node":"kube-1","nodeSetName":"gpu","nodeSetUID":"u","nvlinkInstanceGroup":"rack-7"}`
			}),
			aNode("b", "IDLE+DRAIN", func(n *rest.Node) { n.Reason, n.ReasonTime = "say \"no\"\nto\\disks é", now.Add(-time.Hour) }),
			aNode("c", "DOWN+CLOUD+POWERED_DOWN+NOT_RESPONDING+MAINTENANCE+RESERVED", func(n *rest.Node) { n.Reservation = " maint " }),
		),
		jobs: slurmcache.JobRecords{Taken: now, Missing: 3, Jobs: []*rest.JobRecord{
			{
				ID: 7, Name: "train", User: "alice", UserID: 2000, Mail: "alice", Partition: "gpu", State: []string{"RUNNING"}, Reason: "None", Nodes: "a",
				CPUs: 8, TRES: "cpu=8,mem=8000M,gres/gpu=8", Output: "/home/alice/%j", ErrorOutput: "/home/alice/%j.err", ArrayJob: 6, ArrayTask: "2",
				Submitted: now.Add(-time.Minute), Start: now.Add(-30 * time.Second), Limit: now.Add(time.Hour),
			},
			{
				ID: 8, Name: "done", User: "bob", UserID: 2001, Mail: "b@x.org", Partition: "main", State: []string{"COMPLETED"}, Reason: "None", Nodes: "a,c",
				CPUs: 2, TRES: "cpu=2,mem=1.5G", Submitted: now.Add(-time.Hour), Start: now.Add(-time.Hour), End: now.Add(-50 * time.Minute),
			},
			{
				ID: 9, Name: "waits", User: "", UserID: 3000, Partition: "main", State: []string{"PENDING"}, Reason: "Resources", ArrayJob: 9, ArrayTask: "1-9%1",
				CPUs: 1, Submitted: now, Start: now.Add(time.Hour),
			},
		}},
		diag: rest.Diag{
			ServerThreads: 3, ByMessage: []rest.Calls{{Name: "REQUEST_PING", ID: 1008, Count: 5, Took: 1500 * time.Microsecond}},
			ByUser: []rest.Calls{{Name: "root", Count: 5, Took: 1500 * time.Microsecond}},
		},
	}
}

// scrape gets an answer of a handler.
func scrape(t *testing.T, handler http.Handler, path, encoding string) (status int, body string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	var from io.Reader = w.Body
	if w.Header().Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		from = z
	}
	out, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(out)
}

// run runs an exporter of a source, in synthetic time, while then looks at it.
func run(t *testing.T, source Source, options Options, then func(*Exporter)) {
	t.Helper()
	if options.Interval == 0 {
		options.Interval = 30 * time.Second
	}
	e := New(source, options)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.Run(ctx)
	}()
	synctest.Wait()
	then(e)
	stop()
	<-ended
}

// parse reads text as Prometheus does.
func parse(t *testing.T, text string) (series int) {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	for _, f := range families {
		series += len(f.Metric)
	}
	return series
}

// says fails the test unless text has lines.
func says(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

func TestJobsComeFromSlurmdbdIfThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := aCluster(time.Now())
		source.accounted = slurmcache.JobRecords{Taken: time.Now(), Jobs: []*rest.JobRecord{
			{ID: 4711, Name: "old", User: "alice", UserID: rest.NoUserID, State: []string{"COMPLETED"}, TRES: "cpu=1,mem=64M"},
		}}
		run(t, source, Options{Lookback: 2 * time.Hour}, func(e *Exporter) {
			_, text := scrape(t, e.Metrics(), "/metrics", "")
			says(t, text, `slurm_job_memory_bytes{job_id="4711"} 67108864`)
			if want := `user_name="alice",user_mail="",user_id=""`; !strings.Contains(text, want) {
				t.Errorf("no %s in %s", want, text)
			}
			if n := strings.Count(text, "slurm_job_info{"); n != 1 {
				t.Errorf("%d jobs are shown", n)
			}
		})
		if source.lookback != 2*time.Hour {
			t.Errorf("slurmdbd was asked for %s", source.lookback)
		}
	})
}

func TestWhatAClusterLooksLike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := aCluster(time.Now())
		run(t, source, Options{}, func(e *Exporter) {
			// A minute later b is used again, and a has been drained, for half a minute.
			time.Sleep(time.Minute)
			source.set(func(f *fixed) {
				f.snapshot = aCluster(time.Now()).snapshot
				for n := range f.snapshot.Nodes() {
					switch n.Name {
					case "a":
						n.State, n.Reason, n.ReasonTime = []string{"MIXED", "DRAIN"}, "[node_problem] disk", time.Now().Add(-10*time.Second)
					case "b":
						n.State, n.Reason, n.ReasonTime = []string{"IDLE"}, "", time.Time{}
					}
				}
			})
			time.Sleep(31 * time.Second)
			source.set(func(f *fixed) {
				f.snapshot = aCluster(time.Now()).snapshot
				for n := range f.snapshot.Nodes() {
					if n.Name == "b" {
						n.State, n.Reason, n.ReasonTime = []string{"ALLOCATED"}, "", time.Time{}
					}
				}
			})
			time.Sleep(30 * time.Second)
			synctest.Wait()
			_, plain := scrape(t, e.Metrics(), "/metrics", "")
			if _, zipped := scrape(t, e.Metrics(), "/metrics", "gzip"); zipped != plain {
				t.Error("what is compressed is something else")
			}
			_, own := scrape(t, e.Monitoring(), "/metrics", "")
			says(t, own, fmt.Sprintf("slurm_exporter_metrics_exported %d", parse(t, plain)), "slurm_exporter_metrics_requests_total 2")
			parse(t, own)
			golden(t, "testdata/cluster.txt", plain)
			golden(t, "testdata/own.txt", own)
		})
	})
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestWhatFailsKeepsWhatWasKnownAndSaysHowOldItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := aCluster(time.Now())
		run(t, source, Options{}, func(e *Exporter) {
			if status, body := scrape(t, e.Metrics(), "/health", ""); status != 200 || body != "healthy" {
				t.Errorf("%d %s", status, body)
			}
			source.set(func(f *fixed) {
				stale := *f.snapshot
				stale.Trust, stale.Why = slurmcache.Stale, "slurmrestd is away"
				f.snapshot, f.diagErr, f.jobsErr = &stale, errors.New("slurmctld is away"), errors.New("no jobs")
			})
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			status, body := scrape(t, e.Metrics(), "/health", "")
			if want := "nodes: the nodes are Stale: slurmrestd is away; jobs: no jobs; diag: slurmctld is away\n"; status != 503 || body != want {
				t.Errorf("%d %s", status, body)
			}
			_, body = scrape(t, e.Metrics(), "/metrics", "")
			says(t, body, `slurm_node_cpus_total{node_name="a"} 64`, `slurm_job_cpus{job_id="7"} 8`, "slurm_controller_server_thread_count 3")
			_, own := scrape(t, e.Monitoring(), "/metrics", "")
			says(
				t, own, `slurm_exporter_collector_age_seconds{collector="nodes"} 120`, `slurm_exporter_collector_errors_total{collector="diag"} 4`,
				"slurm_exporter_collection_attempts_total 5", "slurm_exporter_collection_failures_total 4", "slurm_exporter_jobs_missing 3",
			)
		})
	})
}

// The limit of slurmrestd's load lets a slow one answer seldom, which is no illness of the exporter.
func TestAShortIntervalMakesNobodyUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run(t, aCluster(time.Now()), Options{Interval: 2 * time.Second}, func(e *Exporter) {
			for _, want := range []int{http.StatusOK, http.StatusServiceUnavailable} {
				time.Sleep(time.Minute)
				synctest.Wait()
				if status, body := scrape(t, e.Metrics(), "/health", ""); status != want {
					t.Errorf("%d %s, want %d", status, body, want)
				}
			}
		})
	})
}

func TestACollectionThatHangsKeepsNoOtherFromRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := aCluster(time.Now())
		source.hangs = true
		run(t, source, Options{MaxInflight: 2}, func(e *Exporter) {
			time.Sleep(95 * time.Second)
			synctest.Wait()
			_, own := scrape(t, e.Monitoring(), "/metrics", "")
			says(
				t, own, `slurm_exporter_collector_inflight{collector="jobs"} 2`, `slurm_exporter_collector_skipped_total{collector="jobs"} 2`,
				`slurm_exporter_collector_inflight{collector="nodes"} 0`, `slurm_exporter_collector_skipped_total{collector="nodes"} 0`,
			)
			if status, body := scrape(t, e.Metrics(), "/health", ""); status != 503 || !strings.HasPrefix(body, "nodes: ") {
				t.Errorf("%d %s", status, body)
			}
		})
	})
}

func TestSeriesAndLabelsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := Options{Text: TextOptions{MaxSeries: 2, WithoutLabels: map[string][]string{"slurm_job_info": {"standard_output", "job_id"}}}}
		run(t, aCluster(time.Now()), options, func(e *Exporter) {
			_, body := scrape(t, e.Metrics(), "/metrics", "")
			parse(t, body)
			if n := strings.Count(body, "\nslurm_node_info{"); n != 2 {
				t.Errorf("%d nodes", n)
			}
			if !strings.Contains(body, `slurm_job_info{job_state="RUNNING",`) || strings.Contains(body, "standard_output") {
				t.Error("labels are there")
			}
			_, own := scrape(t, e.Monitoring(), "/metrics", "")
			says(t, own, `slurm_exporter_series_dropped_total{metric="slurm_node_info"} 1`, `slurm_exporter_series_dropped_total{metric="slurm_node_partition"} 4`)
		})
	})
}

// FuzzText reads what is written with Prometheus' own parser, whatever a label has.
func FuzzText(f *testing.F) {
	f.Add("a \"b\" \\ \n é \xff", 1.5)
	f.Add("", math.Copysign(0, -1))
	f.Add("\r\t\x00", 1e300)
	f.Fuzz(func(t *testing.T, value string, number float64) {
		var out text
		out.start("m", gauge, "Help.")
		out.add(number, label{"a", value}, label{"b", "c"})
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(out.b))
		if err != nil {
			t.Fatalf("%v in %q", err, out.b)
		}
		m := families["m"].Metric[0]
		if got, want := m.Label[0].GetValue(), string([]rune(value)); got != want || m.Label[1].GetValue() != "c" {
			t.Errorf("%q is read as %q", want, got)
		}
		if got := m.Gauge.GetValue(); got != number && !(math.IsNaN(got) && math.IsNaN(number)) {
			t.Errorf("%v is read as %v", number, got)
		}
	})
}
