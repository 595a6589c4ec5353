// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// LoginSetSpec is what a user asks of a LoginSet.
//
// +kubebuilder:validation:XValidation:rule=`self.?workload.orValue("") in ["", "Deployment"] || !has(self.strategy) || self.strategy.?type.orValue("") == "" && !has(self.strategy.rollingUpdate)`,message="strategy belongs to workload Deployment; a StatefulSet replaces its pods one after the other"
type LoginSetSpec struct {
	// ControllerRef names the Controller of the cluster that users log in to. It cannot be changed.
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0",message="name must not be empty"
	// +kubebuilder:validation:XValidation:rule="self.name == oldSelf.name",message="controllerRef cannot be changed; make another LoginSet"
	ControllerRef ObjectReference `json:"controllerRef"`

	// Replicas is the number of login pods. Default: 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// Workload is the kind of object that runs the pods. Deployment: the pods are alike and can be replaced with no gap.
	// StatefulSet: the pods have fixed names, <name>-0 and so on, and are reached as <name>-0.<name>-headless-svc, which suits
	// users who come back to "their" login node. When it is changed, the pods of before serve until the new ones are
	// ready. Default: Deployment.
	// +optional
	// +kubebuilder:default=Deployment
	Workload LoginWorkload `json:"workload,omitempty"`

	// Strategy is how the Deployment replaces its pods. Default: RollingUpdate.
	// More info: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#strategy
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.?type.orValue("") in ["", "Recreate", "RollingUpdate"]`,message="type must be Recreate or RollingUpdate"
	Strategy *appsv1.DeploymentStrategy `json:"strategy,omitempty"`

	// Login is the container with sackd and sshd: a core/v1 Container, or a part of one, laid over the generated one as
	// a strategic merge patch. The API server does not look inside; a mistyped field shows as condition Stalled, with
	// its path. Default image: the operator's.
	// More info: https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#Container
	// +optional
	Login *embedded.Container `json:"login,omitempty"`

	// Initconf is the init container that puts configuration and keys in place: a core/v1 Container, or a part of one,
	// laid over the generated one. Default image: that of login.
	// +optional
	Initconf *embedded.Container `json:"initconf,omitempty"`

	// Jail is the root file system that users log in to. The users of its /etc/passwd can log in, too. Default: none, users log
	// in to the login container itself.
	// Sshd: ChrootDirectory, https://man7.org/linux/man-pages/man5/sshd_config.5.html
	// +optional
	Jail *Jail `json:"jail,omitempty"`

	// Munge runs munged beside sshd, for programs of users. Slurm's commands ask it only where they are configured to use auth/munge, which
	// the Controller has to have munge for. Default: none.
	// More info: https://man7.org/linux/man-pages/man7/munge.7.html
	// +optional
	Munge *Munge `json:"munge,omitempty"`

	// Template is laid over the login pods.
	// +optional
	Template PodTemplate `json:"template,omitzero"`

	// RootSSHAuthorizedKeys is the content of root's authorized_keys file: any number of lines, one public key each.
	// Default: none, root cannot log in by key.
	// More info: https://man7.org/linux/man-pages/man8/sshd.8.html#AUTHORIZED_KEYS_FILE_FORMAT
	// +optional
	RootSSHAuthorizedKeys string `json:"rootSshAuthorizedKeys,omitempty"`

	// Users are Unix accounts that the login pods know without a directory service. They may be used beside
	// sssdConfRef.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	Users []User `json:"users,omitempty"`

	// ExtraSshdConfig is added to the end of the generated sshd_config; it may have many lines.
	// More info: https://man7.org/linux/man-pages/man5/sshd_config.5.html
	// +optional
	ExtraSshdConfig string `json:"extraSshdConfig,omitempty"`

	// SshdConfigRef selects an sshd_config in a ConfigMap. It takes the place of the generated defaults. Host keys, the port,
	// UsePAM and, with a jail, ChrootDirectory stay as they are, whatever is in it. Default: none.
	// More info: https://man7.org/linux/man-pages/man5/sshd_config.5.html
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	SshdConfigRef *corev1.ConfigMapKeySelector `json:"sshdConfigRef,omitempty"`

	// SssdConfRef selects an sssd.conf, by which the pods learn the users of a directory service. Default: none.
	// More info: https://man7.org/linux/man-pages/man5/sssd.conf.5.html
	// +optional
	// +kubebuilder:validation:XValidation:rule="size(self.name) > 0 || self.key == ''",message="name must not be empty"
	SssdConfRef *corev1.SecretKeySelector `json:"sssdConfRef,omitempty"`

	// Service describes the Service for ssh.
	// +optional
	Service ServiceSpec `json:"service,omitzero"`
}

// LoginWorkload is the kind of object that runs the pods of a LoginSet.
//
// +kubebuilder:validation:Enum="";Deployment;StatefulSet
type LoginWorkload string

// The kinds of object that run login pods.
const (
	// LoginWorkloadDeployment runs them in a Deployment.
	LoginWorkloadDeployment LoginWorkload = "Deployment"
	// LoginWorkloadStatefulSet runs them in a StatefulSet.
	LoginWorkloadStatefulSet LoginWorkload = "StatefulSet"
)

// LoginSetStatus is what the operator observes of a LoginSet.
type LoginSetStatus struct {
	// ObservedGeneration is the metadata.generation that this status was made from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Replicas is the number of login pods.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// ReadyReplicas is the number of login pods that are ready.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// Selector selects the login pods, for HorizontalPodAutoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Conditions are Ready, Reconciling, Stalled and FieldsIgnored.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LoginSet is a set of pods that users log in to by ssh, in order to submit jobs.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=loginsets;lss;sackd
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="REPLICAS",type="integer",JSONPath=".status.replicas",description="The current number of pods."
// +kubebuilder:printcolumn:name="READY",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description="Whether all login pods are up."
// +kubebuilder:printcolumn:name="REASON",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].reason",description="Why it is ready or not."
// +kubebuilder:printcolumn:name="CONTROLLER",type="string",JSONPath=".spec.controllerRef.name",description="The Controller of the cluster that one logs in to.",priority=1
// +kubebuilder:printcolumn:name="MESSAGE",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",description="What to know about it.",priority=1
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,50}[a-z0-9])?$')",message="metadata.name must begin with a letter, consist of lower-case letters, digits and '-', and have at most 52 characters: it becomes part of host names"
// +kubebuilder:validation:XValidation:rule="has(self.spec)",message="spec must be given"
type LoginSet struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is what is asked for.
	// +optional
	Spec LoginSetSpec `json:"spec,omitzero"`

	// Status is what is observed. The operator writes it.
	// +optional
	Status LoginSetStatus `json:"status,omitzero"`
}

// LoginSetList is a list of LoginSets.
//
// +kubebuilder:object:root=true
type LoginSetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []LoginSet `json:"items"`
}
