// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Coxswain with nothing left out: a real Kubernetes, real images, the operator as Helm installs it, real
// Slurm, and users who log in by ssh. Each test has a namespace of its own.
//
//	go test -v -parallel 2 ./test/e2e [-run TestName] [-e2e.keep]
package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-hpc/coxswain/test/login"
	"github.com/coxswain-hpc/coxswain/test/walk"
)

var (
	required   = flag.Bool("e2e.required", false, "fail where a machine on which the tests cannot run would skip them")
	keep       = flag.Bool("e2e.keep", false, "keep the namespaces of the tests, to look around")
	kubeconfig = flag.String("e2e.kubeconfig", "", "`file` that leads to a Kubernetes; default: a local one is started or used")
	registry   = flag.String("e2e.registry", walk.LocalRegistry, "`registry` of the images")
	tag        = flag.String("e2e.tag", "dev", "`tag` of the images")
	nodes      = flag.Int("e2e.nodes", 3, "`number` of nodes that a local Kubernetes has at least")
	long       = flag.Bool("e2e.long", false, "run the tests, too, that are left out to save time")
	restFor    = flag.Duration("e2e.rest", 2*time.Minute, "`time` for which a cluster at rest is watched for writes")
)

// dottedNode is a node of a local Kubernetes whose name has a domain, as EKS gives to nodes.
const dottedNode = "ip-10-0-0-1.eu-west-1.compute.internal"

// stage is what all tests have in common. TestMain sets it before the first test starts.
var stage struct {
	k          *walk.Kubernetes
	repository walk.Repository
	images     walk.Images
	key        *login.Key
	// restarts is how often containers of the operator had been restarted before the first test.
	restarts walk.Restarts
	// skip is why there is no stage; empty if there is one.
	skip string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *kubeconfig == "" && os.Getuid() != 0 {
		stage.skip = "a local Kubernetes needs root; run as root, or name a cluster with -e2e.kubeconfig"
		if *required {
			fmt.Fprintln(os.Stderr, "e2e:", stage.skip)
			return 1
		}
		return m.Run()
	}
	if err := prepare(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	code := m.Run()
	// The operator may be away while a test wants it so, but no test may make it crash.
	if err := stage.k.AwaitSound(ctx, stage.restarts, 2*time.Minute, walk.Operator.Namespace); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL: after all tests the operator is not sound:", err)
		return 1
	}
	return code
}

func prepare(ctx context.Context) error {
	if *kubeconfig == "" {
		if err := hasRoom("/"); err != nil {
			return err
		}
	}
	var err error
	if stage.repository, err = walk.FindRepository(); err != nil {
		return err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return fmt.Errorf("finding the cache directory: %w", err)
	}
	if stage.key, err = login.EnsureKey(filepath.Join(cache, "coxswain", "e2e", "id_ed25519")); err != nil {
		return err
	}
	stage.images = walk.Images{Registry: *registry, Tag: *tag}
	stage.k, err = walk.Bring(ctx, walk.NewProgress(os.Stderr), walk.Options{
		Repository: stage.repository, Images: stage.images, Kubeconfig: *kubeconfig, Nodes: *nodes, NodeNames: []string{dottedNode},
	})
	if err != nil {
		return err
	}
	if err := installMonitors(ctx); err != nil {
		return err
	}
	stage.restarts, err = stage.k.RestartsIn(ctx, walk.Operator.Namespace)
	return err
}

// hasRoom refuses a machine whose disk is so full that check boot_disk_full, which workers have from their image, drains them. They have the
// disk of this machine, and a test would find out after minutes that no job runs.
func hasRoom(path string) error {
	const maxUsed = 80 // percent, as the check has it
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return fmt.Errorf("asking how full the disk is: %w", err)
	}
	used := st.Blocks - st.Bfree
	if percent := used * 100 / (used + st.Bavail); percent >= maxUsed {
		return fmt.Errorf("%d %% of the file system of %s are used: check boot_disk_full would drain all workers; free some GB, so that less than %d %% are", percent, path, maxUsed)
	}
	return nil
}

// installMonitors installs the kinds of the Prometheus operator. The operator makes objects of them in all clusters as soon as they are
// there, which would disturb one whose rest a test watches.
func installMonitors(ctx context.Context) error {
	kinds, err := os.ReadFile(filepath.Join("testdata", "monitoring.yaml"))
	if err != nil {
		return fmt.Errorf("reading the kinds of the Prometheus operator: %w", err)
	}
	m, err := walk.ParseManifest(kinds)
	if err != nil {
		return err
	}
	return stage.k.ApplyManifest(ctx, m)
}
