// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmdbd_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/render"
	"github.com/coxswain-hpc/coxswain/internal/render/image"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmdbd"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

const storage = `storageConfig: {host: db.example.org, passwordKeyRef: {name: db, key: pw}}`

func input(t testing.TB, spec string) slurmdbd.Input {
	t.Helper()
	return slurmdbd.Input{
		Accounting:     manifest.Parse[slinkyv1beta1.Accounting](t, "metadata: {name: demo, namespace: ns1}\nspec: "+spec),
		SlurmKeyDigest: "digest-of-slurm-key", JwtKeyDigest: "digest-of-jwt-key", Password: "the-password", SealingKey: []byte("sealing"),
		Images: image.Set{Registry: "example.com/coxswain", Tag: "26.05"},
	}
}

func TestRender(t *testing.T) {
	tests := []struct{ name, file, spec string }{
		{"a database of the user's", "storage.yaml", `{` + storage + `}`},
		{"an embedded database", "embedded.yaml", `{embeddedDatabase: {storage: {size: 5Gi, storageClassName: fast}, mariadb: {args: ["--innodb-buffer-pool-size=1G"]}}}`},
		{"everything that can be laid over", "overlays.yaml", `
  slurmKeyRef: {name: keys, key: slurm.key}
  jwtKeyRef: {name: jwt, key: jwt.key}
  jwksKeyRef: {name: jwks, key: keys.json}
  storageConfig: {host: db, port: 3307, database: acct, username: dbd, passwordKeyRef: {name: db, key: pw}}
  extraConf: |
    DebugFlags=DB_QUERY
    ArchiveJobs=yes
  slurmdbd: {image: "example.com/dbd:1", args: [-vv]}
  template: {metadata: {labels: {team: a}}, spec: {priorityClassName: high}}
  service: {port: 16819, spec: {type: LoadBalancer}}
`},
		{"a database that is spoken to by TLS", "tls.yaml", `{storageConfig: {host: db.example.org, passwordKeyRef: {name: db, key: pw},
  tls: {caRef: {configMapKeyRef: {name: ca, key: ca.crt}}, clientCertificateRef: {name: dbd-tls}}}, extraConf: "StorageParameters=SSL_CIPHER=AES256-SHA"}`},
		{"munged for clients that prove who they are by munge", "munge.yaml", `{` + storage + `, munge: {keyRef: {name: demo-munge, key: munge.key}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := slurmdbd.Render(input(t, tt.spec))
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			golden.Check(t, tt.file, manifest.YAML(t, out.Objects...))
		})
	}
}

func TestTheEmbeddedDatabaseStopsAfterSlurmdbd(t *testing.T) {
	for _, tt := range []struct {
		name, spec       string
		running          bool
		slurmdbd, tables int32
	}{
		{"slurmdbd and its database run", `{embeddedDatabase: {}}`, false, 1, 1},
		{"slurmdbd has a pod", `{embeddedDatabase: {}, suspend: true}`, true, 0, 1},
		{"slurmdbd has no pod", `{embeddedDatabase: {}, suspend: true}`, false, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.spec)
			in.Running = tt.running
			got := map[string]int32{}
			for _, o := range slurmdbd.Render(in).Objects {
				if set, ok := o.(*appsv1.StatefulSet); ok {
					got[set.Name] = *set.Spec.Replicas
				}
			}
			if diff := cmp.Diff(map[string]int32{"demo-accounting": tt.slurmdbd, "demo-database": tt.tables}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExternalNeedsNothing(t *testing.T) {
	out := slurmdbd.Render(input(t, `{external: true, externalConfig: {host: dbd, port: 6819}}`))
	if len(out.Objects)+len(out.Problems)+len(out.Ignored) > 0 {
		t.Errorf("%+v", out)
	}
	out = slurmdbd.Render(input(t, `{external: true, externalConfig: {host: dbd, port: 6819}, embeddedDatabase: {}, extraConf: "A=1", suspend: true}`))
	want := []string{"spec.embeddedDatabase (slurmdbd runs elsewhere)", "spec.extraConf (slurmdbd runs elsewhere)", "spec.suspend (slurmdbd runs elsewhere)"}
	if diff := cmp.Diff(want, out.Ignored); diff != "" {
		t.Error(diff)
	}
}

func TestThePasswordStandsInItsSecretOnly(t *testing.T) {
	for _, spec := range []string{`{` + storage + `}`, `{embeddedDatabase: {}}`} {
		for _, o := range slurmdbd.Render(input(t, spec)).Objects {
			if secret, ok := o.(*corev1.Secret); ok {
				if !strings.Contains(string(secret.Data["slurmdbd.conf"]), "StoragePass=the-password\n") {
					t.Errorf("slurmdbd.conf lacks the password:\n%s", secret.Data["slurmdbd.conf"])
				}
				continue
			}
			if strings.Contains(string(manifest.YAML(t, o)), "the-password") {
				t.Errorf("%T %s has the password", o, o.GetName())
			}
		}
	}
}

// annotationsOf are those of all pod templates, by the name of the StatefulSet.
func annotationsOf(objects []render.Object) map[string]map[string]string {
	out := map[string]map[string]string{}
	for _, o := range objects {
		if s, ok := o.(*appsv1.StatefulSet); ok {
			out[s.Name] = s.Spec.Template.Annotations
		}
	}
	return out
}

func TestAnotherPasswordRestartsSlurmdbdAndItsDatabase(t *testing.T) {
	in := input(t, `{embeddedDatabase: {}}`)
	before := annotationsOf(slurmdbd.Render(in).Objects)
	in.Password = "another"
	after := annotationsOf(slurmdbd.Render(in).Objects)
	for _, name := range []string{"demo-accounting", "demo-database"} {
		if cmp.Equal(before[name], after[name]) {
			t.Errorf("the pods of %s stay the same", name)
		}
	}
}

func TestDigestsOfThePasswordAreSealed(t *testing.T) {
	in := input(t, `{embeddedDatabase: {}}`)
	one := annotationsOf(slurmdbd.Render(in).Objects)
	in.SealingKey = []byte("another key")
	other := annotationsOf(slurmdbd.Render(in).Objects)
	for _, name := range []string{"demo-accounting", "demo-database"} {
		if cmp.Equal(one[name], other[name]) {
			t.Errorf("whoever can read the annotations of %s can try passwords against them", name)
		}
	}
}

func TestOtherCertificatesRestartSlurmdbd(t *testing.T) {
	in := input(t, `{storageConfig: {host: db, passwordKeyRef: {name: db, key: pw}, tls: {caRef: {secretKeyRef: {name: ca, key: ca.crt}}}}}`)
	in.TLSDigest = "one"
	before := annotationsOf(slurmdbd.Render(in).Objects)
	in.TLSDigest = "another"
	if cmp.Equal(before, annotationsOf(slurmdbd.Render(in).Objects)) {
		t.Error("the pod stays the same")
	}
}

func TestAPasswordFileMayEndWithALineBreak(t *testing.T) {
	in := input(t, `{`+storage+`}`)
	in.Password = "the-password\r\n"
	out := slurmdbd.Render(in)
	if len(out.Problems) > 0 || !strings.Contains(string(manifest.YAML(t, out.Objects...)), "demo-accounting") {
		t.Error(out.Problems.Message())
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct {
		name, spec, password string
		want                 []string
	}{
		{name: "a password of two lines", spec: `{` + storage + `}`, password: "a\nStorageUser=root",
			want: []string{"spec.storageConfig.passwordKeyRef: slurmdbd.conf cannot hold this password: the text has the control character U+000A"}},
		{name: "a password with a quote and a blank", spec: `{embeddedDatabase: {}}`, password: `a" b`,
			want: []string{"spec.embeddedDatabase.passwordKeyRef: slurmdbd.conf cannot hold this password: the value has a double quote and a blank, which Slurm cannot read together"}},
		{name: "a host that leaves its line", spec: `{storageConfig: {host: "db\nAuthType=auth/none", passwordKeyRef: {name: db, key: pw}}}`,
			want: []string{"spec: writing slurmdbd.conf: StorageHost: the text has the control character U+000A"}},
		{name: "keys that the operator owns", spec: `{` + storage + `, extraConf: "StorageHost=mine\nStoragePass=x\nDbdHost=y"}`,
			want: []string{
				"spec.extraConf: line 1: StorageHost: it is set by the operator and cannot be set to something else; remove the line",
				"spec.extraConf: line 2: StoragePass: it is set by the operator and cannot be set to something else; remove the line",
				"spec.extraConf: line 3: DbdHost: it is set by the operator and cannot be set to something else; remove the line",
			}},
		{name: "certificates beside those of the spec", spec: `{storageConfig: {host: db, passwordKeyRef: {name: db, key: pw}, tls: {caRef: {secretKeyRef: {name: ca, key: ca.crt}}}}, extraConf: "StorageParameters=SSL_CA=/tmp/x"}`,
			want: []string{"spec.extraConf: line 1: StorageParameters: SSL_CA is set by the operator and cannot be set to something else; remove it"}},
		{name: "mistyped fields everywhere", spec: `{slurmdbd: {a: 1}, template: {spec: {b: 1}}, embeddedDatabase: {mariadb: {c: 1}, template: {spec: {d: 1}}}, service: {spec: {e: 1}}}`,
			want: []string{
				`spec.embeddedDatabase.mariadb: unknown field "c"`, `spec.embeddedDatabase.template.spec: unknown field "d"`,
				`spec.service.spec: unknown field "e"`, `spec.slurmdbd: unknown field "a"`, `spec.template.spec: unknown field "b"`,
			}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.spec)
			if tt.password != "" {
				in.Password = tt.password
			}
			var got []string
			for _, p := range slurmdbd.Render(in).Problems.Sorted() {
				got = append(got, p.Error())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzSlurmdbdConf(f *testing.F) {
	f.Add("DebugFlags=DB_QUERY", "password", "host", "user")
	f.Add("StorageHost=x\\\nDbdHost=y", "a\nb", "h # c", "u\"")
	f.Fuzz(func(t *testing.T, extra, password, host, user string) {
		in := input(t, `{`+storage+`}`)
		in.Password, in.Accounting.Spec.ExtraConf = password, extra
		in.Accounting.Spec.StorageConfig.Host, in.Accounting.Spec.StorageConfig.Username = host, user
		out := slurmdbd.Render(in)
		if len(out.Problems) > 0 {
			return
		}
		secret, ok := out.Objects[0].(*corev1.Secret)
		if !ok {
			t.Fatalf("%T comes first", out.Objects[0])
		}
		doc, problems := conf.Parse(conf.Slurmdbd, string(secret.Data["slurmdbd.conf"]))
		if len(problems) > 0 {
			t.Fatalf("%v\n%s", problems, secret.Data["slurmdbd.conf"])
		}
		if user == "" {
			user = "slurm"
		}
		for key, want := range map[string]string{
			"DbdHost": "demo-accounting-0", "AuthType": "auth/slurm", "StorageHost": host, "StorageUser": user,
			"StoragePass": strings.TrimRight(password, "\r\n"), "StorageType": "accounting_storage/mysql",
		} {
			if got, ok := doc.Get(key); got != want && (ok || want != "") {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
	})
}
