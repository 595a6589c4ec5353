// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package perkey

// Gate lets a limited number of callers in at once for each key, so that those that wait for one silent cluster leave room for others.
// Whoever is not let in has to come back; nobody waits at the gate. A Gate without callers is ready for use.
type Gate[K comparable] struct{ inside Memory[K, int] }

// Enter reports whether a caller is let in, which it is while fewer than limit are inside. It has to leave then.
func (g *Gate[K]) Enter(key K, limit int) (entered bool) {
	g.inside.Change(key, func(n *int) bool {
		if entered = *n < limit; entered {
			*n++
		}
		return *n > 0
	})
	return entered
}

// Leave lets a caller out.
func (g *Gate[K]) Leave(key K) {
	g.inside.Change(key, func(n *int) bool { *n--; return *n > 0 })
}
