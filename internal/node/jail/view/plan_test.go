// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/jail/view"
)

func TestPlan(t *testing.T) {
	in := view.Input{
		Upper: "/mnt/jail.upper", Run: "/run/jail", Binds: []string{"/var/spool/slurmd"},
		Slurm: "/usr/local/lib/coxswain/slurm", Programs: []string{"sbatch", "srun"}, Plugins: []string{"/usr/lib/x86_64-linux-gnu/slurm-wlm"},
		MountPoints: []string{"/", "/mnt/jail.upper/data/deep", "/mnt/jail.upper/data", "/mnt/jail.upper/database", "/mnt/jail.upperx/no", "/mnt/jail.upper/etc/file", "/mnt/jail.upper/mnt/memory", "/mnt/jail", "/mnt/jail.upper/data"},
	}
	want := `proc at /proc
/sys at /sys with all below
/dev at /dev with all below
/tmp at /tmp with all below
/run/jail at /run
/run/slurm at /run/slurm
/run/munge at /run/munge, read-only
/etc/hosts at /etc/hosts
/etc/resolv.conf at /etc/resolv.conf
/var/lib/extrausers at /var/lib/extrausers, read-only, if it is there
/var/lib/sss at /var/lib/sss, if it is there
/etc/ssh/ssh_known_hosts at /etc/ssh/ssh_known_hosts, read-only, over a file
/var/spool/slurmd at /var/spool/slurmd with all below
/usr/lib/x86_64-linux-gnu/slurm-wlm at /usr/lib/x86_64-linux-gnu/slurm-wlm, read-only, if it is there
/usr/local/lib/coxswain/slurm at /run/coxswain/slurm, read-only
/usr/local/lib/coxswain/slurm/bin/sbatch at /usr/bin/sbatch, read-only, over a file
/usr/local/lib/coxswain/slurm/bin/srun at /usr/bin/srun, read-only, over a file
/mnt/jail.upper/data at /data with all below
/mnt/jail.upper/database at /database with all below
/mnt/jail.upper/etc/file at /etc/file with all below
/mnt/jail.upper/mnt/memory at /mnt/memory with all below, if it is there
`
	if diff := cmp.Diff(want, text(view.Plan(in))); diff != "" {
		t.Error(diff)
	}
}

func text(steps []view.Step) string {
	var b strings.Builder
	for _, s := range steps {
		source := s.Source
		if source == "" {
			source = "proc"
		}
		fmt.Fprintf(&b, "%s at %s", source, s.Target)
		for _, word := range []struct {
			says bool
			text string
		}{{s.Recursive, " with all below"}, {s.ReadOnly, ", read-only"}, {s.Optional, ", if it is there"}, {s.OverFile, ", over a file"}} {
			if word.says {
				b.WriteString(word.text)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestMountPoints(t *testing.T) {
	got := view.MountPoints("1 0 0:1 / / rw - overlay overlay rw\n2 1 0:2 / /mnt/a\\040b\\134c\\011 rw - tmpfs t rw\n\nbroken line\n3 1 0:2 / /mnt/\\999 rw - t t rw\n")
	if diff := cmp.Diff([]string{"/", "/mnt/a b\\c\t", "/mnt/\\999"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzMountPoints(f *testing.F) {
	f.Add("36 35 98:0 /mnt1 /mnt2\\040x rw,noatime master:1 - ext3 /dev/root rw\n")
	f.Add("\\")
	f.Fuzz(func(t *testing.T, mountinfo string) {
		points := view.MountPoints(mountinfo)
		if len(points) > strings.Count(mountinfo, "\n")+1 {
			t.Errorf("%d mount points in %q", len(points), mountinfo)
		}
		for _, s := range view.Plan(view.Input{Upper: "/mnt/jail.upper", MountPoints: points}) {
			if !strings.HasPrefix(s.Target, "/") {
				t.Errorf("a mount at %q, which is no path of the jail", s.Target)
			}
		}
	})
}
