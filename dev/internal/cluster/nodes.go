// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-hpc/coxswain/dev/internal/binaries"
	"github.com/coxswain-hpc/coxswain/dev/internal/cgroup"
	"github.com/coxswain-hpc/coxswain/dev/internal/hostnet"
	"github.com/coxswain-hpc/coxswain/dev/internal/images"
	"github.com/coxswain-hpc/coxswain/dev/internal/node"
	"github.com/coxswain-hpc/coxswain/dev/internal/preflight"
	"github.com/coxswain-hpc/coxswain/dev/internal/proc"
)

// NodeInitCommand is localkube's own argument that makes it process 1 of a node.
const NodeInitCommand = "node-init"

// startAll starts a cluster with nodes. The network comes first, because the
// apiserver listens on it; control plane and nodes then start side by side.
func (c *Cluster) startAll(ctx context.Context, running map[string]proc.Process) error {
	holder, err := c.startSwitch(running)
	if err != nil {
		return err
	}
	if err := hostnet.EnsureSwitch(ctx, c.ID(), holder, c.state.Network); err != nil {
		return err
	}
	if err := os.MkdirAll(c.Storage(), 0o750); err != nil {
		return fmt.Errorf("making the storage directory: %w", err)
	}
	inits, err := c.startNodes(ctx, running, holder)
	if err != nil {
		return err
	}
	// No pod may be scheduled before its image is there: CoreDNS is the first.
	imported := make(chan error, 1)
	go func() {
		imported <- c.eachNode(func(i int) error { return c.importImages(ctx, i, inits[i]) })
	}()
	if err := errors.Join(c.startControlPlane(ctx, running), <-imported); err != nil {
		return err
	}
	if err := c.applyAddons(ctx); err != nil {
		return err
	}
	if err := c.ensure(ctx, running, hostController, hostControllerFlags(c.Cluster, c.state)); err != nil {
		return err
	}
	err = c.eachNode(func(i int) error { return c.waitForNode(ctx, i, inits[i]) })
	if err != nil {
		return err
	}
	c.progress.Step("%d nodes ready", c.state.Nodes)
	return c.waitForDNS(ctx)
}

// startSwitch starts the process that holds the switch's network namespace.
func (c *Cluster) startSwitch(running map[string]proc.Process) (int, error) {
	if p, ok := running[netSwitch]; ok {
		return p.PID, nil
	}
	pid, exited, err := proc.Start(proc.Spec{
		Dir: c.Dir, Component: netSwitch,
		Path: c.program("pause"), Args: []string{"localkube-switch"},
		Log: c.Log(netSwitch), Cloneflags: unix.CLONE_NEWNET,
	})
	if err != nil {
		return 0, err
	}
	c.watched.add(netSwitch, exited)
	return pid, nil
}

// nodeInit is a node's process 1 and when it was started by this run.
type nodeInit struct {
	pid     int
	started time.Time
}

// startNodes starts the nodes' processes 1, which start containerd at once and
// the kubelet when the apiserver is ready.
func (c *Cluster) startNodes(ctx context.Context, running map[string]proc.Process, holder int) (map[int]nodeInit, error) {
	inits := map[int]nodeInit{}
	for i := 1; i <= c.state.Nodes; i++ {
		init, err := c.startNode(ctx, i, running)
		if err != nil {
			return nil, err
		}
		if err := hostnet.EnsureNode(ctx, c.ID(), holder, init.pid, i, c.state.Nodes, c.state.Network); err != nil {
			return nil, err
		}
		inits[i] = init
	}
	return inits, nil
}

func (c *Cluster) startNode(ctx context.Context, i int, running map[string]proc.Process) (nodeInit, error) {
	name := c.state.NodeName(i)
	dir := c.Node(name)
	if p, ok := running[name]; ok {
		return nodeInit{pid: p.PID}, nil
	}
	if err := c.writeNodeCertificate(i); err != nil {
		return nodeInit{}, err
	}
	mounts, err := cgroup.Mounts()
	if err != nil {
		return nodeInit{}, err
	}
	// The groups of pods that died with the node would cost the kubelet
	// seconds each.
	group := c.nodeCgroup(name)
	if err := cgroup.Remove(ctx, mounts, group); err != nil {
		return nodeInit{}, err
	}
	if err := cgroup.Create(mounts, daemonsCgroup(group)); err != nil {
		return nodeInit{}, err
	}
	config := node.Config{
		Name: name, Dir: dir.Config(""), PKI: c.PKI(), CgroupRoot: "/" + group,
		PauseImage: binaries.PauseImage, CNIPlugins: preflight.CNIPlugins(), KeepOOMScores: !preflight.MayRaisePriority(),
		Host: c.state.Network.Host(), DNS: c.state.Network.DNS(), NodePods: c.state.Network.NodePods(i), Pods: c.state.Network.Pods,
	}
	if err := config.Write(); err != nil {
		return nodeInit{}, err
	}
	containerd, err := exec.LookPath("containerd")
	if err != nil {
		return nodeInit{}, fmt.Errorf("finding containerd: %w", err)
	}
	if err := c.nodeSpec(i, containerd).Save(dir.Spec()); err != nil {
		return nodeInit{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return nodeInit{}, fmt.Errorf("finding localkube itself: %w", err)
	}
	started := time.Now()
	pid, exited, err := proc.Start(proc.Spec{
		Dir: c.Dir, Component: name,
		Path: self, Args: []string{"localkube-" + name, NodeInitCommand, dir.Spec()},
		Log:        c.Log(name),
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
	})
	if err != nil {
		return nodeInit{}, err
	}
	c.watched.add(name, exited)
	return nodeInit{pid: pid, started: started}, nil
}

func (c *Cluster) nodeSpec(i int, containerd string) node.Spec {
	name := c.state.NodeName(i)
	dir := c.Node(name)
	daemon := func(component, path string, afterAPI bool, flags ...string) node.Daemon {
		return node.Daemon{
			Name: component, Path: path, Args: append([]string{component}, flags...),
			Log: c.Log(name + "-" + component), AfterAPI: afterAPI,
		}
	}
	return node.Spec{
		Name: name, Root: string(c.Root), Var: dir.Var(), Resolv: dir.Config("resolv.conf"),
		Cgroup:    daemonsCgroup(c.nodeCgroup(name)),
		APIServer: c.state.APIServer(), CA: filepath.Join(c.PKI(), "ca.crt"),
		Daemons: []node.Daemon{
			daemon("containerd", containerd, false, "--config="+dir.Config("containerd.toml")),
			daemon("kubelet", c.program("kubelet"), true,
				"--config="+dir.Config("kubelet.yaml"),
				"--kubeconfig="+filepath.Join(c.PKI(), name+".kubeconfig"),
				"--hostname-override="+name,
				"--node-ip="+c.state.Network.Node(i).String(),
			),
			daemon("kube-proxy", c.program("kube-proxy"), true,
				"--config="+dir.Config("kube-proxy.yaml"),
				"--hostname-override="+name,
			),
		},
	}
}

// importImages imports what the node lacks of localkube's own images and of
// the user's directory of images.
func (c *Cluster) importImages(ctx context.Context, i int, init nodeInit) error {
	name := c.state.NodeName(i)
	store := images.Store{Socket: containerdSocket(init.pid), Record: c.Node(name).Images()}
	if err := c.poll(ctx, "containerd of "+name, containerdTimeout, store.Ready, name); err != nil {
		return err
	}
	archives, err := filepath.Glob(filepath.Join(c.Root.Images(), "*.tar"))
	if err != nil {
		return fmt.Errorf("listing images: %w", err)
	}
	for _, a := range append(binaries.Archives(c.state.Binaries), archives...) {
		if _, err := store.Import(ctx, a); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// containerdSocket returns the socket of a node's containerd as the host sees it.
func containerdSocket(init int) string {
	return fmt.Sprintf("/proc/%d/root/run/containerd/containerd.sock", init)
}

// waitForNode waits for a kubelet that serves and reports Ready. What it
// reported before this run started it does not count.
func (c *Cluster) waitForNode(ctx context.Context, i int, init nodeInit) error {
	name := c.state.NodeName(i)
	client, err := c.client()
	if err != nil {
		return err
	}
	kubelet := net.JoinHostPort(c.state.Network.Node(i).String(), "10250")
	return c.poll(ctx, name, nodeTimeout, func(ctx context.Context) error {
		n, err := client.Node(ctx, name)
		if err != nil {
			return err
		}
		if !n.Ready {
			return fmt.Errorf("not ready: %s", n.Message)
		}
		if n.Heartbeat.Before(init.started.Truncate(time.Second)) {
			return errors.New("not ready: the kubelet has not reported yet")
		}
		d := net.Dialer{Timeout: time.Second}
		connection, err := d.DialContext(ctx, "tcp", kubelet)
		if err != nil {
			return fmt.Errorf("connecting to the kubelet: %w", err)
		}
		return connection.Close()
	}, name+"-kubelet", name, apiserver, etcd)
}

// nodeCgroup returns the control group of a node, below which its kubelet makes that
// of the pods.
func (c *Cluster) nodeCgroup(name string) string { return c.cgroupParent() + "/" + name }

// daemonsCgroup is the control group of the node's own processes.
func daemonsCgroup(nodeCgroup string) string { return nodeCgroup + "/daemons" }

// eachNode calls do for all nodes at the same time.
func (c *Cluster) eachNode(do func(i int) error) error {
	errs := make([]error, c.state.Nodes)
	var group sync.WaitGroup
	for i := 1; i <= c.state.Nodes; i++ {
		group.Go(func() { errs[i-1] = do(i) })
	}
	group.Wait()
	return errors.Join(errs...)
}
