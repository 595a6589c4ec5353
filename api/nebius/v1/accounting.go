// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// Accounting is slurmdbd and its database. See https://slurm.schedmd.com/accounting.html
//
// +kubebuilder:validation:XValidation:rule="!self.?enabled.orValue(false) || self.?embeddedDB.enabled.orValue(false) || self.?externalDB.enabled.orValue(false) || self.?mariadbOperator.enabled.orValue(false)",message="accounting needs a database: enable embeddedDB, externalDB or mariadbOperator"
// +kubebuilder:validation:XValidation:rule="!self.?embeddedDB.enabled.orValue(false) || !(self.?externalDB.enabled.orValue(false) || self.?mariadbOperator.enabled.orValue(false))",fieldPath=".embeddedDB.enabled",message="embeddedDB cannot be enabled together with externalDB or mariadbOperator"
type Accounting struct {
	SlurmNode `json:",inline"`

	// HostUsers false runs the pods in a user namespace of their own. Default: the user namespace of the host.
	// +optional
	HostUsers *bool `json:"hostUsers,omitempty"`

	// Enabled runs slurmdbd and has slurmctld account jobs there. Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Size has no effect: there is always one slurmdbd.
	// +optional
	Size int32 `json:"size,omitempty"`

	// Slurmdbd is the container of slurmdbd. Its default port is 6819.
	// +optional
	Slurmdbd NodeContainer `json:"slurmdbd,omitzero"`

	// Munge is the container of munged beside slurmdbd, for clients that prove who they are by munge. It runs where this block and that
	// of the controller name an image that is not Soperator's. Default: none.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_AuthAltTypes
	// +optional
	Munge NodeContainer `json:"munge,omitzero"`

	// EmbeddedDB runs one MariaDB with a volume and a generated password.
	// +optional
	EmbeddedDB *EmbeddedDB `json:"embeddedDB,omitempty"`

	// ExternalDB is a MySQL or MariaDB server that exists already.
	// +optional
	ExternalDB *ExternalDB `json:"externalDB,omitempty"`

	// MariaDBOperator has the mariadb-operator (k8s.mariadb.com) run the database. It wins over externalDB.
	// +optional
	MariaDBOperator *MariaDBOperator `json:"mariadbOperator,omitempty"`

	// SlurmConfig are the keys of slurm.conf that concern accounting.
	// +optional
	// +kubebuilder:default={}
	SlurmConfig AccountingSlurmConfig `json:"slurmConfig,omitzero"`

	// SlurmdbdConfig are keys of slurmdbd.conf. See https://slurm.schedmd.com/slurmdbd.conf.html
	// +optional
	// +kubebuilder:default={}
	SlurmdbdConfig SlurmdbdConfig `json:"slurmdbdConfig,omitzero"`
}

// EmbeddedDB is one MariaDB in a StatefulSet, for clusters without a database server of their own. Its volume outlives the
// SlurmCluster; the generated password does not, and the next one is applied when the database starts on that volume.
type EmbeddedDB struct {
	// Enabled runs the database. Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Image is the container image of MariaDB. Default: the operator's.
	// +optional
	Image string `json:"image,omitempty"`

	// Storage is the volume of the database.
	// +optional
	// +kubebuilder:default={}
	Storage EmbeddedDBStorage `json:"storage,omitzero"`

	// Resources are requests. Limits are the same without cpu.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
}

// EmbeddedDBStorage is the volume of the embedded database.
type EmbeddedDBStorage struct {
	// Size is the size of the volume when it is made. Resize the PersistentVolumeClaim to change it later. Default: 10Gi.
	// +optional
	// +kubebuilder:default="10Gi"
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName is the storage class of the volume. Default: the default class of the Kubernetes cluster.
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// ExternalDB is a MySQL or MariaDB server that exists already.
//
// +kubebuilder:validation:XValidation:rule=`!self.?enabled.orValue(false) || self.?host.orValue("") != ""`,fieldPath=".host",reason=FieldValueRequired,message="host is required when externalDB is enabled"
type ExternalDB struct {
	// Enabled uses this server. Default: false.
	// +optional
	// +kubebuilder:default=false
	Enabled bool `json:"enabled,omitempty"`

	// Host: the name or address of the server: StorageHost.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageHost
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\s=#"'\\\x00]*$`
	Host string `json:"host,omitempty"`

	// Port: the port of the server: StoragePort. Default: 3306, with 0 as well.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StoragePort
	// +optional
	// +kubebuilder:default=3306
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// User: the user of the database: StorageUser. Default: slurm.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageUser
	// +optional
	// +kubebuilder:validation:Pattern=`^[^\s=#"'\\\x00]*$`
	User string `json:"user,omitempty"`

	// PasswordSecretKeyRef is where the password is: StoragePass. Default: no password (client certificate).
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StoragePass
	// +optional
	PasswordSecretKeyRef *PasswordSecretKeyRef `json:"passwordSecretKeyRef,omitempty"`

	// StorageParameters: options of the connection, such as SSL_CA: StorageParameters. Those of tls win.
	// https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageParameters
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, key.matches('^[A-Za-z0-9_-]+$'))",message="each key must consist of letters, digits, dashes and underscores"
	StorageParameters map[string]StorageParameter `json:"storageParameters,omitempty"`

	// TLS are the certificates of the connection. Default: none.
	// +optional
	TLS *ExternalDBTLS `json:"tls,omitempty"`
}

// StorageParameter is the value of an option of the connection to a database.
//
// +kubebuilder:validation:MaxLength=4096
// +kubebuilder:validation:Pattern=`^[^,\s#"'\\\x00]*$`
type StorageParameter string

// PasswordSecretKeyRef is where the password of a database is.
type PasswordSecretKeyRef struct {
	// Name is the name of the Secret.
	// +optional
	Name string `json:"name,omitempty"`

	// Key is the key in the Secret.
	// +optional
	Key string `json:"key,omitempty"`
}

// ExternalDBTLS are the certificates of the connection to a database.
type ExternalDBTLS struct {
	// ServerCASecretRef is the Secret with the certificate authority of the server (key ca.crt).
	// +optional
	ServerCASecretRef string `json:"serverCASecretRef,omitempty"`

	// ClientCertSecretRef is the Secret with the client's certificate (keys tls.crt and tls.key).
	// +optional
	ClientCertSecretRef string `json:"clientCertSecretRef,omitempty"`
}

// MariaDBOperator are the settings of a MariaDB object of the mariadb-operator.
type MariaDBOperator struct {
	NodeContainer `json:",inline"`

	// Enabled makes the objects MariaDB and Grant.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// Replicas is the number of servers. Default: 1.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`

	// PriorityClassName is the name of the pods' PriorityClass.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// ProtectedSecret makes the password Secrets such that a webhook can refuse their deletion. Do not change it later.
	// Default: false.
	// +optional
	// +kubebuilder:default=false
	ProtectedSecret bool `json:"protectedSecret,omitempty"`

	// Metrics is the metrics exporter of the database.
	// +optional
	Metrics *MariaDBMetrics `json:"metrics,omitempty"`

	// PodSecurityContext goes to the MariaDB object as it is.
	// +optional
	PodSecurityContext *embedded.Object `json:"podSecurityContext,omitempty"`

	// SecurityContext goes to the MariaDB object as it is.
	// +optional
	SecurityContext *embedded.Object `json:"securityContext,omitempty"`

	// Replication goes to the MariaDB object as it is.
	// +optional
	Replication *embedded.Object `json:"replication,omitempty"`

	// Storage goes to the MariaDB object as it is.
	// +optional
	Storage *embedded.Object `json:"storage,omitempty"`
}

// MariaDBMetrics is the metrics exporter of a MariaDB object.
type MariaDBMetrics struct {
	// Enabled runs the exporter. Default: true.
	// +optional
	// +kubebuilder:default=true
	Enabled *bool `json:"enabled,omitempty"`
}
