// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe runs in the pods of localkube's test: it leaves its node's name
// in a shared directory and serves over HTTP which names it sees there.
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	dir, node := os.Args[1], os.Getenv("NODE")
	if err := os.WriteFile(filepath.Join(dir, node), nil, 0o600); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		fmt.Fprintf(w, "%s sees %s\n", node, strings.Join(names, " "))
	})
	http.HandleFunc("/resolve", func(w http.ResponseWriter, r *http.Request) {
		addresses, err := net.DefaultResolver.LookupHost(r.Context(), r.FormValue("host"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, strings.Join(addresses, " "))
	})
	log.Fatal(http.ListenAndServe(":8080", nil))
}
