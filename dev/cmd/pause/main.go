// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Command pause is process 1 of a pod sandbox: it holds the pod's namespaces,
// reaps orphans and ends on SIGTERM or SIGINT. Localkube also uses it to hold
// the network namespace of its switch.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for s := range signals {
		if s != syscall.SIGCHLD {
			os.Exit(0)
		}
		reap()
	}
}

func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if pid <= 0 && err != syscall.EINTR {
			return
		}
	}
}
