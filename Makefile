# Copyright The Coxswain Authors.
# SPDX-License-Identifier: Apache-2.0

# Everything a developer types. "make" alone lists it.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

CACHE    ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain
NODES    ?= 2
E2E_NODES ?= 3
REGISTRY ?= coxswain.local
TAG      ?= dev
VERSION  ?= 0.1.0-dev
E2E_FLAGS ?=
BENCH_SIZES  ?= 100,1000,5000
BENCH_WINDOW ?= 2m
FAULTS       ?= .
FAULTS_EVERY ?= 6
FAULTS_SHARE ?= 3
FAULTS_PART  ?= 0
LEAVES_SHARE ?= 3

# One set of flags for programs, tests, tools, linters and Kubernetes, and one version of a module in go.mod, dev/go.mod and
# tools/go.mod: so every package is compiled once. Only the race detector compiles its own. Nobody needs what debuggers read, and the
# compiler collects less of its garbage: that saves 28 of 100 seconds.
export CGO_ENABLED := 0
OUR_GOFLAGS := -trimpath -buildvcs=false -gcflags=all=-dwarf=false
export GOFLAGS := $(strip $(filter-out $(OUR_GOFLAGS),$(GOFLAGS)) $(OUR_GOFLAGS))
GO_BUILD := GOGC=400 go build

# golangci-lint vets. Results are not taken from Go's cache, which does not know what the programs read that a test runs, and has those of
# other clones, too. Tests that need a program of "localkube build" fail without it, where "go test ./..." leaves them out.
GO_TEST := GOGC=400 go test -vet=off -count=1 -ldflags='-s -w'
export COXSWAIN_REQUIRED := apiserver

# One list, for this file, the demo and the image.
BINARIES := $(shell cat images/operator/programs)
# And those in the images of Slurm.
SLURM_BINARIES := $(shell cat images/programs)
# Debian packages, by what they are for.
APT_BUILD   := git make gcc python3-yaml
APT_CLUSTER := containerd runc containernetworking-plugins iproute2 iptables nftables
APT_IMAGES  := buildah debootstrap debian-archive-keyring
APT_DEMO    := openssh-client
APT_OBSERVE := prometheus
# What tests of containers need: a registry, what makes and mounts images, and a program for them.
APT_CONTAINERS := docker-registry squashfs-tools squashfuse busybox-static

.PHONY: help
help: ## Say what can be made.
	@echo "Coxswain: Slurm on Kubernetes."
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##@ The two commands of the README

.PHONY: demo
demo: deps bin/demo ## Bring up Kubernetes, the operator and a Slurm cluster, and run jobs over ssh. KUBECONFIG=… uses a cluster of yours.
	@bin/demo $(if $(filter command line environment override,$(origin KUBECONFIG)),$(if $(KUBECONFIG),--kubeconfig=$(KUBECONFIG))) --registry=$(REGISTRY) --tag=$(TAG) --nodes=$(NODES)

.PHONY: test
test: deps ## Pass every test of the gate (hack/gate): generated files, lint, docs, unit, a real apiserver, faults, images, real slurmctlds, counts, alerts, end to end.
	@hack/gate

.PHONY: test-long
test-long: deps ## Pass what takes longer, once for each issue: race detector, all leaves, all faults, all mutants, more random worlds, Chromium, the local Kubernetes, all end-to-end tests. It goes on where it was interrupted.
	@hack/gate -rest "programs race leaves faults-all-0 faults-all-1 mutants worlds" "clean-clone status-page edits test-dev e2e-long faults-all-2 faults-all-3"

##@ Pieces

.PHONY: deps
deps: ## Install the Debian packages that building, the local Kubernetes, the images and the tests need.
	@hack/install-packages $(APT_BUILD) $(APT_CLUSTER) $(APT_IMAGES) $(APT_DEMO) $(APT_OBSERVE) $(APT_CONTAINERS)

.PHONY: build
build: $(addprefix bin/,$(BINARIES) $(SLURM_BINARIES)) ## Build the binaries of the images into bin/.

.PHONY: programs
programs: build bin/demo bin/helm bin/localkube bin/controller-gen bin/deadcode bin/golangci-lint ## Build whatever the tests run: the binaries of the images, the tools, the local Kubernetes.
	@bin/localkube build

.PHONY: go-env
go-env: ## Print what gives your shell the flags of this Makefile, so that go finds compiled what make has compiled: eval "$(make -s go-env)".
	@echo "export CGO_ENABLED='$(CGO_ENABLED)' GOFLAGS='$(GOFLAGS)'"

.PHONY: plugin
plugin: bin/kubectl-slurm ## Build the plugin of kubectl, bin/kubectl-slurm (docs/users/kubectl-slurm.md).

# Where the archives of a release are to be found, and its version. A version of krew begins with v.
PLUGIN_VERSION   ?= v$(VERSION)
PLUGIN_URL       ?= https://github.com/coxswain-hpc/coxswain/releases/download/$(PLUGIN_VERSION)
PLUGIN_PLATFORMS := linux-amd64 linux-arm64 darwin-amd64 darwin-arm64

.PHONY: plugin-archives
plugin-archives: $(PLUGIN_PLATFORMS:%=out/plugin/bin/%/kubectl-slurm) ## Build archives of the plugin for a release, their digests and the manifest of krew below out/plugin (VERSION=…).
	@hack/plugin-archives out/plugin/bin out/plugin $(PLUGIN_VERSION) $(PLUGIN_URL)
	@cat out/plugin/sha256sums.txt

out/plugin/bin/%/kubectl-slurm: FORCE
	GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) $(GO_BUILD) -ldflags='$(LDFLAGS)' -o $@ ./cmd/kubectl-slurm

.PHONY: run
run: bin/manager ## Run the operator on this machine, for the cluster of KUBECONFIG and the slurmrestd at SLURMRESTD_URL (CONTRIBUTING.md). RUN_FLAGS=… adds flags.
	@bin/manager --leader-elect=false --metrics-addr=0 --health-addr=127.0.0.1:18081 --log-format=plain \
		--image-registry=$(REGISTRY) --image-tag=$(TAG) $(if $(SLURMRESTD_URL),--slurmrestd-url=$(SLURMRESTD_URL)) $(RUN_FLAGS)

LDFLAGS := -s -w -X main.version=$(VERSION)
# Go knows what is current: it looks at the sources and leaves a program alone that would become the same.
.PHONY: FORCE
FORCE:

# For a directory of PATH: "kubectl slurm" runs bin/kubectl-slurm.
$(addprefix bin/,$(BINARIES) kubectl-slurm): bin/%: FORCE
	@$(GO_BUILD) -ldflags='$(LDFLAGS)' -o $@ ./cmd/$*

# Without a version: the images of Slurm are built anew only when these programs have changed.
$(addprefix bin/,$(SLURM_BINARIES)): bin/%: FORCE
	@$(GO_BUILD) -ldflags='-s -w' -o $@ ./cmd/$*

bin/demo: FORCE
	@$(GO_BUILD) -ldflags='-s -w' -o $@ ./test/demo

bin/localkube: FORCE
	@cd dev && $(GO_BUILD) -ldflags='-s -w' -o ../$@ ./cmd/localkube

bin/controller-gen bin/deadcode bin/golangci-lint bin/helm: bin/%: tools/go.mod tools/go.sum
	@echo "building $* (once)"
	@cd tools && $(GO_BUILD) -ldflags='-s -w' -o ../$@ "$$(grep -o '[^[:space:]]*/$*$$' go.mod)"

.PHONY: generate
generate: bin/controller-gen ## Write deep copies, CRDs, RBAC and the charts' copies of them.
	@bin/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@bin/controller-gen crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:dir=helm/coxswain-crds/crd
	@hack/allow-null
	@bin/controller-gen rbac:roleName=coxswain-manager,headerFile=hack/boilerplate.yaml.txt paths=./internal/... paths=./cmd/... output:rbac:dir=config/rbac
	@bin/controller-gen webhook:headerFile=hack/boilerplate.yaml.txt paths=./internal/webhook/... output:webhook:dir=config/webhook
	@hack/sync-charts

.PHONY: check-generate
check-generate: ## Fail when a generated file is not current.
	@hack/check-generate

.PHONY: lint
lint: bin/golangci-lint bin/deadcode bin/helm ## Run golangci-lint over all modules, look for dead code, and run shellcheck-like syntax checks and helm lint, and render the charts.
	@bin/golangci-lint run --allow-parallel-runners ./...
	@cd dev && ../bin/golangci-lint run --allow-parallel-runners --config ../.golangci.yml ./...
	@hack/check-dead
	@$(GO_TEST) ./test/house
	@hack/check-shell
	@bin/helm lint --quiet helm/coxswain-crds helm/coxswain
	@hack/check-charts

.PHONY: docs
docs: ## Write the documentation as a site to out/docs/site, and fail on a link that MkDocs cannot follow.
	@hack/docs

# Tests that "make unit" does not run: they are stages of their own.
ELSEWHERE := /test/(e2e|faults|bench|house|observe)$$
# Tests of the whole operator wait for most of their time, hence -p and -parallel beyond the cores. Random worlds are the same in each run:
# who changes something else must not be stopped by one that nobody has seen before. "make worlds" looks for those. The packages that take
# longest are first.
LONGEST := ./test/leaves ./test/integration/...
.PHONY: unit
unit: bin/localkube bin/helm ## Run unit tests and tests against a real apiserver; compare the rights of operator and webhook with those they used.
	@bin/localkube build
	@RAPID_SEED=1 COXSWAIN_LEAVES_SHARE=$(LEAVES_SHARE) COXSWAIN_RBAC_USES=$(CURDIR)/out/rbac $(GO_TEST) -p 3 -parallel 6 -timeout 20m $$(go list $(LONGEST) ./... | grep -vE '$(ELSEWHERE)')
	@RAPID_SEED=1 $(GO_TEST) ./internal/controller/slinky/nodeset/nodesetplan -run 'Invariants|NeverTakes' -rapid.checks=1500
	@RAPID_SEED=1 $(GO_TEST) ./internal/health -run Invariants -rapid.checks=3000
	@hack/check-rbac out/rbac

# Tests with one goroutine that take five to ten times as long with the race detector: they weigh long answers, or compose thousands of clusters.
PLAIN_TESTS := ^(TestALongListIsDecodedInLittleMemory|TestWhatIsKeptOfAnAnswerIsBounded|TestALargeClusterIsSmallInMemory|TestNobodyIsStoppedBeforeItsTime|TestNobodysJailIsOverwrittenWhateverTheMode|TestEveryLeafIsEffectiveOrTold)$$

.PHONY: race
race: bin/localkube bin/helm ## Run what "make unit" runs with the race detector. Part of "make test-long".
	@bin/localkube build
	@CGO_ENABLED=1 $(GO_TEST) -race -skip '$(PLAIN_TESTS)' -parallel 6 -timeout 40m $$(go list ./... | grep -vE '$(ELSEWHERE)|/test/leaves$$')

.PHONY: leaves
leaves: bin/localkube ## Change every leaf of every component's spec on a real apiserver; "make unit" does so with every third (LEAVES_SHARE). Part of "make test-long".
	@bin/localkube build
	@$(GO_TEST) -timeout 40m ./test/leaves

.PHONY: worlds
worlds: ## Let random worlds, other ones each time, try the plans of NodeSets, Kubernetes nodes and SlurmClusters for longer. Part of "make test-long".
	@$(GO_TEST) ./internal/controller/slinky/nodeset/nodesetplan -run 'Invariants|NeverTakes' -rapid.checks=15000
	@$(GO_TEST) ./internal/health -run Invariants -rapid.checks=30000
	@$(GO_TEST) -timeout 30m ./internal/compose -rapid.checks=1000

.PHONY: observe
observe: bin/localkube bin/helm ## Run every query of the alerts and dashboards on a Prometheus, and see each alert fire. Debian's package prometheus is needed.
	@bin/localkube build
	@$(GO_TEST) -timeout 10m ./test/observe -observe.required

.PHONY: faults
faults: ## Try every fault at every sixth write (FAULTS_EVERY) of every third scenario (FAULTS_SHARE), in synthetic time. FAULTS=… for the tests that match.
	@$(GO_TEST) -timeout 3h -run '$(FAULTS)' ./test/faults -faults.every=$(FAULTS_EVERY) -faults.share=$(FAULTS_SHARE) -faults.part=$(FAULTS_PART)

# Each is a stage of test-long of its own: what has passed is not tried again when the next one is interrupted.
FAULTS_PARTS := faults-all-0 faults-all-1 faults-all-2 faults-all-3
.PHONY: faults-all $(FAULTS_PARTS)
faults-all: $(FAULTS_PARTS) ## Try every fault at every write of every scenario. Part of "make test-long", in four parts.
$(FAULTS_PARTS): faults-all-%:
	@$(MAKE) --no-print-directory faults FAULTS_EVERY=1 FAULTS_SHARE=4 FAULTS_PART=$*

.PHONY: mutants
mutants: ## Put the bugs of others into the operator, one at a time, and see that a suite catches each: what the gate tries, and if that does not, every fault at every write. It tells which did. MUTANTS=… for flags of the test. Part of "make test-long".
	@$(GO_TEST) -v -timeout 3h ./test/mutants -mutants.run $(MUTANTS)

.PHONY: status-page
status-page: ## Look at the status page with Chromium, and take its pictures for the documentation. Chromium, a Debian package, is installed: 414 MB.
	@hack/install-packages chromium
	@$(GO_TEST) ./internal/observe/statuspage -run Chromium -statuspage.chromium -statuspage.screenshots=$(CURDIR)/docs/administrators

.PHONY: counts
counts: bin/localkube bin/manager ## Hold what the operator costs with 100 workers: API writes, Slurm calls, bytes at rest; docs/administrators/benchmarks.md.
	@bin/localkube build
	@$(GO_TEST) -timeout 20m ./test/bench -bench.manager=$(CURDIR)/bin/manager

.PHONY: bench
bench: bin/localkube bin/manager ## Measure the operator with 100, 1,000 and 5,000 workers (BENCH_SIZES), at rest for BENCH_WINDOW; docs/administrators/benchmarks.md.
	@bin/localkube build
	@mkdir -p out && rm -f out/bench.jsonl
	@$(GO_TEST) -v -timeout 4h ./test/bench -bench.sizes=$(BENCH_SIZES) -bench.window=$(BENCH_WINDOW) -bench.samples=20 \
		-bench.compare -bench.manager=$(CURDIR)/bin/manager -bench.out=$(CURDIR)/out/bench.jsonl

.PHONY: test-dev
test-dev: bin/localkube ## Test the local Kubernetes itself: it comes up, goes down and leaves the machine as it was. Part of "make test-long".
	@cd dev && $(GO_TEST) -timeout 15m ./...

.PHONY: test-images
test-images: images ## Run the images' own tests: daemons start, users log in, jobs move into the jail.
	@images/test/run

.PHONY: clean-clone
clean-clone: ## Build the images of a clean clone of this one, and run "go test ./..." there without root: what git does not know is not needed. Part of "make test-long".
	@$(GO_TEST) -timeout 40m ./test/walk -run 'ACleanClone|AStranger' -walk.images

# Most of it waits for real daemons, so that all scenarios run at once.
.PHONY: compare
compare: images-of-both-releases ## Compare the fake slurmctld of the tests with real ones of both releases, and what we write and parse of Slurm's files and host lists, with the daemons of the images; a real slurmd runs check-runner and steps in containers.
	@COXSWAIN_SLURM=images COXSWAIN_SLURM_TAG=$(TAG) $(GO_TEST) -parallel 24 -timeout 20m \
		./test/compare ./internal/compose ./internal/slurm/conf ./internal/slurm/hostlist ./internal/slurm/topology ./cmd/check-runner -run 'Slurm|Original'

.PHONY: edits
edits: images-of-both-releases ## Find out with real slurmctlds of both releases what edits of slurm.conf do to jobs, and compare that with docs/users/edits.md. Part of "make test-long".
	@COXSWAIN_SLURM=images COXSWAIN_SLURM_TAG=$(TAG) $(GO_TEST) -parallel 8 -timeout 60m ./test/compare -run WhatEditsDo

.PHONY: e2e
e2e: bin/helm bin/localkube ## Run the end-to-end tests on the local Kubernetes (started when it does not run).
	@mkdir -p out; rm -f out/e2e.failed; { $(GO_TEST) -parallel 2 -timeout 60m -v ./test/e2e -e2e.required -e2e.nodes=$(E2E_NODES) -e2e.registry=$(REGISTRY) \
		-e2e.tag=$(TAG) $(E2E_FLAGS) || touch out/e2e.failed; } | tee out/e2e.log; \
		if rm out/e2e.failed 2>/dev/null; then echo "What the tests that failed said last:"; hack/failures out/e2e.log; exit 1; fi

.PHONY: e2e-long
e2e-long: E2E_FLAGS := -e2e.long
e2e-long: e2e ## Run the end-to-end tests with those that "make e2e" leaves out to save time. Part of "make test-long".

.PHONY: images
images: build ## Build the container images and keep them as archives below ~/.cache/coxswain/images.
	@images/build --registry $(REGISTRY) --tag $(TAG)

.PHONY: images-of-both-releases
images-of-both-releases: images ## Build the container images of Slurm 26.05 and those of 24.11.
	@images/build --registry $(REGISTRY) --tag $(TAG) --suite trixie

.PHONY: cluster-up
cluster-up: bin/localkube ## Start the local Kubernetes (NODES=2).
	@bin/localkube up --nodes $(NODES)

.PHONY: cluster-down
cluster-down: bin/localkube ## Stop it and leave the machine as it was.
	@bin/localkube down

.PHONY: clean
clean: ## Delete what was built here and what is cached below ~/.cache/coxswain.
	@if [ -x bin/localkube ]; then bin/localkube down; fi
	@rm -rf bin out "$(CACHE)"
