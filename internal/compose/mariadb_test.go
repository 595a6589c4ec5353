// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

func TestMariaDB(t *testing.T) {
	d := load(t)
	for name, spec := range map[string]string{
		"mariadb": `{slurmNodes: {accounting: {enabled: true, mariadbOperator: {enabled: true, image: "mariadb:11", storage: {size: 5Gi}}}}}`,
		"mariadb-full": `{k8sNodeFilters: [{name: db, nodeSelector: {pool: db}, tolerations: [{key: a, operator: Exists}],
				affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: b, operator: Exists}]}]}}}}],
			slurmNodes: {accounting: {enabled: true, k8sNodeFilterName: db, mariadbOperator: {enabled: true, image: "mariadb:11", port: 3307, replicas: 3,
				protectedSecret: true, priorityClassName: high, imagePullSecrets: [{name: pull}], customEnv: [{name: A, value: b}],
				metrics: {enabled: false}, resources: {cpu: "2", memory: 8Gi}, replication: {enabled: true, primary: {podIndex: 1}},
				storage: {size: 5Gi, storageClassName: fast}, podSecurityContext: {fsGroup: 999}, securityContext: {runAsUser: 999}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			in := d.cluster(t, spec)
			in.Observed.Installed.MariaDB = foreignkind.Fit{Installed: true}
			out := Cluster(in)
			if len(out.Problems)+len(out.Ignored) > 0 {
				t.Errorf("problems: %s; without effect: %v", out.Problems.Message(), out.Ignored)
			}
			var b bytes.Buffer
			for _, s := range out.Secrets {
				text, err := yaml.Marshal(s)
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("--- # a Secret that is generated\n")
				b.Write(text)
			}
			for _, object := range out.Objects {
				if _, kind := kindOf(t, object); kind == "MariaDB" || kind == "Grant" || kind == "Accounting" {
					text, err := yaml.Marshal(plainObject(t, object))
					if err != nil {
						t.Fatal(err)
					}
					b.WriteString("---\n")
					b.Write(text)
				}
			}
			golden.Check(t, name+".golden.yaml", b.Bytes())
			d.expectValid(t, out.Objects)
			if unwanted := out.UnwantedDatabase(in.Cluster, in.Observed.Installed); len(unwanted) > 0 {
				t.Errorf("%d of the objects are not wanted", len(unwanted))
			}
		})
	}
}

func TestMariaDBThatIsNotWanted(t *testing.T) {
	in := load(t).cluster(t, `{}`)
	out := Cluster(in)
	if got := out.UnwantedDatabase(in.Cluster, Installed{}); len(got) > 0 {
		t.Errorf("%d objects of a kind that there is not", len(got))
	}
	var got []string
	for _, u := range out.UnwantedDatabase(in.Cluster, Installed{MariaDB: foreignkind.Fit{Installed: true}}) {
		got = append(got, u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName())
	}
	if diff := cmp.Diff([]string{"Grant slurm/demo-acct-db", "MariaDB slurm/demo-acct-db"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestADatabaseDoesNotGoOverAMistakeInTheSpec(t *testing.T) {
	in := load(t).cluster(t, `{customSlurmConfig: "PartitionName", slurmNodes: {accounting: {enabled: false}}}`)
	out := Cluster(in)
	if len(out.Problems) == 0 {
		t.Fatal("there is no mistake in it")
	}
	if got := out.UnwantedDatabase(in.Cluster, Installed{MariaDB: foreignkind.Fit{Installed: true}}); len(got) > 0 {
		t.Errorf("%d objects go", len(got))
	}
}

func TestADatabaseRestsWhenSlurmdbdHasStopped(t *testing.T) {
	d := load(t)
	r := &resting{in: d.cluster(t, `{slurmNodes: {accounting: {enabled: true, mariadbOperator: {enabled: true, image: i, replicas: 3, storage: {size: 1Gi}}}, worker: {size: 2}, login: {size: 1}}}`)}
	r.in.Observed.Installed.MariaDB = foreignkind.Fit{Installed: true}
	replicas := func() int64 {
		n, _, err := unstructured.NestedInt64(r.pass().Components.MariaDB.Object, "spec", "replicas")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	r.settle()
	for i, step := range []struct {
		mode nebiusv1.MaintenanceMode
		want int64
	}{{nebiusv1.MaintenanceDownscale, 0}, {nebiusv1.MaintenanceNone, 3}, {nebiusv1.MaintenanceDownscaleAndDeletePopulateJail, 0}} {
		r.mode(step.mode)
		for range 20 {
			if n := replicas(); r.slurmdbd > 0 && n != 3 {
				t.Errorf("step %d: the database has %d replicas, and slurmdbd runs", i, n)
			}
			for who := range 3 {
				r.step(who)
			}
		}
		if n := replicas(); n != step.want {
			t.Errorf("step %d: the database has %d replicas in the end, want %d", i, n, step.want)
		}
	}
	r.in.Observed.Rest = ObservedRest{}
	if n := replicas(); n != 0 {
		t.Errorf("a cluster that begins at rest has %d replicas", n)
	}
}

func TestMistakesInAMariaDB(t *testing.T) {
	in := load(t).cluster(t, `{slurmNodes: {accounting: {enabled: true, mariadbOperator: {enabled: true, image: i, command: [a], args: [b], procMount: Unmasked, appArmorProfile: localhost/x}}}}`)
	in.Observed.Installed.MariaDB = foreignkind.Fit{Installed: true}
	out := Cluster(in)
	if got := out.Problems.Message(); !strings.Contains(got, "spec.slurmNodes.accounting.mariadbOperator.storage") {
		t.Errorf("problems: %q, want one about the storage", got)
	}
	at := "spec.slurmNodes.accounting.mariadbOperator."
	if diff := cmp.Diff([]string{at + "appArmorProfile", at + "args", at + "command", at + "procMount"}, out.Ignored); diff != "" {
		t.Errorf("ignored (-want +got):\n%s", diff)
	}
}

func TestADatabaseOfAnOperatorWithOtherKindsIsLeftAlone(t *testing.T) {
	in := load(t).cluster(t, `{slurmNodes: {accounting: {enabled: true, mariadbOperator: {enabled: true, image: i, storage: {size: 1Gi}}}}}`)
	in.Observed.Installed.MariaDB = foreignkind.Fit{Installed: true}
	before := Cluster(in).Components.Accounting
	in.Observed.Installed.MariaDB.Misfit = "the objects are in no namespace"
	elsewhere := before.DeepCopy()
	elsewhere.Spec.StorageConfig.Host = "db.example.com"
	for name, test := range map[string]struct {
		accounting *slinkyv1beta1.Accounting
		want       bool
	}{
		"slurmdbd uses the database":     {accounting: before, want: true},
		"slurmdbd uses another database": {accounting: elsewhere},
		"slurmdbd has its own database":  {accounting: &slinkyv1beta1.Accounting{}},
		"there was no slurmdbd":          {},
	} {
		t.Run(name, func(t *testing.T) {
			in.Observed.Rest.Accounting = test.accounting
			out := Cluster(in)
			const why = "spec.slurmNodes.accounting.mariadbOperator (the objects are in no namespace)"
			if !slices.Contains(out.Ignored, why) || out.NoDatabase != "the objects are in no namespace" || len(out.Problems) > 0 {
				t.Errorf("without effect: %v, no database: %q, problems: %s", out.Ignored, out.NoDatabase, out.Problems.Message())
			}
			if out.Components.MariaDB != nil || out.Components.Grant != nil || len(out.UnwantedDatabase(in.Cluster, in.Observed.Installed)) > 0 {
				t.Error("objects of the kinds are written or deleted")
			}
			if got := out.Components.Accounting; (got != nil) != test.want {
				t.Fatalf("there is an Accounting: %t, want %t", got != nil, test.want)
			}
			if test.want {
				if diff := cmp.Diff(before.Spec, out.Components.Accounting.Spec); diff != "" {
					t.Errorf("slurmdbd changes:\n%s", diff)
				}
			}
		})
	}
}
