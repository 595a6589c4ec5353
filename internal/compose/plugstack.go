// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

const plugstackPath = "spec.plugStackConfig"

// A spankPlugin is a line of plugstack.conf for a plugin with a block of its own in the API.
type spankPlugin struct {
	// block is the field, and library the plugin.
	block, library string
	// configured is true if the block differs from its defaults.
	configured, required bool
	arguments            []conf.Option
}

// spankPlugins are those of Soperator, in its order: docs/contributors/predecessors/soperator-objects.md#lines-of-plugstackconf.
func (c *composer) spankPlugins() []spankPlugin {
	debug, inspector := c.spec.PlugStackConfig.NCCLDebug, c.spec.PlugStackConfig.NCCLInspectorPreConf
	return []spankPlugin{
		c.pyxis(),
		{
			"ncclDebug", "spanknccldebug.so", differing(fieldsOf(debug), fieldsOf(defaultNCCLDebug())), debug.Required,
			[]conf.Option{
				{Key: "enabled", Value: zeroOrOne(debug.Enabled)}, {Key: "log-level", Value: debug.LogLevel},
				{Key: "out-file", Value: zeroOrOne(value(debug.OutputToFile))}, {Key: "out-dir", Value: debug.OutputDirectory},
				{Key: "out-stdout", Value: zeroOrOne(debug.OutputToStdOut)},
			},
		},
		{
			"ncclInspectorPreConf", "spank_nccl_inspector_preconf.so", differing(fieldsOf(inspector), fieldsOf(defaultNCCLInspector())), inspector.Required,
			[]conf.Option{
				{Key: "enabled", Value: zeroOrOne(value(inspector.Enabled))}, {Key: "profiler-plugin", Value: inspector.ProfilerPlugin},
				{Key: "dump-dir", Value: inspector.DumpDir}, {Key: "dump-verbose", Value: zeroOrOne(inspector.DumpVerbose)},
				{Key: "dump-thread-interval-microseconds", Value: strconv.FormatInt(inspector.DumpThreadIntervalMicroseconds, 10)},
			},
		},
	}
}

// imageStore is where our plugin keeps images (images/slurmd/entrypoint), and what containerImageSave is by default in Soperator 2.
const imageStore = "/var/cache/enroot-container-images/"

// pyxis is the plugin of that name. Ours imports images itself, once for a node, and starts all of them in place. It is as good as required
// when it is optional: a step that cannot have its container does not run.
func (c *composer) pyxis() spankPlugin {
	pyxis := c.spec.PlugStackConfig.Pyxis
	importer := value(pyxis.ImporterPath)
	if c.runsOurImages() {
		const at, ours = plugstackPath + ".pyxis.", " (Coxswain's plugin imports images itself, and keeps each once for a node)"
		c.ignore(importer != "" && importer != *defaultPyxis().ImporterPath, at+"importerPath"+ours)
		c.ignore(pyxis.ContainerImageSave != "" && pyxis.ContainerImageSave != imageStore, at+"containerImageSave"+ours)
		importer, pyxis.ContainerImageSave = "", ""
	}
	return spankPlugin{
		"pyxis", "spank_pyxis.so", c.runsOurImages() || differing(fieldsOf(pyxis), fieldsOf(defaultPyxis())), value(pyxis.Required),
		[]conf.Option{
			{Key: "runtime_path", Value: "/run/pyxis"}, {Key: "execute_entrypoint", Value: "0"}, {Key: "container_scope", Value: "global"},
			{Key: "sbatch_support", Value: "1"}, {Key: "container_image_save", Value: pyxis.ContainerImageSave},
			{Key: "importer", Value: importer}, {Key: "use_squashfuse", Value: zeroOrOne(pyxis.UseSquashfuse)},
		},
	}
}

func zeroOrOne(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// plugstackConf is plugstack.conf, see spank(7): first the plugin that moves jobs into the jail, so that the user's see it.
func (c *composer) plugstackConf() string {
	var b strings.Builder
	if c.shared != nil {
		b.WriteString(slurmctld.PlugstackLine + "\n")
	}
	for _, plugin := range c.spankPlugins() {
		if plugin.configured {
			b.WriteString(c.spankLine(plugin) + "\n")
		} else {
			c.withoutPlugin(plugin, plugin.required)
		}
	}
	for i, plugin := range c.spec.PlugStackConfig.CustomPlugins {
		at := index(plugstackPath+".customPlugins", i)
		words := []string{"optional", plugin.Path}
		if plugin.Required {
			words[0] = "required"
			c.note(c.runsOurImages() && !inOurImages(plugin.Path), at+".required: Coxswain's images have no "+plugin.Path+
				", and no slurmd starts without it; name images of your own that have it for slurmd and sshd, or mount it into both")
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

// spankLine is the line of a plugin of Soperator. It is optional in any case: where a required plugin is missing, no slurmd starts
// and no job runs, and our images have pyxis alone. A block at its defaults gets no line for a plugin that may be missing: srun of 24.11
// complains of that each time.
func (c *composer) spankLine(plugin spankPlugin) string {
	at := plugstackPath + "." + plugin.block
	words := []string{"optional", plugin.library}
	for _, argument := range plugin.arguments {
		if argument.Value == "" {
			continue
		}
		if !isWord(argument.Value) {
			c.fail(at, "%s must be without blanks, quotes and comment signs: Slurm cuts the line at blanks and knows no quotes", argument.Key)
			continue
		}
		words = append(words, argument.Key+"="+argument.Value)
	}
	c.ignore(plugin.required && c.runsOurImages() && !inOurImages(plugin.library), at+" (required, and not in Coxswain's images)")
	c.withoutPlugin(plugin, true)
	c.note(plugin.required && !c.runsOurImages(), at+".required: the line is optional, so that an image without "+plugin.library+" does not stop the cluster")
	return strings.Join(words, " ")
}

// withoutPlugin notes that a plugin is missed where our images run.
func (c *composer) withoutPlugin(plugin spankPlugin, missed bool) {
	c.note(missed && c.runsOurImages() && !inOurImages(plugin.library), plugstackPath+"."+plugin.block+": Coxswain's images have no "+plugin.library+
		", and jobs run without it; name images of your own that have it for slurmd and sshd")
}

// runsOurImages reports whether jobs are started or submitted in any image of ours.
func (c *composer) runsOurImages() bool {
	references := []string{c.spec.SlurmNodes.Login.SSHD.Image}
	if worker := c.spec.SlurmNodes.Worker; worker != nil {
		references = append(references, worker.Slurmd.Image)
	}
	for i := range c.nodeSets {
		references = append(references, c.nodeSets[i].Spec.Slurmd.Image.Reference())
	}
	return slices.ContainsFunc(references, func(reference string) bool {
		return reference == "" || !c.keepImages && isSoperators(reference)
	})
}

// inOurImages reports whether our images have a plugin by this name: our own, and the one of Slurm's packages.
func inOurImages(library string) bool {
	return library == "chroot.so" || library == "spank_pyxis.so" || library == "spank_pbs.so"
}

// isWord reports whether Slurm reads s as one word of plugstack.conf.
func isWord(s string) bool {
	return s != "" && len(strings.Fields(s)) == 1 && conf.CheckValue(s) == nil && !strings.ContainsAny(s, " \t#\"\\")
}
