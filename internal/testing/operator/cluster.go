// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	slurmtoken "github.com/coxswain-hpc/coxswain/internal/slurm/token"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
)

// What users make for a cluster called demo, and its keys. AToken is for its user alice.
const (
	AController  = `{metadata: {name: demo}, spec: {slurmKeyRef: {name: keys, key: slurm.key}, jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key}, accountingRef: {name: demo}}}`
	AnAccounting = `{metadata: {name: demo}, spec: {slurmKeyRef: {name: keys, key: slurm.key}, jwtHs256KeyRef: {name: jwt, key: jwt_hs256.key}, embeddedDatabase: {}}}`
	ARestAPI     = `{metadata: {name: demo}, spec: {controllerRef: {name: demo}}}`
	ALoginSet    = `{metadata: {name: demo-login}, spec: {controllerRef: {name: demo}, users: [{name: alice, uid: 1000}]}}`
	ANodeSet     = `{metadata: {name: demo-gpu}, spec: {controllerRef: {name: demo}, replicas: 2, template: {spec: {hostname: gpu-}}, extraConf: "Gres=gpu:8 Weight=10",
		partition: {enabled: true, config: "Default=YES State=UP"}, updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}}}`
	Keys   = `{metadata: {name: keys}, stringData: {slurm.key: the-slurm-key}}`
	JWT    = `{metadata: {name: jwt}, stringData: {jwt_hs256.key: the-jwt-key-of-at-least-sixteen-bytes}}`
	AToken = `{metadata: {name: ci}, spec: {jwtKeyRef: {name: jwt, key: jwt_hs256.key}, username: alice, lifetime: 1h}}`
)

// StartCluster creates the objects of docs/contributors/predecessors/slinky-objects.md#the-smallest-cluster, with accounting and login
// nodes beside, and lets them run.
func StartCluster(t testing.TB) *Operator {
	t.Helper()
	o := Start(t)
	o.CreateCluster()
	o.RunCluster()
	o.ExpectReady()
	return o
}

// CreateCluster makes the objects of a cluster called demo with two workers, and the keys that it needs.
func (o *Operator) CreateCluster() {
	o.t.Helper()
	Create[corev1.Secret](o, Keys)
	Create[corev1.Secret](o, JWT)
	Create[slinkyv1beta1.Accounting](o, AnAccounting)
	Create[slinkyv1beta1.Controller](o, AController)
	Create[slinkyv1beta1.RestApi](o, ARestAPI)
	Create[slinkyv1beta1.LoginSet](o, ALoginSet)
	Create[slinkyv1beta1.NodeSet](o, ANodeSet)
}

// RunCluster waits until a cluster called demo with two workers is made, and lets it run.
func (o *Operator) RunCluster() {
	o.t.Helper()
	apiserver.Eventually(o.t, func() error {
		if n := len(o.Workers()); n != 2 {
			return fmt.Errorf("there are %d workers", n)
		}
		for _, name := range []string{"demo-controller", "demo-accounting", "demo-database"} {
			if !Exists[appsv1.StatefulSet](o, name) {
				return fmt.Errorf("there is no StatefulSet %s", name)
			}
		}
		if !Exists[appsv1.Deployment](o, "demo-restapi") {
			return errors.New("there is no Deployment demo-restapi")
		}
		// The login pods of a SlurmCluster are those of a StatefulSet.
		if !Exists[appsv1.Deployment](o, "demo-login") && !Exists[appsv1.StatefulSet](o, "demo-login") {
			return errors.New("there is neither a Deployment nor a StatefulSet demo-login")
		}
		return nil
	})
	o.RunWorkloads()
	o.RunWorkers()
}

// ExpectReady waits until every component of the cluster is ready.
func (o *Operator) ExpectReady() {
	o.t.Helper()
	ExpectCondition[slinkyv1beta1.Accounting](o, "demo", "Ready", metav1.ConditionTrue, "Available")
	ExpectCondition[slinkyv1beta1.Controller](o, "demo", "Ready", metav1.ConditionTrue, "Available")
	ExpectCondition[slinkyv1beta1.RestApi](o, "demo", "Ready", metav1.ConditionTrue, "Available")
	ExpectCondition[slinkyv1beta1.LoginSet](o, "demo-login", "Ready", metav1.ConditionTrue, "Available")
	ExpectCondition[slinkyv1beta1.NodeSet](o, "demo-gpu", "Ready", metav1.ConditionTrue, "Available")
}

// Ours returns the objects that the operator has made.
func (o *Operator) Ours() []client.Object {
	o.t.Helper()
	return slices.DeleteFunc(o.ObjectsOf(
		&corev1.ConfigMapList{}, &corev1.SecretList{}, &corev1.ServiceList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{},
		&appsv1.StatefulSetList{}, &appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &discoveryv1.EndpointSliceList{},
	), func(obj client.Object) bool { return obj.GetLabels()["app.kubernetes.io/managed-by"] != "coxswain" })
}

// Children lists what the operator has made, as "kind name", with the labels and the owners.
func (o *Operator) Children() map[string]string {
	o.t.Helper()
	out := map[string]string{}
	for _, obj := range o.Ours() {
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

// RunJobs runs a job on every worker.
func (o *Operator) RunJobs() {
	o.t.Helper()
	for _, p := range o.Workers() {
		if o.Slurm.Submit(fake.Job{NodeList: []string{p.Spec.Hostname}, CPUs: 1}) == 0 {
			o.t.Fatalf("no job runs on %s", p.Spec.Hostname)
		}
	}
}

// ExpectToken waits until a Secret holds a token signed with the key which is not the one before, and returns it.
func (o *Operator) ExpectToken(secret string, key *slurmtoken.Key, before string) string {
	o.t.Helper()
	token := ""
	apiserver.Eventually(o.t, func() error {
		s, err := Find[corev1.Secret](o, secret)
		if err != nil {
			return err
		}
		if token = string(s.Data["SLURM_JWT"]); token == before {
			return errors.New("the token is still that from before")
		}
		_, err = key.Read(token)
		return err
	})
	return token
}

// HS256 returns a key for tokens, made of a secret.
func HS256(t testing.TB, secret string) *slurmtoken.Key {
	t.Helper()
	key, err := slurmtoken.NewHS256([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
