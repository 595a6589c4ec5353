// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube/foreignkind"
	"github.com/coxswain-hpc/coxswain/internal/render"
)

// The kinds of the mariadb-operator (https://github.com/mariadb-operator/mariadb-operator) and the names of their CRDs. Not
// every cluster has them.
var (
	MariaDBKind = schema.GroupVersionKind{Group: "k8s.mariadb.com", Version: "v1alpha1", Kind: "MariaDB"} //nolint:gochecknoglobals // a constant
	GrantKind   = schema.GroupVersionKind{Group: "k8s.mariadb.com", Version: "v1alpha1", Kind: "Grant"}   //nolint:gochecknoglobals // a constant
)

// The names of their CRDs.
const (
	MariaDBDefinition = "mariadbs.k8s.mariadb.com"
	GrantDefinition   = "grants.k8s.mariadb.com"
)

// MariaDBs are the databases of the mariadb-operator as a SlurmCluster has one.
func MariaDBs() foreignkind.Kind {
	return foreignkind.Kind{GroupVersionKind: MariaDBKind, Definition: MariaDBDefinition, Fields: []string{
		"spec.database", "spec.image", "spec.imagePullPolicy", "spec.metrics.enabled", "spec.myCnf",
		"spec.passwordSecretKeyRef.generate", "spec.passwordSecretKeyRef.key", "spec.passwordSecretKeyRef.name", "spec.port", "spec.replicas",
		"spec.rootEmptyPassword", "spec.rootPasswordSecretKeyRef.generate", "spec.rootPasswordSecretKeyRef.key", "spec.rootPasswordSecretKeyRef.name",
		"spec.service.type", "spec.storage", "spec.username",
	}}
}

// Grants are the rights in such a database as a SlurmCluster has them.
func Grants() foreignkind.Kind {
	return foreignkind.Kind{GroupVersionKind: GrantKind, Definition: GrantDefinition, Fields: []string{
		"spec.database", "spec.grantOption", "spec.host", "spec.mariaDbRef.name", "spec.mariaDbRef.waitForIt", "spec.privileges", "spec.table", "spec.username",
	}}
}

// What the predecessor's database is called (docs/contributors/predecessors/soperator-objects.md#the-database); a database that it made
// goes on being used. The Secrets are those of the whole namespace.
const (
	acctDatabase        = "slurm_acct_db"
	acctUser            = "slurm"
	mariaDBPassword     = "mariadb-password"
	mariaDBRootPassword = "mariadb-root"
	mariaDBPasswordKey  = "password"
)

const mariaDBPath = accountingPath + ".mariadbOperator"

// mariaDB composes a MariaDB object and the rights of Slurm's user in it, and returns how slurmdbd reaches it. It is nil where the
// cluster has no mariadb-operator. No other database stands in for it: the records would have to move later. With an operator whose kinds
// are not those that it had, the database that runs is left alone, and slurmdbd goes on using it.
func (c *composer) mariaDB(op *nebiusv1.MariaDBOperator) *slinkyv1beta1.StorageConfig {
	name := c.cluster.MariaDBName()
	if kinds := c.installed.MariaDB; !kinds.Usable() {
		c.out.NoDatabase = kinds.Why(MariaDBDefinition + " or " + GrantDefinition)
		c.ignore(true, mariaDBPath+" ("+c.out.NoDatabase+")")
		storage := c.mariaDBStorage(op, name)
		if !kinds.Installed || c.accounted == nil || c.accounted.Spec.StorageConfig == nil || c.accounted.Spec.StorageConfig.Host != storage.Host {
			return nil
		}
		return storage
	}
	spec := c.mariaDBSpec(op)
	c.placeMariaDB(op, spec)
	grant := map[string]any{
		"mariaDbRef": map[string]any{"name": name, "waitForIt": true},
		"privileges": []any{"ALL PRIVILEGES"}, "database": acctDatabase, "table": acctDatabase + ".*",
		"username": acctUser, "host": "%", "grantOption": true,
	}
	c.out.Components.MariaDB = c.mariaDBObject(MariaDBKind, name, spec)
	c.out.Components.Grant = c.mariaDBObject(GrantKind, name, grant)
	c.out.Add(c.out.Components.MariaDB, c.out.Components.Grant)
	for _, secret := range []string{mariaDBPassword, mariaDBRootPassword} {
		c.out.Ensure(op.ProtectedSecret, render.Secret{
			Name: secret, Key: mariaDBPasswordKey, Content: render.RandomText, Unowned: true,
			Labels: map[string]string{nebiusv1.LabelProtected: "true"}, Annotations: map[string]string{nebiusv1.AnnotationProtectedFor: c.cluster.Name},
		})
	}
	return c.mariaDBStorage(op, name)
}

// mariaDBStorage returns how slurmdbd reaches the database.
func (c *composer) mariaDBStorage(op *nebiusv1.MariaDBOperator, name string) *slinkyv1beta1.StorageConfig {
	host := name
	if enabled, _ := c.fields(op.Replication, mariaDBPath+".replication")["enabled"].(bool); enabled {
		host += "-primary" // where writes go
	}
	return &slinkyv1beta1.StorageConfig{
		Host: host, Port: cmp.Or(op.Port, slinkyv1beta1.DatabasePort), Database: acctDatabase, Username: acctUser,
		PasswordKeyRef: corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: mariaDBPassword}, Key: mariaDBPasswordKey},
	}
}

func (c *composer) mariaDBObject(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	out.SetGroupVersionKind(kind)
	out.SetNamespace(c.cluster.Namespace)
	out.SetName(name)
	out.SetLabels(c.labels("mariadb-operator"))
	return out
}

func (c *composer) mariaDBSpec(op *nebiusv1.MariaDBOperator) map[string]any {
	if op.Storage == nil {
		c.fail(mariaDBPath+".storage", "must say how large the volume is, as in {size: 10Gi}")
	}
	container := c.container(op.NodeContainer, mariaDBPath, withoutCPU)
	c.ignore(len(op.Command) > 0, mariaDBPath+".command")
	c.ignore(len(op.Args) > 0, mariaDBPath+".args")
	c.ignore(op.ProcMount != "" && op.ProcMount != corev1.DefaultProcMount, mariaDBPath+".procMount")
	c.ignore(op.AppArmorProfile != "" && op.AppArmorProfile != unconfined, mariaDBPath+".appArmorProfile")
	password := func(name string) map[string]any {
		return map[string]any{"name": name, "key": mariaDBPasswordKey, "generate": !op.ProtectedSecret}
	}
	replicas := int64(max(op.Replicas, 1))
	out := map[string]any{
		"replicas": replicas, "port": int64(cmp.Or(op.Port, slinkyv1beta1.DatabasePort)),
		"database": acctDatabase, "username": acctUser,
		"passwordSecretKeyRef": password(mariaDBPassword), "rootPasswordSecretKeyRef": password(mariaDBRootPassword), "rootEmptyPassword": false,
		"service": map[string]any{"type": string(corev1.ServiceTypeClusterIP)},
		"metrics": map[string]any{"enabled": op.Metrics == nil || op.Metrics.Enabled == nil || *op.Metrics.Enabled},
		"myCnf":   myCnf(op),
	}
	// Fields of the container that both kinds have.
	maps.Copy(out, overlayFields(corev1.Container{
		Image: container.Image, ImagePullPolicy: container.ImagePullPolicy, Resources: container.Resources, Env: container.Env,
		LivenessProbe: container.LivenessProbe, ReadinessProbe: container.ReadinessProbe,
	}))
	for name, piece := range map[string]*embedded.Object{
		"storage": op.Storage, "replication": op.Replication, "podSecurityContext": op.PodSecurityContext, "securityContext": op.SecurityContext,
	} {
		if fields := c.fields(piece, mariaDBPath+"."+name); len(fields) > 0 {
			out[name] = fields
		}
	}
	return out
}

// placeMariaDB places its pods where slurmdbd runs, and apart from each other.
func (c *composer) placeMariaDB(op *nebiusv1.MariaDBOperator, spec map[string]any) {
	pod := corev1.PodSpec{PriorityClassName: op.PriorityClassName, ImagePullSecrets: op.ImagePullSecrets}
	c.place(&pod, c.spec.SlurmNodes.Accounting.K8sNodeFilterName, accountingPath+".k8sNodeFilterName")
	affinity := map[string]any{}
	if pod.Affinity != nil {
		affinity = fieldsOf(*pod.Affinity)
		c.ignore(pod.Affinity.PodAffinity != nil, mariaDBPath+" (podAffinity of the node filter)")
		delete(affinity, "podAffinity") // the kind has none
		pod.Affinity = nil
	}
	if op.Replicas > 1 {
		affinity["antiAffinityEnabled"] = true
	}
	fields := overlayFields(pod)
	for _, name := range []string{"priorityClassName", "imagePullSecrets", "nodeSelector", "tolerations"} {
		if value, ok := fields[name]; ok {
			spec[name] = value
		}
	}
	if len(affinity) > 0 {
		spec["affinity"] = affinity
	}
}

// stopDatabase leaves the database of the mariadb-operator its volumes only.
func (p *Components) stopDatabase() {
	if p.MariaDB != nil {
		p.MariaDB.Object["spec"].(map[string]any)["replicas"] = int64(0) //nolint:forcetypeassert // mariaDBObject has made it
	}
}

// myCnf is what slurmdbd asks of its database, https://slurm.schedmd.com/accounting.html#mysql-configuration. The buffer pool is
// half of the memory that the container asks for, 1 GiB when it asks for none. Older servers lack snapshot isolation.
func myCnf(op *nebiusv1.MariaDBOperator) string {
	const mebibyte = 1 << 20
	pool := int64(1024)
	if memory, ok := op.Resources[corev1.ResourceMemory]; ok {
		pool = min(max(memory.Value()/2/mebibyte, 128), 32768)
	}
	return fmt.Sprintf(`[mariadb]
bind-address=*
default_storage_engine=InnoDB
innodb_default_row_format=DYNAMIC
innodb_buffer_pool_size=%dM
innodb_log_file_size=64M
innodb_lock_wait_timeout=900
max_allowed_packet=16M
loose-innodb_snapshot_isolation=OFF
`, pool)
}

// fields returns the fields of a piece that goes unchanged to another object; nil for none.
func (f *findings) fields(piece *embedded.Object, path string) map[string]any {
	if piece == nil || len(piece.Raw) == 0 {
		return nil
	}
	var out map[string]any
	f.failIf(path, json.Unmarshal(piece.Raw, &out))
	return out
}

// UnwantedDatabase are the objects of a database that the spec does not ask for, and that a cluster with the mariadb-operator may still
// have from before; they are deleted if the SlurmCluster controls them. With mistakes in the spec nothing is deleted.
func (o *Output) UnwantedDatabase(cluster *nebiusv1.SlurmCluster, installed Installed) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	if !installed.MariaDB.Usable() || o.Components.MariaDB != nil || len(o.Problems) > 0 {
		return nil
	}
	for _, kind := range slices.Backward([]schema.GroupVersionKind{MariaDBKind, GrantKind}) {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(kind)
		u.SetNamespace(cluster.Namespace)
		u.SetName(cluster.MariaDBName())
		out = append(out, u)
	}
	return out
}
