// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

// identityTrials are about who a task is in its container, and what it may do.
func identityTrials() []trial {
	return []trial{
		{
			name: "a task is its user, whom the container knows by name",
			line: `srun --container-image=$T sh -c 'id -u; id -un; cat /proc/self/uid_map /proc/self/gid_map | tr -s " "
				cat /proc/self/setgroups; grep -v alice /etc/passwd'`,
			prints: "2000\nalice\n 2000 2000 1\n 2000 2000 1\ndeny\nroot:x:0:0:root:/root:/bin/sh\n" +
				"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\nwww:x:33:33::/srv:/bin/sh",
		},
		{
			name: "a task has no rights, and gets none by a program",
			line: `srun --container-image=$T sh -c 'grep -E "^(Cap(Prm|Eff|Inh|Amb)|NoNewPrivs|Seccomp):" /proc/self/status | tr -s "\t" " "
				mount -t tmpfs x /srv'`,
			prints: "CapInh: 0000000000000000\nCapPrm: 0000000000000000\nCapEff: 0000000000000000\nCapAmb: 0000000000000000\n" +
				"NoNewPrivs: 1\nSeccomp: 2\nmount: permission denied (are you root?)\nsrun: error: a: task 0: Exited with exit code 1",
			code: 1,
		},
		{
			name: "a remapped root is root in the container, and may mount there",
			line: `srun --container-image=$T --container-remap-root sh -c 'id -u; id -g; cat /proc/self/uid_map | tr -s " "
				mount -t tmpfs x /srv && ls /srv; ln -s x /etc/y && echo $HOME'`,
			prints: "0\n0\n 0 2000 1\n/root",
		},
		{
			name: "a variable stands for --container-remap-root, and its option wins",
			line: `export PYXIS_CONTAINER_REMAP_ROOT=yes; srun --container-image=$T id -u
				srun --container-image=$T --no-container-remap-root id -u`,
			prints: "0\n2000",
		},
		{
			name: "a remapped root writes files of the node as the user",
			line: `srun --container-image=$T --container-remap-root --container-mounts=/mnt/out touch /mnt/out/by-root
				stat -c %U /mnt/out/by-root`,
			prints: "alice",
		},
		{
			name:   "all files of the image are the user's, and other files of the node somebody else's",
			line:   `srun --container-image=$T --container-mounts=/mnt/club sh -c 'cat /srv/secret; stat -c %u /srv/secret /bin/busybox /mnt/club'`,
			prints: "of www\n2000\n2000\n65534",
		},
		{
			name:   "the user's groups open files of the node",
			line:   `srun --container-image=$T --container-mounts=/mnt/club cat /mnt/club/file`,
			prints: "of the club",
		},
		{
			name: "files can be given to other users, who are the same one",
			line: `srun --container-image=$T sh -c 'chown 33:33 /srv/secret && stat -c %u /srv/secret'
				srun --container-image=$T --container-remap-root sh -c 'touch /a && chown 33:33 /a && stat -c %u /a'`,
			prints: "2000\n0",
		},
		{
			name: "set-user-ID programs and devices of an image have no effect",
			line: `srun --container-image=$T --container-remap-root grep ' / ' /proc/mounts`,
			says: []string{"overlay / overlay ", "nosuid", "nodev"},
		},
	}
}
