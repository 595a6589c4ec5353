// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// Names of files in /etc/slurm.
const (
	cgroupConf    = "cgroup.conf"
	gresConf      = "gres.conf"
	plugstackConf = "plugstack.conf"
)

// configFiles is the ConfigMap with the files beside slurm.conf. Slurm ships them to the workers itself. There is no
// mpi.conf among them: its one key, PMIxEnv, is refused by a Slurm without the PMIx plugin, which Debian's lacks.
func (c *composer) configFiles() *corev1.ConfigMap {
	files := map[string]string{cgroupConf: c.cgroupConf()}
	if text := c.gresConf(); text != "" {
		files[gresConf] = text
	}
	if text := c.plugstackConf(); text != "" {
		files[plugstackConf] = text
	}
	return &corev1.ConfigMap{ObjectMeta: c.meta(c.cluster.Name+"-slurm-configs", "controller"), Data: files}
}

// cgroupConf is cgroup.conf(5): the generated keys with the user's lines over them.
func (c *composer) cgroupConf() string {
	user := c.parse(conf.Cgroup, c.spec.CustomCgroupConfig, "spec.customCgroupConfig")
	base := conf.New(conf.Cgroup)
	if plugin, _ := user.Get("CgroupPlugin"); !strings.EqualFold(plugin, "disabled") {
		c.cgroupKeys(base)
	}
	merged, _ := conf.Merge(base, user, nil)
	data, err := merged.Bytes()
	c.failIf("spec.customCgroupConfig", err)
	return string(data)
}

func (c *composer) cgroupKeys(d *conf.Document) {
	d.Add("CgroupMountpoint", "/sys/fs/cgroup")
	d.Add("ConstrainCores", "yes")
	d.Add("ConstrainDevices", "yes")
	d.Add("ConstrainRAMSpace", "yes")
	if c.cgroupV1() {
		d.Add("CgroupPlugin", "cgroup/v1")
		d.Add("ConstrainSwapSpace", "yes")
		return
	}
	d.Add("CgroupPlugin", "cgroup/v2")
	d.Add("ConstrainSwapSpace", "no")
	d.Add("EnableControllers", "yes")
	// There is no systemd in containers.
	d.Add("IgnoreSystemd", "yes")
}

// cgroupV1 is true if any of the places where the version has ever stood says so.
func (c *composer) cgroupV1() bool {
	worker := c.spec.SlurmNodes.Worker
	v1 := c.spec.CgroupVersion == nebiusv1.CgroupV1 || worker != nil && worker.CgroupVersion == nebiusv1.CgroupV1 //nolint:staticcheck // deprecated, and in effect all the same
	for i := range c.nodeSets {
		v1 = v1 || c.nodeSets[i].Spec.Slurmd.CgroupVersion == string(nebiusv1.CgroupV1) //nolint:staticcheck // deprecated, and in effect all the same
	}
	return v1
}

// cgroupsDisabled says whether the composed cgroup.conf turns control groups off.
func cgroupsDisabled(files *corev1.ConfigMap) bool {
	d, _ := conf.Parse(conf.Cgroup, files.Data[cgroupConf])
	plugin, _ := d.Get("CgroupPlugin")
	return strings.EqualFold(plugin, "disabled")
}

// gresConf is gres.conf(5): automatic detection where workers ask Kubernetes for GPUs, and the lines of the NodeSets.
func (c *composer) gresConf() string {
	d := conf.New(conf.Gres)
	if c.hasGPUs() {
		d.Add("AutoDetect", "nvidia")
	}
	for i := range c.nodeSets {
		set := &c.nodeSets[i]
		for _, line := range set.Spec.NodeConfig.GresConfig {
			// Mistakes are those of the NodeSet and reported there.
			if options, err := gresOptions(line); err == nil && len(options) > 0 {
				d.Add("NodeName", gresNodes(set.Name, replicas(set)), options...)
			}
		}
	}
	data, err := d.Bytes()
	c.failIf("spec", err)
	return string(data)
}

// gresNodes is a host list of at least the nodes of a NodeSet. It grows in powers of two: with the exact number, a new
// worker would start before the file knows of it, and each scaling would be a reconfiguration.
func gresNodes(name string, n int32) string {
	return fmt.Sprintf("%s-[0-%d]", name, max(64, powerOfTwo(int(n)))-1)
}

// gresOptions reads one entry of nodeConfig.gresConfig.
func gresOptions(line string) ([]conf.Option, error) {
	options, err := conf.ParseOptions(line)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(options, func(o conf.Option) bool { return strings.EqualFold(o.Key, "NodeName") }) {
		return nil, errors.New("the line is for the nodes of this NodeSet; remove NodeName")
	}
	trial := conf.New(conf.Gres)
	trial.Add("NodeName", "n", options...)
	if _, err = trial.Bytes(); err != nil {
		return nil, err
	}
	for _, unknown := range trial.Unknown() {
		// Anything else may come from a newer Slurm, which only the Controller knows.
		if unknown.Meant != "" {
			return nil, unknown
		}
	}
	return options, nil
}

// plugstackConf is plugstack.conf, see spank(7), with the user's plugins. Those of the contract come with the jail.
func (c *composer) plugstackConf() string {
	var b strings.Builder
	for i, plugin := range c.spec.PlugStackConfig.CustomPlugins {
		at := index("spec.plugStackConfig.customPlugins", i)
		words := []string{"optional", plugin.Path}
		if plugin.Required {
			words[0] = "required"
		}
		if !isWord(plugin.Path) {
			c.fail(at+".path", "must be one word without quotes and comment signs: it becomes part of a line of plugstack.conf")
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(plugin.Arguments)) {
			argument := key + "=" + string(plugin.Arguments[key])
			if !isWord(argument) {
				c.fail(at+".arguments["+key+"]", "must be without blanks, quotes and comment signs: Slurm cuts the line at blanks and knows no quotes")
				continue
			}
			words = append(words, argument)
		}
		b.WriteString(strings.Join(words, " ") + "\n")
	}
	return b.String()
}

// isWord says whether Slurm reads s, in plugstack.conf, as one word.
func isWord(s string) bool {
	return s != "" && len(strings.Fields(s)) == 1 && conf.CheckValue(s) == nil && !strings.ContainsAny(s, " \t#\"\\")
}
