// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package perkey

import (
	"maps"
	"sync"
	"testing"
)

func TestAValueIsKeptUntilItIsForgotten(t *testing.T) {
	var m Memory[string, int]
	m.Forget("a")
	if got := m.Get("a"); got != 0 {
		t.Errorf("an empty memory has %d", got)
	}
	m.Set("a", 1)
	m.Set("b", 2)
	m.Change("a", func(v *int) bool { *v += 10; return true })
	m.Change("b", func(v *int) bool { *v += 10; return false })
	m.Change("c", func(*int) bool { return false })
	if got := maps.Collect(m.All()); !maps.Equal(got, map[string]int{"a": 11}) {
		t.Errorf("it has %v", got)
	}
	for key := range m.All() {
		if key == "a" {
			break
		}
	}
	m.Set("d", 4)
	m.DeleteFunc(func(_ string, v int) bool { return v == 4 })
	if got := maps.Collect(m.All()); !maps.Equal(got, map[string]int{"a": 11}) {
		t.Errorf("it has %v", got)
	}
	m.Forget("a")
	if got := m.Get("a"); got != 0 {
		t.Errorf("a value that was forgotten is %d", got)
	}
}

func TestChangesOfManyGoroutinesAllCount(t *testing.T) {
	var m Memory[string, int]
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { m.Change("a", func(v *int) bool { *v++; return true }) })
	}
	all.Wait()
	if got := m.Get("a"); got != 100 {
		t.Errorf("%d of 100 changes count", got)
	}
}

func TestAGateIsFullForOneKeyAndOpenForOthers(t *testing.T) {
	var g Gate[string]
	inside := 0
	for range 10 {
		if g.Enter("silent", 3) {
			inside++
		}
	}
	if inside != 3 {
		t.Errorf("%d are inside, want 3", inside)
	}
	if !g.Enter("other", 3) {
		t.Error("the gate is closed for another key")
	}
	g.Leave("other")
	g.Leave("silent")
	if !g.Enter("silent", 3) {
		t.Error("nobody follows one that has left")
	}
	if g.Enter("none", 0) {
		t.Error("a limit of none lets one in")
	}
	if got := maps.Collect(g.inside.All()); !maps.Equal(got, map[string]int{"silent": 3}) {
		t.Errorf("it counts %v", got)
	}
}
