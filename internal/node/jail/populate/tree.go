// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package populate

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// maxNames is how many entries of a directory are one piece of work, so that several workers share a large directory.
const maxNames = 256

// directory is a directory that is being copied. Its descriptors are open while anything below it is not finished.
type directory struct {
	parent *directory
	// rel is its path in the jail; empty is the root.
	rel            string
	source, target int
	stat           unix.Statx_t
	// fresh is true if this run has made it, so that nothing is in it.
	fresh   bool
	pending atomic.Int32
}

func (d *directory) path(name string) string {
	if d.rel == "" {
		return name
	}
	return d.rel + "/" + name
}

// task is a piece of work: some entries of a directory, or with enter one subdirectory.
type task struct {
	dir   *directory
	names []string
	enter bool
}

// queue hands out tasks, the newest first: a walk in depth keeps few directories open.
type queue struct {
	mu    sync.Mutex
	wake  sync.Cond
	tasks []task
	// left counts tasks that are waiting or under way.
	left int
	err  error
}

func newQueue() *queue {
	q := &queue{}
	q.wake.L = &q.mu
	return q
}

func (q *queue) push(tasks ...task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tasks = append(q.tasks, tasks...)
	q.left += len(tasks)
	q.wake.Broadcast()
}

// next waits for a task; it returns false when all is done, or after an error.
func (q *queue) next() (task, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.err == nil && q.left > 0 && len(q.tasks) == 0 {
		q.wake.Wait()
	}
	if q.err != nil || q.left == 0 {
		return task{}, false
	}
	last := len(q.tasks) - 1
	t := q.tasks[last]
	q.tasks = q.tasks[:last]
	return t, true
}

func (q *queue) done(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left--
	if q.err == nil {
		q.err = err
	}
	if q.left == 0 || q.err != nil {
		q.wake.Broadcast()
	}
}

// tree copies the tree of c.source into the jail.
func (c *copier) tree(workers int) error {
	root := &directory{source: c.source, target: c.jail, fresh: false}
	if err := stat(c.source, "", &root.stat); err != nil {
		return fmt.Errorf("looking at the source: %w", err)
	}
	c.mount = root.stat.Mnt_id
	queue := newQueue()
	root.pending.Store(1)
	if err := c.entries(queue, root); err != nil {
		return err
	}
	if err := c.leave(root); err != nil {
		return err
	}
	var group sync.WaitGroup
	for n := range workers {
		group.Go(func() {
			w := &worker{copier: c, queue: queue, temporary: fmt.Sprintf("%s%d", temporaryPrefix, n)}
			for {
				t, ok := queue.next()
				if !ok {
					return
				}
				queue.done(w.do(t))
			}
		})
	}
	group.Wait()
	return queue.err
}

// worker copies one entry after the other.
type worker struct {
	*copier
	queue *queue
	// temporary is the name of what it is writing, in the directory where that belongs.
	temporary string
	buffer    []byte
}

func (w *worker) do(t task) error {
	for _, name := range t.names {
		var err error
		if t.enter {
			err = w.enter(t.dir, name)
		} else {
			err = w.entry(t.dir, name)
		}
		if err != nil {
			return w.at(t.dir.path(name), err)
		}
	}
	return w.leave(t.dir)
}

// entry copies one entry of a directory, or puts it into the queue if it is a directory itself.
func (w *worker) entry(d *directory, name string) error {
	rel := d.path(name)
	if w.excluded(rel, name) {
		return nil
	}
	var st unix.Statx_t
	if err := stat(d.source, name, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if kept, err := w.kept(d, rel, name); kept || err != nil {
			return err
		}
		d.pending.Add(1)
		w.queue.push(task{dir: d, names: []string{name}, enter: true})
		return nil
	}
	if st.Mnt_id != w.mount {
		return nil // a file that is mounted over one of the image, such as a Secret
	}
	if kept, err := w.kept(d, rel, name); kept || err != nil {
		return err
	}
	if err := w.leaf(d, name, &st); err != nil {
		return err
	}
	w.progress.add(1, 0)
	return nil
}

// kept reports whether an entry belongs to users and is there already.
func (w *worker) kept(d *directory, rel, name string) (bool, error) {
	if !w.keep || d.fresh || !users(rel) {
		return false, nil
	}
	var st unix.Stat_t
	err := unix.Fstatat(d.target, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

// enter makes a directory and puts what is in it into the queue.
func (w *worker) enter(parent *directory, name string) error {
	d := &directory{parent: parent, rel: parent.path(name)}
	if err := stat(parent.source, name, &d.stat); err != nil {
		return err
	}
	var err error
	if d.fresh, err = w.directory(parent.target, name); err != nil {
		return err
	}
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	if d.target, err = unix.Openat(parent.target, name, flags, 0); err != nil {
		return err
	}
	if d.source, err = unix.Openat(parent.source, name, flags, 0); err != nil {
		return errors.Join(err, unix.Close(d.target))
	}
	parent.pending.Add(1)
	d.pending.Store(1)
	if err := w.entries(w.queue, d); err != nil {
		return err
	}
	return w.leave(d)
}

// directory makes a directory where there is none, and reports whether it did. Something else in its place is removed: a symlink there
// would lead elsewhere.
func (w *worker) directory(parent int, name string) (bool, error) {
	err := w.change(func() error { return unix.Mkdirat(parent, name, 0o700) })
	if !errors.Is(err, unix.EEXIST) {
		return err == nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(parent, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return false, err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return false, nil
	}
	if err := w.change(func() error { return unix.Unlinkat(parent, name, 0) }); err != nil {
		return false, err
	}
	return true, w.change(func() error { return unix.Mkdirat(parent, name, 0o700) })
}

// entries puts the entries of a directory into the queue, and takes away what a run that was killed has left in it.
func (c *copier) entries(queue *queue, d *directory) error {
	if c.again && !d.fresh {
		if err := c.sweep(d); err != nil {
			return c.at(d.rel, err)
		}
	}
	if d.stat.Mnt_id != c.mount || onlyItself(d.rel) {
		return nil
	}
	names, err := list(d.source)
	if err != nil {
		return c.at(d.rel, err)
	}
	slices.Sort(names)
	for chunk := range slices.Chunk(names, maxNames) {
		d.pending.Add(1)
		queue.push(task{dir: d, names: chunk})
	}
	return nil
}

// leave finishes a directory when nothing below it is under way any more, and then perhaps the one above.
func (c *copier) leave(d *directory) error {
	for ; d != nil && d.pending.Add(-1) == 0; d = d.parent {
		if err := c.finish(d); err != nil {
			return c.at(d.rel, err)
		}
	}
	return nil
}

// finish gives a directory its owner, mode and times, which come last: each file in it changes its times.
func (c *copier) finish(d *directory) error {
	st := &d.stat
	mode := uint32(st.Mode) & 0o7777
	if d.parent == nil {
		mode = 0o755 // the root of a container's file system may be closed to others
	}
	if err := c.change(func() error { return unix.Fchown(d.target, int(st.Uid), int(st.Gid)) }); err != nil {
		return err
	}
	if err := c.change(func() error { return unix.Fchmod(d.target, mode) }); err != nil {
		return err
	}
	if err := c.attributes(d.source, d.target); err != nil {
		return err
	}
	if d.parent == nil {
		return nil // the caller's descriptors, and a directory that goes on changing
	}
	if err := c.change(func() error {
		return unix.UtimesNanoAt(d.parent.target, base(d.rel), times(st), unix.AT_SYMLINK_NOFOLLOW)
	}); err != nil {
		return err
	}
	c.progress.add(1, 0)
	return errors.Join(unix.Close(d.source), unix.Close(d.target))
}
