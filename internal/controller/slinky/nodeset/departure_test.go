// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeset

import "testing"

func TestADeletedNodeSetStaysOnlyForWhatCanBeAnswered(t *testing.T) {
	running := departure{workers: 2, controller: true, asked: true}
	tests := []struct {
		name  string
		edit  func(*departure)
		holds bool
	}{
		{"workers that Slurm can be asked about", func(*departure) {}, true},
		{"workers that a dry run keeps", func(d *departure) { d.dryRun = true }, true},
		{"no workers", func(d *departure) { d.workers = 0 }, false},
		{"workers that are to be kept", func(d *departure) { d.orphaned = true }, false},
		{"workers of a cluster that goes as well", func(d *departure) { d.controller = false }, false},
		{"workers that nobody can be asked about", func(d *departure) { d.asked = false }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := running
			tt.edit(&d)
			if got := d.holds(); (got != "") != tt.holds {
				t.Errorf("holds = %q", got)
			}
		})
	}
}
