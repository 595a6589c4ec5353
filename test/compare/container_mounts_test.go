// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

// mountTrials are about --container-mounts.
func mountTrials() []trial {
	return []trial{
		{
			name: "a path of the node is at the same place",
			line: `srun --container-image=$T --container-mounts=/mnt/data cat /mnt/data/file`, prints: "of the node",
		},
		{
			name: "several mounts and several options add up",
			line: `srun --container-image=$T --container-mounts=/mnt/data:/a,/mnt/data/file:/deep/er/b --container-mounts=/mnt/home:/c \
				--container-mounts=/mnt/data:/a cat /a/file /deep/er/b /c/mine`,
			prints: "of the node\nof the node\nof alice",
		},
		{
			name: "a variable stands for --container-mounts, and the option wins",
			line: `export PYXIS_CONTAINER_MOUNTS=/mnt/data:/a,/mnt/home:/c; srun --container-image=$T cat /a/file /c/mine
				srun --container-image=$T --container-mounts=/mnt/home:/d sh -c 'cat /d/mine; ls -d /[acd]'`,
			prints: "of the node\nof alice\nof alice\n/d",
		},
		{
			name:   "files that are written are the node's",
			line:   `srun --container-image=$T --container-mounts=/mnt/out:/o sh -c 'echo written >/o/mount'; cat /mnt/out/mount`,
			prints: "written",
		},
		{
			name: "a mount that is ro cannot be written",
			line: `srun --container-image=$T --container-remap-root --container-mounts=/mnt/out:/o:ro touch /o/never`,
			says: []string{"touch: /o/never: Read-only file system"}, code: 1,
		},
		{
			name: "a mount has the flags of its entry",
			line: `srun --container-image=$T --container-mounts=/mnt/data:/a:ro+nosuid+nodev+noexec grep ' /a ' /proc/mounts`,
			says: []string{" ro,nosuid,nodev,noexec,"},
		},
		{
			name: "a relative source is looked for in the directory of the job",
			line: `srun --container-image=$T --container-mounts=./sub:/a cat /a/file
				srun --chdir=/mnt/data --container-image=$T --container-mounts=../home/sub:./b cat /b/file`,
			prints: "of a sub-directory\nof a sub-directory",
		},
		{
			name: "tmpfs is an empty file system of the size that is asked for",
			line: `srun --container-image=$T --container-mounts=tmpfs:/a:size=1M+mode=700 sh -c 'ls -A /a; df -k /a | tail -n 1; stat -c %a /a'`,
			says: []string{" 1024 ", "700"},
		},
		{
			name:   "umount takes away what is mounted",
			line:   `srun --container-image=$T --container-mounts=/mnt/data:/a,umount:/a,umount:/sys sh -c 'ls -A /a /sys'`,
			prints: "/a:\n\n/sys:",
		},
		{
			name:   "a later mount covers an earlier one, and the container's own /tmp",
			line:   `srun --container-image=$T --container-mounts=/mnt/data:/a,/mnt/home/sub:/a,/mnt/data:/tmp cat /a/file /tmp/file`,
			prints: "of a sub-directory\nof the node",
		},
		{
			name: "a link of the image leads nowhere but into the container",
			line: `srun --container-image=$T --container-mounts=/mnt/data:/elsewhere,/mnt/home:/outside sh -c 'cat /srv/inside/file /mnt/data/mine'
				ls /mnt/data`,
			prints: "of the node\nof alice\nfile",
		},
		{
			name: "variables of the job are replaced, and nothing else",
			line: `export D=/mnt/data; srun --container-image=$T --container-mounts='$D/file:/a,${D}:/b' cat /a /b/file
				srun --container-image=$T --container-mounts='$(touch /mnt/out/run):/a' true; test ! -e /mnt/out/run`,
			says: []string{"of the node\nof the node\n", "error: pyxis: could not add mount entry: $(touch /mnt/out/run):/a"},
		},
		{
			name: "a source that is not there stops the step, but with nofail",
			line: `srun --container-image=$T --container-mounts=/nowhere:/a:nofail echo started
				srun --container-image=$T --container-mounts=/mnt/data,/nowhere:/a echo never`,
			says: []string{"started\n", "error: pyxis: --container-mounts: source path does not exist: /nowhere"}, hides: []string{"never"}, code: 1,
		},
		{
			name: "a source that the user may not read is one that he may not read in the container",
			line: `srun --container-image=$T --container-remap-root --container-mounts=/etc/shadow:/a cat /a`,
			says: []string{"cat: can't open '/a': Permission denied"}, code: 1,
		},
		{
			name: "what is no mount is told as pyxis does",
			line: `for m in : x: a,,b nfs:/a /a:b /mnt/data:/../a /mnt/data:/a:blue
				do srun --container-image=$T --container-mounts=$m echo never; done 2>&1 | grep -v 'srun: error'`,
			says: []string{
				"pyxis: --container-mounts: invalid format: :\n", "pyxis: --container-mounts: invalid format: x:\n",
				"pyxis: could not add mount entry: nfs:/a",
				`mount source must be a relative path, an absolute path, "tmpfs" or "umount"`, "pyxis: could not add mount entry: /a:b",
				"pyxis: could not add mount entry: /mnt/data:/../a", "pyxis: could not add mount entry: /mnt/data:/a",
			},
			hides: []string{"never"},
		},
		{
			name:   "an image without the directory gets it also if the container is read-only",
			line:   `srun --container-image=$T --container-readonly --container-mounts=/mnt/data:/made/here cat /made/here/file`,
			prints: "of the node",
		},
	}
}
