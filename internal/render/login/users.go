// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package login

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/label"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
)

// usersDir is where libnss-extrausers looks for users; their keys lie beside, in files that begin with keyPrefix.
const (
	usersDir  = "/var/lib/extrausers"
	keyPrefix = "authorized_keys."
)

// usersConfigMap holds the files that spec.users are rendered to: passwd, group and shadow as in passwd(5), group(5) and
// shadow(5), and each user's authorized keys. There is no secret among them: passwords are disabled.
func usersConfigMap(l *slinkyv1beta1.LoginSet, set label.Set) (*corev1.ConfigMap, error) {
	files, err := userFiles(l.Spec.Users)
	return &corev1.ConfigMap{ObjectMeta: pod.ObjectMeta(l, l.UsersName(), set), Data: files}, err
}

func userFiles(users []slinkyv1beta1.User) (map[string]string, error) {
	users = slices.SortedFunc(slices.Values(users), func(a, b slinkyv1beta1.User) int { return cmp.Compare(a.Name, b.Name) })
	var errs []error
	files := map[string]string{}
	var passwd, shadow strings.Builder
	owner := map[int64]string{}
	for _, u := range users {
		if other, taken := owner[u.UID]; taken {
			errs = append(errs, problem.Errorf("spec.users", "InvalidSpec", "users %s and %s have the same uid %d", other, u.Name, u.UID))
		}
		owner[u.UID] = u.Name
		if bad := unsafeField(u); bad != "" {
			errs = append(errs, problem.Errorf(fmt.Sprintf("spec.users[%q].%s", u.Name, bad), "InvalidSpec",
				"must be one line without a colon; the name of a group has no comma either"))
			continue
		}
		fmt.Fprintf(&passwd, "%s:x:%d:%d:%s:%s:%s\n", u.Name, u.UID, u.PrimaryGID(), u.Gecos, u.HomeDirectory(), u.LoginShell())
		fmt.Fprintf(&shadow, "%s:*:19000:0:99999:7:::\n", u.Name)
		var keys strings.Builder
		for _, k := range u.SSHAuthorizedKeys {
			keys.WriteString(string(k) + "\n")
		}
		files[keyPrefix+u.Name] = keys.String()
	}
	groups, err := groups(users)
	files["passwd"], files["shadow"], files["group"] = passwd.String(), shadow.String(), groupFile(groups)
	return files, errors.Join(append(errs, err)...)
}

// unsafeField names the first field of u that would break out of its place in passwd, group or authorized_keys. Admission
// refuses these already; objects stored before the rule existed come here.
func unsafeField(u slinkyv1beta1.User) string {
	for _, f := range []struct{ field, value string }{
		{"name", u.Name}, {"gecos", u.Gecos}, {"home", u.HomeDirectory()}, {"shell", u.LoginShell()},
	} {
		if strings.ContainsAny(f.value, ":\n\r\x00") {
			return f.field
		}
	}
	for _, g := range u.Groups {
		if strings.ContainsAny(g.Name, ":,\n\r\x00") {
			return "groups"
		}
	}
	for _, k := range u.SSHAuthorizedKeys {
		if strings.ContainsAny(string(k), "\n\r\x00") {
			return "sshAuthorizedKeys"
		}
	}
	return ""
}

type group struct {
	gid     int64
	members []string
}

// groups collects the groups of all users, primary and supplementary ones. A primary group has the user's name, unless
// another entry gives that gid a name.
func groups(users []slinkyv1beta1.User) (map[string]*group, error) {
	var errs []error
	all := map[string]*group{}
	named := map[int64]bool{}
	for _, u := range users {
		for _, g := range u.Groups {
			known, ok := all[g.Name]
			if !ok {
				known = &group{gid: g.GID}
				all[g.Name] = known
			}
			if known.gid != g.GID {
				errs = append(errs, problem.Errorf("spec.users["+u.Name+"].groups["+g.Name+"].gid", "InvalidSpec",
					"is %d, and %d with another user; a group has one gid", g.GID, known.gid))
				continue
			}
			named[g.GID] = true
			known.members = append(known.members, u.Name)
		}
	}
	for _, u := range users {
		if gid := u.PrimaryGID(); !named[gid] {
			if other, taken := all[u.Name]; taken && other.gid != gid {
				errs = append(errs, problem.Errorf("spec.users["+u.Name+"].gid", "InvalidSpec",
					"is %d, but a group called %s has gid %d; add a group with gid %d to its groups", gid, u.Name, other.gid, gid))
				continue
			}
			all[u.Name] = &group{gid: gid}
		}
	}
	return all, errors.Join(errs...)
}

func groupFile(groups map[string]*group) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		fmt.Fprintf(&b, "%s:x:%d:%s\n", name, groups[name].gid, strings.Join(groups[name].members, ","))
	}
	return b.String()
}
