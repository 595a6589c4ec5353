// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/operator"
)

// kills ends the operator in the middle of what it does, and starts another one, whenever something has been written, until
// nothing is written any more. It returns how often that was.
func kills(t *testing.T, o *operator.Operator) int {
	t.Helper()
	for n := range 100 {
		o.Writes.Reset()
		deadline, tick := time.After(2*time.Second), time.NewTicker(time.Millisecond)
		for len(o.Writes.All()) == 0 {
			select {
			case <-deadline:
				tick.Stop()
				return n
			case <-tick.C:
			}
		}
		tick.Stop()
		o.Restart()
	}
	t.Fatal("the operator finds no end")
	return 0
}

// runs lets whatever the operator has changed run, until all is ready: one thing is changed after another one is.
func runs(t *testing.T, o *operator.Operator) {
	t.Helper()
	apiserver.Eventually(t, func() error {
		o.RunWorkloads()
		o.RunWorkers()
		o.Settle()
		return errors.Join(
			ready[slinkyv1beta1.Accounting](o, "demo"), ready[slinkyv1beta1.Controller](o, "demo"), ready[slinkyv1beta1.RestApi](o, "demo"),
			ready[slinkyv1beta1.LoginSet](o, "demo-login"), ready[slinkyv1beta1.NodeSet](o, "demo-gpu"),
		)
	})
}

// ready returns why an object is not ready.
func ready[T any, P interface {
	*T
	client.Object
	GetConditions() []metav1.Condition
}](o *operator.Operator, name string) error {
	if obj := operator.Get[T, P](o, name); !meta.IsStatusConditionTrue(obj.GetConditions(), "Ready") {
		return fmt.Errorf("%T %s is not ready", obj, name)
	}
	return nil
}

// The fault suite kills the operator after each write of what it does with workers; here it is killed again and again while it does
// something with all other kinds.
func TestAnOperatorThatIsKilledAgainAndAgainComesToTheSameEnd(t *testing.T) {
	t.Parallel()
	reference := complete(t)
	reference.Settle()

	o := operator.Start(t)
	o.CreateCluster()
	operator.Create[slinkyv1beta1.Token](o, operator.AToken)
	t.Logf("killed %d times while a cluster was made", kills(t, o))
	o.RunCluster()
	kills(t, o)
	runs(t, o)
	operator.ExpectCondition[slinkyv1beta1.Token](o, "ci", "Ready", metav1.ConditionTrue, slinkyv1beta1.ReasonTokenIssued)
	if diff := cmp.Diff(reference.Children(), o.Children()); diff != "" {
		t.Errorf("it has made something else (-without kills +with):\n%s", diff)
	}
	generated := func() map[string]types.UID {
		return map[string]types.UID{
			"password": operator.Get[corev1.Secret](o, "demo-auth-database").UID, "host keys": operator.Get[corev1.Secret](o, "demo-login-ssh-host-keys").UID,
			"worker": operator.Get[corev1.Pod](o, "demo-gpu-0").UID,
		}
	}
	before := generated()

	operator.Change(o, "keys", func(s *corev1.Secret) { s.Data["slurm.key"] = []byte("another-slurm-key") })
	operator.Change(o, "jwt", func(s *corev1.Secret) { s.Data["jwt_hs256.key"] = []byte("another-jwt-key-of-sixteen-bytes") })
	t.Logf("killed %d times while the keys were replaced", kills(t, o))
	o.RunWorkloads()
	kills(t, o)
	runs(t, o)
	o.ExpectToken("ci-jwt-alice", operator.HS256(t, "another-jwt-key-of-sixteen-bytes"), "")
	if diff := cmp.Diff(before, generated()); diff != "" {
		t.Errorf("it has made anew what stays as it is:\n%s", diff)
	}
	o.Settle()
	o.Writes.Reset()
	o.Restart()
	o.Settle()
	o.Writes.ExpectNone(t)

	for _, obj := range parts() {
		obj.SetNamespace(o.Namespace)
		if err := o.User.Delete(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("killed %d times while all was deleted", kills(t, o))
	o.AwaitCollected()
	if left, _ := o.Collect(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
