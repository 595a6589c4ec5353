// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-hpc/coxswain/test/realslurm"
)

func TestCompress(t *testing.T) {
	tests := []struct {
		name  string
		names []string
		want  string
	}{
		{"no names are the empty expression", nil, ""},
		{"one name stays a name", []string{"w1"}, "w1"},
		{"neighbours become a range", []string{"w2", "w1", "w3"}, "w[1-3]"},
		{"two neighbours become a range", []string{"w1", "w2"}, "w[1-2]"},
		{"repetitions vanish", []string{"w1", "w1"}, "w1"},
		{"gaps stay gaps", []string{"w1", "w3", "w4"}, "w[1,3-4]"},
		{"zero padding is kept", []string{"w1", "w2", "w3", "w07", "w08", "w09"}, "w[1-3,07-09]"},
		{"a range grows a digit", []string{"n9", "n10", "n11"}, "n[9-11]"},
		{"a number joins the range before it", []string{"n99", "n100", "n101", "n099"}, "n[99,099-101]"},
		{"the same number in three widths", []string{"n1", "n01", "n001"}, "n[1,01,001]"},
		{"names without numbers stay apart", []string{"login", "w1", "w"}, "login,w,w1"},
		{"names of digits only", []string{"1", "2"}, "[1-2]"},
		{"equal brackets below several beginnings are folded", []string{"rack1n01", "rack1n02", "rack2n01", "rack2n02"}, "rack[1-2]n[01-02]"},
		{"three dimensions are folded", []string{"a1b1c1", "a1b1c2", "a1b2c1", "a1b2c2", "a2b1c1", "a2b1c2", "a2b2c1", "a2b2c2"}, "a[1-2]b[1-2]c[1-2]"},
		{"unequal brackets are not folded", []string{"a1b1", "a1b2", "a2b1"}, "a1b[1-2],a2b1"},
		{"a bracket ends the name, because older versions insist", []string{"r1n5", "r2n5", "r3n5", "r4n5"}, "r[1-4]n[5]"},
		{"folding is left out where it gains nothing", []string{"a1b5", "a2b5"}, "a1b5,a2b5"},
		{"a number inside the name is not enough", []string{"w1a", "w2a", "w3a"}, "w1a,w2a,w3a"},
		{"addresses", []string{"ip-10-0-0-7", "ip-10-0-0-8", "ip-10-0-1-7", "ip-10-0-1-8"}, "ip-10-0-[0-1]-[7-8]"},
		{"numbers too long for a bracket", []string{"a1234567890123456789", "a1234567890123456790"}, "a1234567890123456789,a1234567890123456790"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Compress(tt.names); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestAShortListIsCut(t *testing.T) {
	if got := Short([]string{"w-1", "w-0"}); got != "w-[0-1]" {
		t.Errorf("a list that fits is %q", got)
	}
	var names []string
	for i := range 200 {
		names = append(names, fmt.Sprintf("w-%d", 2*i))
	}
	if got := Short(names); len(got) != maxShort+len("…") || !strings.HasPrefix(got, "w-[0,2,4,") || !strings.HasSuffix(got, "…") {
		t.Errorf("a long list is %q", got)
	}
}

func TestCompressKeepsRangesWithinWhatSlurmAccepts(t *testing.T) {
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("w%d", i)
	}
	if got, want := Compress(names), "w[0-65535,65536-99999]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// aName draws names that collide in prefixes and numbers often enough to make brackets worth while.
func aName() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-c][0-9]{1,3}`),
		rapid.StringMatching(`r[0-3]n[0-2]{1,2}`),
		rapid.StringMatching(`[ab][12]-[12]_[0-2]`),
		rapid.StringMatching(`[a-z0-9_][a-zA-Z0-9_.-]{0,24}`),
	).Filter(func(s string) bool { return CheckName(s) == nil })
}

func TestExpandUndoesCompress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(aName()).Draw(t, "names")
		expr := Compress(names)

		got, err := Expand(expr, len(names))
		if err != nil {
			t.Fatalf("compressed to %q: %v", expr, err)
		}
		slices.SortFunc(got, Compare)
		want := slices.SortedFunc(slices.Values(names), Compare)
		want = slices.Compact(want)
		if !slices.Equal(got, want) {
			t.Fatalf("compressed to %q: %s", expr, cmp.Diff(want, got))
		}
		// A pair of one-digit numbers costs one character more in a bracket, and two where nothing stands before: [0-1] for 0,1.
		// Slurm writes it so too.
		if plain := strings.Join(want, ","); len(expr) > len(plain)+len(want) {
			t.Fatalf("%q is longer than %q", expr, plain)
		}
		if again := Compress(rapid.Permutation(names).Draw(t, "shuffled")); again != expr {
			t.Fatalf("another order gives %q instead of %q", again, expr)
		}
	})
}

func TestCompareIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := aName().Draw(t, "a"), aName().Draw(t, "b"), aName().Draw(t, "c")
		if Compare(a, b) != -Compare(b, a) {
			t.Fatal("not antisymmetric")
		}
		if (Compare(a, b) == 0) != (a == b) {
			t.Fatal("equal, but not the same")
		}
		if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Fatal("not transitive")
		}
	})
}

// TestSlurmReadsWhatCompressWrites asks scontrol of both releases.
func TestSlurmReadsWhatCompressWrites(t *testing.T) {
	for _, root := range realslurm.Roots(t) {
		t.Run(root.Release, func(t *testing.T) {
			box, names := realslurm.Open(t, root, ""), aName()
			for seed := range 100 {
				want := SetOf()
				for i := range 60 {
					want.Add(names.Example(seed*1000 + i))
				}
				got, err := box.Try("scontrol", "show", "hostnames", want.String())
				if err != nil {
					t.Fatalf("scontrol refuses %q: %v: %s", want, err, got)
				}
				if diff := cmp.Diff(want, SetOf(strings.Fields(got)...)); diff != "" {
					t.Fatalf("scontrol expands %q differently: %s", want, diff)
				}
			}
		})
	}
}

func tenThousand() []string {
	names := make([]string, 0, 10_000)
	for i := range 10_000 {
		names = append(names, fmt.Sprintf("rack%dn%03d", i/100, i%100))
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func BenchmarkCompress10000(b *testing.B) {
	names := tenThousand()
	b.ReportAllocs()
	for b.Loop() {
		Compress(names)
	}
}

func BenchmarkExpand10000(b *testing.B) {
	expr := Compress(tenThousand())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Expand(expr, 10_000); err != nil {
			b.Fatal(err)
		}
	}
}
