// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// User is a Unix account that pods know without a directory service. It is written to the files of libnss-extrausers.
//
// +kubebuilder:validation:XValidation:rule=`!(self.name in ['root', 'slurm', 'munge', 'nobody', 'sshd', 'sssd'])`,message="name belongs to a system account"
// +kubebuilder:validation:XValidation:rule=`self.uid != 65534`,message="uid 65534 belongs to nobody"
type User struct {
	// Name is the login name.
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]{0,31}$`
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// UID is the numeric user id, 1000 or higher. Files on shared storage belong to it, so never give it to another user.
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=2147483647
	UID int64 `json:"uid"`

	// GID is the numeric id of the user's primary group. Default: the value of uid. The group has the name of the user
	// unless an entry of groups with this gid gives it another one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	GID *int64 `json:"gid,omitempty"`

	// Gecos is the user's full name or another comment.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^:\x00-\x1f\x7f]*$`
	Gecos string `json:"gecos,omitempty"`

	// Home is the home directory. Default: /home/<name>.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(/[0-9A-Za-z_][0-9A-Za-z._-]*)+$`
	Home string `json:"home,omitempty"`

	// Groups are the supplementary groups of the user. The same name must have the same gid with every user.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Groups []UserGroup `json:"groups,omitempty"`

	// Shell is the login shell. Default: /bin/bash.
	// +optional
	// +kubebuilder:default=/bin/bash
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^(/[0-9A-Za-z_][0-9A-Za-z._+-]*)+$`
	Shell string `json:"shell,omitempty"`

	// SSHAuthorizedKeys are the public keys with which the user may log in, each one line as in an authorized_keys
	// file: options (if any), type, key, comment (if any).
	// More info: https://man7.org/linux/man-pages/man8/sshd.8.html#AUTHORIZED_KEYS_FILE_FORMAT
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	SSHAuthorizedKeys []AuthorizedKey `json:"sshAuthorizedKeys,omitempty"`
}

// AuthorizedKey is one line of an authorized_keys file.
//
// +kubebuilder:validation:MaxLength=8192
// +kubebuilder:validation:Pattern=`^([^\x00-\x1f\x7f]* )?(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)|sk-ssh-ed25519@openssh[.]com|sk-ecdsa-sha2-nistp256@openssh[.]com) AAAA[0-9A-Za-z+/]+={0,3}( [^\x00-\x1f\x7f]*)?$`
type AuthorizedKey string

// UserGroup is a Unix group.
type UserGroup struct {
	// Name of the group.
	// +kubebuilder:validation:Pattern=`^[a-z_][a-z0-9_-]{0,31}$`
	// +kubebuilder:validation:MaxLength=32
	Name string `json:"name"`

	// GID is the numeric id of the group.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	GID int64 `json:"gid"`
}

// PrimaryGID returns the id of the user's primary group.
func (u *User) PrimaryGID() int64 {
	if u.GID != nil {
		return *u.GID
	}
	return u.UID
}

// HomeDirectory returns the user's home directory.
func (u *User) HomeDirectory() string {
	if u.Home != "" {
		return u.Home
	}
	return "/home/" + u.Name
}

// LoginShell returns the user's shell.
func (u *User) LoginShell() string {
	if u.Shell != "" {
		return u.Shell
	}
	return "/bin/bash"
}
