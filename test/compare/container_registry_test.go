// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

// registryTrials are about where images are from, and why they are not there.
func registryTrials() []trial {
	const machine = `machine 127.0.0.1 login ` + loginName + ` password `
	return []trial{
		{
			name: "the first step tells that its image is imported, and the next does not",
			line: `srun -Q -n2 --container-image=$R#lab/first:1 true; echo; srun -Q --container-image=$R#lab/first:1 true
				srun -Q --container-image=docker://$R/lab/first:1 cat /image`,
			prints: "",
			says:   []string{"pyxis: importing docker image: $R/lab/first:1\n", "pyxis: imported docker image: $R/lab/first:1\n\nlab/first"},
		},
		{
			name: "an image is named with a slash as well", line: `srun --container-image=$R/lab/tools:1 cat /image`, prints: "lab/tools",
		},
		{
			name:   "an image is named by its digest",
			line:   `srun --container-image=$R#lab/tools@$D cat /image; srun --container-image=$R#lab/tools:other@$D cat /image`,
			prints: "lab/tools\nlab/tools",
		},
		{
			name: "an unknown image, tag or digest is told with the registry",
			line: `for i in lab/nothing:1 lab/tools:2 lab/tools@sha256:0000000000000000000000000000000000000000000000000000000000000000
				do srun --container-image=$R#$i echo never; done`,
			says: []string{
				"error: pyxis: failed to import docker image: $R/lab/nothing:1: $R has no image $R/lab/nothing:1 (404): check its name and its tag",
				"error: pyxis: failed to import docker image: $R/lab/tools:2: $R has no image $R/lab/tools:2 (404): check its name and its tag",
				"error: pyxis: failed to import docker image: $R/lab/tools@sha256:0000",
			},
			hides: []string{"never"}, code: 1,
		},
		{
			name: "a private image is refused without a login",
			line: `srun --container-image=$R#private/tools:1 true`,
			says: []string{"error: pyxis: failed to import docker image: $R/private/tools:1: $R wants a login for image $R/private/tools:1"},
			code: 1,
		},
		{
			name: "a private image is refused with a wrong login, whose password is not printed",
			line: `mkdir -p ~/.config/enroot; umask 077; echo "` + machine + `wrong" >~/.config/enroot/.credentials
				srun --container-image=$R#private/tools:1 true`,
			says:  []string{"error: pyxis: failed to import docker image: $R/private/tools:1: $R does not take the login for image"},
			hides: []string{"wrong"},
			code:  1,
		},
		{
			name: "a private image is there with the login, and only with it",
			line: `umask 077; echo "` + machine + loginSecret + `" >~/.config/enroot/.credentials
				srun -Q --container-image=$R#private/tools:1 cat /image; rm ~/.config/enroot/.credentials
				srun --container-image=$R#private/tools:1 echo never`,
			says:  []string{"pyxis: imported docker image: $R/private/tools:1\nprivate/tools\n", "$R wants a login"},
			hides: []string{"never\n"},
			code:  1,
		},
		{
			name: "all tasks end if there is no image, and one tells it",
			line: `srun -n4 --container-image=$R#lab/nothing:1 echo never 2>&1 | grep -c 'failed to import'`, prints: "1",
		},
	}
}
