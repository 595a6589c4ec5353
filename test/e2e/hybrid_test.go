// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ports of the daemons outside of Kubernetes: other ones than Slurm's own, so that a program that does not know them fails.
const (
	outsideSlurmctld = 16817
	outsideSlurmdbd  = 16819
	outsideMariaDB   = 13306
)

// slurmctld, slurmdbd and its database run on machines that are not Kubernetes'; login nodes, workers and the REST API are
// pods.
func TestHybridControl(t *testing.T) {
	needsTime(t)
	t.Parallel()
	s := newScene(t)
	o := newOutside(t, s, "outside", "slurmctld", "slurmdbd", "mariadb")
	keys := map[string]string{"slurm.key": newKey(t), "jwt.key": newKey(t)}
	o.controls(t, keys)

	s.createSecret(t, "keys", keys)
	m := s.manifest(t, "hybrid-control.yaml", "OUTSIDE", o.address)
	s.apply(t, m)
	s.awaitReady(t, m)
	alice := s.enterLoginSet(t, "login", "alice")
	hosts := strings.Fields(alice.runs(t, "srun --chdir=/tmp --nodes=2 hostname"))
	slices.Sort(hosts)
	if !slices.Equal(hosts, []string{"node-0", "node-1"}) {
		t.Errorf("srun --nodes=2 hostname printed %v", hosts)
	}
	job := alice.completes(t)
	alice.seesAccounted(t, job)

	t.Run("slurmrestd finds slurmctld and slurmdbd", func(t *testing.T) {
		token, err := o.asks(t.Context(), "scontrol", "token", "username=slurm", "lifespan=300")
		if err != nil {
			t.Fatal(err)
		}
		token = strings.TrimPrefix(token, "SLURM_JWT=")
		for path, want := range map[string]string{
			"/slurm/v0.0.42/nodes/":                     `"node-1"`,
			fmt.Sprintf("/slurmdb/v0.0.42/job/%d", job): `"COMPLETED"`,
		} {
			if answer := s.get(t, "rest-restapi", path, token); !strings.Contains(answer, want) {
				t.Errorf("GET %s says nothing of %s: %s", path, want, answer)
			}
		}
	})
	t.Run("nobody pretends to know about the database", func(t *testing.T) {
		accounting, err := m.Only("Accounting")
		if err != nil {
			t.Fatal(err)
		}
		s.awaitCondition(t, soon, accounting, "DatabaseReachable", metav1.ConditionUnknown)
	})
}

// controls runs slurmctld, slurmdbd and MariaDB outside of Kubernetes.
func (o *outside) controls(t *testing.T, keys map[string]string) {
	t.Helper()
	for name, key := range keys {
		o.writes(t, "etc/slurm/"+name, slurmUID, key)
	}
	o.writes(t, "etc/slurm/slurmdbd.conf", slurmUID, fmt.Sprintf(`DbdHost=%s
DbdPort=%d
SlurmUser=slurm
PidFile=/run/slurmdbd/slurmdbd.pid
AuthType=auth/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=%d
StorageUser=slurm
StoragePass=outside
StorageLoc=slurm_acct_db
`, o.name, outsideSlurmdbd, outsideMariaDB))
	o.writes(t, "etc/slurm/cgroup.conf", 0, "CgroupPlugin=disabled\n")
	o.writes(t, "etc/slurm/slurm.conf", 0, fmt.Sprintf(`ClusterName=outside
SlurmctldHost=%[1]s(%[2]s)
SlurmctldPort=%[3]d
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
SlurmUser=slurm
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldParameters=enable_configless
MaxNodeCount=64
ReturnToService=2
AuthType=auth/slurm
CredType=cred/slurm
AuthInfo=use_client_ids
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=%[2]s
AccountingStoragePort=%[4]d
JobAcctGatherType=jobacct_gather/linux
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
LaunchParameters=enable_nss_slurm
NodeSet=node Feature=node
PartitionName=main Nodes=node Default=YES
`, o.name, o.address, outsideSlurmctld, outsideSlurmdbd))
	for _, dir := range []string{"run/slurmctld", "run/slurmdbd", "var/spool/slurmctld", "var/log/slurm"} {
		o.makes(t, dir, slurmUID)
	}
	for _, dir := range []string{"run/mysqld", "var/lib/mysql"} {
		o.makes(t, dir, mariadbUID)
	}
	o.runs(t, mariadbUID, "env", "MARIADB_DATABASE=slurm_acct_db", "MARIADB_USER=slurm", "MARIADB_PASSWORD=outside",
		"mariadb-entrypoint", "--bind-address=127.0.0.1", "--port="+strconv.Itoa(outsideMariaDB),
		"--innodb-lock-wait-timeout=900", "--max-allowed-packet=64M", "--innodb-snapshot-isolation=OFF")
	o.runs(t, slurmUID, "slurmdbd", "-D")
	o.listens(t, outsideSlurmdbd)
	o.runs(t, slurmUID, "slurmctld", "-D")
	o.listens(t, outsideSlurmctld)
}

// listens waits until a port of this machine has a listener.
func (o *outside) listens(t *testing.T, port int) {
	t.Helper()
	address := net.JoinHostPort(o.address, strconv.Itoa(port))
	eventually(t, patient, "a daemon outside of Kubernetes to listen at "+address, func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// slurmd runs on a machine that is not Kubernetes', slurmctld and all else are pods. None of them needs privileges: the
// namespace refuses pods that are not restricted.
func TestHybridWorker(t *testing.T) {
	needsTime(t)
	t.Parallel()
	s := newScene(t)
	s.restrict(t)
	o := newOutside(t, s, "outside-0", "slurmd")
	m := s.manifest(t, "hybrid-worker.yaml")
	s.apply(t, m)
	s.awaitReady(t, m)
	s.everyPodIsRestricted(t)

	// Slurm knows a node by the address from which it registers, which a Service would translate; see docs/administrators/hybrid.md.
	slurmctld, slurmdbd := s.pod(t, "slurm-controller-0").Status.PodIP, s.clusterIP(t, "slurm-accounting")
	o.writes(t, "etc/hosts", 0, fmt.Sprintf("127.0.0.1 localhost\n%[1]s outside-0\n%[2]s slurm-controller.%[4]s\n%[3]s slurm-accounting.%[4]s\n",
		o.address, slurmctld, slurmdbd, s.namespace))
	for name, key := range s.secret(t, "slurm-auth-slurm") {
		o.writes(t, "etc/slurm/"+name, 0, string(key))
	}
	for _, dir := range []string{"run/slurm", "var/spool/slurmd", "var/log/slurm"} {
		o.makes(t, dir, 0)
	}
	o.runs(t, 0, "slurmd", "-D", "-Z", "-N", "outside-0", "--conf-server", slurmctld+":6817", "--conf", "Feature=outside")

	eventually(t, patient, "Slurm node outside-0 to be idle", func(ctx context.Context) error {
		out, err := o.asks(ctx, "sinfo", "--noheader", "--Node", "--format=%N %T")
		if err != nil || out != "outside-0 idle" {
			return fmt.Errorf("sinfo says %q: %w", out, err)
		}
		return nil
	})
	job, err := o.asks(t.Context(), "sbatch", "--parsable", "--wait", "--chdir=/tmp", "--output=/tmp/job", "--wrap=hostname")
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join(o.root, "tmp/job"))
	if err != nil || string(said) != "outside-0\n" {
		t.Errorf("the job said %q, %v", said, err)
	}
	eventually(t, soon, "the job to be in the database", func(ctx context.Context) error {
		out, err := o.asks(ctx, "sacct", "--noheader", "--allocations", "--parsable2", "--jobs="+job, "--format=State,NodeList")
		if err != nil || out != "COMPLETED|outside-0" {
			return fmt.Errorf("sacct says %q: %w", out, err)
		}
		return nil
	})
	accounting, err := m.Only("Accounting")
	if err != nil {
		t.Fatal(err)
	}
	s.backsUp(t)
	s.restores(t, accounting, func() {
		eventually(t, soon, "the job to be in the database again", func(ctx context.Context) error {
			out, err := o.asks(ctx, "sacct", "--noheader", "--allocations", "--parsable2", "--jobs="+job, "--format=State,NodeList")
			if err != nil || out != "COMPLETED|outside-0" {
				return fmt.Errorf("sacct says %q: %w", out, err)
			}
			return nil
		})
	})
	s.changesPassword(t, accounting)
}

// changesPassword changes the password of the embedded database: both daemons restart and agree on it.
func (s *scene) changesPassword(t *testing.T, accounting *unstructured.Unstructured) {
	t.Helper()
	mariadb, slurmdbd := s.pod(t, "slurm-database-0"), s.pod(t, "slurm-accounting-0")
	var secret corev1.Secret
	if err := s.Get(t.Context(), s.name("slurm-auth-database"), &secret); err != nil {
		t.Fatal(err)
	}
	patch := client.MergeFrom(secret.DeepCopy())
	secret.Data["password"] = []byte(newKey(t))
	if err := s.Patch(t.Context(), &secret, patch); err != nil {
		t.Fatal(err)
	}
	s.awaitPod(t, mariadb.Name, mariadb.UID)
	s.awaitPod(t, slurmdbd.Name, slurmdbd.UID)
	s.awaitCondition(t, soon, accounting, "DatabaseReachable", metav1.ConditionTrue)
}

// get asks slurmrestd behind a Service.
func (s *scene) get(t *testing.T, service, path, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+net.JoinHostPort(s.clusterIP(t, service), "6820")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-SLURM-USER-TOKEN", token)
	response, err := (&http.Client{Timeout: soon}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func (s *scene) clusterIP(t *testing.T, service string) string {
	t.Helper()
	var found corev1.Service
	if err := s.Get(t.Context(), s.name(service), &found); err != nil {
		t.Fatal(err)
	}
	return found.Spec.ClusterIP
}

func (s *scene) secret(t *testing.T, name string) map[string][]byte {
	t.Helper()
	var found corev1.Secret
	if err := s.Get(t.Context(), s.name(name), &found); err != nil {
		t.Fatal(err)
	}
	return found.Data
}

func (s *scene) createSecret(t *testing.T, name string, content map[string]string) {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, StringData: content}
	if err := s.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}
