// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

// refusalTrials are about options that contradict each other or have no effect.
func refusalTrials() []trial {
	return []trial{
		{
			name: "a step without an image runs on the node, and is told once of each option that is ignored",
			line: `srun -n2 --container-mounts=/nowhere --container-workdir=/x --container-mount-home --container-remap-root \
				--no-container-entrypoint --container-readonly --container-env=A --container-unshare=net sh -c 'id -un' 2>&1 | sort`,
			prints: "alice\nalice\n" +
				"srun: error: pyxis: ignoring --container-mount-home because neither --container-image nor --container-name is set\n" +
				"srun: error: pyxis: ignoring --container-mounts because neither --container-image nor --container-name is set\n" +
				"srun: error: pyxis: ignoring --container-readonly because neither --container-image nor --container-name is set\n" +
				"srun: error: pyxis: ignoring --container-remap-root because neither --container-image nor --container-name is set\n" +
				"srun: error: pyxis: ignoring --container-workdir because neither --container-image nor --container-name is set\n" +
				"srun: error: pyxis: ignoring --no-container-entrypoint because neither --container-image nor --container-name is set",
		},
		{
			name: "an option may be given twice with one value",
			line: `srun --container-image=$T --container-image=$T --container-readonly --container-readonly \
				--container-workdir=/bin --container-workdir=/bin pwd`,
			prints: "/bin",
		},
		{
			name: "an option that is given twice with two values is refused before the job starts",
			line: `srun --container-image=$T --container-image=$B true
				srun --container-image=$T --container-workdir=/a --container-workdir=/b true`,
			says: []string{"srun: error: pyxis: --container-image specified multiple times",
				"srun: error: pyxis: --container-workdir specified multiple times"},
			hides: []string{"task 0"}, code: 255,
		},
		{
			name: "a flag and its opposite are refused",
			line: `for f in mount-home remap-root; do srun --container-image=$T --container-$f --no-container-$f true; done
				srun --container-image=$T --container-writable --container-readonly true`,
			says: []string{
				"pyxis: both --container-mount-home and --no-container-mount-home were specified",
				"pyxis: both --container-remap-root and --no-container-remap-root were specified",
				"pyxis: both --container-writable and --container-readonly were specified",
			},
			code: 255,
		},
		{
			name: "an option without its argument is refused",
			line: `for o in image mounts workdir env unshare; do srun --container-$o= true; done`,
			says: []string{
				"pyxis: --container-image: argument required", "pyxis: --container-mounts: argument required",
				"pyxis: --container-workdir: argument required",
				"pyxis: --container-env: argument required", "pyxis: --container-unshare: argument required",
			},
			code: 255,
		},
		{
			name: "the help of all three commands has the options",
			line: `for c in srun sbatch salloc; do $c --help | grep -c -e --container-image= -e --container-remap-root; done`, prints: "2\n2\n2",
		},
	}
}
