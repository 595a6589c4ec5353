// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// PlugStackConfig is plugstack.conf: the SPANK plugins of jobs. See https://slurm.schedmd.com/spank.html
// Pyxis, NCCLDebug and NCCLInspectorPreConf get a line when anything in them differs from its default, and Pyxis always where Coxswain's
// images run: they have a plugin of that name, and none of the others.
type PlugStackConfig struct {
	// Pyxis is the plugin that runs jobs in containers.
	// +optional
	// +kubebuilder:default={}
	Pyxis Pyxis `json:"pyxis,omitzero"`

	// NCCLDebug is the plugin that collects debug output of NCCL.
	// +optional
	// +kubebuilder:default={}
	NCCLDebug NCCLDebug `json:"ncclDebug,omitzero"`

	// NCCLInspectorPreConf is the plugin that prepares NCCL's inspector for jobs. Default: off; a block given here
	// turns it on.
	// +optional
	// +kubebuilder:default={enabled: false}
	NCCLInspectorPreConf NCCLInspectorPreConf `json:"ncclInspectorPreConf,omitzero"`

	// CustomPlugins are further plugins.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxItems=64
	CustomPlugins []CustomPlugin `json:"customPlugins,omitempty"`
}

// Pyxis is the plugin that runs jobs in containers.
type Pyxis struct {
	// Required fails jobs when the plugin cannot be loaded. Default: true. The line is optional all the same: without the plugin no
	// slurmd would start. A step that asks Coxswain's plugin for a container runs in it or not at all.
	// +optional
	// +kubebuilder:default=true
	Required *bool `json:"required,omitempty"`

	// ContainerImageSave is the file, or the directory if it ends in a slash, where images are kept. Default: nowhere. Coxswain's plugin
	// keeps each image once for a node.
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	ContainerImageSave string `json:"containerImageSave,omitempty"`

	// ImporterPath is the program that imports images. Default: /opt/slurm_scripts/pyxis_caching_importer.sh. Coxswain's plugin imports
	// images itself.
	// +optional
	// +kubebuilder:default="/opt/slurm_scripts/pyxis_caching_importer.sh"
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	ImporterPath *string `json:"importerPath,omitempty"`

	// UseSquashfuse mounts images with squashfuse instead of unpacking them. Default: false. Coxswain's plugin never unpacks images.
	// +optional
	// +kubebuilder:default=false
	UseSquashfuse bool `json:"useSquashfuse,omitempty"`
}

// NCCLDebug is the plugin that collects debug output of NCCL.
type NCCLDebug struct {
	// Enabled collects the output of every job; otherwise users ask for it. Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Required fails jobs when the plugin cannot be loaded. Default: false. The line is optional all the same: without the plugin no
	// slurmd would start.
	// +optional
	// +kubebuilder:default=false
	Required bool `json:"required,omitempty"`

	// LogLevel is NCCL_DEBUG. Default: INFO.
	// +optional
	// +kubebuilder:default=INFO
	// +kubebuilder:validation:Enum="";VERSION;WARN;INFO;TRACE
	LogLevel string `json:"logLevel,omitempty"`

	// OutputToFile writes the output to files <worker>.<job>.<step>.out. Default: true.
	// +optional
	// +kubebuilder:default=true
	OutputToFile *bool `json:"outputToFile,omitempty"`

	// OutputDirectory is where the files are. Default: /opt/soperator-outputs/local/nccl_logs.
	// +optional
	// +kubebuilder:default="/opt/soperator-outputs/local/nccl_logs"
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	OutputDirectory string `json:"outputDirectory,omitempty"`

	// OutputToStdOut also writes the output to the job's. Default: false.
	// +optional
	// +kubebuilder:default=false
	OutputToStdOut bool `json:"outputToStdOut,omitempty"`
}

// NCCLInspectorPreConf is the plugin that prepares NCCL's inspector for jobs.
type NCCLInspectorPreConf struct {
	// Enabled prepares the inspector for every job; otherwise users ask for it. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`

	// Required fails jobs when the plugin cannot be loaded. Default: false. The line is optional all the same: without the plugin no
	// slurmd would start.
	// +optional
	// +kubebuilder:default=false
	Required bool `json:"required,omitempty"`

	// ProfilerPlugin is the library of the inspector: NCCL_PROFILER_PLUGIN.
	// Default: /usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so.
	// +optional
	// +kubebuilder:default="/usr/lib/x86_64-linux-gnu/libnccl-profiler-inspector.so"
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	ProfilerPlugin string `json:"profilerPlugin,omitempty"`

	// DumpDir is where profiles go; %j is the job and %s the step.
	// Default: /opt/soperator-outputs/shared/nccl_profiles/%j/%s.
	// +optional
	// +kubebuilder:default="/opt/soperator-outputs/shared/nccl_profiles/%j/%s"
	// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
	DumpDir string `json:"dumpDir,omitempty"`

	// DumpVerbose writes every event. Default: false.
	// +optional
	// +kubebuilder:default=false
	DumpVerbose bool `json:"dumpVerbose,omitempty"`

	// DumpThreadIntervalMicroseconds is the time between two dumps, in microseconds. Default: 1000000.
	// +optional
	// +kubebuilder:default=1000000
	// +kubebuilder:validation:Minimum=0
	DumpThreadIntervalMicroseconds int64 `json:"dumpThreadIntervalMicroseconds,omitempty"`
}

// CustomPlugin is one line of plugstack.conf.
type CustomPlugin struct {
	// Path is the library: an absolute path, or a file name below PluginDir.
	// +required
	// +kubebuilder:validation:Pattern=`^[^\s#\x00]*$`
	Path string `json:"path"`

	// Required fails jobs when the plugin cannot be loaded. Default: false.
	// +optional
	// +kubebuilder:default=false
	Required bool `json:"required,omitempty"`

	// Arguments are passed as key=value, in order of their keys.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^[A-Za-z0-9_.-]+$'))",message="each key must consist of letters, digits, dots, dashes and underscores"
	Arguments map[string]PluginArgument `json:"arguments,omitempty"`
}

// PluginArgument is the value of an argument of a SPANK plugin.
//
// +kubebuilder:validation:MaxLength=4096
// +kubebuilder:validation:Pattern=`^[^\r\n\x00]*$`
type PluginArgument string
