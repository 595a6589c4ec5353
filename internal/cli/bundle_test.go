// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/testing/apiserver"
	"github.com/coxswain-hpc/coxswain/internal/testing/golden"
)

// unpack returns the files of a bundle by name.
func unpack(t testing.TB, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	zip, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for reader := tar.NewReader(zip); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if header.Mode != 0o600 || out[header.Name] != "" {
			t.Errorf("%s has mode %o, or is there twice", header.Name, header.Mode)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		out[name] = string(content)
	}
}

// Every planted secret has this in it, or its base64.
const planted = "PlantedSecret"

// password is the value of a Secret, which looks like nothing in particular.
const password = planted + "-in-a-Secret"

// plantedToken is a JSON web token.
var plantedToken = "eyJhbGciOiJIUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(`{"sun":"PlantedSecret","x":1}`)) + ".PlantedSecretPlantedSecret"

// plant puts secrets into a namespace, everywhere where users and programs leave them. copied is the value of a variable of a container.
func plant(t *testing.T, server *apiserver.Server, copied string) {
	t.Helper()
	kubelet := http.NewServeMux()
	kubelet.Handle("/exec/", answeringKubelet(t, 0, func(_, _ string, command []string) string {
		return strings.Join(command, " ") + "\nAccountingStoragePass = " + planted + "\nComment=" + plantedToken + "\n"
	}))
	kubelet.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(out http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(out, r.PathValue("container")+" previous="+r.URL.Query().Get("previous")+"\nconnecting with "+password+"\ntoken "+plantedToken+
			"\nmysql --password "+planted+"\n-----BEGIN RSA PRIVATE KEY-----\n"+planted+"\n-----END RSA PRIVATE KEY-----\n"+base64.StdEncoding.EncodeToString([]byte(password))+"\n")
	})
	slurmctld := daemonPod("demo-controller-0", "slurmctld", "demo", "logfile")
	slurmctld.Annotations = map[string]string{
		corev1.LastAppliedConfigAnnotation: `{"env":[{"name":"X","value":"` + planted + `"}]}`,
		"example.com/config":               `{"password":"` + planted + `"}`,
	}
	slurmctld.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DB_PASSWORD", Value: planted}, {Name: "INNOCENT", Value: plantedToken}, {Name: "COPY", Value: copied}}
	slurmctld.Spec.Containers[0].Args = []string{"--token", planted, "--db-password=" + planted}
	slurmctld.Spec.Containers[0].Command = []string{"sh", "-c", "exec slurmctld --api-key " + planted}
	slurmctld.Spec.Volumes = []corev1.Volume{{Name: "keys", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}}}}
	slurmctld.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "slurmctld", Image: "slurmctld:1", RestartCount: 1, State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{}}, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "StoragePass=" + planted}}}}
	runPod(t, server, kubelet, slurmctld)
	c := server.Client(t, newScheme(t))
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: server.Namespace} }
	controller := &slinkyv1beta1.Controller{ObjectMeta: meta("demo")}
	controller.Spec.ExtraConf = "AccountingStoragePass=" + planted
	event := &corev1.Event{ObjectMeta: meta("event"), Message: "refused: Authorization: Bearer " + planted, Reason: "Refused", Type: "Warning",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "demo-controller-0", Namespace: server.Namespace}, LastTimestamp: metav1.NewTime(now)}
	for _, err := range []error{
		c.Create(t.Context(), &corev1.Secret{ObjectMeta: meta("db"), StringData: map[string]string{"password": password, "username": "slurm"}}),
		c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta("config"), Data: map[string]string{
			"slurmdbd.conf": "StorageUser=slurm\nStoragePass=" + planted + "\n", "token": planted, "a.yaml": "url: mysql://slurm:" + planted + "@db/x\npassword: " + planted + "\n"}}),
		c.Create(t.Context(), controller),
		c.Create(t.Context(), event),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	controller.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse, "Refused", "slurmctld says: jwt="+plantedToken)}
	if err := c.Status().Update(t.Context(), controller); err != nil {
		t.Fatal(err)
	}
}

// withoutSecrets fails the test when a file has a planted secret, or an object is no YAML any more.
func withoutSecrets(t *testing.T, files map[string]string) {
	t.Helper()
	encoded := base64.StdEncoding.EncodeToString([]byte(planted))[:16]
	for name, content := range files {
		var object corev1.Pod
		if err := yaml.UnmarshalStrict([]byte(content), &object); strings.HasPrefix(name, "objects/pods/") && err != nil {
			t.Errorf("%s is no pod any more: %v\n%s", name, err, content)
		}
		for _, secret := range []string{planted, encoded, plantedToken[:30]} {
			if i := strings.Index(content, secret); i >= 0 {
				t.Errorf("%s has a secret: …%s", name, content[max(0, i-60):min(len(content), i+40)])
			}
		}
	}
}

func TestABundleHasNoSecrets(t *testing.T) {
	server := apiserver.Start(t)
	plant(t, server, password)
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, server.Config, server.Namespace)
	run(t.Context(), t, program(), kubeconfig, "support-bundle", "-f", path).check(t, 0)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive is %v, %v", info, err)
	}
	files := unpack(t, path)
	withoutSecrets(t, files)
	for name, want := range map[string]string{
		"objects/controllers.slinky.slurm.net/demo.yaml": "slurmctld says: jwt=[removed]",
		"objects/pods/demo-controller-0.yaml":            "secret:\n      defaultMode: 420\n      secretName: db",
		"objects/configmaps/config.yaml":                 "StorageUser=slurm\n    StoragePass=[removed]",
		"events.txt":                                     "2026-11-25T12:00:00Z  Warning  Refused  Pod/demo-controller-0  x1  refused: Authorization: [removed]",
		"logs/demo-controller-0/slurmctld.log":           "slurmctld previous=\nconnecting with [removed]\ntoken [removed]\nmysql --password [removed]\n[removed]\n[removed]\n",
		"logs/demo-controller-0/slurmctld.previous.log":  "slurmctld previous=true",
		"slurm/demo/scontrol-show-nodes.txt":             "scontrol show nodes\nAccountingStoragePass = [removed]\n",
		"slurm/demo/sdiag.txt":                           "sdiag\n",
		"slurm/demo/squeue-all-long.txt":                 "squeue --all --long\n",
		"secrets.txt":                                    "db  Opaque\n  password  25 bytes\n  username  5 bytes\n",
		"versions.txt":                                   "kubectl-slurm  1.2.3\nKubernetes  v1.",
		"errors.txt":                                     "",
	} {
		if got, ok := files[name]; !ok || !strings.Contains(got, want) {
			t.Errorf("%s has not %q, but %q", name, want, got)
		}
	}
	if files["errors.txt"] != "" {
		t.Errorf("errors.txt is %q", files["errors.txt"])
	}
	golden.Check(t, "bundle/help.txt", run(t.Context(), t, program(), "support-bundle", "--help").check(t, 0).golden("support-bundle", "--help"))
	again := run(t.Context(), t, program(), kubeconfig, "support-bundle", "-f", path).check(t, 1)
	if !strings.Contains(again.errors, "file exists") {
		t.Errorf("the errors are %q", again.errors)
	}
}

// A caller with few rights gets what there is, and reads what is missing. The values of Secrets are not known then.
func TestABundleOfWhoMayReadLittle(t *testing.T) {
	server := apiserver.Start(t)
	plant(t, server, "")
	directory := t.TempDir()
	t.Chdir(directory)
	config := as(t, server, "reader", rules("list :pods", "list :configmaps", "list :events", "list slinky.slurm.net:controllers")...)
	kubeconfig := "--kubeconfig=" + writeKubeconfig(t, config, server.Namespace)
	p := program()
	at := now
	p.Now = func() time.Time { at = at.Add(time.Second); return at } // every look at the clock takes a second
	got := run(t.Context(), t, p, kubeconfig, "support-bundle").check(t, 2)
	found, err := filepath.Glob("slurm-" + server.Namespace + "-20261125-1200*.tar.gz")
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	files := unpack(t, found[0])
	withoutSecrets(t, files)
	for _, want := range []string{
		`Secrets: secrets is forbidden: User "reader-` + server.Namespace + `" cannot list resource "secrets" in API group ""`,
		`statefulsets: statefulsets.apps is forbidden`,
		`logs/demo-controller-0/slurmctld: pods "demo-controller-0" is forbidden`,
		`slurm/demo/sdiag.txt: running sdiag in container slurmctld`,
		`cannot create resource "pods/exec"`,
	} {
		if !strings.Contains(files["errors.txt"], want) {
			t.Errorf("errors.txt has not %q: %s", want, files["errors.txt"])
		}
	}
	if files["objects/pods/demo-controller-0.yaml"] == "" || files["secrets.txt"] != "" {
		t.Errorf("the archive has %q", slices.Sorted(maps.Keys(files)))
	}
	if !strings.Contains(got.errors, "Reading pods\n") || !strings.Contains(got.errors, "things could not be read: see errors.txt") {
		t.Errorf("the errors are %q", got.errors)
	}
}
