// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/coxswain-hpc/coxswain/internal/testing/crdcheck"
)

// admission is one object before the API server. Without a word on refusal it must be admitted, otherwise the refusal
// must contain it: field path, or what to do.
type admission struct {
	name    string
	object  string // the body from "metadata" or "spec" on; a name is added where it has none
	old     string // the object before an update; none on create
	refusal string
}

func runAdmissions(t *testing.T, kind string, tests []admission) {
	t.Helper()
	crd := loadCRDs(t)[kind]
	if crd == nil {
		t.Fatalf("no definition of %s", kind)
	}
	body := func(text string) map[string]any {
		object := crdcheck.Parse(t, text)
		object["apiVersion"], object["kind"] = "slinky.slurm.net/v1beta1", kind
		if object["metadata"] == nil {
			object["metadata"] = map[string]any{"name": "demo", "namespace": "ns1"}
		}
		return object
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			object := body(tt.object)
			var errs field.ErrorList
			if tt.old != "" {
				errs = crd.Update(t.Context(), object, body(tt.old))
			} else {
				errs = crd.Create(t.Context(), object)
			}
			switch {
			case tt.refusal == "" && len(errs) > 0:
				t.Errorf("refused: %v", errs.ToAggregate())
			case tt.refusal == "":
				typed(t, object) // What is admitted must be readable, or it would blind the operator for its kind.
			case len(errs) == 0:
				t.Errorf("admitted, want refusal with %q", tt.refusal)
			case !strings.Contains(errs.ToAggregate().Error(), tt.refusal):
				t.Errorf("refusal = %v, want one with %q", errs.ToAggregate(), tt.refusal)
			}
		})
	}
}

func TestControllerAdmission(t *testing.T) {
	runAdmissions(t, "Controller", []admission{
		{name: "nothing is required", object: `{}`},
		{name: "an empty spec is enough", object: `{spec: {}}`},
		{name: "the name may not be longer than a host name allows", object: `{metadata: {name: ` + strings.Repeat("a", 42) + `}}`, refusal: "at most 41 characters"},
		{name: "the name may be as long as a host name allows", object: `{metadata: {name: ` + strings.Repeat("a", 41) + `}}`},
		{name: "the name is one label", object: `{metadata: {name: a.b}}`, refusal: "metadata.name"},
		{name: "the name begins with a letter", object: `{metadata: {name: 1a}}`, refusal: "begin with a letter"},

		{name: "an external one needs an address", object: `{spec: {external: true}}`, refusal: "externalConfig must be set when external is true"},
		{name: "an external one with an address", object: `{spec: {external: true, externalConfig: {host: ctl, port: 6817}}}`},
		{name: "an external one on IPv6", object: `{spec: {external: true, externalConfig: {host: "fd00::1", port: 6817}}}`},
		{name: "an external host cannot leave its line", object: `{spec: {external: true, externalConfig: {host: "ctl\nSlurmUser=root", port: 6817}}}`, refusal: "spec.externalConfig.host"},
		{name: "an external port is a port", object: `{spec: {external: true, externalConfig: {host: ctl, port: 0}}}`, refusal: "externalConfig must be set"},

		{name: "a cluster name of 40 characters", object: `{spec: {clusterName: ` + strings.Repeat("a", 40) + `}}`},
		{name: "a cluster name of 41 characters", object: `{spec: {clusterName: ` + strings.Repeat("a", 41) + `}}`, refusal: "spec.clusterName"},
		{name: "a cluster name with dots, hyphens and capitals", object: `{spec: {clusterName: HPC-1.example_$}}`},
		{name: "an empty cluster name stands for the default", object: `{spec: {clusterName: ""}}`},
		{name: "a cluster name cannot leave its line", object: `{spec: {clusterName: "a\nSlurmUser=root"}}`, refusal: "spec.clusterName"},
		{name: "a cluster name cannot end in a line feed", object: `{spec: {clusterName: "a\n"}}`, refusal: "spec.clusterName"},
		{name: "a cluster name cannot comment out", object: `{spec: {clusterName: "a#"}}`, refusal: "spec.clusterName"},
		{name: "a cluster name cannot leave its directory", object: `{spec: {clusterName: ".."}}`, refusal: "spec.clusterName"},
		{name: "a cluster name is no path", object: `{spec: {clusterName: a/b}}`, refusal: "spec.clusterName"},
		{name: "the cluster name stays", object: `{spec: {clusterName: b}}`, old: `{spec: {clusterName: a}}`, refusal: "clusterName cannot be changed"},
		{name: "the cluster name cannot be given later", object: `{spec: {clusterName: b}}`, old: `{spec: {}}`, refusal: "clusterName cannot be changed"},
		{name: "an unchanged cluster name", object: `{spec: {clusterName: a, extraConf: x=y}}`, old: `{spec: {clusterName: a}}`},
		{name: "the default cluster name may be written as empty", object: `{spec: {clusterName: ""}}`, old: `{spec: {}}`},

		{name: "a key reference without a name", object: `{spec: {slurmKeyRef: {key: slurm.key}}}`, refusal: "spec.slurmKeyRef: Invalid value"},
		{name: "a key reference without a key", object: `{spec: {jwtKeyRef: {name: jwt}}}`, refusal: "spec.jwtKeyRef.key: Required value"},
		{name: "munge without a key", object: `{spec: {munge: {container: {image: m}}}}`, refusal: "spec.munge.keyRef: Required value"},
		{name: "munge with half a key", object: `{spec: {munge: {keyRef: {name: "", key: munge.key}}}}`, refusal: "name and key must not be empty"},
		{name: "another key Secret", object: `{spec: {slurmKeyRef: {name: b, key: k}}}`, old: `{spec: {slurmKeyRef: {name: a, key: k}}}`, refusal: "spec.slurmKeyRef"},
		{name: "another JWT key", object: `{spec: {jwtHs256KeyRef: {name: a, key: l}}}`, old: `{spec: {jwtHs256KeyRef: {name: a, key: k}}}`, refusal: "spec.jwtHs256KeyRef"},
		{name: "the deprecated reference may move to its successor", object: `{spec: {jwtKeyRef: {name: a, key: k}}}`, old: `{spec: {jwtHs256KeyRef: {name: a, key: k}}}`},
		{name: "a reference with the own namespace", object: `{spec: {accountingRef: {name: a, namespace: ns1}}}`},
		{name: "a reference without a name", object: `{spec: {accountingRef: {namespace: ns1}}}`, refusal: "spec.accountingRef: Invalid value"},
		{name: "a file reference without a name", object: `{spec: {configFileRefs: [{name: a}, {}]}}`, refusal: "spec.configFileRefs[1]"},

		{name: "high availability needs a shared claim", object: `{spec: {ha: {enabled: true}}}`, refusal: "ha.enabled needs persistence.existingClaim"},
		{name: "high availability does not work with an own claim", object: `{spec: {ha: {enabled: true}, persistence: {}}}`, refusal: "ReadWriteMany"},
		{name: "high availability needs persistence", object: `{spec: {ha: {enabled: true}, persistence: {enabled: false, existingClaim: a}}}`, refusal: "ha.enabled needs"},
		{name: "high availability with a shared claim", object: `{spec: {ha: {enabled: true}, persistence: {existingClaim: a}}}`},
		{name: "fewer backups than none", object: `{spec: {ha: {enabled: true, backups: -1}, persistence: {existingClaim: a}}}`, refusal: "spec.ha.backups"},
		{name: "high availability that is off needs nothing", object: `{spec: {ha: {enabled: false}}}`},

		{name: "the state cannot be given up", object: `{spec: {persistence: {enabled: false}}}`, old: `{spec: {}}`, refusal: "persistence.enabled cannot be changed"},
		{name: "persistence may be spelled out", object: `{spec: {persistence: {enabled: true}}}`, old: `{spec: {}}`},
		{name: "the claim stays", object: `{spec: {persistence: {existingClaim: b}}}`, old: `{spec: {persistence: {existingClaim: a}}}`, refusal: "persistence.existingClaim cannot be changed"},
		{name: "the size of the claim may change", object: `{spec: {persistence: {resources: {requests: {storage: 8Gi}}}}}`, old: `{spec: {persistence: {resources: {requests: {storage: 4Gi}}}}}`},

		{name: "a container may hold what this version does not know", object: `{spec: {slurmctld: {image: a, future: {x: 1}}}}`},
		{name: "a container is an object", object: `{spec: {slurmctld: [a]}}`, refusal: "spec.slurmctld"},
		{name: "a container is no string", object: `{spec: {slurmctld: image}}`, refusal: "spec.slurmctld"},
		{name: "what a program writes that fills in nothing", object: `{spec: {slurmKeyRef: {name: "", key: ""}, jwtKeyRef: {key: ""}, jwksKeyRef: {name: "", key: ""},
			accountingRef: {name: ""}, externalConfig: {host: "", port: 0}, service: {port: 0, nodePort: 0}}}`},
		{name: "an external slurmctld without a host", object: `{spec: {external: true, externalConfig: {host: "", port: 0}}}`, refusal: "externalConfig must be set when external is true"},
		{name: "a file without a ConfigMap", object: `{spec: {configFileRefs: [{name: ""}]}}`, refusal: "name must not be empty"},
		{name: "empty lists and maps of a chart may be null", object: `{spec: {configFileRefs: null, template: {metadata: {labels: null, annotations: null}}, metrics: {serviceMonitor: null}}}`},
		{name: "extraConf has many lines", object: `{spec: {extraConf: "A=1\nB=2\n"}}`},
		{name: "a Prometheus duration", object: `{spec: {metrics: {serviceMonitor: {interval: 1m30s}}}}`},
		{name: "an interval that is no Prometheus duration is refused", object: `{spec: {metrics: {serviceMonitor: {interval: 1 minute}}}}`, refusal: "spec.metrics.serviceMonitor.interval"},
		{name: "an endpoint needs a path", object: `{spec: {metrics: {serviceMonitor: {endpoints: [{interval: 1m}]}}}}`, refusal: "spec.metrics.serviceMonitor.endpoints[0].path: Required value"},
		{name: "a Service port is a port", object: `{spec: {service: {port: 65536}}}`, refusal: "spec.service.port"},
	})
}

func TestAccountingAdmission(t *testing.T) {
	const storage = `storageConfig: {host: db, passwordKeyRef: {name: db, key: pw}}`
	runAdmissions(t, "Accounting", []admission{
		{name: "a spec is required", object: `{}`, refusal: "spec must be given"},
		{name: "a database is required", object: `{spec: {}}`, refusal: "slurmdbd needs a database"},
		{name: "an existing database", object: `{spec: {` + storage + `}}`},
		{name: "an embedded database", object: `{spec: {embeddedDatabase: {}}}`},
		{name: "an existing database and an embedded one exclude each other", object: `{spec: {embeddedDatabase: {}, ` + storage + `}}`, refusal: "exclude each other"},
		{name: "an Accounting may move from its embedded database to an existing one", object: `{spec: {` + storage + `}}`, old: `{spec: {embeddedDatabase: {}}}`},
		{name: "an external one needs no database", object: `{spec: {external: true, externalConfig: {host: dbd, port: 6819}}}`},
		{name: "an external one needs an address", object: `{spec: {external: true}}`, refusal: "externalConfig must be set"},
		{name: "a database host is required", object: `{spec: {storageConfig: {passwordKeyRef: {name: db, key: pw}}}}`, refusal: "spec.storageConfig.host: Required value"},
		{name: "a database password is required", object: `{spec: {storageConfig: {host: db}}}`, refusal: "spec.storageConfig.passwordKeyRef: Required value"},
		{name: "a database password needs its Secret", object: `{spec: {storageConfig: {host: db, passwordKeyRef: {key: pw}}}}`, refusal: "spec.storageConfig.passwordKeyRef: Invalid value"},
		{name: "a certificate in place of a password", object: `{spec: {storageConfig: {host: db, passwordKeyRef: {key: ""}, tls: {caRef: {secretKeyRef: {name: a, key: b}}, clientCertificateRef: {name: c}}}}}`},
		{name: "a database host cannot leave its line", object: `{spec: {storageConfig: {host: "db\nStorageUser=root", passwordKeyRef: {name: db, key: pw}}}}`, refusal: "spec.storageConfig.host"},
		{name: "a database name cannot leave its line", object: `{spec: {storageConfig: {host: db, database: "a\nb", passwordKeyRef: {name: db, key: pw}}}}`, refusal: "spec.storageConfig.database"},
		{name: "a database user cannot leave its line", object: `{spec: {storageConfig: {host: db, username: "a\nb", passwordKeyRef: {name: db, key: pw}}}}`, refusal: "spec.storageConfig.username"},
		{name: "a database user cannot comment out", object: `{spec: {storageConfig: {host: db, username: "a # b", passwordKeyRef: {name: db, key: pw}}}}`, refusal: "spec.storageConfig.username"},
		{name: "TLS trusts a ConfigMap's authority", object: `{spec: {storageConfig: {host: db, passwordKeyRef: {name: db, key: pw}, tls: {caRef: {configMapKeyRef: {name: a, key: b}}}}}}`},
		{name: "TLS trusts somebody", object: `{spec: {storageConfig: {host: db, passwordKeyRef: {name: db, key: pw}, tls: {caRef: {}}}}}`, refusal: "give one of configMapKeyRef and secretKeyRef"},
		{name: "TLS trusts one source", object: `{spec: {storageConfig: {host: db, passwordKeyRef: {name: db, key: pw}, tls: {caRef: {configMapKeyRef: {name: a, key: b}, secretKeyRef: {name: a, key: b}}}}}}`, refusal: "give one of configMapKeyRef and secretKeyRef"},
		{name: "an embedded database with a size", object: `{spec: {embeddedDatabase: {storage: {size: 1Ti, storageClassName: fast}}}}`},
		{name: "a size is a quantity", object: `{spec: {embeddedDatabase: {storage: {size: big}}}}`, refusal: "spec.embeddedDatabase.storage.size"},
		{name: "a size may be a number", object: `{spec: {embeddedDatabase: {storage: {size: 10737418240}}}}`},
		{name: "an embedded database password needs its Secret", object: `{spec: {embeddedDatabase: {passwordKeyRef: {key: pw}}}}`, refusal: "spec.embeddedDatabase.passwordKeyRef"},
		{name: "the name is one label", object: `{metadata: {name: a.b}, spec: {embeddedDatabase: {}}}`, refusal: "metadata.name"},
	})
}

func TestRestAPIAdmission(t *testing.T) {
	runAdmissions(t, "RestApi", []admission{
		{name: "a spec is required", object: `{}`, refusal: "spec must be given"},
		{name: "a Controller is required", object: `{spec: {}}`, refusal: "spec.controllerRef: Required value"},
		{name: "the Controller has a name", object: `{spec: {controllerRef: {}}}`, refusal: "name must not be empty"},
		{name: "the Controller is enough", object: `{spec: {controllerRef: {name: a}}}`},
		{name: "the Controller stays", object: `{spec: {controllerRef: {name: b}}}`, old: `{spec: {controllerRef: {name: a}}}`, refusal: "controllerRef cannot be changed"},
		{name: "the namespace may be left out later", object: `{spec: {controllerRef: {name: a}}}`, old: `{spec: {controllerRef: {name: a, namespace: ns1}}}`},
		{name: "replicas that Go cannot hold", object: `{spec: {controllerRef: {name: a}, replicas: 5000000000}}`, refusal: "spec.replicas"},
		{name: "there are no negative replicas", object: `{spec: {controllerRef: {name: a}, replicas: -1}}`, refusal: "spec.replicas"},
	})
}

func TestTokenAdmission(t *testing.T) {
	const key = `jwtKeyRef: {name: jwt, key: jwt.key}`
	runAdmissions(t, "Token", []admission{
		{name: "a spec is required", object: `{}`, refusal: "spec must be given"},
		{name: "a key is required", object: `{spec: {username: a}}`, refusal: "jwtKeyRef must be set"},
		{name: "a user is required", object: `{spec: {` + key + `}}`, refusal: "spec.username: Required value"},
		{name: "a key and a user", object: `{spec: {` + key + `, username: a}}`},
		{name: "the deprecated reference", object: `{spec: {jwtHs256KeyRef: {name: jwt, key: k, namespace: ns1}, username: a}}`},
		{name: "no user is nobody", object: `{spec: {` + key + `, username: ""}}`},
		{name: "a user of a directory", object: `{spec: {` + key + `, username: Jane.Doe@example.org, secretRef: {name: jane, key: t}}}`},
		{name: "a Secret must be nameable", object: `{spec: {` + key + `, username: my_user}}`, refusal: "secretRef.name must be set"},
		{name: "a Secret must be nameable even when its key is given", object: `{spec: {` + key + `, username: my_user, secretRef: {key: t}}}`, refusal: "secretRef.name must be set"},
		{name: "a user is one word", object: `{spec: {` + key + `, username: "a b"}}`, refusal: "spec.username"},
		{name: "a user is one line", object: `{spec: {` + key + `, username: "a\nb"}}`, refusal: "spec.username"},
		{name: "a lifetime in Go's words", object: `{spec: {` + key + `, username: a, lifetime: 1h30m}}`},
		{name: "a lifetime in days", object: `{spec: {` + key + `, username: a, lifetime: 7d}}`, refusal: "spec.lifetime"},
		{name: "a lifetime without a unit", object: `{spec: {` + key + `, username: a, lifetime: "90"}}`, refusal: "spec.lifetime"},
		{name: "an empty lifetime", object: `{spec: {` + key + `, username: a, lifetime: ""}}`, refusal: "spec.lifetime"},
		{name: "a lifetime that Go cannot hold", object: `{spec: {` + key + `, username: a, lifetime: 999999999h}}`, refusal: "spec.lifetime"},
		{name: "the key stays", object: `{spec: {jwtKeyRef: {name: b, key: jwt.key}, username: a}}`, old: `{spec: {` + key + `, username: a}}`, refusal: "jwtKeyRef cannot be changed"},
		{name: "the user stays", object: `{spec: {` + key + `, username: b}}`, old: `{spec: {` + key + `, username: a}}`, refusal: "username cannot be changed"},
		{name: "the Secret stays", object: `{spec: {` + key + `, username: a, secretRef: {name: b, key: t}}}`, old: `{spec: {` + key + `, username: a}}`, refusal: "secretRef cannot be changed"},
		{name: "lifetime and refreshing change", object: `{spec: {` + key + `, username: a, secretRef: {name: b, key: t}, lifetime: 1h, refresh: false}}`, old: `{spec: {` + key + `, username: a, secretRef: {name: b, key: t}}}`},
	})
}

func TestNodeSetAdmission(t *testing.T) {
	const ref = `controllerRef: {name: a}`
	runAdmissions(t, "NodeSet", []admission{
		{name: "a spec is required", object: `{}`, refusal: "spec must be given"},
		{name: "a Controller is required", object: `{spec: {}}`, refusal: "spec.controllerRef: Required value"},
		{name: "the Controller is enough", object: `{spec: {` + ref + `}}`},
		{name: "the Controller stays", object: `{spec: {controllerRef: {name: b}}}`, old: `{spec: {` + ref + `}}`, refusal: "controllerRef cannot be changed"},
		{name: "the name leaves room for an ordinal", object: `{metadata: {name: ` + strings.Repeat("a", 58) + `}, spec: {` + ref + `}}`, refusal: "at most 57 characters"},

		{name: "node parameters", object: `{spec: {` + ref + `, extraConf: "Gres=gpu:8 Weight=10"}}`},
		{name: "node parameters over several lines", object: `{spec: {` + ref + `, extraConf: "Gres=gpu:8\n  Weight=10\n"}}`},
		{name: "no node parameters", object: `{spec: {` + ref + `, extraConf: ""}}`},
		{name: "a node parameter without a value", object: `{spec: {` + ref + `, extraConf: "Gres"}}`, refusal: "must be Key=Value"},
		{name: "a node parameter that would close the shell's quotes", object: `{spec: {` + ref + `, extraConf: "Gres=gpu';reboot;'"}}`, refusal: "spec.extraConf"},
		{name: "a node parameter with double quotes", object: `{spec: {` + ref + `, extraConf: 'Reason="x y"'}}`, refusal: "spec.extraConf"},
		{name: "a node parameter that continues the line", object: `{spec: {` + ref + `, extraConf: 'Weight=1\'}}`, refusal: "spec.extraConf"},

		{name: "partition options", object: `{spec: {` + ref + `, partition: {enabled: true, config: "Default=YES AllowGroups=a,b"}}}`},
		{name: "partition options cannot leave their line", object: `{spec: {` + ref + `, partition: {config: "Default=YES\nSlurmUser=root"}}}`, refusal: "spec.partition.config"},
		{name: "partition options cannot leave their line by carriage return", object: `{spec: {` + ref + `, partition: {config: "Default=YES\rSlurmUser=root"}}}`, refusal: "must be a single line"},
		{name: "partition options cannot swallow the next line", object: `{spec: {` + ref + `, partition: {config: 'Default=YES \'}}}`, refusal: "without backslashes"},

		{name: "one worker may be unavailable", object: `{spec: {` + ref + `, updateStrategy: {rollingUpdate: {maxUnavailable: 1}}}}`},
		{name: "maxUnavailable is refused when no worker may be unavailable", object: `{spec: {` + ref + `, updateStrategy: {rollingUpdate: {maxUnavailable: 0}}}}`, refusal: "from 1% to 100%"},
		{name: "maxUnavailable is refused when no percentage of workers may be unavailable", object: `{spec: {` + ref + `, updateStrategy: {rollingUpdate: {maxUnavailable: 0%}}}}`, refusal: "from 1% to 100%"},
		{name: "maxUnavailable is refused when it is more than all workers", object: `{spec: {` + ref + `, updateStrategy: {rollingUpdate: {maxUnavailable: 101%}}}}`, refusal: "maxUnavailable"},
		{name: "maxUnavailable is refused when it is neither number nor percentage", object: `{spec: {` + ref + `, updateStrategy: {rollingUpdate: {maxUnavailable: many}}}}`, refusal: "maxUnavailable"},
		{name: "an unknown strategy", object: `{spec: {` + ref + `, updateStrategy: {type: Yolo}}}`, refusal: "spec.updateStrategy.type"},
		{name: "a strategy without parameters", object: `{spec: {` + ref + `, updateStrategy: {type: OnDelete}}}`},
		{name: "a scheduled update without parameters", object: `{spec: {` + ref + `, updateStrategy: {type: ScheduledUpdate}}}`, refusal: "scheduledUpdate.startTime"},
		{name: "a scheduled update without a start", object: `{spec: {` + ref + `, updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {duration: 1h}}}}`, refusal: "scheduledUpdate.startTime"},
		{name: "a scheduled update with a start", object: `{spec: {` + ref + `, updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {startTime: "2027-01-31T22:00:00Z"}}}}`},
		{name: "a scheduled update of half a minute", object: `{spec: {` + ref + `, updateStrategy: {scheduledUpdate: {duration: 30s}}}}`, refusal: "at least 1m"},
		{name: "a pause that Go cannot hold", object: `{spec: {` + ref + `, minReadySeconds: 5000000000}}`, refusal: "spec.minReadySeconds"},
		{name: "a start on a day that does not exist", object: `{spec: {` + ref + `, updateStrategy: {scheduledUpdate: {startTime: "2027-02-30T22:00:00Z"}}}}`, refusal: "startTime"},
		{name: "a scheduled update of no duration at all", object: `{spec: {` + ref + `, updateStrategy: {scheduledUpdate: {duration: soon}}}}`, refusal: "must be a duration"},
		{name: "a start that is no time", object: `{spec: {` + ref + `, updateStrategy: {scheduledUpdate: {startTime: tomorrow}}}}`, refusal: "startTime"},
		{name: "a start in lower case, which Go cannot read", object: `{spec: {` + ref + `, updateStrategy: {scheduledUpdate: {startTime: "2027-01-31t22:00:00z"}}}}`, refusal: "startTime"},
		{name: "a start without a zone", object: `{spec: {` + ref + `, updateStrategy: {scheduledUpdate: {startTime: "2027-01-31T22:00:00"}}}}`, refusal: "startTime"},
		{name: "a reservation flag is one word", object: `{spec: {` + ref + `, updateStrategy: {scheduledUpdate: {flags: ["A,B"]}}}}`, refusal: "flags[0]"},

		{name: "a drain timeout", object: `{spec: {` + ref + `, drainTimeout: 24h}}`},
		{name: "a drain timeout that is none", object: `{spec: {` + ref + `, drainTimeout: never}}`, refusal: "spec.drainTimeout"},
		{name: "a negative drain timeout", object: `{spec: {` + ref + `, drainTimeout: -1h}}`, refusal: "spec.drainTimeout"},
		{name: "an unknown scaling mode", object: `{spec: {` + ref + `, scalingMode: Job}}`, refusal: "spec.scalingMode"},
		{name: "an unknown retention", object: `{spec: {` + ref + `, persistentVolumeClaimRetentionPolicy: {whenDeleted: Maybe}}}`, refusal: "whenDeleted"},
		{name: "claims may be null", object: `{spec: {` + ref + `, volumeClaimTemplates: null}}`},
		{name: "claims are a list", object: `{spec: {` + ref + `, volumeClaimTemplates: {a: b}}}`, refusal: "spec.volumeClaimTemplates"},
		{name: "ssh needs no sssd", object: `{spec: {` + ref + `, ssh: {enabled: true}}}`},
		{name: "the taint field of old is still accepted", object: `{spec: {` + ref + `, taintKubeNodes: true}}`},
	})
}

func TestLoginSetAdmission(t *testing.T) {
	const (
		ref = `controllerRef: {name: a}`
		key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl`
	)
	user := func(fields string) string { return `{spec: {` + ref + `, users: [{` + fields + `}]}}` }
	runAdmissions(t, "LoginSet", []admission{
		{name: "a spec is required", object: `{}`, refusal: "spec must be given"},
		{name: "a Controller is required", object: `{spec: {}}`, refusal: "spec.controllerRef: Required value"},
		{name: "sssd is not required", object: `{spec: {` + ref + `}}`},
		{name: "sssd needs its Secret", object: `{spec: {` + ref + `, sssdConfRef: {key: sssd.conf}}}`, refusal: "spec.sssdConfRef"},
		{name: "the Controller stays", object: `{spec: {controllerRef: {name: b}}}`, old: `{spec: {` + ref + `}}`, refusal: "controllerRef cannot be changed"},
		{name: "a StatefulSet", object: `{spec: {` + ref + `, workload: StatefulSet}}`},
		{name: "a DaemonSet", object: `{spec: {` + ref + `, workload: DaemonSet}}`, refusal: "spec.workload"},
		{name: "a Deployment has a strategy", object: `{spec: {` + ref + `, strategy: {type: Recreate}}}`},
		{name: "a StatefulSet has no such strategy", object: `{spec: {` + ref + `, workload: StatefulSet, strategy: {type: Recreate}}}`, refusal: "strategy belongs to workload Deployment"},
		{name: "an unknown strategy", object: `{spec: {` + ref + `, strategy: {type: Yolo}}}`, refusal: "type must be Recreate or RollingUpdate"},

		{name: "a user", object: user(`name: alice, uid: 1000`)},
		{name: "a user without an id", object: user(`name: alice`), refusal: "spec.users[0].uid: Required value"},
		{name: "a user named in capitals", object: user(`name: Alice, uid: 1000`), refusal: "spec.users[0].name"},
		{name: "a user name of 33 characters", object: user(`name: ` + strings.Repeat("a", 33) + `, uid: 1000`), refusal: "spec.users[0].name"},
		{name: "a user name that is two lines", object: user(`name: "a\nroot", uid: 1000`), refusal: "spec.users[0].name"},
		{name: "a user name with a line feed at its end", object: user(`name: "a\n", uid: 1000`), refusal: "spec.users[0].name"},
		{name: "a user named like root", object: user(`name: root, uid: 1000`), refusal: "system account"},
		{name: "a user with a system id", object: user(`name: alice, uid: 999`), refusal: "spec.users[0].uid"},
		{name: "a user with the id of root", object: user(`name: alice, uid: 0`), refusal: "spec.users[0].uid"},
		{name: "a user with the id of nobody", object: user(`name: alice, uid: 65534`), refusal: "belongs to nobody"},
		{name: "a user in the group of root", object: user(`name: alice, uid: 1000, gid: 0`), refusal: "spec.users[0].gid"},
		{name: "a user named twice", object: `{spec: {` + ref + `, users: [{name: a, uid: 1000}, {name: a, uid: 1001}]}}`, refusal: "spec.users[1]: Duplicate value"},
		{name: "a comment with a colon", object: user(`name: a, uid: 1000, gecos: "x:0:0"`), refusal: "spec.users[0].gecos"},
		{name: "a comment of two lines", object: user(`name: a, uid: 1000, gecos: "x\nroot::0:0:::"`), refusal: "spec.users[0].gecos"},
		{name: "a comment in other letters", object: user(`name: a, uid: 1000, gecos: Åsa`)},
		{name: "a home that is relative", object: user(`name: a, uid: 1000, home: home/a`), refusal: "spec.users[0].home"},
		{name: "a home that climbs", object: user(`name: a, uid: 1000, home: /home/../etc`), refusal: "spec.users[0].home"},
		{name: "a home with a colon", object: user(`name: a, uid: 1000, home: "/home/a:/bin/sh"`), refusal: "spec.users[0].home"},
		{name: "a shell that is two words", object: user(`name: a, uid: 1000, shell: "/bin/sh -c"`), refusal: "spec.users[0].shell"},
		{name: "a group", object: user(`name: a, uid: 1000, groups: [{name: gpu, gid: 3000}]`)},
		{name: "a group without an id", object: user(`name: a, uid: 1000, groups: [{name: gpu}]`), refusal: "groups[0].gid: Required value"},
		{name: "a group of two lines", object: user(`name: a, uid: 1000, groups: [{name: "gpu\nroot", gid: 3000}]`), refusal: "groups[0].name"},
		{name: "a key", object: user(`name: a, uid: 1000, sshAuthorizedKeys: ["` + key + `"]`)},
		{name: "a key with a comment", object: user(`name: a, uid: 1000, sshAuthorizedKeys: ["` + key + ` alice on her laptop"]`)},
		{name: "a key with options", object: user(`name: a, uid: 1000, sshAuthorizedKeys: ['from="10.0.0.0/8",no-pty ` + key + `']`)},
		{name: "a key with a line feed at its end", object: user(`name: a, uid: 1000, sshAuthorizedKeys: ["` + key + `\n"]`), refusal: "sshAuthorizedKeys[0]"},
		{name: "two keys in one", object: user(`name: a, uid: 1000, sshAuthorizedKeys: ["` + key + `\n` + key + `"]`), refusal: "sshAuthorizedKeys[0]"},
		{name: "a private key", object: user(`name: a, uid: 1000, sshAuthorizedKeys: ["-----BEGIN OPENSSH PRIVATE KEY-----"]`), refusal: "sshAuthorizedKeys[0]"},
		{name: "a file name instead of a key", object: user(`name: a, uid: 1000, sshAuthorizedKeys: [id_ed25519.pub]`), refusal: "sshAuthorizedKeys[0]"},
		{name: "a DSA key, which sshd refuses", object: user(`name: a, uid: 1000, sshAuthorizedKeys: ["ssh-dss AAAAB3NzaC1kc3M="]`), refusal: "sshAuthorizedKeys[0]"},
	})
}
