// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package compose turns a SlurmCluster and its NodeSets into the component objects of group slinky.slurm.net, and the few
// Services and files that only a SlurmCluster has. The relation is that of a Deployment to its
// ReplicaSets: everything is visible with kubectl get, owned, and rolled up in status.
//
// Composing is pure: no client, no clock. What a user got wrong comes back as problems with the path of the field in the
// SlurmCluster, never in a composed object, which the user did not write. What is set but has no effect in this version
// comes back as a list of paths. Nothing is ignored silently.
//
// Slurm's configuration files are documents of package conf here. What a user wrote is parsed once, when composing begins. A
// document becomes a text once, when it is put into a composed object: files into the ConfigMap, the rest into extraConf. The
// spec of a component is an API, so its renderer parses extraConf again, as it does for users of that API.
package compose

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// Input is a SlurmCluster and the NodeSets that belong to it, see OwnerOf. Their order does not matter.
type Input struct {
	Cluster  *nebiusv1.SlurmCluster
	NodeSets []nebiusv1alpha1.NodeSet
	// HasChecks is true if an ActiveCheck of type k8sJob names the cluster.
	HasChecks bool
	// RequiredChecks are the names of the checks that workers need before they take jobs, sorted.
	RequiredChecks []string
	Observed       Observed
	// Images are used where the spec names none.
	Images image.Set
	// Release is the Slurm release to check the configuration for, when it is certain; else it is empty.
	Release string
}

// Output is what a SlurmCluster needs to exist. Its Ignored are the paths of fields without effect, sorted.
type Output struct {
	render.Output
	// Notes are sentences about fields whose effect is another one than in Soperator.
	Notes []string
	// Held are objects that stay as they are if they exist, neither changed nor deleted.
	Held []Held
	// Kept are NodeSets that exist and are not deleted, although they are not composed.
	Kept []*slinkyv1beta1.NodeSet
	// Replaced are images of Soperator that ours replace, each with the path of its field.
	Replaced []string
	// Unresolved lists the NodeSets that partitions name and that do not exist or have no workers, a sentence each.
	Unresolved []string
	// NoDatabase is why there can be no database of the mariadb-operator, although the spec asks for one; else it is empty.
	NoDatabase string
	// Jail is what becomes of the jail.
	Jail Jail
	// Rest is how far maintenance is.
	Rest Rest
	// Components are the composed objects by role; nil where the spec asks for none.
	Components Components
}

// Components are the composed objects by role.
type Components struct {
	Controller *slinkyv1beta1.Controller
	RestAPI    *slinkyv1beta1.RestApi
	LoginSet   *slinkyv1beta1.LoginSet
	Accounting *slinkyv1beta1.Accounting
	// SConfigController writes files of JailedConfigs into the jail.
	SConfigController *appsv1.Deployment
	// Exporter exports metrics of the cluster to Prometheus.
	Exporter *appsv1.Deployment
	// MariaDB and Grant are the database of Accounting, when the mariadb-operator runs it.
	MariaDB, Grant *unstructured.Unstructured
	// NodeSets are the workers: first slurmNodes.worker, then NodeSets by name. One that is held is here with its name only.
	NodeSets []*slinkyv1beta1.NodeSet
}

// Held is a composed object that is not applied because the NodeSet that it comes from has mistakes in it. Nor is it
// deleted: workers with running jobs must not vanish over a typing error.
type Held struct {
	Object *slinkyv1beta1.NodeSet
	// NodeSet is the name of the NodeSet with the mistakes, and Problems are these, with paths in it.
	NodeSet  string
	Problems problem.List
}

// ReasonInvalid is the reason of the problems of this package.
const ReasonInvalid = nebiusv1.ReasonInvalidSpec

// Effect is the condition SpecEffective of a spec with fields that have no effect, or another one than in Soperator.
func Effect(ignored, notes []string) metav1.Condition {
	c := metav1.Condition{
		Type: nebiusv1.ConditionSpecEffective, Status: metav1.ConditionTrue, Reason: nebiusv1.ReasonAllFieldsEffective,
		Message: "every field that is set has its effect",
	}
	if len(ignored) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, nebiusv1.ReasonFieldsNotEffective
		c.Message = "set, but without effect in this version: " + strings.Join(ignored, ", ")
	}
	c.Message = strings.Join(append([]string{c.Message}, notes...), "; ")
	return c
}

// composer collects the composition of one SlurmCluster.
type composer struct {
	findings
	cluster  *nebiusv1.SlurmCluster
	spec     *nebiusv1.SlurmClusterSpec
	nodeSets []nebiusv1alpha1.NodeSet
	images   image.Set
	release  string
	// installed are the kinds of other operators that there are.
	installed Installed
	// accounted is the Accounting that exists; nil for none.
	accounted *slinkyv1beta1.Accounting
	// What follows is decoded or parsed once: spec.volumeSources by name, the affinities of spec.k8sNodeFilters that are in use by
	// name, spec.customSlurmConfig, and the lines of gres.conf by NodeSet.
	sources    map[string]corev1.VolumeSource
	affinities map[string]*corev1.Affinity
	custom     config.Text
	gres       map[string][]gresLine
	// populateImage fills the jail.
	populateImage string
	// filled is the digest of the volume of the jail that is filled, or that a Job is for; empty if there is none.
	filled string
	// shared is the jail in which the jobs of the cluster run; nil for none.
	shared *slinkyv1beta1.Jail
	out    Output
}

// newComposer makes a composer that has read the volumes of a cluster.
func newComposer(in Input) *composer {
	c := &composer{
		cluster: in.Cluster, spec: &in.Cluster.Spec, nodeSets: slices.Clone(in.NodeSets), images: in.Images, release: in.Release,
		installed: in.Observed.Installed, accounted: in.Observed.Rest.Accounting,
		affinities: map[string]*corev1.Affinity{}, gres: map[string][]gresLine{},
	}
	c.filled = cmp.Or(recordedJail(in.Cluster).Volume, runOf(in.Observed.Populate.Job).Volume)
	c.keepImages = in.Images.KeepSoperators
	slices.SortFunc(c.nodeSets, func(a, b nebiusv1alpha1.NodeSet) int { return cmp.Compare(a.Name, b.Name) })
	c.readVolumeSources()
	return c
}

// Cluster composes a SlurmCluster. It always returns what it could compose; with any problem the objects must not be applied.
func Cluster(in Input) Output {
	c := newComposer(in)
	c.custom = config.Read(conf.Slurm, c.spec.CustomSlurmConfig, "spec.customSlurmConfig")
	for i := range c.nodeSets {
		c.gres[c.nodeSets[i].Name] = gresLines(&c.nodeSets[i])
	}

	parts := &c.out.Components
	c.appArmorProfile()
	c.composeWorkers()
	for _, set := range parts.NodeSets {
		if !set.SavesPower() { // Slurm gives a node jobs before it is powered up
			set.Spec.RequiredChecks = in.RequiredChecks
		}
	}
	c.shared = c.controllerJail()
	parts.Accounting = c.accounting()
	docs := c.configFiles(in.Observed.Workers)
	files := c.configMap(docs)
	parts.Controller = c.controller(parts.Accounting, files, docs)
	parts.RestAPI = c.restAPI()
	parts.LoginSet = c.login()
	c.mungeKey()

	c.suspend(&in.Observed)

	// Files come before the Controller that mounts them, and workers before the Controller whose partitions name them.
	c.out.Add(files)
	if parts.Accounting != nil {
		c.out.Add(parts.Accounting)
	}
	c.populate(&in.Observed)
	c.awaitOverwriting(&in.Observed)
	for _, set := range parts.NodeSets {
		if !c.held(set) && !c.out.Jail.Awaited {
			c.out.Add(set)
		}
	}
	c.out.Kept = in.Observed.kept(parts.NodeSets)
	c.out.Add(parts.Controller, parts.RestAPI)
	if !c.out.Jail.Awaited {
		c.out.Add(parts.LoginSet)
	}
	if parts.SConfigController = c.sConfigController(); parts.SConfigController != nil {
		c.sConfigRights(parts.Controller.AuthJwtRef().Name)
		c.out.Add(parts.SConfigController)
	}
	if hasSConfigController(c.spec) && c.jailVolume() != nil {
		c.out.Add(c.jailedFiles(files))
	}
	if in.HasChecks {
		c.checkRights()
	}
	parts.Exporter = c.exporter()
	c.services()

	c.ineffective()
	c.out.Problems = c.problems.Sorted()
	slices.Sort(c.ignored)
	c.out.Ignored = slices.Compact(c.ignored)
	c.out.Notes, c.out.Replaced = c.notes, c.replaced
	return c.out
}

func (c *composer) held(set *slinkyv1beta1.NodeSet) bool {
	return slices.ContainsFunc(c.out.Held, func(h Held) bool { return h.Object == set })
}

// meta is the metadata of a composed object. Labels and annotations of the SlurmCluster are not copied. With those of Argo CD or Helm,
// for example, these tools would treat the composed object as theirs and delete it.
func (c *composer) meta(name, component string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.cluster.Namespace, Name: name, Labels: c.labels(component)}
}

// labels are the recommended labels in the form of Soperator: docs/contributors/predecessors/soperator-objects.md#labels-of-what-is-made.
func (c *composer) labels(component string) map[string]string {
	return label.Merge(
		label.Set{Name: "slurmcluster", Instance: c.cluster.Name, Component: component}.Labels(),
		map[string]string{"app.kubernetes.io/part-of": label.Manager})
}

func (c *composer) controllerRef() slinkyv1beta1.ObjectReference {
	return slinkyv1beta1.ObjectReference{Name: c.cluster.ControllerName()}
}

// findings are mistakes, and fields without effect, in the object that is read.
type findings struct {
	problems problem.List
	ignored  []string
	notes    []string
	replaced []string
	// keepImages leaves images of Soperator in their place.
	keepImages bool
}

// note records that a field has another effect than in Soperator.
func (f *findings) note(applies bool, sentence string) {
	if applies {
		f.notes = append(f.notes, sentence)
	}
}

// fail records a mistake of the user.
func (f *findings) fail(path, format string, args ...any) {
	f.problems = append(f.problems, problem.Errorf(path, ReasonInvalid, format, args...))
}

// failIf records err, if any, as a mistake of the user.
func (f *findings) failIf(path string, err error) {
	if err != nil {
		f.fail(path, "%v", err)
	}
}

// ignore records that a field is set and has no effect.
func (f *findings) ignore(set bool, path string) {
	if set {
		f.ignored = append(f.ignored, path)
	}
}
