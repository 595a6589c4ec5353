// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"fmt"
	"strings"
	"testing"
)

func TestWorkersHaveTheScriptsThatSlurmConfNames(t *testing.T) {
	const cluster = `
metadata: {name: demo}
kind: SlurmCluster
spec:
  healthCheckConfig: {healthCheckInterval: 60, healthCheckProgram: HEALTH, healthCheckNodeState: [{state: IDLE}]}
  slurmConfig: {prolog: PROLOG}
  volumeSources: [{name: scripts, configMap: {name: slurm-scripts}}, {name: home, nfs: {server: s, path: /home}}]
  slurmNodes:
    login:
      volumes:
        customMounts: [{name: slurm-scripts, mountPath: /opt/slurm_scripts/, volumeSourceName: scripts}, {name: home, mountPath: /home, volumeSourceName: home}]
---
kind: NodeSet
metadata: {name: gpu}
spec:
  slurmd: {image: {repository: r, tag: t}, volumes: {JAILcustomVolumeMounts: [MOUNT]}}
`
	d := load(t)
	for name, c := range map[string]struct{ prolog, health, mount, jail, want string }{
		"a prolog has the ConfigMap of the login pods": {prolog: "/opt/slurm_scripts/prolog.sh", want: "slurm-scripts=/opt/slurm_scripts/"},
		"a prolog has the ConfigMap in the jail as well, where TaskProlog runs": {
			prolog: "/opt/slurm_scripts/prolog.sh", jail: "jail: {nfs: {server: s, path: /}}, ", want: "slurm-scripts=/opt/slurm_scripts/ slurm-scripts=/mnt/jail.upper/opt/slurm_scripts in-memory=/mnt/jail.upper/mnt/memory",
		},
		"a health check has the ConfigMap of the login pods":        {health: "/opt/slurm_scripts/hc.sh", want: "slurm-scripts=/opt/slurm_scripts/"},
		"a prolog elsewhere has no ConfigMap":                       {prolog: "/etc/slurm/prolog.sh"},
		"a prolog in a neighbour of the directory has no ConfigMap": {prolog: "/opt/slurm_scripts2/prolog.sh"},
		"a volume of users is not mounted, whatever is on it":       {prolog: "/home/prolog.sh"},
		"a directory where the NodeSet has something stays as it is": {
			prolog: "/opt/slurm_scripts/prolog.sh", mount: "{name: m, mountPath: /opt/slurm_scripts, volumeSource: {emptyDir: {}}}", want: "m=/opt/slurm_scripts",
		},
		"a directory above which the NodeSet has something stays as it is": {
			prolog: "/opt/slurm_scripts/prolog.sh", mount: "{name: m, mountPath: /opt, volumeSource: {emptyDir: {}}}", want: "m=/opt",
		},
		"a volume whose name is taken is not mounted": {
			prolog: "/opt/slurm_scripts/prolog.sh", mount: "{name: slurm-scripts, mountPath: /m, volumeSource: {emptyDir: {}}}", want: "slurm-scripts=/m",
		},
	} {
		t.Run(name, func(t *testing.T) {
			health := c.health
			if health == "" {
				health = "/bin/true"
			}
			in := d.input(t, strings.NewReplacer("PROLOG", `"`+c.prolog+`"`, "HEALTH", health, "MOUNT", c.mount, "JAIL", c.jail).Replace(cluster))
			out := NodeSet(in.Cluster, &in.NodeSets[0])
			if len(out.Problems) > 0 {
				t.Fatal(out.Problems.Message())
			}
			slurmd, err := out.Object.Spec.Slurmd.Decode()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range slurmd.VolumeMounts {
				if m.Name != "dev-shm" && m.Name != "login-users" && !strings.HasPrefix(m.Name, "ssh-") {
					got = append(got, fmt.Sprintf("%s=%s", m.Name, m.MountPath))
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("mounts are %q, want %q", got, c.want)
			}
		})
	}
}
