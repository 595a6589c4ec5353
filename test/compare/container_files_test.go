// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

// fileTrials are about the container's own files: whether they can be written, where tasks start, and the home directory.
func fileTrials() []trial {
	return []trial{
		{
			name: "files of a container can be written, and are gone after the step",
			line: `srun --container-image=$T sh -c 'echo new >/image; rm /srv/secret; touch /bin/new; cat /image'
				srun --container-image=$T sh -c 'cat /image /srv/secret; ls /bin/new'`,
			prints: "new\nlab/tools\nof www\nls: /bin/new: No such file or directory\nsrun: error: a: task 0: Exited with exit code 1", code: 1,
		},
		{
			name: "--container-readonly lets nobody write but below /tmp",
			line: `srun --container-image=$T --container-readonly sh -c 'touch /tmp/x && touch /x'`,
			says: []string{"touch: /x: Read-only file system"}, hides: []string{"/tmp/x"}, code: 1,
		},
		{
			name: "a remapped root writes no container that is read-only",
			line: `srun --container-image=$T --container-readonly --container-remap-root touch /x`,
			says: []string{"touch: /x: Read-only file system"}, code: 1,
		},
		{
			name: "variables stand for --container-readonly and --container-writable, the option wins, and then the second variable",
			line: `try() { srun --container-image=$T "$@" sh -c 'touch /x 2>/dev/null && echo writable || echo readonly'; }
				export PYXIS_CONTAINER_READONLY=1; try; try --container-writable; export PYXIS_CONTAINER_WRITABLE=y; try
				unset PYXIS_CONTAINER_READONLY; export PYXIS_CONTAINER_WRITABLE=false; try; export PYXIS_CONTAINER_WRITABLE=maybe; try`,
			prints: "readonly\nwritable\nwritable\nreadonly\nwritable",
		},
		{
			name:   "a task starts in the directory that the image names, or in the root",
			line:   `srun --container-image=$T pwd; srun --container-image=$B pwd`,
			prints: "/srv\n/",
		},
		{
			name: "a task starts in the directory of --container-workdir or of its variable, from the root",
			line: `srun --container-image=$T --container-workdir=/bin pwd; srun --container-image=$T --container-workdir=srv/inside pwd
				PYXIS_CONTAINER_WORKDIR=/etc srun --container-image=$T pwd`,
			prints: "/bin\n/srv/inside\n/etc",
		},
		{
			name:   "a directory of the node is none to start in, nor does .. lead there",
			line:   `srun --chdir=/mnt/data --container-image=$T pwd; srun --container-image=$T --container-workdir=../../srv pwd`,
			prints: "/srv\n/srv",
		},
		{
			name: "a directory that is not there is told",
			line: `srun --container-image=$T --container-workdir=/nowhere true`,
			says: []string{"error: pyxis: couldn't chdir to /nowhere: No such file or directory"}, code: 1,
		},
		{
			name: "the home directory is there with --container-mount-home or its variable",
			line: `srun --container-image=$T --container-mount-home sh -c 'cat ~/mine'
				PYXIS_CONTAINER_MOUNT_HOME=1 srun --container-image=$T sh -c 'cat ~/mine'`,
			prints: "of alice\nof alice",
		},
		{
			name: "the home directory is not there otherwise, nor with --no-container-mount-home",
			line: `export PYXIS_CONTAINER_MOUNT_HOME=1; srun --container-image=$T --no-container-mount-home sh -c 'cat ~/mine'
				unset PYXIS_CONTAINER_MOUNT_HOME; srun --container-image=$T sh -c 'cat ~/mine'`,
			says: []string{"cat: can't open '/mnt/home/mine': No such file or directory"}, hides: []string{"of alice"}, code: 1,
		},
		{
			name:   "a remapped root has the home directory at its own place",
			line:   `srun --container-image=$T --container-mount-home --container-remap-root sh -c 'echo $HOME; cat /mnt/home/mine'`,
			prints: "/root\nof alice",
		},
		{
			name: "the container shows processes, devices and names of the node, and no other file of it",
			line: `srun --container-image=$T sh -c 'cat /etc/hostname /mnt/data/file; ls /mnt
				test -e /proc/1/comm && test -c /dev/null && echo found; touch /sys/x /etc/hosts'`,
			says: []string{"box\n", "cat: can't open '/mnt/data/file'", "found", "touch: /sys/x: Read-only file system", "touch: /etc/hosts: Read-only file system"},
			code: 1,
		},
	}
}
