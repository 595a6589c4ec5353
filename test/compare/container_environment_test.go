// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

// environmentTrials are about the variables and the program of a task.
func environmentTrials() []trial {
	return []trial{
		{
			name: "variables of the image win, and others of the job stay",
			line: `export COLOR=job SHAPE=job LANG=de_DE LC_ALL=C
				srun --container-image=$T sh -c 'echo $PATH $COLOR $SHAPE $LANG $LC_ALL $SLURM_PROCID'`,
			prints: "/bin:/opt/bin image job 0",
		},
		{
			name: "variables of --container-env are the job's",
			line: `export COLOR=job LANG=de_DE
				srun --container-image=$T --container-env=COLOR,LANG,MISSING sh -c 'echo $COLOR $LANG ${MISSING-none}'`,
			prints: "job de_DE none",
		},
		{
			name:   "a variable stands for --container-env",
			line:   `export COLOR=job PYXIS_CONTAINER_ENV=COLOR; srun --container-image=$T sh -c 'echo $COLOR'`,
			prints: "job",
		},
		{
			name: "an image without variables has a PATH",
			line: `srun --container-image=$B sh -c 'echo $PATH'`, prints: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		},
		{
			name:   "HOME is the user's, and that of root for a remapped root",
			line:   `srun --container-image=$T sh -c 'echo $HOME'; srun --container-image=$T --container-remap-root sh -c 'echo $HOME'`,
			prints: "/mnt/home\n/root",
		},
		{
			name: "a step starts without any variable of its job",
			line: `srun --export=NONE --container-image=$T sh -c 'echo $PATH $COLOR $HOME; id -un'`, prints: "/bin:/opt/bin image /tmp\nalice",
		},
		{
			name: "a program that only the image has is found",
			line: `srun --container-image=$T only-here`, prints: "only here",
		},
		{
			name: "a program that only the node has is not found",
			line: `srun --container-image=$T scontrol ping`, says: []string{"No such file or directory"}, hides: []string{"UP"}, code: 2,
		},
		{
			name: "the entrypoint and the command of the image do not run",
			line: `srun --container-image=$T stat /entered`, says: []string{"No such file"}, code: 1,
		},
		{
			name:   "a variable stands for --container-image, and the option wins",
			line:   `export PYXIS_CONTAINER_IMAGE=$B; srun cat /image; srun --container-image=$T cat /image`,
			prints: "lab/bare\nlab/tools",
		},
	}
}
