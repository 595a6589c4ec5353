// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package node

// Answer is Slurm's answer to a question. The zero value is Unknown. Compare with Yes or No and let neither stand for Unknown: "not
// Yes" is not "No".
type Answer int8

// The answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// AnswerOf is Yes if b, else No.
func AnswerOf(b bool) Answer {
	if b {
		return Yes
	}
	return No
}

// And is No if one of the two is, Yes if both are, Unknown otherwise.
func (a Answer) And(b Answer) Answer {
	switch {
	case a == No || b == No:
		return No
	case a == Yes && b == Yes:
		return Yes
	}
	return Unknown
}

// Or is Yes if one of the two is, No if both are, Unknown otherwise.
func (a Answer) Or(b Answer) Answer { return a.Not().And(b.Not()).Not() }

// Not turns Yes into No and No into Yes.
func (a Answer) Not() Answer {
	switch a {
	case Yes:
		return No
	case No:
		return Yes
	}
	return Unknown
}

// String is "Yes", "No" or "Unknown".
func (a Answer) String() string {
	switch a {
	case Yes:
		return "Yes"
	case No:
		return "No"
	}
	return "Unknown"
}
