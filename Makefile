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

GO_FILES := $(shell git ls-files -co --exclude-standard '*.go' 'go.mod' 'go.sum' ':!dev' ':!tools' 2>/dev/null)
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

.PHONY: help
help: ## Say what can be made.
	@echo "Coxswain: Slurm on Kubernetes."
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##@ The two commands of the README

.PHONY: demo
demo: deps bin/demo ## Bring up Kubernetes, the operator and a Slurm cluster, and run jobs over ssh. KUBECONFIG=… uses a cluster of yours.
	@bin/demo $(if $(filter command line environment override,$(origin KUBECONFIG)),$(if $(KUBECONFIG),--kubeconfig=$(KUBECONFIG))) --registry=$(REGISTRY) --tag=$(TAG) --nodes=$(NODES)

.PHONY: test
test: deps check-generate lint docs unit observe counts faults-and-compare test-dev test-images e2e ## Pass every test: generated files, lint, docs, unit, race, real apiserver, alerts and dashboards, counts, faults, images, real slurmctlds, end to end.
	@echo "make test: all passed"

##@ Pieces

.PHONY: deps
deps: ## Install the Debian packages that building, the local Kubernetes, the images and the tests need.
	@hack/install-packages $(APT_BUILD) $(APT_CLUSTER) $(APT_IMAGES) $(APT_DEMO) $(APT_OBSERVE)

.PHONY: build
build: $(addprefix bin/,$(BINARIES) $(SLURM_BINARIES)) ## Build the binaries of the images into bin/.

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

out/plugin/bin/%/kubectl-slurm: $(GO_FILES)
	GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) CGO_ENABLED=0 go build -trimpath -ldflags='$(LDFLAGS)' -o $@ ./cmd/kubectl-slurm

.PHONY: run
run: bin/manager ## Run the operator on this machine, for the cluster of KUBECONFIG and the slurmrestd at SLURMRESTD_URL (CONTRIBUTING.md). RUN_FLAGS=… adds flags.
	@bin/manager --leader-elect=false --metrics-addr=0 --health-addr=127.0.0.1:18081 --log-format=plain \
		--image-registry=$(REGISTRY) --image-tag=$(TAG) $(if $(SLURMRESTD_URL),--slurmrestd-url=$(SLURMRESTD_URL)) $(RUN_FLAGS)

LDFLAGS := -s -w -X main.version=$(VERSION)
$(addprefix bin/,$(BINARIES)): bin/%: $(GO_FILES)
	CGO_ENABLED=0 go build -trimpath -ldflags='$(LDFLAGS)' -o $@ ./cmd/$*

# Without a version: the images of Slurm are built anew only when these programs have changed.
$(addprefix bin/,$(SLURM_BINARIES)): bin/%: $(GO_FILES)
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags='-s -w' -o $@ ./cmd/$*

# For a directory of PATH: "kubectl slurm" runs it.
bin/kubectl-slurm: $(GO_FILES)
	CGO_ENABLED=0 go build -trimpath -ldflags='$(LDFLAGS)' -o $@ ./cmd/kubectl-slurm

bin/demo: $(GO_FILES)
	@go build -o $@ ./test/demo

bin/localkube: $(shell git ls-files -co --exclude-standard dev 2>/dev/null)
	@cd dev && CGO_ENABLED=0 go build -o ../$@ ./cmd/localkube

bin/controller-gen bin/deadcode bin/golangci-lint bin/helm: bin/%: tools/go.mod tools/go.sum
	@echo "building $* (once)"
	@cd tools && go build -o ../$@ "$$(go list tool | grep '/$*$$')"

.PHONY: generate
generate: bin/controller-gen ## Write deep copies, CRDs, RBAC and the charts' copies of them.
	@bin/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	@bin/controller-gen crd:generateEmbeddedObjectMeta=true paths=./api/... output:crd:dir=config/crd/bases
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
	@cd dev && CGO_ENABLED=0 ../bin/golangci-lint run --allow-parallel-runners --config ../.golangci.yml ./...
	@hack/check-dead
	@go test ./test/house
	@hack/check-shell
	@bin/helm lint --quiet helm/coxswain-crds helm/coxswain
	@hack/check-charts

.PHONY: docs
docs: ## Write the documentation as a site to out/docs/site, and fail on a link that MkDocs cannot follow.
	@hack/docs

# Tests of the whole operator wait for most of their time, hence -parallel beyond the cores.
# Tests with one goroutine that take five to ten times as long with the race detector: they weigh long answers, or compose thousands of clusters.
PLAIN_TESTS := ^(TestALongListIsDecodedInLittleMemory|TestWhatIsKeptOfAnAnswerIsBounded|TestALargeClusterIsSmallInMemory|TestNobodyIsStoppedBeforeItsTime|TestNobodysJailIsOverwrittenWhateverTheMode|TestEveryLeafIsEffectiveOrTold)$$

.PHONY: unit
unit: bin/localkube bin/helm ## Run unit tests and tests against a real apiserver, with the race detector (the leaves of specs and a few others without, which takes a third of the time); compare the rights of operator and webhook with those they used, and our CRDs with the contract's.
	@bin/localkube build
	@COXSWAIN_RBAC_USES=$(CURDIR)/out/rbac go test -race -skip '$(PLAIN_TESTS)' -parallel 6 -timeout 20m $$(go list ./... | grep -v -e /test/e2e -e /test/faults -e /test/bench -e /test/leaves -e /test/house -e /test/observe)
	@COXSWAIN_RBAC_USES=$(CURDIR)/out/rbac go test -parallel 4 -timeout 20m ./test/leaves
	@go test -timeout 20m -run '$(PLAIN_TESTS)' ./internal/slurm/rest ./internal/slurm/fake ./internal/compose
	@go test -count=1 ./internal/nodeset -run 'Invariants|NeverTakes' -rapid.checks=1500
	@go test -count=1 ./internal/health -run Invariants -rapid.checks=3000
	@hack/check-rbac out/rbac
	@hack/check-crdcover

.PHONY: observe
observe: bin/localkube bin/helm ## Run every query of the alerts and dashboards on a Prometheus, and see each alert fire. Debian's package prometheus is needed.
	@bin/localkube build
	@go test -count=1 -timeout 10m ./test/observe -observe.required

.PHONY: faults
faults: ## Try every fault at every sixth write of every scenario (FAULTS_EVERY=1 for all writes, FAULTS=… for the tests that match), in synthetic time.
	@go test -timeout 40m -run '$(FAULTS)' ./test/faults -faults.every=$(FAULTS_EVERY)

.PHONY: mutants
mutants: ## Put the bugs of others into the operator, one at a time, and see that the fault suite catches each.
	@go test -count=1 -v -timeout 2h ./test/mutants -mutants.run

.PHONY: status-page
status-page: ## Look at the status page with Chromium, and take its pictures for the documentation. Chromium, a Debian package, is installed: 414 MB.
	@hack/install-packages chromium
	@go test -count=1 ./internal/statuspage -run Chromium -statuspage.chromium -statuspage.screenshots=$(CURDIR)/docs/administrators

.PHONY: counts
counts: bin/localkube bin/manager ## Hold what the operator costs with 100 workers: API writes, Slurm calls, bytes at rest; docs/administrators/benchmarks.md.
	@bin/localkube build
	@go test -count=1 -timeout 20m ./test/bench -bench.manager=$(CURDIR)/bin/manager

.PHONY: bench
bench: bin/localkube bin/manager ## Measure the operator with 100, 1,000 and 5,000 workers (BENCH_SIZES), at rest for BENCH_WINDOW; docs/administrators/benchmarks.md.
	@bin/localkube build
	@mkdir -p out && rm -f out/bench.jsonl
	@go test -count=1 -v -timeout 4h ./test/bench -bench.sizes=$(BENCH_SIZES) -bench.window=$(BENCH_WINDOW) -bench.samples=20 \
		-bench.compare -bench.manager=$(CURDIR)/bin/manager -bench.out=$(CURDIR)/out/bench.jsonl

.PHONY: test-dev
test-dev: bin/localkube ## Test the local Kubernetes itself: it comes up, goes down and leaves the machine as it was.
	@cd dev && CGO_ENABLED=0 go test -timeout 15m ./...

.PHONY: test-images
test-images: images ## Run the images' own tests: daemons start, users log in, jobs move into the jail; a clean clone makes the operator's image.
	@images/test/run
	@go test -count=1 -timeout 20m ./test/walk -run ACleanClone -walk.images

# Most of it waits for real daemons, so that all scenarios run at once.
.PHONY: compare
compare: images ## Compare the fake slurmctld of the tests with real ones of both releases, and what we write and parse of Slurm's files and host lists, with the daemons of the images; a real slurmd runs check-runner.
	@images/build --registry $(REGISTRY) --tag $(TAG) --suite trixie
	@COXSWAIN_SLURM=images COXSWAIN_SLURM_TAG=$(TAG) go test -count=1 -parallel 24 -timeout 10m \
		./test/compare ./internal/slurm/conf ./internal/slurm/hostlist ./cmd/check-runner -run 'Slurm|Original'

# One needs the processor and the other waits for daemons.
.PHONY: faults-and-compare
faults-and-compare: ## Run "faults" and "compare" at once, which takes as long as the first.
	@$(MAKE) --no-print-directory -j2 --output-sync=target faults compare

.PHONY: e2e
e2e: bin/helm bin/localkube ## Run the end-to-end tests on the local Kubernetes (started when it does not run).
	@mkdir -p out; { go test -count=1 -parallel 4 -timeout 40m -v ./test/e2e -e2e.required -e2e.nodes=$(E2E_NODES) -e2e.registry=$(REGISTRY) \
		-e2e.tag=$(TAG) $(E2E_FLAGS) || touch out/e2e.failed; } | tee out/e2e.log; \
		if rm out/e2e.failed 2>/dev/null; then echo "What the tests that failed said last:"; hack/failures out/e2e.log; exit 1; fi

.PHONY: e2e-long
e2e-long: E2E_FLAGS := -e2e.long
e2e-long: e2e ## Run the end-to-end tests with those that "make e2e" leaves out to save time. Not part of "make test".

.PHONY: images
images: build ## Build the container images and keep them as archives below ~/.cache/coxswain/images.
	@images/build --registry $(REGISTRY) --tag $(TAG)

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
