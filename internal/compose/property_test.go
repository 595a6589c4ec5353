// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render/login"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmrestd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
)

// hostile is text as an attacker would write it into a field.
func hostile() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "a", "x y", "a\nSlurmUser=evil", "a\r\nNodeName=evil", "# x", `\`, `"`, `a" SlurmUser=evil`, "a\\\nSlurmUser=evil", "include /etc/passwd",
			"ALL", "Nodes=ALL", "Default=YES\nSlurmUser=evil", "\x00", "\u0085SlurmUser=evil", "a,b", "a=b", "worker-", "../x", "NodeName=evil",
		}),
		rapid.String(),
	)
}

// scribble fills every string that can be reached in v, which must be settable, with hostile text, some of the time.
func scribble(t *rapid.T, v reflect.Value, depth int) {
	if depth > 8 || v.Type().PkgPath() == "k8s.io/apimachinery/pkg/apis/meta/v1" && v.Type().Name() == "ObjectMeta" {
		return
	}
	switch v.Kind() {
	case reflect.String:
		if rapid.IntRange(0, 5).Draw(t, "touch") == 0 {
			v.SetString(hostile().Draw(t, v.Type().Name()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch field := v.Type().Field(i); {
			case field.Name == "Port" && v.Field(i).CanInt():
				v.Field(i).SetInt(int64(rapid.Int32Range(0, 65535).Draw(t, "port"))) // the schema admits no others
			case field.IsExported():
				scribble(t, v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if v.IsNil() && rapid.IntRange(0, 3).Draw(t, "make") == 0 {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			scribble(t, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.IsNil() && rapid.IntRange(0, 2).Draw(t, "grow") == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			scribble(t, v.Index(i), depth+1)
		}
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(rapid.Int32Range(-3, 3000).Draw(t, "int")))
	}
}

func anyField(t *rapid.T, v reflect.Value) reflect.Value {
	return v.Field(rapid.IntRange(0, v.NumField()-1).Draw(t, "field"))
}

// TestNothingLeavesItsLine composes clusters full of hostile text. Nothing panics; and if there are no problems, the
// component renderers have none either, and every line of slurm.conf is one that the operator writes or that the user may.
func TestNothingLeavesItsLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cluster := &nebiusv1.SlurmCluster{}
		cluster.Name, cluster.Namespace = "demo", "slurm"
		// One section at a time: with hostile text everywhere, hardly any cluster would be without problems.
		spec := reflect.ValueOf(&cluster.Spec).Elem()
		field := anyField(t, spec)
		switch rapid.IntRange(0, 3).Draw(t, "where") {
		case 0:
			cluster.Spec.SlurmNodes.Worker = &nebiusv1.Worker{Size: 1}
			cluster.Spec.SlurmNodes.Accounting.Enabled = true
			cluster.Spec.SlurmNodes.Accounting.EmbeddedDB = &nebiusv1.EmbeddedDB{Enabled: true}
			component := anyField(t, spec.FieldByName("SlurmNodes"))
			if component.Kind() == reflect.Pointer {
				component = component.Elem()
			}
			field = anyField(t, component)
		case 1:
			field = spec.FieldByName("PartitionConfiguration")
			cluster.Spec.PartitionConfiguration.Partitions = []nebiusv1.Partition{{Name: "p", NodeSetRefs: []string{"n"}}}
			cluster.Spec.PartitionConfiguration.ConfigType = nebiusv1.PartitionConfigStructured
		}
		scribble(t, field, 0)
		set := nebiusv1alpha1.NodeSet{}
		set.Name, set.Namespace = "n", "slurm"
		scribble(t, reflect.ValueOf(&set.Spec).Elem().FieldByName("NodeConfig"), 0)

		out := Cluster(Input{Cluster: cluster, NodeSets: []nebiusv1alpha1.NodeSet{set}})
		if len(out.Problems) == 0 {
			expectRenderable(t, cluster, out)
		}
	})
}

// FuzzCustomSlurmConfig does the same with the one field that may have many lines.
func FuzzCustomSlurmConfig(f *testing.F) {
	for _, seed := range []string{"", "KillWait=30", "PartitionName=a Nodes=ALL\nSlurmUser=root", "a=b \\\nc", "ClusterName=\"x\ny\"", "include x", "\xff=1", "NodeSet=worker Feature=x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cluster := &nebiusv1.SlurmCluster{Spec: nebiusv1.SlurmClusterSpec{CustomSlurmConfig: text}}
		cluster.Name, cluster.Namespace = "demo", "slurm"
		out := Cluster(Input{Cluster: cluster})
		for _, p := range out.Problems {
			if p.Path != "spec.customSlurmConfig" {
				t.Errorf("the mistake is in %s: %s", p.Path, p.Message)
			}
		}
		if len(out.Problems) == 0 {
			expectRenderable(t, cluster, out)
		}
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

// rendererInput is the input of the Controller's renderer for a composed cluster.
func rendererInput(out Output) slurmctld.Input {
	parts := out.Components
	in := slurmctld.Input{Controller: parts.Controller, Accounting: parts.Accounting}
	for _, set := range parts.NodeSets {
		in.NodeSets = append(in.NodeSets, *set)
	}
	for name, content := range out.Objects[0].(*corev1.ConfigMap).Data {
		in.Files.Config = append(in.Files.Config, slurmctld.File{ConfigMap: out.Objects[0].GetName(), Name: name, Content: content})
	}
	return in
}

// expectRenderable fails when a renderer rejects a composed object, which would blame the user for a field that he did not write; and
// when slurm.conf has a line that comes from nowhere.
func expectRenderable(t failer, cluster *nebiusv1.SlurmCluster, out Output) {
	parts, in := out.Components, rendererInput(out)
	rendered := slurmctld.Render(in)
	problems := rendered.Problems
	if parts.Accounting != nil {
		problems = append(problems, slurmdbd.Render(slurmdbd.Input{Accounting: parts.Accounting}).Problems...)
	}
	problems = append(problems, slurmrestd.Render(slurmrestd.Input{RestAPI: parts.RestAPI, Controller: parts.Controller, LoginSets: []slinkyv1beta1.LoginSet{*parts.LoginSet}}).Problems...)
	login := login.Render(login.Input{LoginSet: parts.LoginSet, Controller: parts.Controller})
	for _, p := range login.Problems {
		if !strings.HasPrefix(p.Path, "spec.users") { // the path is the same in both objects but for its beginning
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		t.Fatalf("composed without problems, rendered with: %s", problems.Message())
	}
	expectKnownLines(t, cluster, rendered.Objects[0].(*corev1.ConfigMap).Data["slurm.conf"])
}

// expectKnownLines fails when slurm.conf has a key that neither the operator writes nor the user wrote himself.
func expectKnownLines(t failer, cluster *nebiusv1.SlurmCluster, text string) {
	parsed, mistakes := conf.Parse(conf.Slurm, text)
	if len(mistakes) > 0 {
		t.Fatalf("slurm.conf cannot be read: %v\n%s", mistakes[0], text)
	}
	user, _ := conf.Parse(conf.Slurm, cluster.Spec.CustomSlurmConfig)
	for _, e := range parsed.Entries() {
		if e.Kind == conf.Section || e.Kind == conf.Comment {
			continue
		}
		if _, own := user.Get(e.Key); own {
			continue
		}
		if e.Kind == conf.Include || strings.EqualFold(e.Key, "NodeName") || e.Key == "SlurmUser" && e.Value != "slurm" {
			t.Fatalf("nobody wrote the line %s=%s\n%s", e.Key, e.Value, text)
		}
		if e.Key == "PartitionName" && !slices.Contains([]string{"main", "hidden", "background"}, e.Value) && !isPartition(cluster, e.Value) {
			t.Fatalf("nobody wrote partition %q\n%s", e.Value, text)
		}
	}
}

func isPartition(cluster *nebiusv1.SlurmCluster, name string) bool {
	for _, p := range cluster.Spec.PartitionConfiguration.Partitions {
		if p.Name == name {
			return true
		}
	}
	for _, line := range cluster.Spec.PartitionConfiguration.RawConfig {
		if strings.Contains(line, name) {
			return true
		}
	}
	return false
}

// TestTheGoldenClustersRender holds composing and rendering together.
func TestTheGoldenClustersRender(t *testing.T) {
	d := load(t)
	for _, name := range []string{"minimal", "full", "nodesets"} {
		in := d.file(t, name)
		out := Cluster(in)
		expectRenderable(t, in.Cluster, out)
		if name != "full" {
			continue
		}
		login := login.Render(login.Input{LoginSet: out.Components.LoginSet, Controller: out.Components.Controller})
		pod := statefulSetOf(t, login.Objects).Spec.Template.Spec
		i := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == hostKeysVolume })
		if i < 0 || pod.Volumes[i].Secret == nil || pod.Volumes[i].Secret.SecretName != "my-host-keys" || len(pod.Volumes[i].Secret.Items) != 6 {
			t.Errorf("the user's host keys are not mounted: %+v", pod.Volumes)
		}
	}
}

// TestStateOnAnotherVolume compares the name of the state volume with the one that the Controller's renderer gives it.
func TestStateOnAnotherVolume(t *testing.T) {
	d := load(t)
	in := d.cluster(t, `{volumeSources: [{name: s, nfs: {server: a, path: /}}], slurmNodes: {controller: {volumes: {spool: {volumeSourceName: s}}}}}`)
	out := Cluster(in)
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	d.expectValid(t, out.Objects)
	rendered := slurmctld.Render(slurmctld.Input{Controller: out.Components.Controller})
	spec := statefulSetOf(t, rendered.Objects).Spec
	i := slices.IndexFunc(spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == stateVolume })
	if i < 0 || spec.Template.Spec.Volumes[i].NFS == nil || spec.Template.Spec.Volumes[i].EmptyDir != nil || len(spec.VolumeClaimTemplates) > 0 {
		t.Errorf("the state is not on the user's volume: %+v", spec.Template.Spec.Volumes)
	}
}

// TestAnyNodeSetsInAnyOrder composes several NodeSets with numbers of any size. Whatever they are, it ends without a panic, gives the
// same result twice and in another order, and gives each NodeSet its object; what it composes can be rendered.
func TestAnyNodeSetsInAnyOrder(t *testing.T) {
	names := []string{"a", "b", "big", "gpu-1", "worker", "z"}
	numbers := rapid.OneOf(rapid.SampledFrom([]int32{0, 1, 2, 63, 64, 65, 1 << 16, math.MaxInt32}), rapid.Int32Range(0, 5000))
	texts := rapid.SampledFrom([]string{"", "Weight=3", "Gres=gpu:2 Features=x", "oops", "State=CLOUD", "RealMemory=99999999999999999999"})
	rapid.Check(t, func(t *rapid.T) {
		cluster := &nebiusv1.SlurmCluster{}
		cluster.Name, cluster.Namespace = "demo", "slurm"
		if rapid.Bool().Draw(t, "worker") {
			cluster.Spec.SlurmNodes.Worker = &nebiusv1.Worker{Size: numbers.Draw(t, "size")}
		}
		refs := rapid.SliceOfNDistinct(rapid.SampledFrom(append(names, "gone")), 0, 4, rapid.ID).Draw(t, "refs")
		cluster.Spec.PartitionConfiguration = nebiusv1.PartitionConfiguration{
			ConfigType: nebiusv1.PartitionConfigStructured, Partitions: []nebiusv1.Partition{{Name: "p", NodeSetRefs: refs}, {Name: "all", IsAll: true}},
		}
		var sets []nebiusv1alpha1.NodeSet
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, len(names), rapid.ID).Draw(t, "names") {
			set := nebiusv1alpha1.NodeSet{}
			set.Name, set.Namespace = name, "slurm"
			set.Spec.Replicas = new(numbers.Draw(t, "replicas"))
			set.Spec.NodeConfig.Static = texts.Draw(t, "static")
			set.Spec.NodeConfig.GresConfig = rapid.SliceOfN(rapid.SampledFrom([]string{"Name=gpu File=/dev/null", "Name", "Count=1 Name=fast"}), 0, 2).Draw(t, "gres")
			sets = append(sets, set)
		}
		out := Cluster(Input{Cluster: cluster.DeepCopy(), NodeSets: sets})
		again := Cluster(Input{Cluster: cluster.DeepCopy(), NodeSets: rapid.Permutation(sets).Draw(t, "order")})
		if diff := cmp.Diff(out.Components, again.Components); diff != "" {
			t.Fatalf("another order composes something else: %s", diff)
		}
		if !reflect.DeepEqual(out, again) {
			t.Fatal("another order says something else")
		}
		for i := range sets {
			if !slices.ContainsFunc(out.Components.NodeSets, func(o *slinkyv1beta1.NodeSet) bool { return o.Name == NodeSetName("demo", sets[i].Name) }) {
				t.Fatalf("NodeSet %s is composed to nothing", sets[i].Name)
			}
		}
		if len(out.Problems) == 0 && len(out.Held) == 0 {
			expectRenderable(t, cluster, out)
		}
	})
}

// TestHugeNumbersStayWithinSlurmsLimits checks what is computed from the number of nodes.
func TestHugeNumbersStayWithinSlurmsLimits(t *testing.T) {
	out := Cluster(load(t).cluster(t, "{}", "a {replicas: 2147483647, nodeConfig: {gresConfig: [Name=gpu]}}", "b {replicas: 2147483647}"))
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	for _, want := range []string{"conmgr_max_connections=131072,", "MaxArraySize=327680\n"} {
		if !strings.Contains(out.Components.Controller.Spec.ExtraConf, want) {
			t.Errorf("slurm.conf lacks %q:\n%s", want, out.Components.Controller.Spec.ExtraConf)
		}
	}
	if gres := out.Objects[0].(*corev1.ConfigMap).Data[gresConf]; !strings.Contains(gres, "NodeName=a-[0-65535] Name=gpu") {
		t.Errorf("gres.conf is %s", gres)
	}
}

func TestTheOrderOfNodeSetsDoesNotMatter(t *testing.T) {
	d := load(t)
	in := d.cluster(t, "{}", "b {replicas: 2}", "a {}", "c {nodeConfig: {static: oops}}")
	forward := Cluster(in)
	slices.Reverse(in.NodeSets)
	if !reflect.DeepEqual(forward, Cluster(in)) {
		t.Error("another order of NodeSets composes something else")
	}
	var names []string
	for _, set := range forward.Components.NodeSets {
		names = append(names, set.Name)
	}
	if !slices.Equal(names, []string{"demo-a", "demo-b", "demo-c"}) {
		t.Errorf("composed %v", names)
	}
}
