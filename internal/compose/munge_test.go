// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

func TestTheMungeImageOfSoperatorIsKnown(t *testing.T) {
	for reference, want := range map[string]bool{
		"cr.eu-north1.nebius.cloud/soperator/munge:1.22.1-noble-slurm25.05.4":   true,
		"cr.eu-north1.nebius.cloud/soperator/munge:5.0.0-slurm26.05.3-nebius-2": true,
		"mirror.example.com:5000/munge:1.22.1-noble-slurm25.05.4@sha256:0000":   true,
		"mirror.example.com/soperator/munge@sha256:0000":                        true,
		"soperator/munge":                    true,
		"example.com/mysoperator/munge:1":    false,
		"coxswain.local/munge:dev":           false,
		"ghcr.io/coxswain-hpc/munge:26.05.5": false,
		"example.com:5000/munge":             false,
		"munge":                              false,
		"":                                   false,
	} {
		if got := isSoperatorsMunge(reference); got != want {
			t.Errorf("%q: %v, want %v", reference, got, want)
		}
		if got := wantsMunge(reference); got != (reference != "" && !want) {
			t.Errorf("%q asks for munge: %v", reference, got)
		}
	}
}

// TestMungeRunsWhereItIsAskedFor lists the components in which munged runs.
func TestMungeRunsWhereItIsAskedFor(t *testing.T) {
	const accounting = `accounting: {enabled: true, embeddedDB: {enabled: true}`
	d := load(t)
	for name, test := range map[string]struct {
		cluster, set string
		want         []string
	}{
		"nobody asks":             {`{slurmNodes: {` + accounting + `}, worker: {size: 1}}}`, `{}`, nil},
		"Soperator's images":      {`{slurmNodes: {controller: {munge: {image: "soperator/munge:1"}}, login: {munge: {image: "soperator/munge:1"}}}}`, `{munge: {image: {repository: soperator/munge}}}`, nil},
		"slurmctld alone":         {`{slurmNodes: {controller: {munge: {image: m}}, ` + accounting + `}}}`, `{}`, []string{"Controller"}},
		"slurmctld and slurmdbd":  {`{slurmNodes: {controller: {munge: {image: m}}, ` + accounting + `, munge: {image: m}}}}`, `{}`, []string{"Controller", "Accounting"}},
		"slurmdbd without others": {`{slurmNodes: {` + accounting + `, munge: {image: m}}}}`, `{}`, nil},
		"logins and workers":      {`{slurmNodes: {login: {munge: {image: m}}, worker: {size: 1, munge: {image: m}}}}`, `{munge: {image: {repository: m}}}`, []string{"LoginSet", "demo-worker", "demo-a"}},
		"workers of a NodeSet":    {`{}`, `{munge: {image: {repository: m}}}`, []string{"demo-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			out := Cluster(d.cluster(t, test.cluster, "a "+test.set))
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			if diff := cmp.Diff(test.want, mungeIn(out.Components)); diff != "" {
				t.Errorf("munged runs elsewhere (-want +got):\n%s", diff)
			}
			var secrets []render.Secret
			if len(test.want) > 0 {
				secrets = []render.Secret{{Name: "demo-munge", Key: "munge.key", Content: render.RandomBytes}}
			}
			if diff := cmp.Diff(secrets, out.Secrets); diff != "" {
				t.Errorf("another key is made (-want +got):\n%s", diff)
			}
		})
	}
}

// mungeIn are the components with munged, all of which must have the same key.
func mungeIn(parts Components) []string {
	blocks := []struct {
		name  string
		munge *slinkyv1beta1.Munge
	}{{"Controller", parts.Controller.Spec.Munge}, {"LoginSet", parts.LoginSet.Spec.Munge}}
	if parts.Accounting != nil {
		blocks = append(blocks, struct {
			name  string
			munge *slinkyv1beta1.Munge
		}{"Accounting", parts.Accounting.Spec.Munge})
	}
	for _, set := range parts.NodeSets {
		blocks = append(blocks, struct {
			name  string
			munge *slinkyv1beta1.Munge
		}{set.Name, set.Spec.Munge})
	}
	var out []string
	for _, b := range blocks {
		switch {
		case b.munge == nil:
		case b.munge.KeyRef.Name != "demo-munge" || b.munge.KeyRef.Key != "munge.key":
			out = append(out, b.name+" with another key")
		default:
			out = append(out, b.name)
		}
	}
	return out
}

func TestMungeHasWhatItsBlockSays(t *testing.T) {
	out := Cluster(load(t).cluster(t, `{slurmNodes: {controller: {slurmctld: {imagePullSecrets: [{name: a}]}, munge: {image: m, imagePullPolicy: Always,
		imagePullSecrets: [{name: a}, {name: b}], command: [c], args: [x], customEnv: [{name: E, value: e}], resources: {cpu: 1, memory: 1Gi},
		livenessProbe: {periodSeconds: 7}, readinessProbe: {periodSeconds: 8}, appArmorProfile: runtime/default}}}}`))
	if len(out.Problems) > 0 {
		t.Fatal(out.Problems.Message())
	}
	controller := out.Components.Controller.Spec
	const want = `{"appArmorProfile":{"type":"RuntimeDefault"}}`
	for _, piece := range []string{
		`"image":"m"`, `"imagePullPolicy":"Always"`, `"command":["c"]`, `"args":["x"]`, `"name":"E"`, `"limits":{"memory":"1Gi"}`, `"periodSeconds":7`, `"periodSeconds":8`, want,
	} {
		if !strings.Contains(string(controller.Munge.Container.Raw), piece) {
			t.Errorf("the container lacks %s: %s", piece, controller.Munge.Container.Raw)
		}
	}
	pod, err := controller.Template.Spec.Decode()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range pod.ImagePullSecrets {
		names = append(names, s.Name)
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("the Secrets for pulling are %v", names)
	}
}

func TestTwoContainersOfOneNameAreRefused(t *testing.T) {
	const container = `customInitContainers: [{name: munge, image: i}]`
	out := Cluster(load(t).cluster(t, `{slurmNodes: {login: {munge: {image: m}, `+container+`}, controller: {`+container+`}}}`))
	const want = "spec.slurmNodes.login.munge: an entry of customInitContainers is called munge as well; leave that entry out, or the image here"
	if got := out.Problems.Message(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFieldsOfMungeWithoutEffect(t *testing.T) {
	d := load(t)
	for name, test := range map[string]struct {
		spec string
		want []string
	}{
		"Soperator's munge, of which nobody asks anything": {
			spec: `{slurmNodes: {worker: {munge: {image: "r/munge:1.22.1-noble-slurm25.05.4"}}, login: {munge: {image: "r/soperator/munge", args: [x]}}}}`,
			want: []string{"spec.slurmNodes.login.munge (args, image)", "spec.slurmNodes.worker.munge.image"},
		},
		"munge without an image": {spec: `{slurmNodes: {controller: {munge: {resources: {cpu: 1}}}}}`, want: []string{"spec.slurmNodes.controller.munge.resources"}},
		"munge of slurmdbd alone": {
			spec: `{slurmNodes: {accounting: {enabled: true, embeddedDB: {enabled: true}, munge: {image: m}}}}`,
			want: []string{"spec.slurmNodes.accounting.munge (without an image in spec.slurmNodes.controller.munge)"},
		},
		"munge of slurmdbd that is not there": {spec: `{slurmNodes: {controller: {munge: {image: m}}, accounting: {munge: {image: m}}}}`, want: []string{"spec.slurmNodes.accounting.munge.image"}},
		"what munge has no use for": {
			spec: `{slurmNodes: {controller: {munge: {image: m, port: 7, securityLimitsConfig: x}}}}`,
			want: []string{"spec.slurmNodes.controller.munge.port", "spec.slurmNodes.controller.munge.securityLimitsConfig"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Cluster(d.cluster(t, test.spec)).Ignored); diff != "" {
				t.Error(diff)
			}
		})
	}
}
