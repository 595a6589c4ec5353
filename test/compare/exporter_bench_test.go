// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/internal/observe/exporter"
	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

// BenchmarkExporterOfARealSlurm has an exporter collect every 30 seconds from a slurmctld 26.05 with 10,000 nodes of eight GPUs and 5,000 jobs
// that run. slurmrestd has the environment of its image. While nothing changes, it works for jobs and statistics alone, which is all that an
// exporter in the operator asks for. Afterwards ten jobs begin and ten nodes change in each interval.
func BenchmarkExporterOfARealSlurm(b *testing.B) {
	const nodes, jobs, changes, interval = 10000, 5000, 10, 30 * time.Second
	for _, root := range realslurm.Roots(b) {
		if root.Release != "26.05" { // nodes without a slurmd came later than 24.11
			continue
		}
		box := realslurm.Start(b, root, fmt.Sprintf("MaxNodeCount=20000\nSelectTypeParameters=CR_Core\nMaxJobCount=50000\nNodeName=n[00001-%05d] CPUs=64 RealMemory=512000 Gres=gpu:8 State=EXTERNAL", nodes))
		pod := box.StartRest("pod", "openapi/slurmctld", "SLURMRESTD_JSON=compact", "LD_PRELOAD=libmimalloc.so.3", "MIMALLOC_PURGE_DELAY=0")
		submitExternal(b, box.Transport, jobs)
		calls := &byCall{RoundTripper: pod, bytes: map[string]*atomic.Int64{"nodes": {}, "jobs": {}, "diag": {}}}
		l, err := slurmcache.New(slurmcache.Key{Namespace: "ns", Name: "c"}, slurmcache.Config{Endpoint: "http://exported", Issuer: issuer(b, "nobody")}, slurmcache.Options{Transport: calls})
		if err != nil {
			b.Fatal(err)
		}
		admin, err := rest.NewClient("http://box", issuer(b, "slurm"), rest.Options{Transport: box.Transport})
		if err != nil {
			b.Fatal(err)
		}
		e := exporter.New(l, exporter.Options{Interval: interval, MaxInflight: 1})
		ctx, stop := context.WithCancel(b.Context())
		var running sync.WaitGroup
		running.Go(func() { l.Run(ctx) })
		running.Go(func() { e.Run(ctx) })
		b.Run("the first records", func(b *testing.B) {
			before := slurmrestd(b, box)
			for b.Loop() { // the first time alone takes time
				for jobsKnown(ctx, e) < jobs {
					<-time.After(time.Second)
				}
			}
			after := slurmrestd(b, box)
			b.ReportMetric(b.Elapsed().Seconds(), "s")
			b.ReportMetric((after.cpu-before.cpu).Seconds()*1000, "slurmrestd-ms")
			b.ReportMetric(float64(after.resident)/1e6, "slurmrestd-MB")
		})
		for _, changed := range []int{0, changes} {
			b.Run(fmt.Sprintf("changes=%d", changed), func(b *testing.B) {
				calls.reset()
				before, own := slurmrestd(b, box), processorTime(b)
				count := 0
				for b.Loop() {
					submitExternal(b, box.Transport, changed)
					for i := range changed {
						state := rest.NodeUpdate{State: []string{"DRAIN", "UNDRAIN"}[count%2], Reason: "bench"}
						if err := admin.UpdateNodes(ctx, fmt.Sprintf("n%05d", nodes-i), state); err != nil {
							b.Fatal(err)
						}
					}
					count++
					<-time.After(interval)
				}
				after, per := slurmrestd(b, box), float64(count)
				for name, n := range calls.bytes {
					b.ReportMetric(float64(n.Load())/1000/per, "kB-of-"+name+"/cycle")
				}
				b.ReportMetric((after.cpu-before.cpu).Seconds()*1000/per, "slurmrestd-ms/cycle")
				b.ReportMetric(float64(after.resident)/1e6, "slurmrestd-MB")
				b.ReportMetric((processorTime(b)-own).Seconds()*1000/per, "own-ms/cycle")
			})
		}
		b.Run("a scrape", func(b *testing.B) {
			var size int
			for b.Loop() {
				size = scrape(ctx, e, "gzip").Body.Len()
			}
			b.ReportMetric(float64(size)/1000, "gzip-kB")
		})
		stop()
		running.Wait()
	}
}

// jobsKnown returns how many jobs an exporter shows.
func jobsKnown(ctx context.Context, e *exporter.Exporter) int {
	return strings.Count(scrape(ctx, e).Body.String(), "\nslurm_job_info{")
}

// scrape returns what an exporter answers to one who takes some encodings.
func scrape(ctx context.Context, e *exporter.Exporter, encodings ...string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", nil)
	request.Header["Accept-Encoding"] = encodings
	e.Metrics().ServeHTTP(answer, request)
	return answer
}

// byCall counts the bytes of answers by what they are about.
type byCall struct {
	http.RoundTripper
	bytes map[string]*atomic.Int64
}

func (c *byCall) reset() {
	for _, n := range c.bytes {
		n.Store(0)
	}
}

// RoundTrip is part of http.RoundTripper.
func (c *byCall) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	for name, n := range c.bytes {
		if strings.Contains(r.URL.Path, "/"+strings.TrimSuffix(name, "s")) {
			answer.Body = &countedBody{answer.Body, n}
		}
	}
	return answer, nil
}

type countedBody struct {
	io.ReadCloser
	n *atomic.Int64
}

// Read is part of io.Reader.
func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// submitExternal starts jobs that need no slurmd (sbatch(1), --external).
func submitExternal(b *testing.B, transport http.RoundTripper, jobs int) {
	b.Helper()
	const body = `{"job":{"name":"train","current_working_directory":"/tmp","environment":["PATH=/bin"],"tasks":1,"cpus_per_task":1,` +
		`"time_limit":{"set":true,"number":600},"partition":"main","flags":["EXTERNAL_JOB"]}}`
	signed, _, err := issuer(b, "alice").Token(time.Now())
	if err != nil {
		b.Fatal(err)
	}
	client := http.Client{Transport: transport}
	for range jobs {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://box/slurm/v0.0.45/job/submit", strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		request.Header.Set("X-Slurm-User-Token", signed)
		request.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			b.Fatalf("submitting a job: %s: %s", answer.Status, text)
		}
	}
}

// usage is what a process has used, and has now.
type usage struct {
	cpu      time.Duration
	resident int64 // bytes
}

// slurmrestd returns the usage of the slurmrestd that the exporter asks, see proc_pid_stat(5).
func slurmrestd(b *testing.B, box *realslurm.Box) usage {
	b.Helper()
	const perTick, pageSize = 10 * time.Millisecond, 4096
	line := box.Run("bash", "-c", "cat /proc/$(cat /run/pod.pid)/stat")
	fields := strings.Fields(line[strings.LastIndex(line, ")")+1:])
	number := func(i int) int64 {
		n, err := strconv.ParseInt(fields[i-3], 10, 64)
		if err != nil {
			b.Fatalf("field %d of %q: %v", i, line, err)
		}
		return n
	}
	return usage{cpu: time.Duration(number(14)+number(15)) * perTick, resident: number(24) * pageSize}
}

// processorTime returns what this process has used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
