// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmctld

import (
	"slices"
	"strings"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/config"
)

const plugstackFile = "plugstack.conf"

// PlugstackLine is the line of plugstack.conf, see spank(7), by which workers move jobs into their jail.
const PlugstackLine = "required chroot.so " + slinkyv1beta1.JailDir

// plugstack writes the line of the jail where the user has no plugstack.conf, and refuses one that lacks it: jobs would run
// outside of the jail.
func (out *Output) plugstack(in Input, files map[string]string) {
	if in.Controller.Spec.Jail == nil {
		return
	}
	i := slices.IndexFunc(in.Files.Config, func(f File) bool { return f.Name == plugstackFile })
	if i < 0 {
		files[plugstackFile] = PlugstackLine + "\n"
		return
	}
	user := in.Files.Config[i]
	if !slices.ContainsFunc(strings.Split(user.Content, "\n"), namesChroot) {
		out.Problems = append(out.Problems, problem.Errorf(user.Path(), config.ReasonInvalid,
			"lacks the line %q, without which jobs would run outside of spec.jail", PlugstackLine))
	}
}

func namesChroot(line string) bool {
	words := strings.Fields(line)
	return len(words) == 3 && words[0] == "required" && strings.HasSuffix("/"+words[1], "/chroot.so") && words[2] == slinkyv1beta1.JailDir
}
