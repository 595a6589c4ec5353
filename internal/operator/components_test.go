// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

const (
	aController = `{metadata: {name: demo}, spec: {slurmKeyRef: {name: keys, key: slurm.key}, jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key}, accountingRef: {name: demo}}}`
	anAccount   = `{metadata: {name: demo}, spec: {slurmKeyRef: {name: keys, key: slurm.key}, jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key}, embeddedDatabase: {}}}`
	aRestAPI    = `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`
	aLoginSet   = `{metadata: {name: demo-login}, spec: {controllerRef: {name: demo}, users: [{name: alice, uid: 1000}]}}`
	aNodeSet    = `{metadata: {name: demo-gpu}, spec: {controllerRef: {name: demo}, replicas: 2, template: {spec: {hostname: gpu-}}, extraConf: "Gres=gpu:8 Weight=10",
		partition: {enabled: true, config: "Default=YES State=UP"}, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}}}`
	keys = `{metadata: {name: keys}, stringData: {slurm.key: the-slurm-key}}`
	jwt  = `{metadata: {name: jwt}, stringData: {jwt_hs256.key: the-jwt-key-of-at-least-sixteen-bytes}}`
)

// cluster creates the objects of contract slinky.md §15.1, with accounting and login nodes beside, and lets them run.
func cluster(t *testing.T) *operator.Operator {
	t.Helper()
	o := operator.Start(t)
	create(o)
	rise(t, o)
	allReady(o)
	return o
}

// create makes the objects of a cluster called demo with two workers, and the keys that it needs.
func create(o *operator.Operator) {
	operator.Create[corev1.Secret](o, keys)
	operator.Create[corev1.Secret](o, jwt)
	operator.Create[slinkyv1beta1.Accounting](o, anAccount)
	operator.Create[slinkyv1beta1.Controller](o, aController)
	operator.Create[slinkyv1beta1.RestApi](o, aRestAPI)
	operator.Create[slinkyv1beta1.LoginSet](o, aLoginSet)
	operator.Create[slinkyv1beta1.NodeSet](o, aNodeSet)
}

// rise waits until a cluster called demo with two workers is made, and lets it run.
func rise(t *testing.T, o *operator.Operator) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if n := len(o.Workers()); n != 2 {
			return fmt.Errorf("there are %d workers", n)
		}
		for _, name := range []string{"demo-controller", "demo-accounting", "demo-database"} {
			if operator.Get[appsv1.StatefulSet](o, name) == nil {
				return fmt.Errorf("there is no StatefulSet %s", name)
			}
		}
		for _, name := range []string{"demo-restapi", "demo-login"} {
			if operator.Get[appsv1.Deployment](o, name) == nil {
				return fmt.Errorf("there is no Deployment %s", name)
			}
		}
		return nil
	})
	o.RunWorkloads()
	o.RunWorkers()
}

func allReady(o *operator.Operator) {
	operator.ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Ready", metav1.ConditionTrue, "Available")
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionTrue, "Available")
	operator.ExpectCondition[slinkyv1beta1.RestApi](o, "demo", "Ready", metav1.ConditionTrue, "Available")
	operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionTrue, "Available")
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Ready", metav1.ConditionTrue, "Available")
}

// ours are the objects that the operator has made.
func ours(t *testing.T, o *operator.Operator) []client.Object {
	t.Helper()
	return slices.DeleteFunc(objectsOf(t, o,
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{},
		&appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{},
	), func(obj client.Object) bool { return obj.GetLabels()["app.kubernetes.io/managed-by"] != "coxswain" })
}

// children lists what the operator has made, as "kind name", with the labels and the owners.
func children(t *testing.T, o *operator.Operator) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, obj := range ours(t, o) {
		var owners []string
		for _, r := range obj.GetOwnerReferences() {
			controls := ""
			if r.Controller != nil && *r.Controller {
				controls = "*"
			}
			owners = append(owners, r.Kind+"/"+r.Name+controls)
		}
		slices.Sort(owners)
		l := obj.GetLabels()
		kind := strings.TrimPrefix(fmt.Sprintf("%T", obj), "*v1.")
		out[kind+" "+obj.GetName()] = l["app.kubernetes.io/name"] + " " + l["app.kubernetes.io/instance"] + " " + l["app.kubernetes.io/component"] + " of " + strings.Join(owners, ",")
	}
	return out
}

func TestEveryObjectOfTheContractIsMade(t *testing.T) {
	t.Parallel()
	o := cluster(t)
	const (
		controller = "slurmctld demo controller of Controller/demo*"
		accounting = "slurmdbd demo accounting of Accounting/demo*"
		database   = "mariadb demo database of Accounting/demo*"
		restapi    = "slurmrestd demo restapi of RestApi/demo*"
		login      = "login demo-login login of LoginSet/demo-login*"
		worker     = "slurmd demo-gpu worker of NodeSet/demo-gpu*"
		shared     = "slurmd  worker of NodeSet/demo-gpu"
	)
	want := map[string]string{
		"ConfigMap demo-config": controller, "Service demo-controller": controller, "StatefulSet demo-controller": controller,
		"Secret demo-accounting": accounting, "Service demo-accounting": accounting, "StatefulSet demo-accounting": accounting,
		"Service demo-database": database, "StatefulSet demo-database": database, "Secret demo-auth-database": "   of Accounting/demo",
		"Service demo-restapi": restapi, "Deployment demo-restapi": restapi, "NetworkPolicy demo-restapi": restapi,
		"ConfigMap demo-login-ssh-config": login, "ConfigMap demo-login-users": login, "Secret demo-login-ssh-host-keys": "   of LoginSet/demo-login",
		"Service demo-login": login, "Deployment demo-login": login,
		"Pod demo-gpu-0": worker, "Pod demo-gpu-1": worker,
		"Service slurm-workers-demo": shared, "PodDisruptionBudget slurm-workers-pdb-demo": shared,
	}
	if diff := cmp.Diff(want, children(t, o)); diff != "" {
		t.Error(diff)
	}
	apiserver.Eventually(t, func() error { // Slurm's word comes after the pods'
		n := operator.Get[slinkyv1beta1.NodeSet](o, "demo-gpu")
		if got, want := n.Status.Selector, "app.kubernetes.io/instance=demo-gpu,app.kubernetes.io/name=slurmd"; got != want {
			return fmt.Errorf("status.selector is %s, want %s", got, want)
		}
		if n.Status.SlurmIdle != 2 || n.Status.Replicas != 2 || n.Status.UpdatedReplicas != 2 {
			return fmt.Errorf("status %+v", n.Status)
		}
		return nil
	})
}

func TestAtRestNothingIsWritten(t *testing.T) {
	t.Parallel()
	o := cluster(t)
	o.Settle()
	t.Logf("made and running after %d writes, %d of them to status", len(o.Writes.All()), len(o.Writes.Of("status")))
	objects := []client.Object{
		operator.Get[slinkyv1beta1.Controller](o, "demo"), operator.Get[slinkyv1beta1.Accounting](o, "demo"), operator.Get[slinkyv1beta1.RestApi](o, "demo"),
		operator.Get[slinkyv1beta1.LoginSet](o, "demo-login"), operator.Get[slinkyv1beta1.NodeSet](o, "demo-gpu"),
		operator.Get[corev1.Secret](o, "keys"), operator.Get[corev1.Secret](o, "demo-auth-database"), operator.Get[corev1.ConfigMap](o, "demo-config"),
		operator.Get[appsv1.StatefulSet](o, "demo-controller"), operator.Get[corev1.Service](o, "slurm-workers-demo"), operator.Get[corev1.Pod](o, "demo-gpu-0"),
	}

	o.Writes.Reset()
	operator.Create[corev1.Secret](o, `{metadata: {name: unrelated}, stringData: {a: b}}`)
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: unrelated}, data: {a: b}}`)
	for _, obj := range objects {
		patch := client.MergeFrom(obj.DeepCopyObject().(client.Object))
		labels := maps.Clone(obj.GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		// It is somebody else's label on an object of ours, or on a user's; the components' own labels go to their children.
		if _, custom := obj.(interface{ GetConditions() []metav1.Condition }); !custom {
			labels["touched"] = "yes"
		} else {
			obj.SetAnnotations(map[string]string{"kubectl.kubernetes.io/touched": "yes"})
		}
		obj.SetLabels(labels)
		if err := o.User.Patch(t.Context(), obj, patch); err != nil {
			t.Fatal(err)
		}
	}
	o.Settle()
	o.Writes.ExpectNone(t)

	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)
}

func TestWhatIsMissingIsNamedAndHeals(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.NodeSet](o, aNodeSet)
	operator.Create[slinkyv1beta1.RestApi](o, aRestAPI)
	operator.Create[slinkyv1beta1.LoginSet](o, aLoginSet)
	for _, message := range []string{
		operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Ready", metav1.ConditionFalse, "ReferenceNotFound"),
		operator.ExpectCondition[slinkyv1beta1.RestApi](o, "demo", "Ready", metav1.ConditionFalse, "ReferenceNotFound"),
		operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionFalse, "ReferenceNotFound"),
	} {
		if !strings.HasPrefix(message, "spec.controllerRef: Controller demo does not exist") {
			t.Error(message)
		}
	}
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Stalled", metav1.ConditionFalse, "Reconciled")

	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {slurmKeyRef: {name: keys, key: slurm.key}, jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key},
		jwksKeyRef: {name: jwks, key: keys.json}, accountingRef: {name: demo}, configFileRefs: [{name: files}]}}`)
	ready := func() string {
		return operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionFalse, "KeyMissing")
	}
	if got, want := ready(), "spec.slurmKeyRef: Secret keys does not exist; create it with the key slurm.key"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	operator.Create[corev1.Secret](o, `{metadata: {name: keys}, stringData: {other.key: x}}`)
	expectMessage(t, ready, "spec.slurmKeyRef: Secret keys has no key slurm.key, or an empty one")
	operator.Change(o, "keys", func(s *corev1.Secret) { s.Data["slurm.key"] = []byte("the-slurm-key") })
	expectMessage(t, ready, "spec.jwtHs256KeyRef: Secret jwt does not exist; create it with the key jwt_hs256.key")
	operator.Create[corev1.Secret](o, jwt)
	expectMessage(t, ready, "spec.jwksKeyRef: ConfigMap jwks does not exist; create it or remove the reference")
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: jwks}, data: {keys.json: "{}"}}`)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionTrue, "KeysFound")

	notReady := func() string {
		return operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionFalse, "ReferenceNotFound")
	}
	expectMessage(t, notReady, "spec.accountingRef: Accounting demo does not exist; create it or remove the reference; "+
		"spec.configFileRefs[0]: ConfigMap files does not exist; create it or remove the reference")
	if operator.Get[corev1.ConfigMap](o, "demo-config") != nil {
		t.Error("a configuration is written although half of it is missing")
	}
	operator.Create[corev1.ConfigMap](o, `{metadata: {name: files}, data: {plugstack.conf: "#"}}`)
	operator.Create[slinkyv1beta1.Accounting](o, anAccount)
	apiserver.Eventually(t, func() error {
		if operator.Get[appsv1.StatefulSet](o, "demo-controller") == nil || len(o.Workers()) != 2 || operator.Get[appsv1.Deployment](o, "demo-login") == nil ||
			operator.Get[appsv1.Deployment](o, "demo-restapi") == nil || operator.Get[appsv1.StatefulSet](o, "demo-accounting") == nil {
			return fmt.Errorf("not everything is there")
		}
		return nil
	})
	o.RunWorkloads()
	o.RunWorkers()
	allReady(o)

	digest := operator.Get[slinkyv1beta1.Controller](o, "demo").Status.ConfigDigest
	operator.Change(o, "files", func(cm *corev1.ConfigMap) { cm.Data["plugstack.conf"] = "# other" })
	apiserver.Eventually(t, func() error {
		if now := operator.Get[slinkyv1beta1.Controller](o, "demo").Status.ConfigDigest; now == digest {
			return fmt.Errorf("a changed file of the user's is not noticed")
		}
		return nil
	})
}

// expectMessage waits for the message of a condition.
func expectMessage(t *testing.T, read func() string, want string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		if got := read(); got != want {
			return fmt.Errorf("the message is %q, want %q", got, want)
		}
		return nil
	})
}

func TestMistakesStallAndAreHealedByReverting(t *testing.T) {
	t.Parallel()
	o := cluster(t)
	o.Settle()
	before := operator.Get[corev1.ConfigMap](o, "demo-config").Data
	stateful := operator.Get[appsv1.StatefulSet](o, "demo-controller").ResourceVersion
	o.Writes.Reset()

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "MaxNodeCount=7\nClusterName=mine" })
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.ExtraConf, n.Spec.Replicas = "Gres=gpu:8 Weight=1 Weight=2", new(int32(5))
	})
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) {
		l.Spec.Users = append(l.Spec.Users, slinkyv1beta1.User{Name: "bob", UID: 1000})
	})
	message := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	if want := "spec.extraConf: line 2: ClusterName: it is set by the operator"; !strings.HasPrefix(message, want) {
		t.Errorf("%q, want %q…", message, want)
	}
	operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	operator.ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionFalse, "InvalidSpec")
	o.Settle()
	for _, w := range o.Writes.All() {
		if !strings.HasSuffix(w.Path, "/status") {
			t.Errorf("something is applied in spite of mistakes: %v", w)
		}
	}
	if diff := cmp.Diff(before, operator.Get[corev1.ConfigMap](o, "demo-config").Data); diff != "" {
		t.Error(diff)
	}
	if len(o.Workers()) != 2 {
		t.Errorf("there are %d workers", len(o.Workers()))
	}
	expectEvent(t, o, "Controller", "Warning", "InvalidSpec", "ClusterName")

	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) { c.Spec.ExtraConf = "" })
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.ExtraConf, n.Spec.Replicas = "Gres=gpu:8 Weight=10", new(int32(2))
	})
	operator.Change(o, "demo-login", func(l *slinkyv1beta1.LoginSet) { l.Spec.Users = l.Spec.Users[:1] })
	allReady(o)
	if got := operator.Get[appsv1.StatefulSet](o, "demo-controller").ResourceVersion; got != stateful {
		t.Error("slurmctld's StatefulSet was written although nothing has changed in the end")
	}
}

// expectEvent waits for an event about an object of a kind.
func expectEvent(t *testing.T, o *operator.Operator, kind, severity, reason, text string) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		var list eventsv1.EventList
		if err := o.User.List(t.Context(), &list, client.InNamespace(o.Namespace)); err != nil {
			return err
		}
		var seen []string
		for _, e := range list.Items {
			if e.Regarding.Kind == kind && e.Type == severity && e.Reason == reason && strings.Contains(e.Note, text) {
				return nil
			}
			seen = append(seen, fmt.Sprintf("%s %s %s: %s", e.Regarding.Kind, e.Type, e.Reason, e.Note))
		}
		return fmt.Errorf("no event %s about a %s among\n%s", reason, kind, strings.Join(seen, "\n"))
	})
}

func TestWhatTheServerRefusesStallsToo(t *testing.T) {
	t.Parallel()
	o := cluster(t)
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) {
		n.Spec.Template.Spec.Raw = []byte(`{"hostname":"gpu-","restartPolicy":"Sometimes"}`)
		n.Spec.Replicas = new(int32(9))
	})
	message := operator.ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Stalled", metav1.ConditionTrue, "InvalidSpec")
	if !strings.Contains(message, "restartPolicy") {
		t.Error(message)
	}
	o.Settle()
	o.Writes.Reset()
	operator.Change(o, "demo-gpu", func(n *slinkyv1beta1.NodeSet) { n.Spec.Replicas = new(int32(8)) })
	o.Settle()
	// One for the new generation, and one for the new status.
	if refused := o.Writes.Of("pods"); len(refused) > 2 {
		t.Errorf("%d pods are asked for, although they are all alike: %v", len(refused), refused)
	}
}

func TestKeysOfControllerAndAccountingHaveToMatch(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: books}, spec: {embeddedDatabase: {}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {accountingRef: {name: books}}}`)
	want := "spec.slurmKeyRef: the key slurm.key in Secret demo-auth-slurm is not that of Accounting books, slurm.key in Secret books-auth-slurm; slurmctld and slurmdbd need the same"
	if got := operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionFalse, "KeyMismatch"); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Stalled", metav1.ConditionTrue, "KeyMismatch")
	if operator.Get[appsv1.StatefulSet](o, "demo-controller") != nil {
		t.Error("slurmctld is started with a key that slurmdbd does not know")
	}
	operator.Change(o, "demo", func(c *slinkyv1beta1.Controller) {
		c.Spec.SlurmKeyRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "books-auth-slurm"}, Key: "slurm.key"}
	})
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionTrue, "KeysGenerated")
}

func TestControllerAndAccountingOfOneNameShareGeneratedKeys(t *testing.T) {
	t.Parallel()
	o := operator.Start(t)
	operator.Create[slinkyv1beta1.Accounting](o, `{metadata: {name: demo}, spec: {embeddedDatabase: {}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {accountingRef: {name: demo}}}`)
	operator.ExpectCondition[slinkyv1beta1.Controller](o, "demo", "KeysPresent", metav1.ConditionTrue, "KeysGenerated")
	apiserver.Eventually(t, func() error {
		for _, name := range []string{"demo-auth-slurm", "demo-auth-jwt"} {
			s := operator.Get[corev1.Secret](o, name)
			if s == nil || len(s.OwnerReferences) != 2 {
				return fmt.Errorf("Secret %s is %+v", name, s)
			}
		}
		return nil
	})
}

func TestControllersRunWithoutEachOther(t *testing.T) {
	t.Parallel()
	o := operator.Start(t, "controller")
	operator.Create[slinkyv1beta1.NodeSet](o, `{metadata: {name: w}, spec: {controllerRef: {name: demo}, partition: {enabled: true}}}`)
	operator.Create[slinkyv1beta1.Controller](o, `{metadata: {name: demo}, spec: {}}`)
	apiserver.Eventually(t, func() error {
		if cm := operator.Get[corev1.ConfigMap](o, "demo-config"); cm == nil || !strings.Contains(cm.Data["slurm.conf"], "PartitionName=w Nodes=w") {
			return fmt.Errorf("%+v", cm)
		}
		return nil
	})
	if n := operator.Get[slinkyv1beta1.NodeSet](o, "w"); len(n.Status.Conditions) > 0 || len(o.Workers()) > 0 {
		t.Errorf("somebody cares for the NodeSet: %+v", n.Status)
	}
}
