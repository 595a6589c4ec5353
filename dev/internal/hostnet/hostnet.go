// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostnet builds the network between the host and the nodes.
//
// The nodes hang on a bridge in a network namespace of its own, the switch, to
// which the host is connected by one link. So the host gets exactly one link,
// with all routes on it, and its firewall (Docker's FORWARD policy, bridged
// netfilter) does not stand between the nodes. The namespaces have no names: a
// name would be a mount on the host. They live as long as the process in them.
package hostnet

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/coxswain-hpc/coxswain/dev/internal/state"
)

const bridge = "br0"

// Link returns the name of the host's link of the cluster with this ID.
func Link(id string) string { return "lk" + id }

// EnsureSwitch makes the bridge in the network namespace of process holder
// and the host's link to it, with the routes to Services and load balancers.
func EnsureSwitch(ctx context.Context, id string, holder int, n state.Network) error {
	if !exists(ctx, holder, bridge) {
		err := batch(ctx, holder,
			"link set lo up",
			"link add "+bridge+" type bridge",
			"link set "+bridge+" up",
		)
		if err != nil {
			return fmt.Errorf("making the switch: %w", err)
		}
	}
	if !exists(ctx, holder, "host") || !exists(ctx, 0, Link(id)) {
		if err := RemoveLink(ctx, id); err != nil {
			return err
		}
		if err := batch(ctx, 0, fmt.Sprintf("link add %s address %s type veth peer name host netns %d", Link(id), hardware(n.Host()), holder)); err != nil {
			return fmt.Errorf("linking the host to the switch: %w", err)
		}
	}
	if err := batch(ctx, holder, "link set host master "+bridge, "link set host up"); err != nil {
		return fmt.Errorf("linking the host to the switch: %w", err)
	}
	err := batch(ctx, 0,
		fmt.Sprintf("addr replace %s/%d dev %s", n.Host(), n.Hosts.Bits(), Link(id)),
		fmt.Sprintf("link set %s up", Link(id)),
		fmt.Sprintf("route replace %s via %s dev %s", n.Services, n.Node(1), Link(id)),
		fmt.Sprintf("route replace %s via %s dev %s", n.LoadBalancers, n.Node(1), Link(id)),
	)
	if err != nil {
		return fmt.Errorf("addressing the host's link: %w", err)
	}
	return nil
}

// EnsureNode connects the network namespace of process node to the switch as
// the i-th of count nodes, with routes to the pods of the others.
func EnsureNode(ctx context.Context, id string, holder, node, i, count int, n state.Network) error {
	// Not the node's name: a link's name has at most 15 characters.
	port := fmt.Sprintf("node-%d", i)
	if !exists(ctx, holder, port) || !exists(ctx, node, "eth0") {
		if err := remove(ctx, holder, port); err != nil {
			return fmt.Errorf("linking %s to the switch: %w", port, err)
		}
		if err := batch(ctx, holder, fmt.Sprintf("link add %s type veth peer name eth0 address %s netns %d", port, hardware(n.Node(i)), node)); err != nil {
			return fmt.Errorf("linking %s to the switch: %w", port, err)
		}
	}
	if err := batch(ctx, holder, "link set "+port+" master "+bridge, "link set "+port+" up"); err != nil {
		return fmt.Errorf("linking %s to the switch: %w", port, err)
	}
	commands := []string{
		"link set lo up",
		fmt.Sprintf("addr replace %s/%d dev eth0", n.Node(i), n.Hosts.Bits()),
		"link set eth0 up",
		fmt.Sprintf("route replace default via %s", n.Host()),
	}
	for other := 1; other <= count; other++ {
		if other != i {
			commands = append(commands, fmt.Sprintf("route replace %s via %s", n.NodePods(other), n.Node(other)))
		}
	}
	if err := batch(ctx, node, commands...); err != nil {
		return fmt.Errorf("addressing %s: %w", port, err)
	}
	route := fmt.Sprintf("route replace %s via %s dev %s", n.NodePods(i), n.Node(i), Link(id))
	if err := batch(ctx, 0, route); err != nil {
		return fmt.Errorf("routing the pods of %s: %w", port, err)
	}
	return nil
}

// hardware returns the Ethernet address for an IP address: always the same, so that
// neighbours still know a link that was made anew.
func hardware(ip netip.Addr) string {
	a := ip.As4()
	return net.HardwareAddr{0x0a, 0x58, a[0], a[1], a[2], a[3]}.String()
}

// RemoveLink removes the host's link, and with it its addresses and routes.
func RemoveLink(ctx context.Context, id string) error {
	if err := remove(ctx, 0, Link(id)); err != nil {
		return fmt.Errorf("removing the host's link: %w", err)
	}
	return nil
}

// remove removes a link if it is there. It may vanish by itself meanwhile,
// because its peer's namespace is coming to its end.
func remove(ctx context.Context, pid int, link string) error {
	if !exists(ctx, pid, link) {
		return nil
	}
	if err := batch(ctx, pid, "link del "+link); err != nil && exists(ctx, pid, link) {
		return err
	}
	return nil
}

// Used lists the subnets that the host's addresses and routes occupy, without
// default routes.
func Used(ctx context.Context) ([]netip.Prefix, error) {
	out, err := ip(ctx, 0, nil, "-4", "-oneline", "route", "show", "table", "all")
	if err != nil {
		return nil, fmt.Errorf("listing routes: %w", err)
	}
	return parseRoutes(string(out)), nil
}

// parseRoutes reads lines such as "10.1.0.0/16 via …", "unreachable 10.2.0.0/16
// …" and "local 10.0.0.1 dev …".
func parseRoutes(text string) []netip.Prefix {
	var used []netip.Prefix
	for line := range strings.Lines(text) {
		for _, field := range strings.Fields(line)[:min(2, len(strings.Fields(line)))] {
			if p, err := netip.ParsePrefix(field); err == nil && p.Bits() > 0 {
				used = append(used, p)
				break
			}
			if a, err := netip.ParseAddr(field); err == nil {
				used = append(used, netip.PrefixFrom(a, a.BitLen()))
				break
			}
		}
	}
	return used
}

func exists(ctx context.Context, pid int, link string) bool {
	if pid == 0 {
		_, err := os.Stat("/sys/class/net/" + link)
		return err == nil
	}
	_, err := ip(ctx, pid, nil, "link", "show", "dev", link)
	return err == nil
}

// batch runs ip commands in the network namespace of a process, 0 for ours.
func batch(ctx context.Context, pid int, commands ...string) error {
	_, err := ip(ctx, pid, []byte(strings.Join(commands, "\n")+"\n"), "-batch", "-")
	return err
}

func ip(ctx context.Context, pid int, input []byte, args ...string) ([]byte, error) {
	name := "ip"
	if pid != 0 {
		args = append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", pid), "ip"}, args...)
		name = "nsenter"
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = bytes.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ip %s: %w: %s", strings.TrimSpace(string(input)), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}
