// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// mistake is something that a user wrote or forgot, and how the object shows it. What the CRDs refuse is in
// api/slinky/v1beta1, what the webhook refuses before it comes here in internal/webhook.
type mistake struct {
	name string
	// object is called demo unless it has another name.
	object reconcile.Object
	// others are the objects beside it.
	others []client.Object
	// want is "Stalled reason: message" where a user has to change something, and "Ready reason: message" of a Ready that
	// is False where it heals by itself.
	want string
}

func parse[T any, P interface {
	*T
	reconcile.Object
}](t *testing.T, text string) reconcile.Object {
	t.Helper()
	var obj P = manifest.Parse[T](t, text)
	return obj
}

func TestMistakesAreToldByConditions(t *testing.T) {
	t.Parallel()
	secret := func(text string) client.Object { return manifest.Parse[corev1.Secret](t, text) }
	files := func(text string) client.Object { return manifest.Parse[corev1.ConfigMap](t, text) }
	controller := func(spec string) reconcile.Object {
		return parse[slinkyv1beta1.Controller](t, `{spec: `+spec+`}`)
	}
	nodeSet := func(spec string) reconcile.Object {
		return parse[slinkyv1beta1.NodeSet](t, `{spec: {controllerRef: {name: demo}, `+spec+`}}`)
	}
	loginSet := func(spec string) reconcile.Object {
		return parse[slinkyv1beta1.LoginSet](t, `{spec: {controllerRef: {name: demo}, `+spec+`}}`)
	}
	accounting := func(spec string) reconcile.Object {
		return parse[slinkyv1beta1.Accounting](t, `{spec: `+spec+`}`)
	}
	token := func(spec string) reconcile.Object { return parse[slinkyv1beta1.Token](t, `{spec: `+spec+`}`) }
	restAPI := func(spec string) reconcile.Object {
		return parse[slinkyv1beta1.RestApi](t, `{spec: {controllerRef: {name: demo}, `+spec+`}}`)
	}
	aController := func() client.Object { return manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo}}`) }
	theirs := func(o client.Object) client.Object {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "somebody", UID: "1", Controller: new(true)}})
		return o
	}
	o := operator.Start(t)
	for i, tt := range []mistake{
		{name: "a line of slurm.conf that is none", want: `Stalled InvalidSpec: spec.extraConf: line 1: "SchedulerType": this is not Key=Value`,
			object: controller(`{extraConf: "SchedulerType"}`)},
		{name: "a parameter of slurm.conf that is the operator's", want: `Stalled InvalidSpec: spec.extraConf: line 2: ClusterName: it is set by the operator and cannot be set to something else; remove the line`,
			object: controller(`{extraConf: "A=1\nClusterName=x"}`)},
		{name: "a misspelt parameter of slurm.conf", want: `Stalled InvalidConfiguration: spec.extraConf: line 1: MaxJobCout: slurm.conf has no key of this name that the operator knows; did you mean MaxJobCount?`,
			object: controller(`{extraConf: "MaxJobCout=5"}`)},
		{name: "a value that slurmctld would end with", want: `Stalled InvalidConfiguration: spec.extraConf: line 1: SlurmctldTimeout: "soon" is not a number`,
			object: controller(`{extraConf: "SlurmctldTimeout=soon"}`)},
		{name: "a partition of nodes that do not exist", want: `Ready InvalidConfiguration: spec.extraConf: line 1: PartitionName=all Nodes: there is no node and no NodeSet gpu; give it a NodeName or NodeSet line, or name another one`,
			object: controller(`{extraConf: "PartitionName=all Nodes=gpu"}`)},
		{name: "a script of slurmctld's that nobody brings", want: `Stalled InvalidConfiguration: spec.extraConf: line 1: PrologSlurmctld: no ConfigMap that the spec refers to has a file start.sh`,
			object: controller(`{extraConf: "PrologSlurmctld=/etc/slurm/start.sh"}`)},
		{name: "a misspelt parameter of cgroup.conf", want: `Stalled InvalidConfiguration: spec.configFileRefs: ConfigMap cgroup, cgroup.conf: line 1: ConstrainCore: cgroup.conf has no key of this name that the operator knows; did you mean ConstrainCores?`,
			object: controller(`{configFileRefs: [{name: cgroup}]}`), others: []client.Object{files(`{metadata: {name: cgroup}, data: {cgroup.conf: "ConstrainCore=yes"}}`)}},
		{name: "a cgroup.conf among scripts", want: `Stalled InvalidSpec: spec.prologScriptRefs: ConfigMap scripts has a key cgroup.conf, which belongs into spec.configFileRefs`,
			object: controller(`{prologScriptRefs: [{name: scripts}]}`), others: []client.Object{files(`{metadata: {name: scripts}, data: {cgroup.conf: ""}}`)}},
		{name: "a misspelt field of a container", want: `Stalled InvalidOverlay: spec.slurmctld: unknown field "imag"`,
			object: controller(`{slurmctld: {imag: a}}`)},
		{name: "a misspelt field of a pod", want: `Stalled InvalidOverlay: spec.template.spec: unknown field "tolerations[0].kee"`,
			object: controller(`{template: {spec: {tolerations: [{kee: a}]}}}`)},
		{name: "a value that no container can have", want: `Stalled InvalidSpec: the API server refuses StatefulSet NS/demo-controller; correct the cause: StatefulSet.apps "demo-controller" is invalid: spec.template.spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`,
			object: controller(`{slurmctld: {imagePullPolicy: Sometimes}}`)},
		{name: "external IPs", want: `Stalled InvalidOverlay: spec.service.spec.externalIPs: external IPs are not taken over; use a LoadBalancer or a NodePort`,
			object: controller(`{service: {spec: {externalIPs: [192.0.2.1]}}}`)},
		{name: "a Service of a type that does not exist", want: `Stalled InvalidSpec: the API server refuses Service NS/demo-controller; correct the cause: Service "demo-controller" is invalid: spec.type: Unsupported value: "Balancer": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`,
			object: controller(`{service: {spec: {type: Balancer}}}`)},
		{name: "a ConfigMap that does not exist", want: `Ready ReferenceNotFound: spec.configFileRefs[0]: ConfigMap nowhere does not exist; create it or remove the reference`,
			object: controller(`{configFileRefs: [{name: nowhere}]}`)},
		{name: "a ConfigMap of another namespace", want: `Stalled ReferenceRefused: spec.epilogScriptRefs[0].namespace: namespace "b" of the reference to "a" is not "NS", the object's own: leave it out and refer to an object in "NS"`,
			object: controller(`{epilogScriptRefs: [{name: a, namespace: b}]}`)},
		{name: "a ConfigMap with slurm.conf", want: `Stalled InvalidSpec: spec.configFileRefs: ConfigMap own has a key slurm.conf, which the operator writes itself; use spec.extraConf`,
			object: controller(`{configFileRefs: [{name: own}]}`), others: []client.Object{files(`{metadata: {name: own}, data: {slurm.conf: ""}}`)}},
		{name: "two ConfigMaps with the same file", want: `Stalled InvalidSpec: spec.configFileRefs: ConfigMaps left and right both have a key gres.conf`,
			object: controller(`{configFileRefs: [{name: left}, {name: right}]}`),
			others: []client.Object{files(`{metadata: {name: left}, data: {gres.conf: ""}}`), files(`{metadata: {name: right}, data: {gres.conf: ""}}`)}},
		{name: "a key Secret that does not exist", want: `Ready KeyMissing: spec.slurmKeyRef: Secret nowhere does not exist; create it with the key slurm.key`,
			object: controller(`{slurmKeyRef: {name: nowhere, key: slurm.key}}`)},
		{name: "a key Secret without the key", want: `Ready KeyMissing: spec.jwtKeyRef: Secret half has no key jwt.key, or an empty one`,
			object: controller(`{jwtKeyRef: {name: half, key: jwt.key}}`), others: []client.Object{secret(`{metadata: {name: half}, stringData: {other: x}}`)}},
		{name: "a set of keys that Slurm would not take", want: `Stalled KeyInvalid: spec.slurmKeyRef: slurm.jwks in Secret set is no set of keys for auth/slurm: it has no keys`,
			object: controller(`{slurmKeyRef: {name: set, key: slurm.key}}`), others: []client.Object{secret(`{metadata: {name: set}, stringData: {slurm.key: x, slurm.jwks: "{}"}}`)}},
		{name: "public keys that do not exist", want: `Ready ReferenceNotFound: spec.jwksKeyRef: ConfigMap nowhere does not exist; create it or remove the reference`,
			object: controller(`{jwksKeyRef: {name: nowhere, key: jwks.json}}`)},
		{name: "public keys under another name", want: `Ready KeyMissing: spec.jwksKeyRef: ConfigMap public has no key jwks.json, or an empty one`,
			object: controller(`{jwksKeyRef: {name: public, key: jwks.json}}`), others: []client.Object{files(`{metadata: {name: public}, data: {other: x}}`)}},
		{name: "backups without their claim", want: `Ready ReferenceNotFound: spec.persistence.existingClaim: PersistentVolumeClaim nowhere does not exist; create it with access mode ReadWriteMany`,
			object: controller(`{ha: {enabled: true}, persistence: {existingClaim: nowhere}}`)},
		{name: "an Accounting of another namespace", want: `Stalled ReferenceRefused: spec.accountingRef.namespace: namespace "b" of the reference to "a" is not "NS", the object's own: leave it out and refer to an object in "NS"`,
			object: controller(`{accountingRef: {name: a, namespace: b}}`)},
		{name: "an Accounting that does not exist", want: `Ready ReferenceNotFound: spec.accountingRef: Accounting nowhere does not exist; create it or remove the reference`,
			object: controller(`{accountingRef: {name: nowhere}}`)},
		{name: "an Accounting with another key", want: `Stalled KeyMismatch: spec.slurmKeyRef: key slurm.key in Secret demo-auth-slurm differs from that of Accounting foreign, key slurm.key in Secret foreign-auth-slurm; slurmctld and slurmdbd need the same key`,
			object: controller(`{accountingRef: {name: foreign}}`),
			others: []client.Object{manifest.Parse[slinkyv1beta1.Accounting](t, `{metadata: {name: foreign}, spec: {embeddedDatabase: {}}}`)}},
		{name: "a Service of somebody else under our name", want: `Stalled NameConflict: Service NS/demo-controller is controlled by ConfigMap NS/somebody, so Controller NS/demo cannot use it; delete it or choose another name`,
			object: controller(`{}`), others: []client.Object{
				theirs(manifest.Parse[corev1.Service](t, `{metadata: {name: demo-controller}, spec: {ports: [{port: 80}]}}`))}},

		{name: "a Controller that does not exist", want: `Ready ReferenceNotFound: spec.controllerRef: Controller demo does not exist`,
			object: nodeSet(`replicas: 1`)},
		{name: "a Controller of another namespace", want: `Stalled ReferenceRefused: spec.controllerRef.namespace: namespace "b" of the reference to "a" is not "NS", the object's own: leave it out and refer to an object in "NS"`,
			object: parse[slinkyv1beta1.NodeSet](t, `{spec: {controllerRef: {name: a, namespace: b}}}`)},
		{name: "parameters of nodes that are the operator's", want: `Stalled InvalidSpec: spec.extraConf: NodeName: it is set by the operator and cannot be set to something else; remove the line`,
			object: nodeSet(`extraConf: "NodeName=a"`), others: []client.Object{aController()}},
		{name: "a parameter of nodes twice", want: `Stalled InvalidSpec: spec.extraConf: line 1: Weight: it is given twice with different values`,
			object: nodeSet(`extraConf: "Weight=1 Weight=2"`), others: []client.Object{aController()}},
		{name: "a prefix that is no host name", want: `Stalled InvalidSpec: spec.template.spec.hostname: host name "a,b" has ',' at position 2: letters, digits, '-', '_' and '.' are allowed`,
			object: nodeSet(`template: {spec: {hostname: "a,b"}}`), others: []client.Object{aController()}},
		{name: "a prefix that Kubernetes takes for no host name", want: `Stalled InvalidSpec: the API server refuses Pod NS/demo-0; correct the cause: Pod "demo-0" is invalid: spec.hostname: Invalid value: "GPU-0": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			object: nodeSet(`template: {spec: {hostname: GPU-}}`), others: []client.Object{aController()}},
		{name: "a misspelt field of slurmd", want: `Stalled InvalidOverlay: spec.slurmd: unknown field "resources.limit"`,
			object: nodeSet(`slurmd: {resources: {limit: {}}}`), others: []client.Object{aController()}},
		{name: "a volume that does not exist in the pod", want: `Stalled InvalidSpec: the API server refuses Pod NS/demo-0; correct the cause: Pod "demo-0" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "nowhere"`,
			object: nodeSet(`slurmd: {volumeMounts: [{name: nowhere, mountPath: /a}]}`), others: []client.Object{aController()}},
		{name: "a partition option that is none", want: `Stalled InvalidSpec: spec.partition.config: "Default": this is not Key=Value`,
			object: nodeSet(`partition: {enabled: true, config: "Default"}`), others: []client.Object{aController()}},
		{name: "a pod of somebody else under our name", want: `Stalled NameConflict: Pod NS/demo-0 exists and was not made for NodeSet NS/demo; delete it, or add the operator's labels to it to hand it over`,
			object: nodeSet(`replicas: 1`), others: []client.Object{aController(),
				manifest.Parse[corev1.Pod](t, `{metadata: {name: demo-0}, spec: {containers: [{name: a, image: a}]}}`)}},

		{name: "a login node of a Controller that does not exist", want: `Ready ReferenceNotFound: spec.controllerRef: Controller demo does not exist`,
			object: loginSet(`replicas: 1`)},
		{name: "a login node of a Controller of another namespace", want: `Stalled ReferenceRefused: spec.controllerRef.namespace: namespace "b" of the reference to "a" is not "NS", the object's own: leave it out and refer to an object in "NS"`,
			object: parse[slinkyv1beta1.LoginSet](t, `{spec: {controllerRef: {name: a, namespace: b}}}`)},
		{name: "a misspelt field of a login node", want: `Stalled InvalidOverlay: spec.login: unknown field "env[0].valu"`,
			object: loginSet(`login: {env: [{name: A, valu: b}]}`), others: []client.Object{aController()}},
		{name: "host keys of the user's that are not complete", want: `Ready KeyMissing: Secret demo-ssh-host-keys has no key ssh_host_rsa_key.pub; add it, or delete the Secret and all host keys are generated again`,
			object: loginSet(`replicas: 1`), others: []client.Object{aController(), secret(`{metadata: {name: demo-ssh-host-keys}, stringData: {ssh_host_rsa_key: x}}`)}},
		{name: "a group with two numbers", want: `Stalled InvalidSpec: spec.users[b].groups[g].gid: is 2000, and 1999 with another user; a group has one gid`,
			object: loginSet(`users: [{name: a, uid: 1000, groups: [{name: g, gid: 1999}]}, {name: b, uid: 1001, groups: [{name: g, gid: 2000}]}]`), others: []client.Object{aController()}},
		{name: "an sshd_config that does not exist", want: `Ready ReferenceNotFound: spec.sshdConfigRef: ConfigMap nowhere does not exist; create it or remove the reference`,
			object: loginSet(`sshdConfigRef: {name: nowhere, key: sshd_config}`), others: []client.Object{aController()}},
		{name: "an sshd_config under another key", want: `Ready KeyMissing: spec.sshdConfigRef: ConfigMap half has no key sshd_config, or an empty one`,
			object: loginSet(`sshdConfigRef: {name: half, key: sshd_config}`), others: []client.Object{aController(),
				manifest.Parse[corev1.ConfigMap](t, `{metadata: {name: half}, data: {sshd.conf: MaxSessions 3}}`)}},
		{name: "an sssd.conf that does not exist", want: `Ready KeyMissing: spec.sssdConfRef: Secret nowhere does not exist; create it with the key sssd.conf`,
			object: loginSet(`sssdConfRef: {name: nowhere, key: sssd.conf}`), others: []client.Object{aController()}},
		{name: "two users with one number", want: `Stalled InvalidSpec: spec.users: users a and b have the same uid 1000`,
			object: loginSet(`users: [{name: a, uid: 1000}, {name: b, uid: 1000}]`), others: []client.Object{aController()}},
		{name: "a Deployment of somebody else under our name", want: `Stalled NameConflict: Deployment NS/demo is controlled by ConfigMap NS/somebody, so LoginSet NS/demo cannot use it; delete it or choose another name`,
			object: loginSet(`replicas: 1`), others: []client.Object{aController(),
				theirs(manifest.Parse[appsv1.Deployment](t, `{metadata: {name: demo}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}}}`))}},

		{name: "a parameter of slurmdbd.conf that is the operator's", want: `Stalled InvalidSpec: spec.extraConf: line 1: StorageHost: it is set by the operator and cannot be set to something else; remove the line`,
			object: accounting(`{embeddedDatabase: {}, extraConf: "StorageHost=x"}`)},
		{name: "a password that does not exist", want: `Ready KeyMissing: spec.storageConfig.passwordKeyRef: Secret nowhere does not exist; create it with the key pw`,
			object: accounting(`{storageConfig: {host: db, passwordKeyRef: {name: nowhere, key: pw}}}`)},
		{name: "a Secret without the password", want: `Ready KeyMissing: spec.storageConfig.passwordKeyRef: Secret half has no key pw, or an empty one`,
			object: accounting(`{storageConfig: {host: db, passwordKeyRef: {name: half, key: pw}}}`), others: []client.Object{secret(`{metadata: {name: half}, stringData: {other: x}}`)}},
		{name: "a password that slurmdbd.conf cannot hold", want: `Stalled InvalidSpec: spec.storageConfig.passwordKeyRef: slurmdbd.conf cannot hold this password: the text has the control character U+000A`,
			object: accounting(`{storageConfig: {host: db, passwordKeyRef: {name: lines, key: pw}}}`), others: []client.Object{secret(`{metadata: {name: lines}, stringData: {pw: "a\nb"}}`)}},
		{name: "a certificate that is none", want: `Stalled InvalidSpec: spec.storageConfig.tls.caRef: it holds no certificate in PEM form`,
			object: accounting(`{storageConfig: {host: db, passwordKeyRef: {name: tls, key: pw}, tls: {caRef: {secretKeyRef: {name: tls, key: ca}}}}}`),
			others: []client.Object{secret(`{metadata: {name: tls}, stringData: {pw: x, ca: nonsense}}`)}},
		{name: "a misspelt field of slurmdbd", want: `Stalled InvalidOverlay: spec.slurmdbd: unknown field "comand"`,
			object: accounting(`{embeddedDatabase: {}, slurmdbd: {comand: [a]}}`)},
		{name: "a Secret of somebody else under the name of slurmdbd's configuration", want: `Stalled NameConflict: Secret NS/demo-accounting is controlled by ConfigMap NS/somebody, so Accounting NS/demo cannot use it; delete it or choose another name`,
			object: accounting(`{embeddedDatabase: {}}`), others: []client.Object{theirs(secret(`{metadata: {name: demo-accounting}}`))}},

		{name: "slurmrestd of a Controller that does not exist", want: `Ready ReferenceNotFound: spec.controllerRef: Controller demo does not exist`,
			object: restAPI(`replicas: 1`)},
		{name: "slurmrestd of a Controller with a mistake", want: `Ready ControllerNotReady: spec.controllerRef: Controller demo has no configuration yet`,
			object: restAPI(`replicas: 1`), others: []client.Object{manifest.Parse[slinkyv1beta1.Controller](t, `{metadata: {name: demo}, spec: {extraConf: "ClusterName=x"}}`)}},
		{name: "slurmrestd of a Controller of another namespace", want: `Stalled ReferenceRefused: spec.controllerRef.namespace: namespace "b" of the reference to "a" is not "NS", the object's own: leave it out and refer to an object in "NS"`,
			object: parse[slinkyv1beta1.RestApi](t, `{spec: {controllerRef: {name: a, namespace: b}}}`)},
		{name: "a misspelt field of slurmrestd", want: `Stalled InvalidOverlay: spec.slurmrestd: unknown field "envs"`,
			object: restAPI(`slurmrestd: {envs: []}`), others: []client.Object{aController()}},

		{name: "a token for root", want: `Stalled PrivilegedUser: spec.username: a token for root can do everything in Slurm, and Secret jwt does not allow it. To allow it, the owner of the Secret sets annotation coxswain.dev/allow-privileged-tokens=true`,
			object: token(`{username: root, jwtKeyRef: {name: jwt, key: k}}`), others: []client.Object{secret(`{metadata: {name: jwt}, stringData: {k: x}}`)}},
		{name: "a token with a key that does not exist", want: `Ready KeyMissing: spec.jwtKeyRef: Secret nowhere does not exist; create it with the key k`,
			object: token(`{username: a, jwtKeyRef: {name: nowhere, key: k}}`)},
		{name: "a token with a key of another namespace", want: `Stalled ReferenceRefused: spec.jwtHs256KeyRef.namespace: namespace "b" of the reference to "a" is not "NS", the object's own: leave it out and refer to an object in "NS"`,
			object: token(`{username: a, jwtHs256KeyRef: {name: a, key: k, namespace: b}}`)},
		{name: "a token with an RSA key that is none", want: `Stalled InvalidSpec: spec.jwtKeyRef: key k of Secret rsa cannot be used: reading an RS256 key: it is not an RSA private key in PEM`,
			object: token(`{username: a, jwtKeyRef: {name: rsa, key: k}}`),
			others: []client.Object{secret(`{metadata: {name: rsa, annotations: {coxswain.dev/jwt-key-id: "1"}}, stringData: {k: x}}`)}},
		{name: "a token for a Secret of somebody else", want: `Stalled NameConflict: Secret NS/demo-jwt-a exists and was not made for Token NS/demo; delete it, or add the operator's labels to it to hand it over`,
			object: token(`{username: a, jwtKeyRef: {name: key, key: k}}`),
			others: []client.Object{secret(`{metadata: {name: key}, stringData: {k: x}}`), secret(`{metadata: {name: demo-jwt-a}, stringData: {SLURM_JWT: mine}}`)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Names of their own, so that no case waits for the end of another: demo becomes x7.
			name := fmt.Sprintf("x%d", i)
			rename := func(obj client.Object) client.Object {
				obj.SetName(strings.Replace(obj.GetName(), "demo", name, 1))
				if obj.GetName() == "" {
					obj.SetName(name)
				}
				obj.SetNamespace(o.Namespace)
				switch x := obj.(type) {
				case *slinkyv1beta1.NodeSet:
					x.Spec.ControllerRef.Name = strings.Replace(x.Spec.ControllerRef.Name, "demo", name, 1)
				case *slinkyv1beta1.LoginSet:
					x.Spec.ControllerRef.Name = strings.Replace(x.Spec.ControllerRef.Name, "demo", name, 1)
				case *slinkyv1beta1.RestApi:
					x.Spec.ControllerRef.Name = strings.Replace(x.Spec.ControllerRef.Name, "demo", name, 1)
				}
				return obj
			}
			all := append(tt.others, tt.object)
			for _, obj := range all {
				if err := o.User.Create(t.Context(), rename(obj)); err != nil {
					t.Fatal(err)
				}
			}
			defer func() {
				for _, obj := range all {
					if err := o.User.Delete(t.Context(), obj); err != nil {
						t.Error(err)
					}
				}
			}()
			told := ""
			apiserver.Eventually(t, func() error {
				if err := o.User.Get(t.Context(), client.ObjectKeyFromObject(tt.object), tt.object); err != nil {
					return err
				}
				kind := "Ready"
				if meta.IsStatusConditionTrue(tt.object.GetConditions(), "Stalled") {
					kind = "Stalled"
				}
				if c := meta.FindStatusCondition(tt.object.GetConditions(), kind); c != nil {
					told = fmt.Sprintf("%s %s: %s", c.Type, c.Reason, strings.ReplaceAll(strings.ReplaceAll(c.Message, name, "demo"), o.Namespace, "NS"))
				}
				if told != tt.want {
					return fmt.Errorf("the object says\n%s\nwant\n%s", told, tt.want)
				}
				return nil
			})
		})
	}
}
