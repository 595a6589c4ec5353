// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

// taskTrials are about the tasks of a step: how many there are, and how they end.
func taskTrials() []trial {
	return []trial{
		{
			name: "64 tasks are in one container",
			line: `srun -n64 --overcommit --container-image=$T sh -c 'touch /$SLURM_LOCALID
				readlink /proc/self/ns/mnt' | sort | uniq -c | grep -c ' 64 mnt:'`,
			prints: "1",
		},
		{
			name:   "each task has its own number",
			line:   `srun -n4 --container-image=$T sh -c 'echo $SLURM_PROCID' | sort`,
			prints: "0\n1\n2\n3",
		},
		{
			name: "the exit code of a step is the highest of its tasks",
			line: `srun -Q -n3 --container-image=$T sh -c 'exit $((7 + SLURM_PROCID))' 2>/dev/null`,
			code: 9,
		},
		{
			name: "a signal that ends a task is its exit code",
			line: `srun --container-image=$T sh -c 'kill -9 $$'`, says: []string{"srun: error: a: task 0: Killed"}, code: 137,
		},
		{
			name: "a program that is not there is told as without a container",
			line: `srun --container-image=$T /no/such/program`, says: []string{"/no/such/program", "No such file or directory"}, code: 2,
		},
		{
			name:   "a task reads its input",
			line:   `echo typed | srun --container-image=$T cat`,
			prints: "typed",
		},
		{
			name: "processes of a container know one another",
			line: `srun -n2 --container-image=$T --container-mounts=/dev/shm sh -c 'touch /dev/shm/of-$SLURM_JOB_ID.$SLURM_PROCID
				while ! test -e /dev/shm/of-$SLURM_JOB_ID.$((1 - SLURM_PROCID)); do sleep 0.01; done; echo met'; rm /dev/shm/of-*`,
			prints: "met\nmet",
		},
	}
}

// srunTrials are about what else srun has.
func srunTrials() []trial {
	return []trial{
		{
			name: "steps at the same time have a container each",
			line: `salloc -Q -n1 sh -c 'for i in 1 2 3; do srun --overlap --container-image=$T --container-mounts=/mnt/out sh -c "touch /own-$i
				until test -e /mnt/out/step-1 && test -e /mnt/out/step-2 && test -e /mnt/out/step-3; do touch /mnt/out/step-$i; sleep 0.05; done
				ls / | grep own-" & done; wait' | sort`,
			prints: "own-1\nown-2\nown-3",
		},
		{
			name: "the steps of an allocation have the options of salloc, and their own win",
			line: `salloc -Q --container-image=$T --container-mounts=/mnt/data:/a --container-mounts=/mnt/home:/c sh -c 'cat /mnt/data/file
				srun cat /image /a/file /c/mine; srun --container-image=$B --container-mounts=/mnt/home:/d sh -c "cat /image /d/mine; ls -d /[acd]"'`,
			prints: "of the node\nlab/tools\nof the node\nof alice\nlab/bare\nof alice\n/d",
		},
		{
			name: "a task has a terminal",
			line: `script -qec "srun --pty --container-image=$T tty" /dev/null </dev/null`,
			says: []string{"/dev/pts/"},
		},
		{
			name:   "the socket of PMI-2 is open in the container",
			line:   `srun -n2 --mpi=pmi2 --container-image=$T sh -c 'readlink /proc/self/fd/$PMI_FD | grep -c socket; echo size $PMI_SIZE' | sort`,
			prints: "1\n1\nsize 2\nsize 2",
		},
	}
}
