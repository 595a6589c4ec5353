// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// Names of files in /etc/slurm.
const (
	cgroupConf    = "cgroup.conf"
	gresConf      = "gres.conf"
	mpiConf       = "mpi.conf"
	plugstackConf = "plugstack.conf"
	topologyConf  = "topology.conf"
)

// documents are the files beside slurm.conf. Slurm ships them to the workers itself.
type documents struct {
	// gres and mpi are nil when there is none, and plugstack and topology, which have no keys, are empty then.
	cgroup, gres, mpi   *conf.Document
	plugstack, topology string
	// flat is true if slurm.conf must not name a topology.
	flat bool
}

func (c *composer) configFiles(workers []ObservedWorker) documents {
	out := documents{cgroup: c.cgroupConf(), gres: c.gresConf(), mpi: c.mpiConf(), plugstack: c.plugstackConf()}
	out.topology, out.flat = c.topologyConf(workers)
	return out
}

// names are the names of all files.
func (d documents) names() []string {
	out := []string{cgroupConf}
	if d.gres != nil {
		out = append(out, gresConf)
	}
	if d.mpi != nil {
		out = append(out, mpiConf)
	}
	if d.plugstack != "" {
		out = append(out, plugstackConf)
	}
	if d.topology != "" {
		out = append(out, topologyConf)
	}
	return out
}

// configMap is the ConfigMap with the files.
func (c *composer) configMap(d documents) *corev1.ConfigMap {
	files := map[string]string{}
	for _, name := range d.names() {
		switch name {
		case cgroupConf:
			files[name] = c.file(d.cgroup, "spec.customCgroupConfig")
		case gresConf:
			files[name] = c.file(d.gres, "spec")
		case mpiConf:
			files[name] = c.file(d.mpi, mpiPath)
		case plugstackConf:
			files[name] = d.plugstack
		case topologyConf:
			files[name] = d.topology
		}
	}
	return &corev1.ConfigMap{ObjectMeta: c.meta(c.cluster.Name+"-slurm-configs", "controller"), Data: files}
}

// file writes a document whose values come from the field at path.
func (c *composer) file(d *conf.Document, path string) string {
	data, err := d.Bytes()
	c.failIf(path, err)
	return string(data)
}

// cgroupConf is cgroup.conf(5): the generated keys with the user's lines over them.
func (c *composer) cgroupConf() *conf.Document {
	user := c.parse(conf.Cgroup, c.spec.CustomCgroupConfig, "spec.customCgroupConfig")
	base := conf.New(conf.Cgroup)
	if !slurmctld.CgroupsDisabled(user) {
		c.cgroupKeys(base)
	}
	merged, _ := conf.Merge(base, user, nil)
	return merged
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

// cgroupV1 is true if any of the fields that have ever held the version asks for it.
func (c *composer) cgroupV1() bool {
	worker := c.spec.SlurmNodes.Worker
	v1 := c.spec.CgroupVersion == nebiusv1.CgroupV1 || worker != nil && worker.CgroupVersion == nebiusv1.CgroupV1 //nolint:staticcheck // deprecated, and in effect all the same
	for i := range c.nodeSets {
		v1 = v1 || c.nodeSets[i].Spec.Slurmd.CgroupVersion == string(nebiusv1.CgroupV1) //nolint:staticcheck // deprecated, and in effect all the same
	}
	return v1
}

const mpiPath = "spec.mpiConfig.pmixEnv"

// mpiConf is mpi.conf(5). A Slurm without the PMIx plugin, such as Debian's 26.05, reads it without using it.
func (c *composer) mpiConf() *conf.Document {
	env := value(c.spec.MPIConfig.PMIxEnv)
	if env == "" {
		return nil
	}
	d := &document{findings: &c.findings, Document: conf.New(conf.Plain)}
	d.set("PMIxEnv", env, mpiPath)
	return d.Document
}

// gresConf is gres.conf(5): automatic detection where workers ask Kubernetes for GPUs, and the lines of the NodeSets.
func (c *composer) gresConf() *conf.Document {
	d := conf.New(conf.Gres)
	if c.hasGPUs() {
		d.Add("AutoDetect", "nvidia")
	}
	for i := range c.nodeSets {
		set := &c.nodeSets[i]
		for _, line := range c.gres[set.Name] {
			// Mistakes belong to the NodeSet and are reported there.
			if line.err == nil && len(line.options) > 0 {
				d.Add("NodeName", gresNodes(set.Name, replicas(set)), line.options...)
			}
		}
	}
	if len(d.Entries()) == 0 {
		return nil
	}
	return d
}

// gresNodes is a host list of at least the nodes of a NodeSet. It grows in powers of two. With the exact number, a new worker would
// start before the file has it, and each scaling would be a reconfiguration.
func gresNodes(name string, n int32) string {
	return fmt.Sprintf("%s-[0-%d]", name, min(maxNodes, max(64, powerOfTwo(int(n))))-1)
}

// gresLine is one entry of nodeConfig.gresConfig. With an error it is not to be used.
type gresLine struct {
	options []conf.Option
	err     error
}

// gresLines reads nodeConfig.gresConfig of a NodeSet.
func gresLines(set *nebiusv1alpha1.NodeSet) []gresLine {
	out := make([]gresLine, 0, len(set.Spec.NodeConfig.GresConfig))
	for _, text := range set.Spec.NodeConfig.GresConfig {
		options, err := conf.ParseOptions(text)
		if err == nil {
			err = checkGres(options)
		}
		out = append(out, gresLine{options: options, err: err})
	}
	return out
}

func checkGres(options []conf.Option) error {
	if slices.ContainsFunc(options, func(o conf.Option) bool { return strings.EqualFold(o.Key, "NodeName") }) {
		return errors.New("the line is for the nodes of this NodeSet; remove NodeName")
	}
	trial := conf.New(conf.Gres)
	trial.Add("NodeName", "n", options...)
	if err := trial.Check(); err != nil {
		return err
	}
	for _, unknown := range trial.Unknown("") {
		// Anything else may come from a newer Slurm, which only the Controller knows.
		if unknown.Meant != "" {
			return unknown
		}
	}
	return nil
}

// document is a configuration file whose values come from fields. Each is checked where it is set. So a problem with a value
// names the field that the value comes from.
type document struct {
	*findings
	*conf.Document
}

// set puts Key=Value into the document if it can be written.
func (d *document) set(key, value, path string, options ...conf.Option) {
	trial := conf.New(d.File())
	trial.Add(key, value, options...)
	if err := trial.Check(); err != nil {
		d.fail(path, "%v", err)
		return
	}
	for _, m := range trial.CheckValues("") {
		d.fail(path, "%s: %s", m.Key, m.Message)
	}
	for _, u := range trial.Unknown("") {
		if u.Meant != "" {
			d.fail(path, "%s: %s", u.Key, u.Message)
		}
	}
	d.Add(key, value, options...)
}

// text is set for a value that is left out when empty.
func (d *document) text(key, value, path string) {
	if value != "" {
		d.set(key, value, path)
	}
}

// number is set for a value that is left out when nil.
func (d *document) number(key string, value *int32, path string) {
	if value != nil {
		d.set(key, strconv.Itoa(int(*value)), path)
	}
}

// positive is set for a value whose zero is Slurm's default.
func (d *document) positive(key string, value int32, path string) {
	if value > 0 {
		d.set(key, strconv.Itoa(int(value)), path)
	}
}

// parse reads a text that a user wrote in a field.
func (f *findings) parse(file conf.File, text, path string) *conf.Document {
	parsed, mistakes := conf.Parse(file, text)
	for _, m := range mistakes {
		f.fail(path, "%s", m.Error())
	}
	return parsed
}
