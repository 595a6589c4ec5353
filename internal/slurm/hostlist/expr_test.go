// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package hostlist

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	tests := []struct {
		name string
		expr string
		want []string
	}{
		{"an empty expression has no names", "", nil},
		{"a plain name stands for itself", "gpu-a", []string{"gpu-a"}},
		{"a range counts up", "w[1-3]", []string{"w1", "w2", "w3"}},
		{"the first number of a range gives the width", "w[07-10]", []string{"w07", "w08", "w09", "w10"}},
		{"a padded range may outgrow its width", "w[98-101]", []string{"w98", "w99", "w100", "w101"}},
		{"a wide last number does not pad", "a[1-0003]", []string{"a1", "a2", "a3"}},
		{"ranges and numbers mix", "w[1-2,07,9]", []string{"w1", "w2", "w07", "w9"}},
		{"the leftmost bracket counts slowest", "rack[1-2]n[01-02]", []string{"rack1n01", "rack1n02", "rack2n01", "rack2n02"}},
		{"text may follow the last bracket, as since Slurm 24.11", "unit[0-1]rack", []string{"unit0rack", "unit1rack"}},
		{"names of digits only are names", "[1-2]", []string{"1", "2"}},
		{"blanks separate like commas", "a b\tc,d", []string{"a", "b", "c", "d"}},
		{"empty parts are skipped", ",a,,b,", []string{"a", "b"}},
		{"repeated names stay, as Slurm has it", "a[1,1],a1", []string{"a1", "a1", "a1"}},
		{"dots and underscores belong to names", "n_1.example.com", []string{"n_1.example.com"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Expand(tt.expr, 100)
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) || !slices.Equal(got, tt.want) {
				t.Error(cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestExpandRefuses(t *testing.T) {
	tests := []struct {
		name, expr, want string
	}{
		{"more names than the limit, without making them", "a[0-999999999]", "stands for 1000000000 names, the limit is 100"},
		{"a product that overflows", "a[0-999999999999999999]b[0-999999999999999999]", "stands for 9223372036854775807 names"},
		{"a sum that overflows", strings.Repeat("a[0-999999999999999999],", 20), "stands for 9223372036854775807 names"},
		{"numbers that do not fit into 64 bits", "a[1-18446744073709551616]", "more than 18 digits"},
		{"an open bracket", "a[1", "'[' is not closed"},
		{"a closing bracket alone", "a]", "']' at position 2"},
		{"a bracket in a bracket", "a[[1]]", "'[' inside brackets"},
		{"an empty bracket", "a[]", "is not a number or a pair of numbers"},
		{"an open range", "a[1-]", "is not a number or a pair of numbers"},
		{"a range of letters", "a[x-z]", "is not a number or a pair of numbers"},
		{"a signed number", "a[+1-2]", "is not a number or a pair of numbers"},
		{"a blank in a bracket", "a[1 - 2]", "is not a number or a pair of numbers"},
		{"three numbers in a range", "a[1-2-3]", "is not a number or a pair of numbers"},
		{"a range that counts down", "a[3-1]", `range "3-1" counts down`},
		{"a name that could be taken for an option", "-a", "starts with '-'"},
		{"a bracket expression that could be", "-a[1-2]", "cannot start with '-'"},
		{"a reserved word", "w1,all", "reserved word"},
		{"a comment sign", "a#b", "'#' at position 2"},
		{"an equals sign", "a[1]b=[2]", "'=' at position 2"},
		{"a letter outside ASCII", "é", "'é' at position 1"},
		{"a NUL byte", "a\x00b", `'\x00' at position 2`},
		{"a name without end", strings.Repeat("a", 300), "longer than 253 characters"},
		{"an expression with endless names", strings.Repeat("a", 250) + "[1-1000]", "longer than 253 characters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Expand(tt.expr, 100)
			if err == nil {
				t.Fatalf("got %v, want an error", got)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %q, want it to say %q", err, tt.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestLenSaturates(t *testing.T) {
	e, err := Parse(strings.Repeat("a[0-999999999999999999]b[0-999999999]", 1))
	if err != nil {
		t.Fatal(err)
	}
	if e.Len() != math.MaxInt {
		t.Errorf("Len is %d", e.Len())
	}
}

func TestAllStopsWhenTheConsumerDoes(t *testing.T) {
	e, err := Parse("a[0-999999999]b[1-2],c")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range e.All() {
		got = append(got, name)
		if len(got) == 3 {
			break
		}
	}
	if diff := cmp.Diff([]string{"a0b1", "a0b2", "a1b1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCompareCountsLikePeople(t *testing.T) {
	want := []string{"a", "a-1", "a1", "a1b", "a2", "a9", "a09", "a10", "a010", "a0100", "a10000000000000000000000", "ab", "b1"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Compare)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "w[1-3,07-09],gpu-a,rack[1-2]n[01-10]", "a[0-999999999]", "a[3-1]", "a[", "]", "a]b[1]", "n[1-3]x", "é", "a b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		names, err := Expand(s, 1000)
		if err != nil {
			return
		}
		for _, name := range names {
			if err := CheckName(name); err != nil {
				t.Fatalf("%q expands to a name that is none: %v", s, err)
			}
		}
		again, err := ParseSet(Compress(names), 1000)
		if err != nil {
			t.Fatalf("%q compresses to %q: %v", s, Compress(names), err)
		}
		if diff := cmp.Diff(SetOf(names...), again); diff != "" {
			t.Fatal(diff)
		}
	})
}
