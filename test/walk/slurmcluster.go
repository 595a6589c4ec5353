// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/test/login"
)

// Sample is the manifest config/samples/slurmcluster.yaml, put into a namespace and with a key for its first user.
type Sample struct {
	Manifest Manifest
	// Cluster is the SlurmCluster of the manifest.
	Cluster *unstructured.Unstructured
	// User is the name of the user who has the key.
	User string
}

// ReadSample reads the sample.
func ReadSample(r Repository, namespace string, key *login.Key) (*Sample, error) {
	m, err := ReadManifest(r.Path("config", "samples", "slurmcluster.yaml"))
	if err != nil {
		return nil, err
	}
	cluster, err := m.In(namespace).Only("SlurmCluster")
	if err != nil {
		return nil, err
	}
	path := []string{"spec", "slurmNodes", "login", "users"}
	users, _, err := unstructured.NestedSlice(cluster.Object, path...)
	if err != nil || len(users) == 0 {
		return nil, errors.Join(errors.New("the sample has no users"), err)
	}
	user, ok := users[0].(map[string]any)
	if !ok {
		return nil, errors.New("the sample's first user is no object")
	}
	user["sshAuthorizedKeys"] = []any{key.AuthorizedKey()}
	if err := unstructured.SetNestedSlice(cluster.Object, users, path...); err != nil {
		return nil, fmt.Errorf("giving the sample's user a key: %w", err)
	}
	name, _, _ := unstructured.NestedString(user, "name")
	return &Sample{Manifest: m, Cluster: cluster, User: name}, nil
}

// Name returns the name of the SlurmCluster.
func (s *Sample) Name() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Cluster.GetNamespace(), Name: s.Cluster.GetName()}
}

// Door is where users log in: the Service and the key by which its host is known.
type Door struct {
	Service types.NamespacedName
	HostKey string
}

// DoorOf returns the door of a SlurmCluster.
func DoorOf(ctx context.Context, k *Kubernetes, name types.NamespacedName) (*Door, error) {
	cluster := &nebiusv1.SlurmCluster{}
	cluster.Name = name.Name
	return NewDoor(ctx, k, types.NamespacedName{Namespace: name.Namespace, Name: cluster.LoginSetName()}, cluster.LoginServiceName())
}

// NewDoor returns the door of a LoginSet. Its host key is read from the Secret that the operator made.
func NewDoor(ctx context.Context, k *Kubernetes, loginSet types.NamespacedName, service string) (*Door, error) {
	l := &slinkyv1beta1.LoginSet{}
	if err := k.Get(ctx, loginSet, l); err != nil {
		return nil, fmt.Errorf("reading LoginSet %s: %w", loginSet, err)
	}
	var secret corev1.Secret
	if err := k.Get(ctx, types.NamespacedName{Namespace: l.Namespace, Name: l.SSHHostKeysName()}, &secret); err != nil {
		return nil, fmt.Errorf("reading the host keys of LoginSet %s: %w", loginSet, err)
	}
	hostKey := string(secret.Data["ssh_host_ed25519_key.pub"])
	if hostKey == "" {
		return nil, fmt.Errorf("the Secret %s has no ssh_host_ed25519_key.pub", secret.Name)
	}
	return &Door{Service: types.NamespacedName{Namespace: l.Namespace, Name: service}, HostKey: hostKey}, nil
}

// loginTimeout is the time within which a cluster that is available must let its users in.
const loginTimeout = 30 * time.Second

// LogIn logs a user in by ssh. The returned leave ends the session.
func LogIn(ctx context.Context, k *Kubernetes, d *Door, user string, key *login.Key) (session *login.Session, leave func(), err error) {
	// A Service needs a moment until it leads to a pod that has just become ready.
	err = Poll(ctx, loginTimeout, 500*time.Millisecond, "ssh to "+d.Service.String(), func(ctx context.Context) error {
		address, release, err := k.Reach(ctx, d.Service)
		if err != nil {
			return err
		}
		session, err = login.Dial(ctx, address, user, key, d.HostKey)
		if err != nil {
			release()
			return err
		}
		leave = func() { _ = session.Close(); release() }
		return nil
	})
	return session, leave, err
}
