// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

func TestWhatIsIncludedIsReadInItsPlace(t *testing.T) {
	const from, end = "# What follows was included from a.\n", "# So much of a.\n"
	for _, tt := range []struct {
		name, text string
		files      map[string]string
		want       string
	}{
		{"a document that includes nothing stays as it is", "KillWait=3\nPartitionName=p Nodes=ALL\n", nil, "KillWait=3\nPartitionName=p Nodes=ALL\n"},
		{"lines stand where they are included, behind the defaults that they have there", "PartitionName=DEFAULT MaxTime=5\ninclude a\nPartitionName=q Nodes=ALL\n",
			map[string]string{"a": "# mine\nPartitionName=p Nodes=ALL\n"},
			"PartitionName=DEFAULT MaxTime=5\n" + from + "# mine\nPartitionName=p Nodes=ALL\n" + end + "PartitionName=q Nodes=ALL\n"},
		{"a file that is not known stays included", "include a\ninclude b\n", map[string]string{"a": "KillWait=3\n"}, from + "KillWait=3\n" + end + "include b\n"},
		{"files include files", "include a\n", map[string]string{"a": "include b\n", "b": "NodeName=n\n"},
			from + "# What follows was included from b.\nNodeName=n\n# So much of b.\n" + end},
		{"files that include each other end", "include a\n", map[string]string{"a": "include a\n"}, from + "include a\n" + end},
		{"the latest value of a key counts", "KillWait=3\nSlurmctldParameters=x\ninclude a\nReturnToService=2\n",
			map[string]string{"a": "KillWait=4\nSlurmctldParameters=y\nReturnToService=1\n"},
			"KillWait=4\nSlurmctldParameters=y\n" + from + "ReturnToService=2\n" + end},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := mustWrite(t, parsed(t, Slurm, tt.text).Inline(func(name string) *Document {
				if text, ok := tt.files[name]; ok {
					return parsed(t, Slurm, text)
				}
				return nil
			}))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestSlurmctldTakesTheLatestOfAnIncludedKey compares Inline with a slurmctld that includes the file.
func TestSlurmctldTakesTheLatestOfAnIncludedKey(t *testing.T) {
	echo := regexp.MustCompile(`Invalid path for BcastExclude: (.*)`)
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			box := realslurm.Open(t, root, "")
			const more = "BcastExclude=theirs\n"
			if err := os.WriteFile(box.Path("more.conf"), []byte(more), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"include /mnt/more.conf\n", "BcastExclude=ours\ninclude /mnt/more.conf\n", "include /mnt/more.conf\nBcastExclude=ours\n"} {
				inlined := parsed(t, Slurm, text).Inline(func(string) *Document { return parsed(t, Slurm, more) })
				want, _ := inlined.Get("BcastExclude")
				got := echo.FindStringSubmatch(tried(t, box, mustWrite(t, minimal())+text))
				if got == nil || got[1] != want {
					t.Errorf("slurmctld reads %q of %q, want %q", got, text, want)
				}
			}
		})
	}
}
