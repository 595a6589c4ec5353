// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
)

// condition returns a condition that changed two hours ago.
func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: ago(2 * time.Hour)}
}

func ready() metav1.Condition {
	return condition("Ready", metav1.ConditionTrue, "Available", "everything matches the spec")
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "default"}
}

func ref(name string) slinkyv1beta1.ObjectReference { return slinkyv1beta1.ObjectReference{Name: name} }

// demo returns a SlurmCluster with 30 workers, some of which are out of service, and login pods that do not start.
func demo() []client.Object {
	cluster := &nebiusv1.SlurmCluster{ObjectMeta: named("demo")}
	cluster.Status.Phase = nebiusv1.PhaseNotAvailable
	cluster.Status.Conditions = []metav1.Condition{
		condition("Ready", metav1.ConditionFalse, "PodsNotReady", "login demo-login: 0 of 1 pods are ready"),
		condition("SpecEffective", metav1.ConditionFalse, "FieldsNotEffective", "without effect in this version: spec.slurmNodes.exporter"),
	}
	owned := named("demo")
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "slurm.nebius.ai/v1", Kind: "SlurmCluster", Name: "demo", UID: "u"}}

	controller := &slinkyv1beta1.Controller{ObjectMeta: owned}
	accounting := ref("demo")
	controller.Spec.AccountingRef = &accounting
	controller.Status.SlurmVersion, controller.Status.ClusterName = "26.05.5", "default_demo"
	controller.Status.Conditions = []metav1.Condition{ready(), condition("SlurmReachable", metav1.ConditionTrue, "Answering", "slurmrestd answers")}

	login := &slinkyv1beta1.LoginSet{ObjectMeta: named("demo-login")}
	login.Spec.ControllerRef = ref("demo")
	login.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, "PodsNotReady",
		"login: 0 of 1 pods are ready; container login of demo-login-0 ended: sshd refuses key sshd_config of ConfigMap my-sshd:\n"+
			"/etc/ssh/sshd_config.own: line 3: Bad configuration option: NoSuchOption")}

	db := &slinkyv1beta1.Accounting{ObjectMeta: named("demo")}
	db.Status.Conditions = []metav1.Condition{ready(), condition("DatabaseReachable", metav1.ConditionTrue, "DatabaseConnected", "")}

	rest := &slinkyv1beta1.RestApi{ObjectMeta: named("demo")}
	rest.Spec.ControllerRef = ref("demo")
	rest.Status.ReadyReplicas = 1
	rest.Status.Conditions = []metav1.Condition{ready()}

	return []client.Object{cluster, controller, login, db, rest, demoWorkers()}
}

func demoWorkers() *slinkyv1beta1.NodeSet {
	workers := &slinkyv1beta1.NodeSet{ObjectMeta: named("demo-worker")}
	workers.Spec.ControllerRef = ref("demo")
	maintenance, held := ago(2*time.Hour), ago(20*time.Hour)
	workers.Status = slinkyv1beta1.NodeSetStatus{
		ObservedGeneration: 1, Desired: 30, Replicas: 30, UpdatedReplicas: 12, ReadyReplicas: 29, SlurmIdle: 8, SlurmAllocated: 20, SlurmDown: 1, SlurmDrain: 13,
		Conditions: []metav1.Condition{
			condition("Ready", metav1.ConditionFalse, "PodsNotReady", "29 of 30 workers are ready"),
			condition("DrainsByChecksPaused", metav1.ConditionTrue, "LimitReached",
				"checks have taken 3 of 30 workers out of service, and --max-nodes-drained-by-checks allows 3; 2 more wait to be taken out: worker-[4,7]"),
		},
		OutOfService: []slinkyv1beta1.NodeSetOutOfService{
			{Reason: "HeldBySomebody", Count: 1, Nodes: "worker-9", Since: &held},
			{Reason: "Maintenance", Count: 12, Nodes: "worker-[3,16-26]", Since: &maintenance},
		},
	}
	return workers
}

// lone returns a Controller without a SlurmCluster, of which the operator has not reported on the latest spec.
func lone() []client.Object {
	controller := &slinkyv1beta1.Controller{ObjectMeta: named("lone")}
	controller.Generation = 2
	controller.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Available", ObservedGeneration: 1, LastTransitionTime: ago(time.Hour)},
		condition("SlurmReachable", metav1.ConditionFalse, "NoRestApi", "no RestApi refers to the Controller"),
	}
	return []client.Object{controller}
}

// healthy returns a Controller in another namespace of which everything is ready.
func healthy() []client.Object {
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "good", Namespace: "other"}}
	controller.Status.Conditions = []metav1.Condition{ready()}
	workers := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Name: "good-cpu", Namespace: "other"}}
	workers.Spec.ControllerRef = ref("good")
	workers.Status = slinkyv1beta1.NodeSetStatus{ObservedGeneration: 1, Desired: 2, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, SlurmIdle: 2, Conditions: []metav1.Condition{ready()}}
	return []client.Object{controller, workers}
}
