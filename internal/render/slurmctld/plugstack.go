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

// pyxisLine is the line of plugstack.conf by which steps run in containers.
const pyxisLine = "optional spank_pyxis.so"

// includeLine lets images say whether they have pyxis: Coxswain's have it, and those of Slinky called -pyxis. It finds nothing in a jail, to
// which images add nothing.
const includeLine = "include /usr/share/pyxis/*"

// plugstack writes plugstack.conf where the user has none. It refuses one without the line of the jail: jobs would run outside of the jail.
func (out *Output) plugstack(in Input, files map[string]string) {
	jail := in.Controller.Spec.Jail != nil
	i := slices.IndexFunc(in.Files.Config, func(f File) bool { return f.Name == plugstackFile })
	switch {
	case i < 0 && jail:
		files[plugstackFile] = PlugstackLine + "\n" + pyxisLine + "\n"
	case i < 0:
		files[plugstackFile] = includeLine + "\n"
	case jail:
		user := in.Files.Config[i]
		if !slices.ContainsFunc(strings.Split(user.Content, "\n"), namesChroot) {
			out.Problems = append(out.Problems, problem.Errorf(user.Path(), config.ReasonInvalid,
				"lacks the line %q, without which jobs would run outside of spec.jail", PlugstackLine))
		}
	}
}

func namesChroot(line string) bool {
	words := strings.Fields(line)
	return len(words) == 3 && words[0] == "required" && strings.HasSuffix("/"+words[1], "/chroot.so") && words[2] == slinkyv1beta1.JailDir
}
