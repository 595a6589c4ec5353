// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package exporter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// ClustersPath is where Clusters are served.
const ClustersPath = "/metrics/clusters"

// The labels by which Clusters tells the series of clusters apart. Prometheus gives them to series of exporters in pods, and keeps ours if
// honor_labels is set.
const (
	labelNamespace = "namespace"
	labelJob       = "job"
)

// Clusters has an exporter for each Slurm cache of a registry, which asks Slurm for no nodes: the Slurm cache has them. It is an http.Handler that
// serves the metrics of all, with labels namespace and job, which is "namespace/controller", and a Runnable of a manager: it collects while that
// leads, and serves nothing otherwise.
type Clusters struct {
	caches  *slurmcache.Registry
	options Options

	mu        sync.Mutex
	exporters map[slurmcache.Key]*exported
}

// exported is an exporter that runs.
type exported struct {
	*Exporter
	cache *slurmcache.Cache
	stop  context.CancelFunc
}

// NewClusters returns exporters of the Slurm caches that a registry has and will have. They begin to collect with Start.
func NewClusters(caches *slurmcache.Registry, options Options) *Clusters {
	return &Clusters{caches: caches, options: options, exporters: map[slurmcache.Key]*exported{}}
}

// Start collects until the context ends.
func (c *Clusters) Start(ctx context.Context) error {
	changes := c.caches.Subscribe()
	defer changes.Close()
	var running sync.WaitGroup
	defer func() {
		c.follow(ctx, nil, &running)
		running.Wait()
	}()
	for {
		c.follow(ctx, c.caches.All(), &running)
		select {
		case <-ctx.Done():
			return nil
		case <-changes.Ready():
			changes.Take() // what Slurm caches there are shows in the registry
		}
	}
}

// follow starts exporters of Slurm caches that are new, and ends those of Slurm caches that are gone.
func (c *Clusters) follow(ctx context.Context, caches map[slurmcache.Key]*slurmcache.Cache, running *sync.WaitGroup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.exporters {
		if caches[key] != e.cache {
			e.stop()
			delete(c.exporters, key)
		}
	}
	for key, l := range caches {
		if _, known := c.exporters[key]; known || l.Snapshot().Taken.IsZero() {
			continue // the registry says when Slurm has answered for the first time
		}
		ctx, stop := context.WithCancel(ctx)
		options := c.options
		options.Log = options.Log.WithValues("cluster", key.String())
		options.Text.labels = []label{{labelNamespace, key.Namespace}, {labelJob, key.String()}}
		e := &exported{Exporter: New(l, options), cache: l, stop: stop}
		c.exporters[key] = e
		running.Go(func() { e.Run(ctx) })
	}
}

// ServeHTTP writes what was collected last of each cluster. Metrics of the same name stand together, as Prometheus' text format asks for.
func (c *Clusters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	exporters := c.sorted()
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Vary", "Accept-Encoding")
	var to io.Writer = w
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is one that there is
		defer zipped.Close()                                //nolint:errcheck // a scraper that is gone
		to = zipped
	}
	var parts []*text
	own := prometheus.NewRegistry()
	for _, e := range exporters {
		mine := e.parts()
		parts = append(parts, mine...)
		e.served(mine)
		prometheus.WrapRegistererWith(prometheus.Labels{labelNamespace: e.cache.Key().Namespace, labelJob: e.cache.Key().String()}, own).MustRegister(e.own)
	}
	if err := writeMerged(to, parts); err != nil {
		return // the scraper is gone
	}
	families, err := own.Gather()
	if err != nil {
		c.options.Log.Error(err, "Could not gather the metrics of exporters")
	}
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(to, family); err != nil {
			return
		}
	}
}

func (c *Clusters) sorted() []*exported {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.exporters), func(a, b *exported) int {
		return cmp.Compare(a.cache.Key().String(), b.cache.Key().String())
	})
}

// writeMerged writes the metrics of several texts, each once.
func writeMerged(w io.Writer, parts []*text) error {
	var names []string
	series := map[string][][]byte{}
	head := map[string][]byte{}
	for _, part := range parts {
		for i, f := range part.families {
			end := len(part.b)
			if i+1 < len(part.families) {
				end = part.families[i+1].begin
			}
			if _, known := head[f.name]; !known {
				names, head[f.name] = append(names, f.name), part.b[f.begin:f.series]
			}
			series[f.name] = append(series[f.name], part.b[f.series:end])
		}
	}
	for _, name := range names {
		for _, piece := range append([][]byte{head[name]}, series[name]...) {
			if _, err := w.Write(piece); err != nil {
				return fmt.Errorf("writing metric %s: %w", name, err)
			}
		}
	}
	return nil
}
