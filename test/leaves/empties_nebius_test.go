// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package leaves_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/runtime"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/slurm/topology"
	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

// meantEmptyByNebius returns the fields of slurm.nebius.ai whose empty value is another one than none, by kind and the end of
// the path, with the reason.
func meantEmptyByNebius() map[string]string {
	const (
		pointer = "it is behind a pointer, so that a program leaves out what is not set"
		source  = "the source of a volume, of which a program leaves out what is not set"
		newer   = "the field is newer than the programs in question"
		bounded = "the published definition refuses it as well"
	)
	return map[string]string{
		"NodeSet .replicas: 0":                           "none, where the default is one",
		"NodeSet .tolerationSeconds: 0":                  pointer,
		"NodeSet .initialNumberEphemeralNodes: 0":        pointer,
		"NodeSet .ephemeralTopologyWaitTimeout: 0":       bounded,
		"NodeSet .jail: {}":                              source,
		"NodeSet .spool: {}":                             source,
		"NodeSet .volumeClaimTemplateSpec: {}":           source,
		"SlurmCluster .slurmdbdConfig.tcpTimeout: 0":     "Slurm's default, which is that of the field",
		`SlurmCluster After: ""`:                         "never, as in Slurm; records are not deleted because of a field that is empty",
		"SlurmCluster .tolerationSeconds: 0":             pointer,
		"SlurmCluster .volumeClaimTemplateSpec: {}":      source,
		"SlurmCluster .jail: {}":                         source,
		"SlurmCluster .spool: {}":                        source,
		"SlurmCluster .jailSnapshotVolume: {}":           source,
		"SlurmCluster .healthCheckConfig: {}":            "no program writes it: the type has fields that are always there",
		"SlurmCluster .slurmConfig.completeWait: 0":      pointer,
		"SlurmCluster .slurmConfig.defCpuPerGPU: 0":      pointer,
		"SlurmCluster .slurmConfig.maxJobCount: 0":       pointer,
		"SlurmCluster .slurmConfig.messageTimeout: 0":    pointer,
		"SlurmCluster .slurmConfig.minJobAge: 0":         pointer,
		"SlurmCluster .slurmConfig.suspendTime: 0":       pointer,
		"SlurmCluster .slurmConfig.resumeTimeout: 0":     pointer,
		"SlurmCluster .slurmConfig.topologyBlockSize: 0": bounded,
		`SlurmCluster .slurmConfig.topologyParam: ""`:    pointer,
		`SlurmCluster .slurmConfig.topologyPlugin: ""`:   pointer,
		"SlurmCluster .topology.blockSize: 0":            bounded,
		`SlurmCluster .reconfigureWaitTimeout: "0s"`:     bounded,
		"SlurmCluster .exporter.maxCollectorInflight: 0": bounded,
		"SlurmCluster .rest.size: 0":                     "none, where the default is one",
		"SlurmCluster .rest.maxConnections: 0":           bounded,
		"SlurmCluster .rest.threadCount: 0":              bounded,
		"SlurmCluster .login.userIsolation.cpuWeight: 0": bounded,
		"SlurmCluster .login.users[].gid: 0":             newer,
		`SlurmCluster .login.users[].home: ""`:           newer,
		`SlurmCluster .login.users[].shell: ""`:          newer,
		"ActiveCheck .activeDeadlineSeconds: 0":          bounded,
	}
}

// TestEmptyLeavesOfSlurmNebiusMeanNothing is TestEmptyLeavesMeanNothing for the kinds of slurm.nebius.ai. Of the kinds that
// nothing acts on it shows that the API server takes the values. Objects whose fields have defaults are something else than
// no object.
func TestEmptyLeavesOfSlurmNebiusMeanNothing(t *testing.T) {
	for kind, definition := range crdcheck.Load(t, "slurm.nebius.ai") {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object := definition.Object()
			object["spec"] = crdcheck.Parse(t, smallest()["slurm.nebius.ai/"+kind])
			meansTheSame(t, definition, object)
			if text, err := os.ReadFile("../../internal/compose/testdata/leaves/" + kind + ".yaml"); err == nil {
				object["spec"] = crdcheck.Parse(t, string(text))["spec"]
			}
			w := emptyWalk{kind: kind, definition: definition, object: object, excused: map[string]bool{}}
			meansTheSame(t, definition, object)
			w.walk(t, func(t *testing.T, object map[string]any) string { return meaningOfNebius(t, object, asRead) })
			// What grows has one field of everything, which need not make sense together: it is only stored.
			definition.Grow(t.Context(), object)
			w.stored = true
			w.walk(t, func(*testing.T, map[string]any) string { return "" })
			t.Logf("%d empty values", w.tried)
			for what := range meantEmptyByNebius() {
				if strings.HasPrefix(what, kind+" ") && !w.excused[what] {
					t.Errorf("%s needs no exception", what)
				}
			}
		})
	}
}

// sameType are containers of the same type as slurmctld's. Each costs as much as the rest of its component.
var sameType = regexp.MustCompile(`\.(munge|sssd|mariadbOperator|exporter\.exporter|exporterContainer|rest\.rest)\.`)

// emptyWalk goes through the places of one object.
type emptyWalk struct {
	kind       string
	definition *crdcheck.CRD
	object     map[string]any
	tried      int
	// stored is true if TestServerSideApplyTakesNull tries null.
	stored bool
	// excused are the exceptions that were needed.
	excused map[string]bool
}

func (w *emptyWalk) walk(t *testing.T, meaning func(*testing.T, map[string]any) string) {
	t.Helper()
	spec := w.definition.Schema.Properties["spec"]
	for _, place := range crdcheck.Places("spec", w.object["spec"], &spec, 0) {
		if !sameType.MatchString(place.Path) {
			w.try(t, place, meaning)
		}
	}
}

// try writes what is empty in one place of the object.
func (w *emptyWalk) try(t *testing.T, place crdcheck.Place, meaning func(*testing.T, map[string]any) string) {
	t.Helper()
	was, there := place.Parent[place.Name]
	defer func() {
		if delete(place.Parent, place.Name); there {
			place.Parent[place.Name] = was
		}
	}()
	delete(place.Parent, place.Name)
	plain := runtime.DeepCopyJSON(w.object)
	if len(w.definition.Create(t.Context(), plain)) > 0 {
		return // the field is needed
	}
	want := meaning(t, plain)
	for _, empty := range empties(place.Schema) {
		if below, isObject := empty.(map[string]any); isObject && (len(below) > 0 || hasDefaults(place.Schema)) {
			continue
		}
		if empty == nil && w.stored {
			continue
		}
		w.tried++
		value, err := json.Marshal(empty)
		if err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("%s: %s", place.Path, value)
		place.Parent[place.Name] = empty
		written := runtime.DeepCopyJSON(w.object)
		if problems := w.definition.Create(t.Context(), written); len(problems) > 0 {
			if !w.excuse(what) {
				t.Errorf("%s is refused: %v", what, problems.ToAggregate())
			}
		} else if got := meaning(t, written); got != want && !w.excuse(what) {
			t.Errorf("%s means something (-without +with):\n%s", what, cmp.Diff(want, got))
		}
	}
}

// excuse reports whether an empty value is among the exceptions.
func (w *emptyWalk) excuse(what string) bool {
	for exception := range meantEmptyByNebius() {
		if kind, end, _ := strings.Cut(exception, " "); kind == w.kind && strings.HasSuffix(what, end) {
			w.excused[exception] = true
			return true
		}
	}
	return false
}

// hasDefaults reports whether an empty object gets fields by default.
func hasDefaults(s *apiextensions.JSONSchemaProps) bool {
	for _, property := range s.Properties {
		if property.Default != nil || hasDefaults(&property) {
			return true
		}
	}
	return false
}

// meansTheSame expects that DropEmpty changes nothing where nothing is empty.
func meansTheSame(t *testing.T, definition *crdcheck.CRD, object map[string]any) {
	t.Helper()
	plain := runtime.DeepCopyJSON(object)
	definition.Default(plain)
	if diff := cmp.Diff(meaningOfNebius(t, plain, asStored), meaningOfNebius(t, plain, asRead)); diff != "" {
		t.Errorf("DropEmpty changes what nobody has left empty (-stored +read):\n%s", diff)
	}
}

// asStored and asRead are an object as the API server has it, and as the operator's cache does.
const (
	asStored = false
	asRead   = true
)

// meaningOfNebius returns what is composed of an object, and its problems.
func meaningOfNebius(t *testing.T, object map[string]any, read bool) string {
	t.Helper()
	cluster := &nebiusv1.SlurmCluster{}
	cluster.Name = "demo"
	var composed any
	switch object["kind"] {
	case "SlurmCluster":
		crdcheck.Decode(t, object, cluster)
		if read {
			cluster.DropEmpty()
		}
		// A worker behind a switch, so that the fields of the topology mean something.
		worker := compose.ObservedWorker{Name: "worker-0", Location: topology.Location{Switches: []string{"leaf"}}}
		composed = compose.Cluster(compose.Input{Cluster: cluster, Observed: compose.Observed{Workers: []compose.ObservedWorker{worker}}})
	case "NodeSet":
		set := &nebiusv1alpha1.NodeSet{}
		crdcheck.Decode(t, object, set)
		if read {
			set.DropEmpty()
		}
		composed = compose.NodeSet(cluster, set)
	}
	out, err := json.Marshal(composed)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
