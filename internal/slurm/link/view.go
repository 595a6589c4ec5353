// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package link

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// A view holds the snapshot of a link. Reading it never blocks.
type view struct {
	clock   clock.Clock
	current atomic.Pointer[Snapshot]
	change  sync.Mutex // held while another snapshot is made of this one
}

func newView(clock clock.Clock) *view {
	v := &view{clock: clock}
	v.current.Store(&Snapshot{Trust: Stale, Since: clock.Now(), Why: "Slurm has not answered yet"})
	return v
}

// snapshot returns what is known now.
func (v *view) snapshot() *Snapshot { return v.stored().at(v.now()) }

// stored returns what is known, as it was when it became known.
func (v *view) stored() *Snapshot { return v.current.Load() }

func (v *view) now() time.Time { return v.clock.Now() }

// swap puts the snapshot that next makes of the stored one in its place; nil leaves it.
func (v *view) swap(next func(old *Snapshot) *Snapshot) {
	v.change.Lock()
	defer v.change.Unlock()
	if s := next(v.stored()); s != nil {
		v.current.Store(s)
	}
}
