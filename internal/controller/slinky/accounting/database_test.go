// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package accounting_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/controller/slinky/accounting"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// slurmdbdPod returns slurmdbd's pod with a sidecar that has run for so long.
func slurmdbdPod(age time.Duration, watcher, slurmdbd bool) *corev1.Pod {
	status := func(name string, ready bool) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Ready: ready, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-age))},
		}}
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "demo-accounting-0"}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{status("database", watcher)}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{status("slurmdbd", slurmdbd)}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	if watcher && slurmdbd {
		p.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	return p
}

func with(p *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
	change(p)
	return p
}

func TestReachable(t *testing.T) {
	const (
		own      = `{storageConfig: {host: db, port: 3307, username: dbd, passwordKeyRef: {name: a, key: b}}}`
		embedded = `{embeddedDatabase: {}}`
	)
	for _, tt := range []struct {
		name, spec string
		sight      accounting.Sight
		want       string
	}{
		{"an external slurmdbd knows alone", `{external: true, externalConfig: {host: a, port: 1}}`, accounting.Sight{}, "Unknown External"},
		{"without a password there is no connection", own,
			accounting.Sight{Problems: problem.List{problem.Waitingf("spec.storageConfig.passwordKeyRef", "KeyMissing", "Secret a does not exist")}}, "False PasswordMissing"},
		{"another Secret that is missing says nothing", own,
			accounting.Sight{Problems: problem.List{problem.Waitingf("spec.slurmKeyRef", "KeyMissing", "Secret a does not exist")}}, "Unknown DatabaseNotSeen"},
		{"no pod says nothing", own, accounting.Sight{}, "Unknown DatabaseNotSeen"},
		{"no pod is there while the embedded database starts", embedded, accounting.Sight{EmbeddedStarting: true}, "False DatabaseStarting"},
		{"a pod that ends says nothing", own,
			accounting.Sight{Pod: with(slurmdbdPod(time.Hour, true, true), func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now)) })}, "Unknown DatabaseNotSeen"},
		{"a pod whose containers are being made says nothing", own,
			accounting.Sight{Pod: with(slurmdbdPod(0, false, false), func(p *corev1.Pod) { p.Status.InitContainerStatuses = nil })}, "Unknown DatabaseNotSeen"},
		{"a slurmdbd that has just started says nothing", own, accounting.Sight{Pod: slurmdbdPod(19*time.Second, false, false)}, "Unknown DatabaseNotSeen"},
		{"a slurmdbd that has had its time has no database", own, accounting.Sight{Pod: slurmdbdPod(20*time.Second, false, false)}, "False DatabaseUnreachable"},
		{"a slurmdbd that serves has lost its database", own, accounting.Sight{Pod: slurmdbdPod(time.Hour, false, true)}, "False DatabaseUnreachable"},
		{"a slurmdbd that serves restarts its embedded database", embedded, accounting.Sight{Pod: slurmdbdPod(time.Hour, false, true), EmbeddedStarting: true}, "False DatabaseStarting"},
		{"a slurmdbd is connected", own, accounting.Sight{Pod: slurmdbdPod(time.Hour, true, true)}, "True DatabaseConnected"},
		{"a slurmdbd that converts its tables is connected and does not serve", own, accounting.Sight{Pod: slurmdbdPod(time.Hour, true, false)}, "True DatabaseConnected"},
		{"a connection counts before the embedded database is called ready", embedded, accounting.Sight{Pod: slurmdbdPod(time.Hour, true, true), EmbeddedStarting: true}, "True DatabaseConnected"},
		{"a silent node hides the connection", own,
			accounting.Sight{Pod: with(slurmdbdPod(time.Hour, true, true), func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse })}, "Unknown DatabaseNotSeen"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.sight.Accounting = manifest.Parse[slinkyv1beta1.Accounting](t, "metadata: {name: demo, namespace: ns1}\nspec: "+tt.spec)
			tt.sight.Now = now
			c := accounting.Reachable(tt.sight)
			if got := fmt.Sprintf("%s %s", c.Status, c.Reason); got != tt.want || c.Message == "" {
				t.Errorf("it says %s: %s; want %s", got, c.Message, tt.want)
			}
			if c.Reason == "DatabaseUnreachable" && !strings.Contains(c.Message, "database slurm_acct_db at db:3307 as user dbd") {
				t.Errorf("the message does not say which database: %s", c.Message)
			}
		})
	}
}

func TestAConditionThatMayChangeByTimeAloneIsLookedAtAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		age := time.Duration(rapid.IntRange(0, 30).Draw(t, "age")) * time.Second
		s := accounting.Sight{Now: now, Pod: slurmdbdPod(age, rapid.Bool().Draw(t, "watcher"), rapid.Bool().Draw(t, "slurmdbd"))}
		s.Accounting = &slinkyv1beta1.Accounting{Spec: slinkyv1beta1.AccountingSpec{StorageConfig: &slinkyv1beta1.StorageConfig{Host: "db"}}}
		later := s
		if later.Now = s.Again(); later.Now.IsZero() {
			later.Now = now.Add(time.Hour)
			if was, is := accounting.Reachable(s).Reason, accounting.Reachable(later).Reason; was != is {
				t.Fatalf("it is %s, will be %s, and nobody looks again", was, is)
			}
		} else if reason := accounting.Reachable(later).Reason; reason == slinkyv1beta1.ReasonDatabaseNotSeen {
			t.Fatalf("at %s it is still %s", later.Now, reason)
		}
	})
}
