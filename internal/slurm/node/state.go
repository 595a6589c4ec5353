// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"
	"strings"
)

// Word is one word of a state as the REST API writes it.
type Word string

// The base states; a node has exactly one (sinfo(1), NODE STATE CODES).
const (
	UnknownState Word = "UNKNOWN"
	Down         Word = "DOWN"
	Idle         Word = "IDLE"
	Allocated    Word = "ALLOCATED"
	Error        Word = "ERROR"
	Mixed        Word = "MIXED"
	Future       Word = "FUTURE"
)

// The flags, as far as Slurm 24.11 to 26.05 report them. Invalid stands where Slurm itself could not name it.
const (
	Invalid         Word = "INVALID"
	External        Word = "EXTERNAL"
	Reserved        Word = "RESERVED"
	Undrain         Word = "UNDRAIN"
	Cloud           Word = "CLOUD"
	Resume          Word = "RESUME"
	Drain           Word = "DRAIN"
	Completing      Word = "COMPLETING"
	NotResponding   Word = "NOT_RESPONDING"
	PoweredDown     Word = "POWERED_DOWN"
	Fail            Word = "FAIL"
	PoweringUp      Word = "POWERING_UP"
	Maintenance     Word = "MAINTENANCE"
	RebootRequested Word = "REBOOT_REQUESTED"
	RebootCanceled  Word = "REBOOT_CANCELED"
	PoweringDown    Word = "POWERING_DOWN"
	DynamicFuture   Word = "DYNAMIC_FUTURE"
	RebootIssued    Word = "REBOOT_ISSUED"
	Planned         Word = "PLANNED"
	InvalidReg      Word = "INVALID_REG"
	PowerDown       Word = "POWER_DOWN"
	PowerUp         Word = "POWER_UP"
	PowerDrain      Word = "POWER_DRAIN"
	PowerDownASAP   Word = "POWER_DOWN_ASAP"
	PowerDownForce  Word = "POWER_DOWN_FORCE"
	DynamicNorm     Word = "DYNAMIC_NORM"
	Blocked         Word = "BLOCKED"
)

func (w Word) isBase() bool {
	switch w {
	case UnknownState, Down, Idle, Allocated, Error, Mixed, Future:
		return true
	}
	return false
}

func (w Word) isFlag() bool {
	switch w {
	case Invalid, External, Reserved, Undrain, Cloud, Resume, Drain, Completing, NotResponding, PoweredDown, Fail, PoweringUp,
		Maintenance, RebootRequested, RebootCanceled, PoweringDown, DynamicFuture, RebootIssued, Planned, InvalidReg, PowerDown,
		PowerUp, PowerDrain, PowerDownASAP, PowerDownForce, DynamicNorm, Blocked:
		return true
	}
	return false
}

// State is what Slurm reports of a node, as a set of words. The zero value has none; every question about it is answered by Unknown.
type State struct {
	words []Word // upper case, sorted, without repetitions
}

// Parse reads the words of a state in any order and case. It keeps unknown words, see Certain.
func Parse(words []string) State {
	var s State
	for _, w := range words {
		if w = strings.ToUpper(strings.TrimSpace(w)); w != "" {
			s.words = append(s.words, Word(w))
		}
	}
	slices.Sort(s.words)
	s.words = slices.Compact(s.words)
	return s
}

// Has reports whether Slurm reported w. False does not mean No: ask Certain, or one of the questions below.
func (s State) Has(w Word) bool { return slices.Contains(s.words, w) }

// Base is the base state; UnknownState if Slurm named none or several.
func (s State) Base() Word {
	base := UnknownState
	found := 0
	for _, w := range s.words {
		if w.isBase() {
			base = w
			found++
		}
	}
	if found != 1 {
		return UnknownState
	}
	return base
}

// Unrecognised are the words that are neither a base nor a flag of a Slurm that this package knows, sorted.
func (s State) Unrecognised() []Word {
	var words []Word
	for _, w := range s.words {
		if !w.isBase() && !w.isFlag() {
			words = append(words, w)
		}
	}
	return words
}

// Based reports whether the absence of a word means that it does not hold: there is exactly one base and it is not UNKNOWN, and INVALID
// is not among the flags. A word that is not recognised is a flag then, since a node has only one base.
func (s State) Based() bool { return s.Base() != UnknownState && !s.Has(Invalid) }

// Certain reports whether all is known: the state is Based, and every word is recognised. The words of an uncertain state (ALLOCATED,
// DRAIN) still hold.
func (s State) Certain() bool { return s.Based() && len(s.Unrecognised()) == 0 }

// Doubtful reports whether jobs may be on the node only because an unrecognised flag could mean them, as COMPLETING does. Only the list
// of jobs can answer that.
func (s State) Doubtful() bool { return s.Based() && s.Busy() == Unknown }

// Recognised is the state without the words that are not recognised, for callers that know that they do not mean jobs.
func (s State) Recognised() State {
	return State{words: slices.DeleteFunc(slices.Clone(s.words), func(w Word) bool { return !w.isBase() && !w.isFlag() })}
}

// Equal reports whether two states have the same words.
func (s State) Equal(other State) bool { return slices.Equal(s.words, other.words) }

// String is the words in the order of Slurm's own notation, base first: IDLE+DRAIN+DYNAMIC_NORM. An empty state is
// "UNKNOWN".
func (s State) String() string {
	if len(s.words) == 0 {
		return string(UnknownState)
	}
	var bases, others []string
	for _, w := range s.words {
		if w.isBase() {
			bases = append(bases, string(w))
		} else {
			others = append(others, string(w))
		}
	}
	return strings.Join(append(bases, others...), "+")
}
