// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

// ConditionPrefix starts the type of every pod condition that mirrors the state of a Slurm node. Such a condition is
// present with status True, or absent.
const ConditionPrefix = "SlurmNodeState"

// conditionBases and conditionFlags are the words that have a condition, in the order in which Conditions lists them.
// Other tools read these types; they are part of the API.
func conditionBases() []named {
	return []named{{Allocated, "Allocated"}, {Down, "Down"}, {Error, "Error"}, {Future, "Future"}, {Idle, "Idle"}, {Mixed, "Mixed"},
		{UnknownState, "Unknown"}}
}

func conditionFlags() []named {
	return []named{{Completing, "Completing"}, {Drain, "Drain"}, {Fail, "Fail"}, {Invalid, "Invalid"}, {InvalidReg, "InvalidReg"},
		{Maintenance, "Maintenance"}, {NotResponding, "NotResponding"}, {Undrain, "Undrain"}}
}

// named is a word and the end of its condition's type.
type named struct {
	word Word
	name string
}

// Conditions are the types of the pod conditions that are true for the state: one for the base, then one for each flag
// that has one, in a fixed order. A state that is not Based shows as Unknown instead of Idle, Down, Error or Future, and one that is
// Doubtful as Unknown instead of Idle; Allocated and Mixed stay, since a node on which Slurm sees jobs is busy whatever else is unclear.
func (s State) Conditions() []string {
	base := s.Base()
	if !s.Based() && base != Allocated && base != Mixed || s.Doubtful() && base == Idle {
		base = UnknownState
	}
	var types []string
	for _, n := range conditionBases() {
		if n.word == base {
			types = append(types, ConditionPrefix+n.name)
		}
	}
	for _, n := range conditionFlags() {
		if s.Has(n.word) {
			types = append(types, ConditionPrefix+n.name)
		}
	}
	return types
}

// AllConditions are all types that Conditions can return; those a state does not have are to be removed from the pod.
func AllConditions() []string {
	words := append(conditionBases(), conditionFlags()...)
	types := make([]string, 0, len(words))
	for _, n := range words {
		types = append(types, ConditionPrefix+n.name)
	}
	return types
}
