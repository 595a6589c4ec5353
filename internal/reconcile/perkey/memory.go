// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package perkey holds what one process knows for each key, such as an object or a cluster: a Memory holds a value, a Gate counts callers.
// All of it is lost when the process ends.
package perkey

import (
	"iter"
	"maps"
	"sync"
)

// Memory has a value for each key. Several goroutines may use it at once. An empty Memory is ready for use.
type Memory[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]V
}

// Get returns the value of a key; the zero value when there is none.
func (m *Memory[K, V]) Get(key K) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key]
}

// Set sets the value of a key.
func (m *Memory[K, V]) Set(key K, value V) {
	m.Change(key, func(v *V) bool { *v = value; return true })
}

// Change lets a function change the value of a key, which begins as the zero value. The key is dropped when the function returns false. The
// function must not use the Memory.
func (m *Memory[K, V]) Change(key K, change func(*V) (keep bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	value := m.values[key]
	if !change(&value) {
		delete(m.values, key)
		return
	}
	if m.values == nil {
		m.values = map[K]V{}
	}
	m.values[key] = value
}

// Forget drops a key.
func (m *Memory[K, V]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
}

// DeleteFunc drops the keys for which a function returns true.
func (m *Memory[K, V]) DeleteFunc(drop func(K, V) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.values, drop)
}

// All goes through all keys and values. Whoever goes through them must not use the Memory meanwhile.
func (m *Memory[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for key, value := range m.values {
			if !yield(key, value) {
				return
			}
		}
	}
}
