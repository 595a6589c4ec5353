// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// checksComponent is the component of what ActiveChecks share.
const checksComponent = "soperatorchecks"

// CheckAccount returns the name of the ServiceAccount of a cluster's checks, which is Soperator's.
func CheckAccount(cluster string) string { return cluster + "-activecheck-sa" }

// checkRights let checks of Soperator's charts ask Kubernetes what they ask: which pods, Jobs, CronJobs and checks there are. They may not make
// Jobs, as they may in Soperator: who becomes root in a jail that a check has mounted could start any pod with such a token.
func (c *composer) checkRights() {
	account, name := CheckAccount(c.cluster.Name), c.cluster.Name+"-activecheck-role"
	c.out.Add(
		&corev1.ServiceAccount{ObjectMeta: c.meta(account, checksComponent)},
		&rbacv1.Role{ObjectMeta: c.meta(name, checksComponent), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
			{APIGroups: []string{"batch"}, Resources: []string{"cronjobs", "jobs"}, Verbs: []string{"get"}},
			{APIGroups: []string{"slurm.nebius.ai"}, Resources: []string{"activechecks"}, Verbs: []string{"get", "list"}},
		}},
		&rbacv1.RoleBinding{
			ObjectMeta: c.meta(name+"-binding", checksComponent),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: c.cluster.Namespace}},
		},
	)
}
