// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

func TestServiceNamesAreThoseThatUsersKnow(t *testing.T) {
	cluster := &nebiusv1.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	for got, want := range map[string]string{
		cluster.ControllerServiceName(): "c-controller-svc",
		cluster.AccountingServiceName(): "c-accounting-svc",
		cluster.RESTServiceName():       "c-rest-svc",
		cluster.LoginServiceName():      "c-login-svc",
		cluster.WorkerServiceName():     "c-worker-svc",
		cluster.NodeSetServiceName():    "c-nodeset-svc",
		cluster.LoginSetName():          "c-login",
		cluster.WorkerNodeSetName():     "c-worker",
		cluster.SSHDKeysSecretName():    "c-sshd-keys",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	cluster.Spec.Secrets.SSHDKeysName = "own"
	if got := cluster.SSHDKeysSecretName(); got != "own" {
		t.Errorf("got %s, want the user's Secret", got)
	}
}

func TestTheLongestClusterNameStillMakesServiceNames(t *testing.T) {
	cluster := &nebiusv1.SlurmCluster{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("a", 40)}}
	for _, name := range []string{
		cluster.ControllerServiceName(), cluster.AccountingServiceName(), cluster.RESTServiceName(),
		cluster.LoginServiceName(), cluster.WorkerServiceName(),
		cluster.NodeSetServiceName(), cluster.EmbeddedDBName(), cluster.MariaDBName(),
	} {
		for _, problem := range validation.IsDNS1035Label(name) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

func TestBlockSizeComesFromTheNewerField(t *testing.T) {
	spec := &nebiusv1.SlurmClusterSpec{SlurmConfig: nebiusv1.SlurmConfig{TopologyBlockSize: 18}}
	if got := spec.BlockSize(); got != 18 {
		t.Errorf("got %d, want the older field's 18", got)
	}
	spec.Topology.BlockSize = 4
	if got := spec.BlockSize(); got != 4 {
		t.Errorf("got %d, want the newer field's 4", got)
	}
}

func TestOnlyDownscalingMaintenanceScalesDown(t *testing.T) {
	for mode, want := range map[nebiusv1.MaintenanceMode]bool{
		"":                                   false,
		nebiusv1.MaintenanceNone:             false,
		nebiusv1.MaintenanceSkipPopulateJail: false,
		nebiusv1.MaintenanceDownscale:        true,
		nebiusv1.MaintenanceDownscaleAndDeletePopulateJail:    true,
		nebiusv1.MaintenanceDownscaleAndOverwritePopulateJail: true,
	} {
		if got := mode.Downscaled(); got != want {
			t.Errorf("%q: got %v, want %v", mode, got, want)
		}
	}
}
