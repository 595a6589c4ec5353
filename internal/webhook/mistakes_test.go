// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

// object returns an object of one of our kinds, called demo unless the text has another name.
func (s *scene) object(kind, text string) *unstructured.Unstructured {
	s.t.Helper()
	u := &unstructured.Unstructured{}
	must(s.t, yaml.Unmarshal([]byte(text), &u.Object))
	version := map[string]string{
		"SlurmCluster": "slurm.nebius.ai/v1", "Workers": "slurm.nebius.ai/v1alpha1", "ActiveCheck": "slurm.nebius.ai/v1alpha1", "NodeConfigurator": "slurm.nebius.ai/v1alpha1",
	}[kind]
	switch {
	case version == "":
		version = slinkyv1beta1.GroupVersion.String()
	case kind == "Workers":
		kind = "NodeSet"
	}
	u.SetGroupVersionKind(schema.FromAPIVersionAndKind(version, kind))
	u.SetNamespace(s.Namespace)
	if u.GetName() == "" {
		u.SetName("demo")
	}
	return u
}

// create stores objects that others refer to.
func (s *scene) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		o.SetNamespace(s.Namespace)
		must(s.t, s.user.Create(s.t.Context(), o))
	}
}

const (
	minimalCluster = `{metadata: {name: alpha}, spec: {slurmNodes: {controller: {}, login: {}, worker: {size: 1}, rest: {}}}}`
	storage        = `storageConfig: {host: db, passwordKeyRef: {name: db, key: pw}}`
)

// TestMistakesAreRefusedWithTheWayOut is about what users write. Kind Workers is the NodeSet of slurm.nebius.ai.
func TestMistakesAreRefusedWithTheWayOut(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(
		manifest.Parse[corev1.ConfigMap](t, `{metadata: {name: files}, data: {gres.conf: "", site.conf: ""}}`),
		manifest.Parse[corev1.ConfigMap](t, `{metadata: {name: own}, data: {slurm.conf: ""}}`),
		manifest.Parse[corev1.ConfigMap](t, `{metadata: {name: dbd}, data: {slurmdbd.conf: ""}}`),
		manifest.Parse[corev1.PersistentVolumeClaim](t, `{metadata: {name: rwo}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`),
		manifest.Parse[corev1.PersistentVolumeClaim](t, `{metadata: {name: rwx}, spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}}`),
		s.object("SlurmCluster", minimalCluster),
		s.object("NodeSet", `{metadata: {name: taken}, spec: {controllerRef: {name: b}, replicas: 12, template: {spec: {hostname: gpu-}}}}`),
		s.object("NodeSet", `{metadata: {name: foreign}, spec: {controllerRef: {name: alpha}, replicas: 3, template: {spec: {hostname: worker-}}}}`),
		s.object("NodeSet", `{metadata: {name: early}, spec: {controllerRef: {name: gamma}, template: {spec: {hostname: worker-}}}}`),
		s.object("ActiveCheck", `{metadata: {name: waits}, spec: {slurmClusterRefName: alpha, dependsOn: [demo], k8sJobSpec: {jobContainer: {image: i}}}}`),
		manifest.Parse[corev1.PodTemplate](t, `{metadata: {name: image}, template: {spec: {containers: [{name: demo, image: i}]}}}`),
	)
	tests := []struct {
		name, kind, object string
		refusal            string   // after 'Kind.group "name" is invalid: '; with several mistakes all of them
		warnings           []string // in any order
		unsaid             string   // part of no warning
	}{
		{name: "a key of slurm.conf that is the operator's", kind: "Controller", object: `{spec: {extraConf: "SlurmctldDebug=debug\nSlurmctldHost=elsewhere"}}`,
			refusal: "spec.extraConf: Invalid value: line 2: SlurmctldHost: it is set by the operator and cannot be set to something else; remove the line"},
		{name: "a line of slurm.conf that is none", kind: "Controller", object: `{spec: {extraConf: "SchedulerType"}}`,
			refusal: `spec.extraConf: Invalid value: line 1: "SchedulerType": this is not Key=Value`},
		{name: "a mistyped field in a container", kind: "Controller", object: `{spec: {slurmctld: {imag: a}}}`,
			refusal: `spec.slurmctld: Invalid value: unknown field "imag"`},
		{name: "a mistyped field in a pod", kind: "Controller", object: `{spec: {template: {spec: {nodeSelectr: {a: b}}}}}`,
			refusal: `spec.template.spec: Invalid value: unknown field "nodeSelectr"`},
		{name: "another name for a container", kind: "Controller", object: `{spec: {slurmctld: {name: main}}}`,
			refusal: `spec.slurmctld.name: Invalid value: this container is called "slurmctld"; leave the name out (it was "main")`},
		{name: "two mistakes at once", kind: "Controller", object: `{spec: {slurmctld: {imag: a}, service: {spec: {externalIPs: [192.0.2.1]}}}}`,
			refusal: `[spec.service.spec.externalIPs: Invalid value: external IPs are not taken over; use a LoadBalancer or a NodePort, spec.slurmctld: Invalid value: unknown field "imag"]`},
		{name: "slurm.conf among the files", kind: "Controller", object: `{spec: {configFileRefs: [{name: own}]}}`,
			refusal: "spec.configFileRefs: Invalid value: ConfigMap own has a key slurm.conf, which the operator writes itself; use spec.extraConf"},
		{name: "slurmdbd.conf among the files", kind: "Controller", object: `{spec: {configFileRefs: [{name: dbd}]}}`,
			refusal: "spec.configFileRefs: Invalid value: ConfigMap dbd has a key slurmdbd.conf, which the operator writes itself"},
		{name: "a file that Slurm does not know may be included", kind: "Controller", object: `{spec: {configFileRefs: [{name: files}]}}`,
			warnings: []string{"spec.configFileRefs: Slurm reads no file of this name, unless another one includes it: site.conf"}},
		{name: "a ConfigMap may be created later", kind: "Controller", object: `{spec: {prologScriptRefs: [{name: later}]}}`,
			warnings: []string{"spec.prologScriptRefs[0]: ConfigMap later does not exist yet"}},
		{name: "a ConfigMap of another namespace", kind: "Controller", object: `{spec: {configFileRefs: [{name: a, namespace: other}]}}`,
			refusal:  `spec.configFileRefs[0].namespace: Invalid value: namespace "other" of the reference to "a" is not "NS", the object's own: leave it out and refer to an object in "NS"`,
			warnings: []string{"spec.configFileRefs[0]: ConfigMap a does not exist yet"}},
		{name: "an Accounting of another namespace", kind: "Controller", object: `{spec: {accountingRef: {name: a, namespace: other}}}`,
			refusal: `spec.accountingRef.namespace: Invalid value: namespace "other" of the reference to "a" is not "NS", the object's own: leave it out and refer to an object in "NS"`},
		{name: "capitals in the name of the cluster", kind: "Controller", object: `{spec: {clusterName: HPC}}`,
			warnings: []string{`spec.clusterName: Slurm writes names of clusters in lower case; this one becomes "hpc"`}},
		{name: "a derived name that accounting has no room for", kind: "Controller", object: `{metadata: {name: a-controller-with-a-long-name-own}, spec: {accountingRef: {name: a}}}`,
			refusal: `spec.clusterName: Invalid value: the default "NS_a-controller-with-a-long-name-own" has `},
		{name: "a derived name that accounting would have no room for", kind: "Controller", object: `{metadata: {name: a-controller-with-a-long-name-own}}`,
			warnings: []string{`spec.clusterName: the default "NS_a-controller-with-a-long-name-own" has `}},
		{name: "a claim that only one slurmctld can use", kind: "Controller", object: `{spec: {ha: {enabled: true}, persistence: {existingClaim: rwo}}}`,
			refusal: "spec.persistence.existingClaim: Invalid value: PersistentVolumeClaim rwo has access modes [ReadWriteOnce] and not ReadWriteMany; all slurmctlds need it at the same time"},

		{name: "a NodeSet is fine", kind: "NodeSet", object: `{spec: {controllerRef: {name: a}}}`},
		{name: "a mistyped field in slurmd", kind: "NodeSet", object: `{spec: {controllerRef: {name: a}, slurmd: {resource: {}}}}`,
			refusal: `spec.slurmd: Invalid value: unknown field "resource"`},
		{name: "a prefix that would leave its line in slurm.conf", kind: "NodeSet", object: `{spec: {controllerRef: {name: a}, template: {spec: {hostname: "gpu[0-9]"}}}}`,
			refusal: `spec.template.spec.hostname: Invalid value: host name "gpu[0-9]" has '[' at position 4: letters, digits, '-', '_' and '.' are allowed`},
		{name: "parameters of a node that are the operator's", kind: "NodeSet", object: `{spec: {controllerRef: {name: a}, extraConf: "NodeName=x Weight=1"}}`,
			refusal: "spec.extraConf: Invalid value: NodeName: it is set by the operator"},
		{name: "options of a partition that are none", kind: "NodeSet", object: `{spec: {controllerRef: {name: a}, partition: {enabled: true, config: "State"}}}`,
			refusal: `spec.partition.config: Invalid value: "State": this is not Key=Value`},
		{name: "a claim template without a name", kind: "NodeSet", object: `{spec: {controllerRef: {name: a}, volumeClaimTemplates: [{spec: {}}]}}`,
			refusal: "spec.volumeClaimTemplates[0].metadata.name: Invalid value: is the name of the volume and must not be empty"},
		{name: "a Controller of another namespace", kind: "NodeSet", object: `{spec: {controllerRef: {name: a, namespace: other}}}`,
			refusal: `spec.controllerRef.namespace: Invalid value: namespace "other"`},
		{name: "names of another NodeSet of the Controller", kind: "NodeSet", object: `{spec: {controllerRef: {name: b}, replicas: 2, template: {spec: {hostname: gpu-}}}}`,
			refusal: "spec.template.spec.hostname: Invalid value: a worker of NodeSet taken has host name gpu-0 as well, and in Slurm both would be the same node; set another spec.template.spec.hostname"},
		{name: "names of which some are those of another NodeSet of the Controller", kind: "NodeSet", object: `{spec: {controllerRef: {name: b}, replicas: 1, template: {spec: {hostname: gpu-1}}}}`,
			refusal: "spec.template.spec.hostname: Invalid value: a worker of NodeSet taken has host name gpu-10 as well"},
		{name: "a name of its own that is what another one gives its workers", kind: "NodeSet", object: `{metadata: {name: gpu}, spec: {controllerRef: {name: b}}}`,
			refusal: "spec.template.spec.hostname: Invalid value: a worker of NodeSet taken has host name gpu-0 as well"},
		{name: "names that only further workers would have", kind: "NodeSet", object: `{spec: {controllerRef: {name: b}, replicas: 2, template: {spec: {hostname: gpu-2}}}}`},
		{name: "names with other digits", kind: "NodeSet", object: `{spec: {controllerRef: {name: b}, replicas: 2, ordinalPadding: 3, template: {spec: {hostname: gpu-}}}}`},
		{name: "no workers yet", kind: "NodeSet", object: `{spec: {controllerRef: {name: b}, replicas: 0, template: {spec: {hostname: gpu-}}}}`},
		{name: "names of a NodeSet of another Controller", kind: "NodeSet", object: `{spec: {controllerRef: {name: a}, template: {spec: {hostname: gpu-}}}}`},
		{name: "workers of a SlurmCluster with names of a NodeSet beside it", kind: "Workers", object: `{metadata: {name: worker}, spec: {clusterName: alpha, slurmd: {}}}`,
			refusal: "metadata.name: Invalid value: a worker of NodeSet foreign has host name worker-0 as well, and in Slurm both would be the same node; give the NodeSet another name"},

		{name: "an Accounting is fine", kind: "Accounting", object: `{spec: {` + storage + `}}`},
		{name: "a key of slurmdbd.conf that is the operator's", kind: "Accounting", object: `{spec: {` + storage + `, extraConf: "StorageHost=x"}}`,
			refusal: "spec.extraConf: Invalid value: line 1: StorageHost: it is set by the operator and cannot be set to something else; remove the line"},
		{name: "a mistyped field of the database", kind: "Accounting", object: `{spec: {embeddedDatabase: {mariadb: {comand: [a]}}}}`,
			refusal: `spec.embeddedDatabase.mariadb: Invalid value: unknown field "comand"`},
		{name: "a RestApi is fine", kind: "RestApi", object: `{spec: {controllerRef: {name: a}}}`},
		{name: "a mistyped field of slurmrestd", kind: "RestApi", object: `{spec: {controllerRef: {name: a}, slurmrestd: {envs: []}}}`,
			refusal: `spec.slurmrestd: Invalid value: unknown field "envs"`},
		{name: "a LoginSet is fine", kind: "LoginSet", object: `{spec: {controllerRef: {name: a}, users: [{name: alice, uid: 1000}]}}`},
		{name: "a mistyped field of a login pod", kind: "LoginSet", object: `{spec: {controllerRef: {name: a}, template: {spec: {toleration: []}}}}`,
			refusal: `spec.template.spec: Invalid value: unknown field "toleration"`},
		{name: "a Token with a key of another namespace", kind: "Token", object: `{spec: {username: a, jwtHs256KeyRef: {name: jwt, key: k, namespace: other}}}`,
			refusal: `spec.jwtHs256KeyRef.namespace: Invalid value: namespace "other" of the reference to "jwt" is not "NS"`},

		{name: "a SlurmCluster is fine", kind: "SlurmCluster", object: strings.Replace(minimalCluster, "alpha", "beta", 1)},
		{name: "monitors of a SlurmCluster, of which the webhook does not know whether their kind is there", kind: "SlurmCluster",
			object: `{metadata: {name: delta}, spec: {slurmNodes: {controller: {openMetrics: {enabled: true, serviceMonitor: {interval: 1m}}}, login: {}, worker: {size: 1}, rest: {}}}}`,
			unsaid: "openMetrics"},
		{name: "mounts of a SlurmCluster without a source", kind: "SlurmCluster",
			object:  `{spec: {slurmNodes: {controller: {}, login: {volumes: {customMounts: [{name: home, mountPath: /home, volumeSourceName: home}]}}, worker: {size: 1}, rest: {}}}}`,
			refusal: `spec.slurmNodes.login.volumes.customMounts[0].volumeSourceName: Invalid value: there is no "home" in spec.volumeSources`},
		{name: "workers of a SlurmCluster with names of a NodeSet that was there before", kind: "SlurmCluster", object: strings.Replace(minimalCluster, "alpha", "gamma", 1),
			refusal: "spec.slurmNodes.worker.size: Invalid value: a worker of NodeSet early has host name worker-0 as well, and in Slurm both would be the same node; set it to 0 and use NodeSets"},
		{name: "a NodeConfigurator is fine", kind: "NodeConfigurator", object: `{spec: {}}`},
		{name: "nothing that a NodeConfigurator would run", kind: "NodeConfigurator", object: `{spec: {rebooter: {enabled: false}}}`,
			refusal: "spec: Invalid value: nothing is enabled: set enabled of rebooter or of customContainer"},
		{name: "a mistyped field of a rebooter's probe", kind: "NodeConfigurator", object: `{spec: {rebooter: {enabled: true, livenessProbe: {period: 1}}}}`,
			refusal: `spec.rebooter.livenessProbe: Invalid value: unknown field "period"`},
		{name: "a rebooter that could not reboot", kind: "NodeConfigurator", object: `{spec: {rebooter: {enabled: true, hostUsers: false}}}`,
			refusal: "spec.rebooter.hostUsers: Invalid value: must be true with the rebooter"},
		{name: "a rebooter of Soperator", kind: "NodeConfigurator", object: `{spec: {rebooter: {enabled: true, image: {repository: cr.eu-north1.nebius.cloud/soperator/rebooter, tag: 5.0.0}}}}`,
			warnings: []string{"images of Soperator are replaced by those of this operator: spec.rebooter.image: cr.eu-north1.nebius.cloud/soperator/rebooter:5.0.0"}},
		{name: "a NodeSet of a cluster that comes later", kind: "Workers", object: `{spec: {clusterName: later, slurmd: {}}}`,
			warnings: []string{`SlurmCluster "later" does not exist yet; the NodeSet has no workers before it does`}},
		{name: "fields of workers of a SlurmCluster without effect", kind: "Workers", object: `{spec: {clusterName: alpha, docker: {enabled: true}, updateStrategy: slurmAwareRollingUpdate, nodeConfig: {dynamic: x}, slurmd: {}}}`,
			warnings: []string{"spec.docker.enabled has no effect in this version", "spec.updateStrategy: slurmAwareRollingUpdate is what rollingUpdate is: "}},
		{name: "mistakes and fields without effect in workers of a cluster that comes later", kind: "Workers", object: `{spec: {clusterName: later, docker: {enabled: true}, nodeConfig: {static: "NodeAddr=x"}, slurmd: {}}}`,
			refusal:  "spec.nodeConfig.static: Invalid value: NodeAddr: it is set by the operator and cannot be set to something else; remove the line",
			warnings: []string{"spec.docker.enabled has no effect in this version"}},
		{name: "a field of a NodeSet that its contract removed", kind: "NodeSet", object: `{spec: {controllerRef: {name: a}, taintKubeNodes: true}}`,
			warnings: []string{"spec.taintKubeNodes has no effect in this version"}},
		{name: "a key that may be missing, and may not", kind: "Controller", object: `{spec: {jwtKeyRef: {name: a, key: b, optional: true}}}`,
			warnings: []string{"spec.jwtKeyRef.optional has no effect in this version"}},
		{name: "a check is fine", kind: "ActiveCheck", object: `{spec: {slurmClusterRefName: alpha, k8sJobSpec: {jobContainer: {image: i}}}}`},
		{name: "a check of a cluster that comes later, after a check and with a PodTemplate that do", kind: "ActiveCheck",
			object: `{spec: {slurmClusterRefName: later, dependsOn: [first], podTemplateNameRef: mine}}`,
			warnings: []string{`SlurmCluster "later" does not exist yet; the check does not run before it does`, `ActiveCheck "first" does not exist yet`,
				`PodTemplate "mine" does not exist yet`}},
		{name: "a check that waits for itself by way of another", kind: "ActiveCheck",
			object:  `{spec: {slurmClusterRefName: alpha, dependsOn: [waits], k8sJobSpec: {jobContainer: {image: i}}}}`,
			refusal: "spec.dependsOn: Invalid value: demo -> waits -> demo: each waits for the next"},
		{name: "a check without an image", kind: "ActiveCheck", object: `{spec: {slurmClusterRefName: alpha}}`,
			refusal: "spec.k8sJobSpec.jobContainer.image: Invalid value: must be given"},
		{name: "a check with a PodTemplate that has the image", kind: "ActiveCheck", object: `{spec: {slurmClusterRefName: alpha, podTemplateNameRef: image}}`},
		{name: "a check of Slurm jobs", kind: "ActiveCheck", object: `{spec: {slurmClusterRefName: alpha, checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/true"}}}`,
			unsaid: "spec.checkType"},
		{name: "a script of Slurm jobs with a line that cannot be carried over", kind: "ActiveCheck",
			object:  `{spec: {slurmClusterRefName: alpha, checkType: slurmJob, slurmJobSpec: {sbatchScript: "#!/bin/bash\n#SBATCH --no-such-option\n"}}}`,
			refusal: "spec.slurmJobSpec.sbatchScript: Invalid value: line 2: option --no-such-option is not supported"},
		{name: "what a check of Kubernetes says of Slurm nodes", kind: "ActiveCheck",
			object:   `{spec: {slurmClusterRefName: alpha, failureReactions: {drainSlurmNode: true}, k8sJobSpec: {jobContainer: {image: i}}}}`,
			warnings: []string{"spec.failureReactions has no effect in this version"}},
		{name: "parameters of a node of a SlurmCluster that are the operator's", kind: "Workers", object: `{spec: {clusterName: alpha, nodeConfig: {static: "NodeAddr=x"}, slurmd: {}}}`,
			refusal: "spec.nodeConfig.static: Invalid value: NodeAddr: it is set by the operator and cannot be set to something else; remove the line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s.t = t
			said, err := s.try(tt.kind, strings.ReplaceAll(tt.object, "NS", s.Namespace))
			_, got, _ := strings.Cut(refusal(err), "is invalid: ")
			if want := strings.ReplaceAll(tt.refusal, "NS", s.Namespace); !strings.HasPrefix(got, want) || (want == "") != (err == nil) {
				t.Errorf("refusal = %q (%v), want %q", got, err, want)
			}
			for _, warning := range tt.warnings {
				if warning = strings.ReplaceAll(warning, "NS", s.Namespace); !strings.Contains(strings.Join(said, "\n"), warning) {
					t.Errorf("warnings = %q, want %q", said, warning)
				}
			}
			if tt.unsaid != "" && strings.Contains(strings.Join(said, "\n"), tt.unsaid) {
				t.Errorf("warnings = %q, want none of %s", said, tt.unsaid)
			}
			if tt.refusal == "" && len(tt.warnings) == 0 && len(said) > 0 && tt.kind != "SlurmCluster" && tt.kind != "Workers" {
				t.Errorf("warnings = %q, want none", said)
			}
		})
	}
}

func TestAnOldMistakeDoesNotLockAnObjectUp(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.stop()
	// While the webhook is down, objects are admitted as they come.
	s.create(s.object("Controller", `{spec: {slurmctld: {imag: a}, extraConf: "ClusterName=x"}}`))
	s = s.again()
	controller := &slinkyv1beta1.Controller{}
	key := client.ObjectKey{Namespace: s.Namespace, Name: "demo"}
	change := func(edit func()) error {
		must(t, s.user.Get(t.Context(), key, controller))
		edit()
		return s.user.Update(t.Context(), controller)
	}
	if err := change(func() { controller.Labels = map[string]string{"a": "b"} }); err != nil {
		t.Errorf("labels: %v", err)
	}
	if err := change(func() { controller.Spec.ExtraConf = "" }); err != nil {
		t.Errorf("mending one of two mistakes: %v", err)
	}
	if err := change(func() { controller.Spec.ExtraConf = "SlurmUser=root" }); !strings.Contains(refusal(err), "spec.extraConf") || strings.Contains(refusal(err), "slurmctld") {
		t.Errorf("a new mistake is not refused alone: %v", err)
	}
}

func TestComposedObjectsAreTheBusinessOfTheirSlurmCluster(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := metav1.OwnerReference{APIVersion: "slurm.nebius.ai/v1", Kind: "SlurmCluster", Name: "demo", UID: "1", Controller: new(true)}
	u := s.object("Controller", `{spec: {extraConf: "ClusterName=x"}}`)
	u.SetOwnerReferences([]metav1.OwnerReference{owner})
	if err := s.user.Create(t.Context(), u, client.DryRunAll); err != nil {
		t.Error(err)
	}
}

func TestProtectedSecretsStayWithTheirCluster(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(s.object("SlurmCluster", minimalCluster))
	secret := func(text string) *corev1.Secret {
		out := manifest.Parse[corev1.Secret](t, text)
		out.Namespace = s.Namespace
		return out
	}
	said := func(err error) string { return strings.TrimSpace(refusal(err)) }
	lonely := secret(`{metadata: {name: a, labels: {slurm.nebius.ai/webhook: "true"}}}`)
	if got, want := said(s.user.Create(t.Context(), lonely)),
		"a Secret with label slurm.nebius.ai/webhook=true needs annotation slurm.nebius.ai/cluster with the name of the SlurmCluster that it belongs to"; got != want {
		t.Errorf("creating = %q, want %q", got, want)
	}
	kept := secret(`{metadata: {name: b, labels: {slurm.nebius.ai/webhook: "true"}, annotations: {slurm.nebius.ai/cluster: alpha}}, stringData: {password: x}}`)
	s.create(kept)
	changed := kept.DeepCopy()
	changed.Data = map[string][]byte{"password": []byte("y")}
	if got := said(s.user.Update(t.Context(), changed)); !strings.Contains(got, "must not be changed") {
		t.Errorf("changing = %q", got)
	}
	unlabelled := kept.DeepCopy()
	unlabelled.Labels = nil
	if got := said(s.user.Update(t.Context(), unlabelled)); !strings.Contains(got, "must not be changed") {
		t.Errorf("taking the label away = %q", got)
	}
	finalized := kept.DeepCopy()
	finalized.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "1"}}
	if err := s.user.Update(t.Context(), finalized); err != nil {
		t.Errorf("another owner: %v", err)
	}
	if got, want := said(s.user.Delete(t.Context(), kept)),
		"the Secret belongs to SlurmCluster alpha and is protected by label slurm.nebius.ai/webhook=true: delete the SlurmCluster first"; got != want {
		t.Errorf("deleting = %q, want %q", got, want)
	}
	must(t, s.user.Delete(t.Context(), s.object("SlurmCluster", minimalCluster)))
	if err := s.user.Delete(t.Context(), kept); err != nil {
		t.Errorf("deleting after the cluster: %v", err)
	}
}

func TestAWorkerIsBoundWithTheTopologyOfItsNode(t *testing.T) {
	t.Parallel()
	s := start(t)
	node := manifest.Parse[corev1.Node](t, `{metadata: {annotations: {topology.slinky.slurm.net/spec: "topo-switch:s2"}}}`)
	old := manifest.Parse[corev1.Node](t, `{metadata: {annotations: {topology.slinky.slurm.net/line: "topo-block:b1"}}}`)
	node.Name, old.Name = s.Namespace+"-a", s.Namespace+"-b"
	must(t, s.user.Create(t.Context(), node))
	must(t, s.user.Create(t.Context(), old))
	t.Cleanup(func() {
		_ = s.user.Delete(t.Context(), node)
		_ = s.user.Delete(t.Context(), old)
	})
	const spec, line = "topology.slinky.slurm.net/spec", "topology.slinky.slurm.net/line"
	tests := []struct {
		name, pod, node string
		want            map[string]string
	}{
		{"a worker", `{metadata: {name: worker-0, labels: {app.kubernetes.io/name: slurmd}, annotations: {a: b}}, spec: {containers: [{name: a, image: a}]}}`, node.Name,
			map[string]string{"a": "b", spec: "topo-switch:s2"}},
		{"a worker without annotations on a node that spells it the old way", `{metadata: {name: worker-1, labels: {app.kubernetes.io/name: slurmd}}, spec: {containers: [{name: a, image: a}]}}`, old.Name,
			map[string]string{spec: "topo-block:b1", line: "topo-block:b1"}},
		{"a worker on a node that does not exist", `{metadata: {name: worker-2, labels: {app.kubernetes.io/name: slurmd}}, spec: {containers: [{name: a, image: a}]}}`, "nowhere", nil},
		{"another pod", `{metadata: {name: other}, spec: {containers: [{name: a, image: a}]}}`, node.Name, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pod := manifest.Parse[corev1.Pod](t, tt.pod)
			s.create(pod)
			must(t, s.user.SubResource("binding").Create(t.Context(), pod, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: tt.node}}))
			must(t, s.user.Get(t.Context(), client.ObjectKeyFromObject(pod), pod))
			if pod.Spec.NodeName != tt.node {
				t.Errorf("the pod is bound to %q", pod.Spec.NodeName)
			}
			if diff := cmp.Diff(tt.want, pod.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
