// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slurmctld renders a Controller: slurm.conf and slurmctld, or, for a slurmctld that runs elsewhere, the few
// lines of slurm.conf that slurmrestd needs to find it.
package slurmctld

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// maxConfigBytes is what a ConfigMap may hold, less some room for its metadata.
const maxConfigBytes = 1<<20 - 16<<10

// Input is a Controller and what is known about its surroundings.
type Input struct {
	Controller *slinkyv1beta1.Controller
	// Accounting is the object that spec.accountingRef names; nil when there is none.
	Accounting *slinkyv1beta1.Accounting
	// NodeSets are those that belong to the Controller, in any order.
	NodeSets []slinkyv1beta1.NodeSet
	// MaxNodeCount is the size of slurmctld's table of nodes in the present configuration; 0 when there is none.
	MaxNodeCount int
	// Live is the present slurm.conf; nil when there is none. Free are partitions of it that no job needs, and FreeNodes such nodes.
	Live            *conf.Document
	Free, FreeNodes map[string]bool
	// SlurmNodes is the number of nodes that Slurm has, Records that of its workers' by NodeSet, also of NodeSets that are
	// gone. Both are 0 while that is not known.
	SlurmNodes int
	Records    map[string]int
	// Files are the ConfigMaps that the five reference lists of the spec name.
	Files Files
	// SlurmKeyDigest and JwtKeyDigest are digests of the keys; another one restarts slurmctld.
	SlurmKeyDigest, JwtKeyDigest string
	// MungeKeyDigest is that of the munge key, where munged runs.
	MungeKeyDigest string
	// ClusterDomain is the DNS domain of the Kubernetes cluster.
	ClusterDomain string
	// SSSDDigest is that of sssd.conf, where SSSD runs.
	SSSDDigest string
	Images     image.Set
	// Release is the Slurm release to check the configuration for, when it is certain; if empty, the one of the status counts, and another
	// may come with this very edit.
	Release string
}

// Files are the contents of referenced ConfigMaps, by name and key.
type Files struct {
	Config, Prolog, Epilog, PrologSlurmctld, EpilogSlurmctld []File
}

// File is one key of a ConfigMap, which becomes a file in /etc/slurm.
type File struct {
	ConfigMap, Name, Content string
}

// Path names the file in problems.
func (f File) Path() string { return "spec.configFileRefs: ConfigMap " + f.ConfigMap + ", " + f.Name }

// list is the files of one reference list.
type list struct {
	path  string
	files []File
}

// lists returns the five lists with the fields that they come from.
func (f Files) lists() []list {
	return []list{
		{"spec.configFileRefs", f.Config}, {"spec.prologScriptRefs", f.Prolog}, {"spec.epilogScriptRefs", f.Epilog},
		{"spec.prologSlurmctldScriptRefs", f.PrologSlurmctld}, {"spec.epilogSlurmctldScriptRefs", f.EpilogSlurmctld},
	}
}

// Output is what a Controller needs to exist.
type Output struct {
	render.Output
	// ConfigDigest is the digest of everything below /etc/slurm but the keys.
	ConfigDigest string
	// EditWaits is the part of an edit that waits for jobs.
	EditWaits EditWaits
	// LingeringLines are the lines of what waits, as ReadLingering reads them.
	LingeringLines string
	// Unconfined is what the configuration lacks to keep jobs to what they were given.
	Unconfined []string
	// Doubts are keys that slurmctld may not know, a table of nodes that is too small for those to come, and a timeout of health checks
	// that Slurm warns of. Files that are included and not known are doubts as well.
	Doubts problem.List
}

// Labels is the identity of a Controller's objects.
func Labels(c *slinkyv1beta1.Controller) label.Set {
	return label.Set{Name: slinkyv1beta1.NameSlurmctld, Instance: c.Name, Component: "controller"}
}

// Render returns the objects of a Controller.
func Render(in Input) Output {
	var out Output
	c := in.Controller
	set := Labels(c)

	out.IgnoreOptional(c.Spec)
	files := out.configuration(in, read(in))
	out.Add(&corev1.ConfigMap{ObjectMeta: pod.ObjectMeta(c, c.ConfigName(), set), Data: files})
	if c.Spec.AccountingRef != nil {
		out.Fail("spec.clusterName", CheckClusterName(c))
	}
	if c.Spec.External {
		out.ignoreElsewhere(c)
		return out
	}

	service, err := pod.Service(c, c.ServiceName(), set, c.Spec.Service, slinkyv1beta1.NameSlurmctld, c.ServicePort(), "spec.service")
	out.Fail("spec.service", err)
	// A client that asks while slurmctld starts must be refused at once, and ask again. A connection to a Service without endpoints hangs,
	// and slurmrestd then keeps its request for minutes.
	service.Spec.PublishNotReadyAddresses = true
	if c.Replicas() > 1 && err == nil {
		service.Spec.Selector[slinkyv1beta1.LabelControllerActive] = "true"
		out.Add(internalService(c, set))
		for i := range int(c.Replicas()) {
			out.Add(peerService(c, set, i))
		}
	}
	statefulSet, err := statefulSet(in, set, out.ConfigDigest)
	out.Fail("spec", err)
	if out.LingeringLines != "" && err == nil {
		metav1.SetMetaDataAnnotation(&statefulSet.ObjectMeta, slinkyv1beta1.AnnotationLingering, out.LingeringLines)
	}
	out.Add(service, loginHosts(c, set), statefulSet)

	monitor := c.Spec.Metrics.ServiceMonitor
	out.Ignore(monitor != nil && monitor.Enabled && !c.Spec.Metrics.Enabled, "spec.metrics.serviceMonitor (without spec.metrics.enabled)")
	return out
}

// maxClusterName is what the tables of the accounting database leave for the name of a cluster
// (https://slurm.schedmd.com/slurm.conf.html#OPT_ClusterName).
const maxClusterName = 40

// CheckClusterName finds a name that the accounting database has no room for. One in the spec is refused at admission;
// what is derived from namespace and name may be longer.
func CheckClusterName(c *slinkyv1beta1.Controller) error {
	if name := c.ClusterName(); len(name) > maxClusterName {
		return problem.Errorf("spec.clusterName", slinkyv1beta1.ReasonInvalidSpec,
			"the default %q has %d characters, and accounting accepts at most %d; it cannot be changed later, so create the Controller again with a shorter name",
			name, len(name), maxClusterName)
	}
	return nil
}

// ignoreElsewhere lists fields that an external slurmctld does not get: the slurm.conf that is rendered for it is for slurmrestd.
// Overlays of containers, which charts set in any case, are not named.
func (out *Output) ignoreElsewhere(c *slinkyv1beta1.Controller) {
	s := &c.Spec
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"extraConf", s.ExtraConf != ""}, {"configFileRefs", len(s.ConfigFileRefs) > 0},
		{"prologScriptRefs", len(s.PrologScriptRefs) > 0}, {"epilogScriptRefs", len(s.EpilogScriptRefs) > 0},
		{"prologSlurmctldScriptRefs", len(s.PrologSlurmctldScriptRefs) > 0}, {"epilogSlurmctldScriptRefs", len(s.EpilogSlurmctldScriptRefs) > 0},
		{"jwksKeyRef", s.JwksKeyRef != nil}, {"jail", s.Jail != nil}, {"munge", s.Munge != nil}, {"ha", s.HA != nil && s.HA.Enabled}, {"metrics", s.Metrics.Enabled},
		{"suspend", s.Suspend},
	} {
		out.Ignore(field.set, "spec."+field.name+" (slurmctld runs elsewhere)")
	}
}

// loginHosts is the headless Service in which LoginSets give their pods host names. It has no selector: Kubernetes names no pods of a
// Deployment.
func loginHosts(c *slinkyv1beta1.Controller, set label.Set) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: pod.ObjectMeta(c, c.LoginHostsServiceName(), set),
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true},
	}
}

// internalService is the headless Service that the StatefulSet needs to have for its pods.
func internalService(c *slinkyv1beta1.Controller, set label.Set) *corev1.Service {
	service := peer(c, set, c.InternalServiceName(), set.Selector())
	service.Spec.ClusterIP = corev1.ClusterIPNone
	return service
}

// peerService gives a slurmctld pod an address that stays when the pod is gone: a client that asks there is refused at once and tries
// the next one.
func peerService(c *slinkyv1beta1.Controller, set label.Set, ordinal int) *corev1.Service {
	selector := set.Selector()
	selector[appsv1.StatefulSetPodNameLabel] = c.PodName(ordinal)
	return peer(c, set, c.PodName(ordinal), selector)
}

// peer is a Service by which the daemons find single slurmctlds. It leads to those that are not ready, too, because the
// daemons find out themselves whether one serves.
func peer(c *slinkyv1beta1.Controller, set label.Set, name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: pod.ObjectMeta(c, name, set),
		Spec: corev1.ServiceSpec{
			Selector: selector, PublishNotReadyAddresses: true,
			Ports: []corev1.ServicePort{{
				// Not the name by which a ServiceMonitor finds the port of the other Service.
				Name: "peer", Protocol: corev1.ProtocolTCP, Port: c.ServicePort(),
				TargetPort: intstr.FromString(slinkyv1beta1.NameSlurmctld),
			}},
		},
	}
}

// Texts are what users wrote for Slurm's configuration files.
type Texts struct {
	ExtraConf config.Text
	// Files are those beside slurm.conf, by File.Path. One that is missing is read when it is needed.
	Files map[string]config.Text
}

// read parses what users wrote, as far as slurm.conf depends on it.
func read(in Input) Texts {
	out := Texts{
		ExtraConf: config.Read(conf.Slurm, in.Controller.Spec.ExtraConf, "spec.extraConf"),
		Files:     map[string]config.Text{},
	}
	for _, f := range in.Files.Config {
		if f.Name == cgroupConfFile {
			out.Files[f.Path()] = config.Read(conf.Cgroup, f.Content, f.Path())
		}
	}
	return out
}

// CheckConfiguration returns the problems that Render would find in the configuration files if the user had written these
// texts. The content of the files of in is not looked at.
func CheckConfiguration(in Input, user Texts) problem.List {
	var out Output
	doc := out.document(in, user)
	out.checkSize(user, len(out.text(doc, user)))
	return out.Problems
}

// document is slurm.conf, checked. It is nil when it cannot be written.
func (out *Output) document(in Input, user Texts) *conf.Document {
	doc, err := slurmConf(in, user)
	out.Fail(user.ExtraConf.Path, err)
	if !in.Controller.Spec.External {
		checkFiles(in.Files, &out.Output)
		flight := preflight{in: in, user: user}
		flight.check(doc)
		out.Problems = append(out.Problems, flight.problems...)
		out.Doubts = flight.doubts
	}
	return doc
}

// configuration renders the files of the ConfigMap and checks them. Their digest covers their content without the stamp in slurm.conf,
// and the user's files.
func (out *Output) configuration(in Input, user Texts) map[string]string {
	files := map[string]string{}
	if !in.Controller.Spec.External && !has(in.Files.Config, cgroupConfFile) {
		files[cgroupConfFile] = defaultCgroupConf
	}
	if !in.Controller.Spec.External {
		out.plugstack(in, files)
	}
	doc := out.inline(in, user, out.document(in, user))
	if doc != nil && !in.Controller.Spec.External {
		out.Unconfined = unconfined(doc, user.cgroup(in.Files))
	}
	files[slurmConfFile] = out.text(doc, user)
	out.ConfigDigest = digest(files, in.Files)
	if out.linger(in, doc); out.EditWaits.Any() {
		files[slurmConfFile] = out.text(doc, user)
		out.ConfigDigest = digest(files, in.Files)
	}
	if doc != nil && !in.Controller.Spec.External {
		stamp(doc, out.ConfigDigest) // the digest is that of the text without it
		files[slurmConfFile] = out.text(doc, user)
	}
	out.checkSize(user, len(files[slurmConfFile])+len(files[cgroupConfFile]))
	return files
}

// checkSize refuses what a ConfigMap cannot hold.
func (out *Output) checkSize(user Texts, size int) {
	if size > maxConfigBytes {
		out.Problems = append(out.Problems, problem.Errorf(user.ExtraConf.Path, slinkyv1beta1.ReasonConfigTooLarge,
			"the configuration has %d bytes and a ConfigMap holds %d; move parts of it to configFileRefs", size, maxConfigBytes))
	}
}

// text writes a document, which is nil when there is a problem already.
func (out *Output) text(doc *conf.Document, user Texts) string {
	if doc == nil {
		return ""
	}
	data, err := doc.Bytes()
	if err != nil {
		out.Problems = append(out.Problems, problem.Errorf(user.ExtraConf.Path, config.ReasonInvalid, "%v", err))
	}
	return string(data)
}

// checkFiles refuses files that would take the place of generated ones, and files that two ConfigMaps both have.
func checkFiles(files Files, out *render.Output) {
	refuse := func(path, format string, args ...any) {
		out.Problems = append(out.Problems, problem.Errorf(path, config.ReasonInvalid, format, args...))
	}
	from := map[string]string{}
	for _, list := range files.lists() {
		for _, f := range list.files {
			switch other := from[f.Name]; {
			case f.Name == slurmConfFile:
				refuse(list.path, "ConfigMap %s has a key %s, which the operator writes itself; use spec.extraConf", f.ConfigMap, f.Name)
			case f.Name == "slurmdbd.conf" || f.Name == pod.SlurmKeyFile || f.Name == pod.SlurmKeySet || f.Name == pod.JwtKeyFile || f.Name == pod.JwksFile:
				refuse(list.path, "ConfigMap %s has a key %s, which the operator writes itself", f.ConfigMap, f.Name)
			case f.Name == cgroupConfFile && !has(files.Config, cgroupConfFile):
				refuse(list.path, "ConfigMap %s has a key %s, which belongs into spec.configFileRefs", f.ConfigMap, f.Name)
			case other != "" && other != f.ConfigMap:
				refuse(list.path, "ConfigMaps %s and %s both have a key %s", other, f.ConfigMap, f.Name)
			}
			from[f.Name] = f.ConfigMap
		}
	}
}

func has(files []File, name string) bool {
	return slices.ContainsFunc(files, func(f File) bool { return f.Name == name })
}

// digest is what "sha256sum * | sha256sum" prints of the files. The reconfigure sidecar computes it, too, and so finds out whether all
// of them have arrived.
func digest(own map[string]string, files Files) string {
	content := map[string]string{}
	for _, list := range files.lists() {
		for _, f := range list.files {
			content[f.Name] = f.Content
		}
	}
	maps.Copy(content, own)
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(content)) {
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256([]byte(content[name])), name)
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(lines.String())))
}
