// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// policy lets a page load its own stylesheet, script and updates, and nothing else. No other page may contain it.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// ServeHTTP is part of http.Handler:
//
//	/ui                          all clusters
//	/ui/style.css, /ui/script.js
//	/ui/NAMESPACE/NAME           a cluster
//	/ui/NAMESPACE/NAME/events    what changes on its page, as server-sent events
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the status page is read-only", http.StatusMethodNotAllowed)
		return
	}
	path := strings.Split(strings.Trim(strings.TrimPrefix(r.URL.Path, Root), "/"), "/")
	switch {
	case len(path) == 1 && path[0] == "":
		s.serveClusters(w, r)
	case len(path) == 1 && path[0] == "style.css":
		serveFile(w, r, "style.css", "text/css; charset=utf-8")
	case len(path) == 1 && path[0] == "script.js":
		serveFile(w, r, "script.js", "text/javascript; charset=utf-8")
	case len(path) == 2:
		s.serveCluster(w, r, slurmcache.Key{Namespace: path[0], Name: path[1]})
	case len(path) == 3 && path[2] == "events":
		s.serveEvents(w, r, slurmcache.Key{Namespace: path[0], Name: path[1]})
	default:
		http.NotFound(w, r)
	}
}

func serveFile(w http.ResponseWriter, r *http.Request, name, kind string) {
	content, err := web.ReadFile("web/" + name)
	if err != nil {
		fail(w, r, err)
		return
	}
	send(w, r, kind, content)
}

func (s *Server) serveClusters(w http.ResponseWriter, r *http.Request) {
	all, err := s.source.Clusters(r.Context())
	if err != nil {
		fail(w, r, err)
		return
	}
	var page bytes.Buffer
	if err := s.templates.writeClusters(&page, NewClusters(all)); err != nil {
		fail(w, r, err)
		return
	}
	send(w, r, "text/html; charset=utf-8", page.Bytes())
}

func (s *Server) serveCluster(w http.ResponseWriter, r *http.Request, key slurmcache.Key) {
	b, ok := s.board(w, r, key)
	if !ok {
		return
	}
	all, err := b.since(s.templates, "")
	if err != nil {
		fail(w, r, err)
		return
	}
	var page bytes.Buffer
	events := clusterPath(key.Namespace, key.Name) + "/events?since=" + url.QueryEscape(all.position)
	if err := s.templates.writePage(&page, key.String(), all.fragments["main"], events); err != nil {
		fail(w, r, err)
		return
	}
	send(w, r, "text/html; charset=utf-8", page.Bytes())
}

// board is the page of a cluster as it is now. Without one it answers why, and the answer is over.
func (s *Server) board(w http.ResponseWriter, r *http.Request, key slurmcache.Key) (b *board, ok bool) {
	b, err := s.refresh(r.Context(), key, s.limits.update)
	switch {
	case err != nil:
		fail(w, r, err)
	case b == nil:
		http.Error(w, "there is no Slurm cluster "+key.String(), http.StatusNotFound)
	}
	return b, err == nil && b != nil
}

// fail answers that something went wrong here. What it was is for the log.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil { // otherwise the browser has gone
		log.FromContext(r.Context()).Error(err, "Could not serve a status page", "path", r.URL.Path)
	}
	http.Error(w, "the status page could not be rendered; see the operator's log", http.StatusInternalServerError)
}

// send answers with a content, compressed where the browser takes that.
func send(w http.ResponseWriter, r *http.Request, kind string, content []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Vary", "Accept-Encoding")
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		_, _ = w.Write(content) // a browser that is gone needs no answer
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	if err := compress(w, content); err != nil {
		log.FromContext(r.Context()).V(1).Info("A browser went away from a status page", "error", err.Error())
	}
}

func compress(w io.Writer, content []byte) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if _, err := compressed.Write(content); err != nil {
		return err
	}
	return compressed.Close()
}
