// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/fake"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// complete returns a cluster with a Token.
func complete(t *testing.T) *operator.Operator {
	t.Helper()
	o := operator.StartCluster(t)
	operator.Create[slinkyv1beta1.Token](o, operator.AToken)
	operator.ExpectCondition[slinkyv1beta1.Token](o, "ci", "Ready", metav1.ConditionTrue, slinkyv1beta1.ReasonTokenIssued)
	return o
}

// parts returns what a user has made for a complete cluster, each of which can be the first or the last to be deleted.
func parts() map[string]client.Object {
	named := func(o client.Object, name string) client.Object {
		o.SetName(name)
		return o
	}
	return map[string]client.Object{
		"Accounting": named(&slinkyv1beta1.Accounting{}, "demo"),
		"Controller": named(&slinkyv1beta1.Controller{}, "demo"),
		"RestApi":    named(&slinkyv1beta1.RestApi{}, "demo"),
		"LoginSet":   named(&slinkyv1beta1.LoginSet{}, "demo-login"),
		"NodeSet":    named(&slinkyv1beta1.NodeSet{}, "demo-gpu"),
		"Token":      named(&slinkyv1beta1.Token{}, "ci"),
		"slurm key":  named(&corev1.Secret{}, "keys"),
		"JWT key":    named(&corev1.Secret{}, "jwt"),
	}
}

// awaitEnd waits until all of these objects are gone, and everything with them.
func awaitEnd(t *testing.T, o *operator.Operator, objects ...client.Object) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		left, _ := o.Collect()
		for _, obj := range objects {
			live, ok := obj.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatalf("%T is no object", obj)
			}
			err := o.User.Get(t.Context(), client.ObjectKeyFromObject(obj), live)
			if err == nil {
				return fmt.Errorf("%T %s is still there, with finalizers %v", obj, obj.GetName(), live.GetFinalizers())
			}
			if !apierrors.IsNotFound(err) {
				return err
			}
		}
		if len(objects) == len(parts()) && len(left) > 0 {
			return fmt.Errorf("left behind: %s", strings.Join(left, ", "))
		}
		return nil
	})
}

func TestAClusterIsDeletedInAnyOrder(t *testing.T) {
	t.Parallel()
	all := []string{"Accounting", "JWT key", "Controller", "RestApi", "slurm key", "Token", "LoginSet", "NodeSet"}
	for i := range all { // each is once the first and once the last, and before and after each other one
		order := append(slices.Clone(all[i:]), all[:i]...)
		t.Run(strings.Join(order, ", "), func(t *testing.T) {
			t.Parallel()
			o := complete(t)
			objects := parts()
			var deleted []client.Object
			for _, kind := range order {
				obj := objects[kind]
				obj.SetNamespace(o.Namespace)
				if err := o.User.Delete(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
				deleted = append(deleted, obj)
				awaitEnd(t, o, deleted...)
			}
			o.Settle()
			if errs := o.Errors(); len(errs) > 0 {
				t.Errorf("the operator complained:\n%s", strings.Join(errs, "\n"))
			}
		})
	}
}

func TestAClusterWithRunningJobsIsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	o := complete(t)
	o.RunJobs()
	var objects []client.Object
	for _, obj := range parts() {
		obj.SetNamespace(o.Namespace)
		if err := o.User.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, obj)
	}
	awaitEnd(t, o, objects...)
}

func TestANodeSetWithoutARestAPIIsDeletedAtOnce(t *testing.T) {
	t.Parallel()
	o := operator.StartCluster(t)
	o.RunJobs()
	operator.Delete[slinkyv1beta1.RestApi](o, "demo")
	set := parts()["NodeSet"]
	set.SetNamespace(o.Namespace)
	if err := o.User.Delete(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, o, set)
}

func TestANodeSetIsDeletedWhenItsJobsEnd(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 2, `partition: {enabled: true}`)
	job := o.Slurm.Submit(fake.Job{NodeList: []string{"w-1"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	operator.Delete[slinkyv1beta1.NodeSet](o, "w")
	o.ExpectWorkers("w-1")
	o.Settle()
	o.ExpectWorkers("w-1")
	if conf := operator.Get[corev1.ConfigMap](o, "demo-config").Data["slurm.conf"]; !strings.Contains(conf, "PartitionName=w ") {
		t.Errorf("the partition has left slurm.conf, with a job in it:\n%s", conf)
	}
	o.Slurm.Finish(job)
	o.ExpectWorkers()
	apiserver.Eventually(t, func() error {
		if set, err := operator.Find[slinkyv1beta1.NodeSet](o, "w"); !apierrors.IsNotFound(err) {
			return errors.Join(err, fmt.Errorf("the NodeSet is still there, with finalizers %v", set.Finalizers))
		}
		if conf := operator.Get[corev1.ConfigMap](o, "demo-config").Data["slurm.conf"]; strings.Contains(conf, "PartitionName=w ") {
			return errors.New("the partition is still in slurm.conf")
		}
		return nil
	})
}

func TestADeletedNodeSetWaitsForItsJobsNoLongerThanItsSpecSays(t *testing.T) {
	t.Parallel()
	o := operator.StartWorkers(t, 1, ``)
	o.Slurm.Submit(fake.Job{NodeList: []string{"w-0"}, CPUs: 1})
	o.ExpectStatus(func(s slinkyv1beta1.NodeSetStatus) bool { return s.SlurmAllocated == 1 })
	operator.Delete[slinkyv1beta1.NodeSet](o, "w")
	o.Settle()
	o.ExpectWorkers("w-0")
	operator.Change(o, "w", func(n *slinkyv1beta1.NodeSet) { n.Spec.DrainTimeout = &metav1.Duration{Duration: time.Second} })
	o.ExpectWorkers()
}
