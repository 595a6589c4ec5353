// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
	"github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// byHost sends requests to the Slurm of their host.
type byHost map[string]*fake.Slurm

// RoundTrip is part of http.RoundTripper.
func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) {
	s, ok := b[r.URL.Hostname()]
	if !ok {
		return nil, errors.New("there is no " + r.URL.Hostname())
	}
	return s.Transport().RoundTrip(r)
}

func TestTheManagerServesTheMetricsOfAllClustersThatItLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slurms := byHost{"one": fake.New(fake.Options{}), "two": fake.New(fake.Options{})}
		slurms["one"].Register(fake.Node{Name: "a"})
		slurms["one"].Submit(fake.Job{NodeList: []string{"a"}, Name: "first"})
		slurms["two"].Register(fake.Node{Name: "a"}, fake.Node{Name: "b"})
		caches := slurmcache.NewRegistry(slurmcache.Options{Transport: slurms})
		defer caches.Close()
		connect := func(name string) slurmcache.Key {
			t.Helper()
			key := slurmcache.Key{Namespace: "slurm", Name: name}
			issuer, err := token.NewStatic("a.b.c")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := caches.Set(key, slurmcache.Config{Endpoint: "http://" + name + ":6820", Issuer: issuer}); err != nil {
				t.Fatal(err)
			}
			return key
		}
		connect("one")
		clusters := NewClusters(caches, Options{Interval: 30 * time.Second, MaxInflight: 1, Log: logr.Discard()})
		get := func(encoding string) string {
			t.Helper()
			status, text := scrape(t, clusters, ClustersPath, encoding)
			if status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			parse(t, text)
			return text
		}
		if text := get(""); text != "" {
			t.Errorf("a manager that does not lead serves %s", text)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- clusters.Start(ctx) }()
		pass := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		pass(time.Minute)
		two := connect("two")
		pass(time.Minute)
		text := get("")
		for _, want := range []string{
			`slurm_node_cpus_total{namespace="slurm",job="slurm/one",node_name="a"}`,
			`slurm_node_cpus_total{namespace="slurm",job="slurm/two",node_name="b"}`,
			`job_name="first"`,
			`slurm_exporter_collector_age_seconds{collector="nodes",job="slurm/two",namespace="slurm"}`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in %s", want, text)
			}
		}
		if n := strings.Count(text, "# TYPE slurm_node_info gauge"); n != 1 {
			t.Errorf("a metric begins %d times", n)
		}
		if zipped := get("gzip"); !strings.Contains(zipped, `job_name="first"`) {
			t.Errorf("what is compressed is something else: %s", zipped)
		}
		caches.Delete(two)
		pass(time.Second)
		if text := get(""); strings.Contains(text, `job="slurm/two"`) || !strings.Contains(text, `job="slurm/one"`) {
			t.Errorf("a cluster that is gone is shown, or the other one is not: %s", text)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if text := get(""); text != "" {
			t.Errorf("a manager that does not lead any more serves %s", text)
		}
	})
}

// A cluster that the manager watches costs Slurm no list of nodes more when its metrics are shown.
func TestMetricsOfTheManagerAskForNoNodes(t *testing.T) {
	calls := func(shown bool) (lists int) {
		synctest.Test(t, func(t *testing.T) {
			slurms := byHost{"one": fake.New(fake.Options{})}
			slurms["one"].Register(fake.Node{Name: "a"})
			caches := slurmcache.NewRegistry(slurmcache.Options{Transport: slurms})
			defer caches.Close()
			issuer, err := token.NewStatic("a.b.c")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := caches.Set(slurmcache.Key{Name: "one"}, slurmcache.Config{Endpoint: "http://one", Issuer: issuer}); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			clusters := NewClusters(caches, Options{Interval: 30 * time.Second, Log: logr.Discard()})
			if shown {
				go func() { ended <- clusters.Start(ctx) }()
			} else {
				ended <- nil
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			lists = slurms["one"].Counters().Calls["GET nodes"]
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
		return lists
	}
	if with, without := calls(true), calls(false); with != without || with == 0 {
		t.Errorf("%d lists of nodes with metrics, %d without", with, without)
	}
}
