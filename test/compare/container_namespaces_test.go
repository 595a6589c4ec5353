// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compare

// namespaceTrials are about --container-unshare.
func namespaceTrials() []trial {
	return []trial{
		{
			name: "a container has the network, the queues and the name of its node",
			line: `for n in net ipc uts pid
				do test $(srun --container-image=$T readlink /proc/self/ns/$n) = $(readlink /proc/self/ns/$n) && echo same; done`,
			prints: "same\nsame\nsame\nsame",
		},
		{
			name: "all tasks of a step share the namespaces that --container-unshare names",
			line: `srun -n3 --container-image=$T --container-unshare=net,uts sh -c 'for n in net uts ipc; do readlink /proc/self/ns/$n
				done' | sort -u >/mnt/out/ns; wc -l </mnt/out/ns
				readlink /proc/self/ns/ipc /proc/self/ns/net /proc/self/ns/uts | grep -c -F -f - /mnt/out/ns`,
			prints: "3\n1",
		},
		{
			name: "a network of its own has a loopback device that works, and nothing else",
			line: `srun --container-image=$T --container-unshare=net --container-remap-root sh -c 'grep -c : /proc/net/dev
				ping -c 1 127.0.0.1 | grep -c "1 packets received"'`,
			prints: "1\n1",
		},
		{
			name: "queues of its own are empty",
			line: `PYXIS_CONTAINER_UNSHARE=ipc srun --container-image=$T readlink /proc/self/ns/ipc >/mnt/out/ns
				readlink /proc/self/ns/ipc | grep -c -F -f - /mnt/out/ns`,
			prints: "0", code: 1,
		},
		{
			name: "a remapped root may change a name of its own, and not the node's",
			line: `srun --container-image=$T --container-unshare=uts --container-remap-root sh -c 'hostname x && hostname'
				srun --container-image=$T --container-remap-root hostname x; hostname`,
			prints: "x\nhostname: sethostname: Operation not permitted\nsrun: error: a: task 0: Exited with exit code 1\nbox",
		},
		{
			name: "an unknown namespace is refused",
			line: `srun --container-image=$T --container-unshare=net,pid true`,
			says: []string{"error: pyxis: --container-unshare: unknown namespace 'pid'"},
			code: 1,
		},
	}
}
