// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// board is the page of one cluster as all who look at it see it. Each change gives it another version.
type board struct {
	mu sync.Mutex
	// epoch distinguishes the versions of this board from those of others.
	epoch string
	// version counts changes, and laidOut is the version in which the page last had other elements.
	version, laidOut int
	current          *rendering
	// changed is the version in which a fragment last changed.
	changed map[string]int
	// refreshed is when the facts were gathered.
	refreshed time.Time
	// next is closed when there is another version, or the cluster is gone.
	next chan struct{}
	gone bool
	// queue is Slurm's last answer about jobs.
	queue Queue
	// streams is the number of browsers that follow it, and used is when the last one began. asking is true if Slurm is being asked for
	// jobs, and asked is when that began last. The server's lock is for these four.
	streams int
	used    time.Time
	asking  bool
	asked   time.Time
}

func newBoard(epoch string) *board {
	return &board{epoch: epoch, changed: map[string]int{}, next: make(chan struct{})}
}

// refresh renders the page anew. The caller holds the lock.
func (b *board) refresh(t templates, f Facts) error {
	next, err := t.render(NewPage(f), b.current)
	if err != nil {
		return err
	}
	before := map[string]string{}
	if b.current != nil {
		for _, fragment := range b.current.fragments {
			before[fragment.id] = fragment.html
		}
	}
	version, laidOut := b.version+1, b.current == nil || !b.current.sameLayout(next)
	news := laidOut
	for _, fragment := range next.fragments {
		if html, known := before[fragment.id]; !known || html != fragment.html {
			b.changed[fragment.id], news = version, true
		}
	}
	b.current = next
	if !news {
		return nil
	}
	b.version = version
	if laidOut {
		b.laidOut = version
	}
	b.wake()
	return nil
}

func (b *board) wake() {
	close(b.next)
	b.next = make(chan struct{})
}

// position names a version of a board.
func (b *board) position() string { return fmt.Sprintf("%s-%d", b.epoch, b.version) }

// update is what has changed since an earlier version.
type update struct {
	// fragments are the contents of elements, by their names; none if nothing is lacking.
	fragments map[string]string
	// position is the position of the version that they lead to.
	position string
	// next is closed when there is more.
	next <-chan struct{}
	gone bool
}

// since returns what has changed since the version at a position. It is the whole page where the board does not know that
// version, or has other elements.
func (b *board) since(t templates, position string) (update, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := update{fragments: map[string]string{}, position: b.position(), next: b.next, gone: b.gone}
	seen, known := b.parse(position)
	if !known || seen < b.laidOut {
		main, err := t.main(b.current)
		u.fragments["main"] = main
		return u, err
	}
	for _, fragment := range b.current.fragments {
		if b.changed[fragment.id] > seen {
			u.fragments[fragment.id] = fragment.html
		}
	}
	return u, nil
}

// parse reads a position; known is true if it is one of this board.
func (b *board) parse(position string) (version int, known bool) {
	rest, ok := strings.CutPrefix(position, b.epoch+"-")
	if !ok {
		return 0, false
	}
	version, err := strconv.Atoi(rest)
	return version, err == nil && version >= 0 && version <= b.version
}
