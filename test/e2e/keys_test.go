// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/test/walk"
)

const (
	keyHash  = "slinky.slurm.net/slurm-key-hash"
	jwtHash  = "slinky.slurm.net/jwt-key-hash"
	hostHash = "slinky.slurm.net/ssh-host-keys-hash"
)

// Every key of a cluster is replaced by docs/administrators/keys.md, while a job runs that is not lost.
func TestKeys(t *testing.T) {
	needsTime(t)
	t.Parallel()
	s := newScene(t)
	s.components(t, "components.yaml")
	alice := s.enterLoginSet(t, "login", "alice")
	job, _ := alice.submitsBlocked(t, "--mem=1", "--output=/dev/null")
	node := alice.awaits(t, job, "RUNNING")[0].Nodes
	worker := s.pod(t, node)

	steps := s.keySets(t)
	for i, set := range steps {
		before := s.hashes(t)
		s.replaces(t, "slurm-auth-slurm", "slurm.jwks", set)
		if i == len(steps)-1 {
			// The other keys have no overlap, and may be replaced at any time.
			s.replaces(t, "slurm-auth-jwt", "jwt.key", randomKey())
			if err := s.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "login-ssh-host-keys"}}); err != nil {
				t.Fatal(err)
			}
			s.awaitRolled(t, before, keyHash, jwtHash, hostHash)
		} else {
			s.awaitRolled(t, before, keyHash)
		}
		s.awaitWorkersRead(t, i+1)
		alice = s.enterLoginSet(t, "login", "alice")
		eventually(t, soon, "the cluster to work with the keys of step "+strconv.Itoa(i+1), func(ctx context.Context) error {
			_, err := alice.Run(ctx, "srun --mem=1 --immediate=5 true && sacct --noheader --jobs="+strconv.Itoa(job))
			return err
		})
		if tasks := alice.awaits(t, job, "RUNNING"); tasks[0].Nodes != node {
			t.Errorf("the job runs on %s now, not on %s", tasks[0].Nodes, node)
		}
	}
	t.Run("tokens are signed with the new key", func(t *testing.T) { alice.usesToken(t, s, "ordinary-jwt-nobody", false) })
	alice.runs(t, fmt.Sprintf("touch released-%d", job)) // whoever submitted it was on a login pod of before
	alice.seesAccounted(t, job)
	if now := s.pod(t, node); now.UID != worker.UID || now.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the worker with the job was replaced, or restarted %d times", now.Status.ContainerStatuses[0].RestartCount)
	}
}

// keySets returns the contents of slurm.jwks, one after the other: the new key is published, then used, then alone.
func (s *scene) keySets(t *testing.T) [][]byte {
	t.Helper()
	type key map[string]string
	var secret corev1.Secret
	if err := s.Get(t.Context(), s.name("slurm-auth-slurm"), &secret); err != nil {
		t.Fatal(err)
	}
	var now struct{ Keys []key }
	if err := json.Unmarshal(secret.Data["slurm.jwks"], &now); err != nil || len(now.Keys) != 1 {
		t.Fatalf("the generated set has %d keys (%v)", len(now.Keys), err)
	}
	unused := key{"alg": "HS256", "kty": "oct", "kid": now.Keys[0]["kid"], "k": now.Keys[0]["k"]}
	fresh := key{"alg": "HS256", "kty": "oct", "kid": "new", "k": base64.StdEncoding.EncodeToString(randomKey())}
	used := key{"alg": "HS256", "kty": "oct", "kid": "new", "k": fresh["k"], "use": "default"}
	var out [][]byte
	for _, keys := range [][]key{{now.Keys[0], fresh}, {unused, used}, {used}} {
		text, err := json.Marshal(map[string]any{"keys": keys})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, text)
	}
	return out
}

func randomKey() []byte {
	key := make([]byte, 1024)
	_, _ = rand.Read(key) // it never fails
	return key
}

// replaces puts another content into a Secret.
func (s *scene) replaces(t *testing.T, name, key string, content []byte) {
	t.Helper()
	var secret corev1.Secret
	if err := s.Get(t.Context(), s.name(name), &secret); err != nil {
		t.Fatal(err)
	}
	before := secret.DeepCopy()
	secret.Data[key] = content
	if err := s.Patch(t.Context(), &secret, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// hashes returns the digests of keys on the pods of the control plane and on login pods, by pod's component and annotation.
func (s *scene) hashes(t *testing.T) map[string]string {
	t.Helper()
	var out map[string]string
	eventually(t, soon, "the control plane and the login pods to be ready", func(ctx context.Context) (err error) {
		out, err = s.readHashes(ctx)
		return err
	})
	return out
}

// readHashes fails while a pod is on its way out or not ready, and while pods of one component differ.
func (s *scene) readHashes(ctx context.Context) (map[string]string, error) {
	var pods corev1.PodList
	if err := s.List(ctx, &pods, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, p := range pods.Items {
		component := p.Labels["app.kubernetes.io/component"]
		for _, annotation := range []string{keyHash, jwtHash, hostHash} {
			if hash, ok := p.Annotations[annotation]; ok && component != "worker" {
				if p.DeletionTimestamp != nil || !walk.IsReady(&p) {
					return nil, fmt.Errorf("pod %s is not ready, or on its way out", p.Name)
				}
				if other, ok := out[component+" "+annotation]; ok && other != hash {
					return nil, fmt.Errorf("there are pods of %s of before and of after", component)
				}
				out[component+" "+annotation] = hash
			}
		}
	}
	return out, nil
}

// awaitRolled waits until all these digests differ from those before, on pods that are ready.
func (s *scene) awaitRolled(t *testing.T, before map[string]string, annotations ...string) {
	t.Helper()
	eventually(t, patient, "pods with the new keys", func(ctx context.Context) error {
		now, err := s.readHashes(ctx)
		if err != nil {
			return err
		}
		for key, hash := range before {
			for _, annotation := range annotations {
				if strings.HasSuffix(key, annotation) && (now[key] == hash || now[key] == "") {
					return fmt.Errorf("%s is still that of before", key)
				}
			}
		}
		return nil
	})
}

// awaitWorkersRead waits until every slurmd has read its keys again so many times.
func (s *scene) awaitWorkersRead(t *testing.T, times int) {
	t.Helper()
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods, client.InNamespace(s.namespace), client.MatchingLabels{"app.kubernetes.io/component": "worker"}); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		eventually(t, patient, p.Name+" to read its keys again", func(ctx context.Context) error {
			log, err := s.Clientset.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Container: "slurmd"}).Stream(ctx)
			if err != nil {
				return err
			}
			defer log.Close() //nolint:errcheck // it has been read
			found := 0
			for lines := bufio.NewScanner(log); lines.Scan(); {
				if strings.Contains(lines.Text(), "slurmd reads them again") {
					found++
				}
			}
			if found < times {
				return errors.New("it has done so " + strconv.Itoa(found) + " times")
			}
			return nil
		})
	}
}
