// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

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
	"github.com/coxswain-hpc/coxswain/internal/controller/component"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// mistake is something that a user wrote or forgot, and how the object tells him. What the CRDs refuse is in
// api/slinky/v1beta1, what the webhook refuses before it comes here in internal/webhook.
type mistake struct {
	name string
	// object is called demo unless it says otherwise.
	object component.Object
	// others are what there is beside it.
	others []client.Object
	// want is "Stalled reason: message" where somebody has to change something, and "Ready reason: message" of a Ready that
	// is False where it heals by itself.
	want string
}

func parse[T any, P interface {
	*T
	component.Object
}](t *testing.T, text string) component.Object {
	t.Helper()
	var obj P = manifest.Parse[T](t, text)
	return obj
}

func TestMistakesAreToldByConditions(t *testing.T) {
	t.Parallel()
	secret := func(text string) client.Object { return manifest.Parse[corev1.Secret](t, text) }
	files := func(text string) client.Object { return manifest.Parse[corev1.ConfigMap](t, text) }
	controller := func(spec string) component.Object {
		return parse[slinkyv1beta1.Controller](t, `{spec: `+spec+`}`)
	}
	nodeSet := func(spec string) component.Object {
		return parse[slinkyv1beta1.NodeSet](t, `{spec: {controllerRef: {name: demo}, `+spec+`}}`)
	}
	loginSet := func(spec string) component.Object {
		return parse[slinkyv1beta1.LoginSet](t, `{spec: {controllerRef: {name: demo}, `+spec+`}}`)
	}
	accounting := func(spec string) component.Object {
		return parse[slinkyv1beta1.Accounting](t, `{spec: `+spec+`}`)
	}
	restAPI := func(spec string) component.Object {
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
		{name: "a misspelt field of a container", want: `Stalled InvalidOverlay: spec.slurmctld: unknown field "imag"`,
			object: controller(`{slurmctld: {imag: a}}`)},
		{name: "a misspelt field of a pod", want: `Stalled InvalidOverlay: spec.template.spec: unknown field "tolerations[0].kee"`,
			object: controller(`{template: {spec: {tolerations: [{kee: a}]}}}`)},
		{name: "a value that no container can have", want: `Stalled InvalidSpec: the API server refuses StatefulSet NS/demo-controller, correct what it names: StatefulSet.apps "demo-controller" is invalid: spec.template.spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"`,
			object: controller(`{slurmctld: {imagePullPolicy: Sometimes}}`)},
		{name: "external IPs", want: `Stalled InvalidOverlay: spec.service.spec.externalIPs: external IPs are not taken over; use a LoadBalancer or a NodePort`,
			object: controller(`{service: {spec: {externalIPs: [192.0.2.1]}}}`)},
		{name: "a Service of a type that does not exist", want: `Stalled InvalidSpec: the API server refuses Service NS/demo-controller, correct what it names: Service "demo-controller" is invalid: spec.type: Unsupported value: "Balancer": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`,
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
		{name: "an Accounting that does not exist", want: `Ready ReferenceNotFound: spec.accountingRef: Accounting nowhere does not exist; create it or remove the reference`,
			object: controller(`{accountingRef: {name: nowhere}}`)},
		{name: "an Accounting with another key", want: `Stalled KeyMismatch: spec.slurmKeyRef: the key slurm.key in Secret demo-auth-slurm is not that of Accounting foreign, slurm.key in Secret foreign-auth-slurm; slurmctld and slurmdbd need the same`,
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
		{name: "a prefix that Kubernetes takes for no host name", want: `Stalled InvalidSpec: the API server refuses Pod NS/demo-0, correct what it names: Pod "demo-0" is invalid: spec.hostname: Invalid value: "GPU-0": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			object: nodeSet(`template: {spec: {hostname: GPU-}}`), others: []client.Object{aController()}},
		{name: "a misspelt field of slurmd", want: `Stalled InvalidOverlay: spec.slurmd: unknown field "resources.limit"`,
			object: nodeSet(`slurmd: {resources: {limit: {}}}`), others: []client.Object{aController()}},
		{name: "a volume that does not exist in the pod", want: `Stalled InvalidSpec: the API server refuses Pod NS/demo-0, correct what it names: Pod "demo-0" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "nowhere"`,
			object: nodeSet(`slurmd: {volumeMounts: [{name: nowhere, mountPath: /a}]}`), others: []client.Object{aController()}},
		{name: "a partition option that is none", want: `Stalled InvalidSpec: spec.partition.config: "Default": this is not Key=Value`,
			object: nodeSet(`partition: {enabled: true, config: "Default"}`), others: []client.Object{aController()}},
		{name: "a pod of somebody else under our name", want: `Stalled NameConflict: Pod NS/demo-0 exists and was not made for NodeSet NS/demo; delete it, or give it the labels of ours to hand it over`,
			object: nodeSet(`replicas: 1`), others: []client.Object{aController(),
				manifest.Parse[corev1.Pod](t, `{metadata: {name: demo-0}, spec: {containers: [{name: a, image: a}]}}`)}},

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
		{name: "a misspelt field of slurmrestd", want: `Stalled InvalidOverlay: spec.slurmrestd: unknown field "envs"`,
			object: restAPI(`slurmrestd: {envs: []}`), others: []client.Object{aController()}},
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
