// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
)

func TestMain(m *testing.M) { apiserver.Main(m) }

func TestAnAccountWithoutRightsIsToldWhatItLacks(t *testing.T) {
	s := apiserver.StartBare(t)
	stranger := rest.CopyConfig(s.Config)
	stranger.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:soperator:nc-rebooter"}
	c, err := client.New(stranger, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	err = look(t.Context(), c, "node-1")
	for _, want := range []string{"reading Node node-1: ", `cannot get resource "nodes"`, "name the ServiceAccount in rebooter.serviceAccounts of the operator's chart"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	if err := look(t.Context(), s.Client(t, scheme.Scheme), "nowhere"); err == nil || !strings.HasPrefix(err.Error(), "reading Node nowhere: ") {
		t.Errorf("of a node that is not there: %v", err)
	}
}

func TestTheProgramDrainsItsNode(t *testing.T) {
	s := apiserver.StartBare(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + s.Namespace}}
	user := s.Outsider(t, scheme.Scheme)
	if err := user.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: "SlurmNodeDrain", Status: corev1.ConditionTrue, Reason: "NodeNeedDrain"}}
	if err := user.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", s.Kubeconfig(t, ""))
	o, err := parse([]string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}, t.Output(), environment(map[string]string{"REBOOTER_NODE_NAME": node.Name}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	mgr, err := newManager(ctx, o, logr.Discard(), "boot", func() error { t.Error("it reboots"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	apiserver.Eventually(t, func() error {
		if err := user.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		if len(node.Status.Conditions) != 1 || node.Status.Conditions[0].Reason != "NodeDrained" || !node.Spec.Unschedulable {
			return fmt.Errorf("the node is not drained: %+v", node.Status.Conditions)
		}
		return nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
