// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// AccountingSpec is what a user asks of an Accounting.
//
// +kubebuilder:validation:XValidation:rule=`!self.?external.orValue(false) || self.?externalConfig.host.orValue("") != "" && self.externalConfig.port > 0`,message="externalConfig must be set when external is true"
// +kubebuilder:validation:XValidation:rule=`self.?external.orValue(false) || self.?storageConfig.host.orValue("") != "" || has(self.embeddedDatabase)`,message="slurmdbd needs a database: set storageConfig to use an existing MySQL or MariaDB, or embeddedDatabase: {} to have one run here"
// +kubebuilder:validation:XValidation:rule=`!(self.?storageConfig.host.orValue("") != "" && has(self.embeddedDatabase))`,message="storageConfig and embeddedDatabase exclude each other"
type AccountingSpec struct {
	// SlurmKeyRef selects the key with which slurmdbd and slurmctld prove to each other who they are (auth/slurm). It must be the
	// key of the Controllers that refer to this Accounting. Secret and key cannot be changed. Default: the operator generates the
	// key once and keeps it as slurm.key in Secret <name>-auth-slurm. That is also the Secret of a Controller with the same name; a
	// Controller with another name has to refer to it.
	// Slurm: AuthType=auth/slurm, https://slurm.schedmd.com/authentication.html#slurm
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.key == oldSelf.key",message="the key of a cluster cannot be changed for another one; change the content of the Secret"
	SlurmKeyRef *corev1.SecretKeySelector `json:"slurmKeyRef,omitempty"`

	// JwtKeyRef selects the key with which JSON Web Tokens are signed and checked (auth/jwt). It wins over jwtHs256KeyRef. Secret
	// and key cannot be changed. Default: the operator generates the key once and keeps it as jwt.key in Secret <name>-auth-jwt.
	// That is also the Secret of a Controller with the same name; a Controller with another name has to refer to it.
	// Slurm: AuthAltParameters=jwt_key=, https://slurm.schedmd.com/jwt.html
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.key == oldSelf.key",message="the key of a cluster cannot be changed for another one; change the content of the Secret"
	JwtKeyRef *corev1.SecretKeySelector `json:"jwtKeyRef,omitempty"`

	// JwtHs256KeyRef is the earlier name of jwtKeyRef.
	//
	// Deprecated: use jwtKeyRef.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name && self.key == oldSelf.key",message="the key of a cluster cannot be changed for another one; change the content of the Secret"
	JwtHs256KeyRef *corev1.SecretKeySelector `json:"jwtHs256KeyRef,omitempty"`

	// JwksKeyRef selects a JSON Web Key Set with the public keys of further token issuers, from a ConfigMap. Default:
	// none.
	// Slurm: AuthAltParameters=jwks=, https://slurm.schedmd.com/jwt.html
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	JwksKeyRef *corev1.ConfigMapKeySelector `json:"jwksKeyRef,omitempty"`

	// External is true if slurmdbd runs elsewhere, at externalConfig. Nothing is run here then. Default: false.
	// +optional
	// +kubebuilder:default=false
	External bool `json:"external,omitempty"`

	// ExternalConfig is the address of the external slurmdbd. Required when external is true.
	// Slurm: AccountingStorageHost, AccountingStoragePort, https://slurm.schedmd.com/slurm.conf.html#OPT_AccountingStorageHost
	// +optional
	ExternalConfig *ExternalConfig `json:"externalConfig,omitempty"`

	// Slurmdbd is the container of slurmdbd: a core/v1 Container, or a part of one, laid over the generated one as a
	// strategic merge patch. The API server does not look inside; a mistyped field shows as condition Stalled, with
	// its path. Default image: the operator's.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
	// +optional
	Slurmdbd *embedded.Container `json:"slurmdbd,omitempty"`

	// Munge lets clients prove who they are by munge as well: munged runs beside slurmdbd. It has no effect with external.
	// Default: none.
	// Slurm: AuthAltTypes, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_AuthAltTypes
	// +optional
	Munge *Munge `json:"munge,omitempty"`

	// Template is laid over the slurmdbd pod.
	// +optional
	Template PodTemplate `json:"template,omitzero"`

	// StorageConfig is the MySQL or MariaDB server to use. Required unless external is true or embeddedDatabase is given.
	// +optional
	StorageConfig *StorageConfig `json:"storageConfig,omitempty"`

	// EmbeddedDatabase makes the operator run a MariaDB for slurmdbd: one pod with one volume, without replication and
	// without backups. It suits trials and small clusters; "embeddedDatabase: {}" is enough.
	// +optional
	EmbeddedDatabase *EmbeddedDatabase `json:"embeddedDatabase,omitempty"`

	// ExtraConf is merged into the generated slurmdbd.conf; it may have many lines. Default: nothing.
	// Slurm: https://slurm.schedmd.com/slurmdbd.conf.html
	// +optional
	ExtraConf string `json:"extraConf,omitempty"`

	// Suspend stops slurmdbd, and then the embedded database. It keeps everything else: keys, passwords, Services and the claim of the
	// database. slurmctld keeps what it has to record until slurmdbd is there again. Default: false.
	// +optional
	// +kubebuilder:default=false
	Suspend bool `json:"suspend,omitempty"`

	// Service describes the Service of slurmdbd.
	// +optional
	Service ServiceSpec `json:"service,omitzero"`
}

// StorageConfig is where slurmdbd finds its MySQL or MariaDB.
//
// +kubebuilder:validation:XValidation:rule="size(self.host) == 0 || size(self.passwordKeyRef.name) > 0 || self.?tls.?clientCertificateRef.hasValue()",message="passwordKeyRef.name must not be empty without tls.clientCertificateRef"
type StorageConfig struct {
	// Host is the host name or IP address of the database server.
	// Slurm: StorageHost, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageHost
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z._:-]*$')",message="must be one host name or IP address"
	Host string `json:"host"`

	// Port is the TCP port of the database server. Default: 3306.
	// Slurm: StoragePort, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StoragePort
	// +optional
	// +kubebuilder:default=3306
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`

	// Database is the name of the database, which slurmdbd creates if it may. Default: slurm_acct_db.
	// Slurm: StorageLoc, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageLoc
	// +optional
	// +kubebuilder:default=slurm_acct_db
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_$.-]*$')",message="must consist of letters, digits and the characters _ $ . -"
	Database string `json:"database,omitempty"`

	// Username is the name with which slurmdbd logs in to the database. Default: that of the daemon's own user, slurm.
	// Slurm: StorageUser, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageUser
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9A-Za-z_$.@%+-]*$')",message="must consist of letters, digits and the characters _ $ . @ % + -"
	Username string `json:"username,omitempty"`

	// PasswordKeyRef selects the password from a Secret. With tls.clientCertificateRef and an empty name and key slurmdbd
	// logs in by its certificate alone.
	// Slurm: StoragePass, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StoragePass
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	PasswordKeyRef corev1.SecretKeySelector `json:"passwordKeyRef"`

	// TLS makes slurmdbd use TLS to the database server. Default: without it slurmdbd sends plain text, which a server
	// with require_secure_transport refuses.
	// Slurm: StorageParameters, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StorageParameters
	// +optional
	TLS *StorageTLS `json:"tls,omitempty"`
}

// StorageTLS is what slurmdbd trusts, and how it proves its identity, when it uses TLS to its database.
type StorageTLS struct {
	// CARef selects the certificates (PEM) of the authorities that may have signed the server's certificate. slurmdbd
	// refuses a server with another certificate; it does not compare the name in the certificate with the host.
	// Slurm: StorageParameters=SSL_CA=
	CARef CertificateReference `json:"caRef"`

	// ClientCertificateRef names a Secret of type kubernetes.io/tls, whose tls.crt and tls.key slurmdbd shows to a server
	// that asks for a certificate. Default: none is shown.
	// Slurm: StorageParameters=SSL_CERT=,SSL_KEY=
	// +optional
	ClientCertificateRef *corev1.LocalObjectReference `json:"clientCertificateRef,omitempty"`
}

// CertificateReference selects certificates from a ConfigMap or from a Secret.
//
// +kubebuilder:validation:XValidation:rule="has(self.configMapKeyRef) != has(self.secretKeyRef)",message="give one of configMapKeyRef and secretKeyRef"
type CertificateReference struct {
	// ConfigMapKeyRef selects a key of a ConfigMap.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	ConfigMapKeyRef *corev1.ConfigMapKeySelector `json:"configMapKeyRef,omitempty"`

	// SecretKeyRef selects a key of a Secret.
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	SecretKeyRef *corev1.SecretKeySelector `json:"secretKeyRef,omitempty"`
}

// EmbeddedDatabase describes a MariaDB that the operator runs for slurmdbd.
type EmbeddedDatabase struct {
	// MariaDB is the container of the database: a core/v1 Container, or a part of one (image, resources, …), laid over
	// the generated one as a strategic merge patch. The API server does not look inside; a mistyped field shows as
	// condition Stalled, with its path. Default image: the operator's.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
	// +optional
	MariaDB *embedded.Container `json:"mariadb,omitempty"`

	// Template is laid over the database pod.
	// +optional
	Template PodTemplate `json:"template,omitzero"`

	// Storage is the volume of the database. It outlives the Accounting.
	// +optional
	// +kubebuilder:default={}
	Storage DatabaseStorage `json:"storage,omitzero"`

	// PasswordKeyRef selects the password of the database user slurm from a Secret. Default: the operator generates one
	// once and keeps it as password in Secret <name>-auth-database.
	// Slurm: StoragePass, https://slurm.schedmd.com/slurmdbd.conf.html#OPT_StoragePass
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	PasswordKeyRef *corev1.SecretKeySelector `json:"passwordKeyRef,omitempty"`
}

// DatabaseStorage describes the volume of an embedded database.
type DatabaseStorage struct {
	// Size of the volume when it is made. Resize the PersistentVolumeClaim to change it later. Default: 10Gi.
	// +optional
	// +kubebuilder:default="10Gi"
	Size *resource.Quantity `json:"size,omitempty"`

	// StorageClassName is the StorageClass of the volume. Default: that of the Kubernetes cluster.
	// More info: https://kubernetes.io/docs/concepts/storage/persistent-volumes/#class-1
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// AccountingStatus is what the operator observes of an Accounting.
type AccountingStatus struct {
	// ObservedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are Ready, Reconciling, Stalled, FieldsIgnored, KeysPresent and DatabaseReachable. Suspended is
	// there once slurmdbd has been suspended.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Accounting is slurmdbd: it keeps the job records of the Controllers that refer to it, in a MySQL or MariaDB.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=slurmdbd
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether slurmdbd is up and has its database."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why it is ready or not."
// +kubebuilder:printcolumn:name="DATABASE",type="string",JSONPath=".status.conditions[?(@.type==\"DatabaseReachable\")].reason",description="Whether slurmdbd reaches its database, or why not.",priority=1
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="What to know about it.",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,39}[a-z0-9])?$')",message="metadata.name must begin with a letter, consist of lower-case letters, digits and '-', and have at most 41 characters: it becomes part of host names"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",message="spec must be given"
type Accounting struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is asked for.
	// +optional
	Spec AccountingSpec `json:"spec,omitzero"`

	// Status is what is observed. The operator writes it.
	// +optional
	Status AccountingStatus `json:"status,omitzero"`
}

// AccountingList is a list of Accountings.
//
// +kubebuilder:object:root=true
type AccountingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Accounting `json:"items"`
}
