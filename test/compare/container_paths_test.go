// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"os"
	"testing"
)

// testPaths starts steps in images that are files and directories of the node.
func testPaths(t *testing.T, s *site) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path("busybox"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	s.Run("sh", "-c", `set -e
		cd /mnt
		mkdir -p own/bin own/etc
		cp busybox own/bin
		for name in sh cat id stat touch; do ln -s busybox own/bin/$name; done
		echo of the file >own/etc/where
		echo 'COLOR="file ${SLURM_JOB_NUM_NODES}"' >own/etc/environment
		printf 'cd "/work" && unset OLDPWD\nexec "$@"\n' >own/etc/rc
		mksquashfs own home/own.sqsh -quiet -no-progress -all-root -p 'zero c 666 0 0 1 5' >/dev/null
		cp home/own.sqsh home/club.sqsh; chgrp club home/club.sqsh; chmod 640 home/club.sqsh
		cp home/own.sqsh home/root.sqsh; chmod 600 home/root.sqsh
		head -c 1000 home/own.sqsh >home/cut.sqsh
		echo text >home/text
		mkdir home/empty
		cp -a own home/tree; echo of the directory >home/tree/etc/where; chown -R alice:2000 home/tree`)
	s.try(t, []trial{
		{
			name:   "a file by a relative path, with its configuration",
			line:   `srun --container-image=./own.sqsh sh -c 'cat /etc/where; echo $COLOR; pwd; stat -c %u /etc/where; touch /etc/new'`,
			prints: "of the file\nfile 1\n/work\n2000",
		},
		{
			name:   "a file by an absolute path, as root of the container",
			line:   `srun --container-image=/mnt/home/own.sqsh --container-remap-root sh -c 'id -u; stat -c %u /etc/where; cat /zero'`,
			prints: "0\n0\ncat: can't open '/zero': Permission denied\nsrun: error: a: task 0: Exited with exit code 1", code: 1,
		},
		{name: "a file of a group of the user", line: "srun --container-image=./club.sqsh cat /etc/where", prints: "of the file"},
		{name: "eight tasks in one file", line: "srun -n8 --container-image=./own.sqsh cat /etc/where | sort -u", prints: "of the file"},
		{name: "a directory", line: "srun --container-image=./tree sh -c 'cat /etc/where; echo $COLOR; touch /etc/new'; ls tree/etc", says: []string{
			"of the directory\nfile 1\n", "environment\nrc\nwhere",
		}},
		{name: "a file of root", line: "srun --container-image=./root.sqsh true", says: []string{"/mnt/home/root.sqsh: permission denied"}, code: 1},
		{name: "a file that is cut off", line: "srun --container-image=./cut.sqsh true", says: []string{"/mnt/home/cut.sqsh is cut off: it has 1000 of "}, code: 1},
		{name: "a file that is no image", line: "srun --container-image=./text true", says: []string{"/mnt/home/text is no squashfs file"}, code: 1},
		{name: "a file that is not there", line: "srun --container-image=./none true", says: []string{"/mnt/home/none: no such file or directory"}, code: 1},
		{name: "a device", line: "srun --container-image=/dev/zero true", says: []string{"/dev/zero is neither a squashfs file nor a directory"}, code: 1},
	})
}
