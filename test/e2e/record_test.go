// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// record is what Slurm knows of a node by its registration.
type record struct {
	weight int
	// features are those that the user gives; the feature by which the node belongs to its NodeSet comes with them.
	features string
	// memory is what jobs may have, in MiB.
	memory int
}

// seesRecord waits until scontrol shows the record of a node so.
func (u *user) seesRecord(t *testing.T, name string, want record) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("the record of node %s to be %+v", name, want), func(ctx context.Context) error {
		out, err := u.Run(ctx, "scontrol show node "+name)
		if err != nil {
			return err
		}
		got, err := parseRecord(out)
		if err == nil && got != want {
			err = fmt.Errorf("it is %+v: %s", got, out)
		}
		return err
	})
}

// parseRecord reads what scontrol shows of a node.
func parseRecord(shown string) (record, error) {
	var errs []error
	field := func(key string) string {
		found := regexp.MustCompile(`\b` + key + `=(\S+)`).FindStringSubmatch(shown)
		if found == nil {
			errs = append(errs, fmt.Errorf("there is no %s in %q", key, shown))
			return ""
		}
		return found[1]
	}
	number := func(key string) int {
		n, err := strconv.Atoi(field(key))
		errs = append(errs, err)
		return n
	}
	all := strings.Split(field("AvailableFeatures"), ",")
	if own := slices.Index(all, "cpu"); own >= 0 {
		all = slices.Delete(all, own, own+1)
	} else {
		errs = append(errs, fmt.Errorf("the features are %v, without that of the NodeSet", all))
	}
	slices.Sort(all)
	r := record{weight: number("Weight"), features: strings.Join(all, ","), memory: number("RealMemory") - number("MemSpecLimit")}
	return r, errors.Join(errs...)
}
