// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"strings"
	"unicode"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

// State is how a check ended.
type State int

// How a check ends.
const (
	// Passed: what was tested is as it should be.
	Passed State = iota
	// Failed: it is not.
	Failed
	// Skipped: there was nothing to test.
	Skipped
	// Unavailable: what the check needs is not there, and will not come while the pod runs. It is logged once.
	Unavailable
)

// Result is what a check found.
type Result struct {
	State State
	// Details are the text for people, in one line.
	Details string
}

// ActionKind is a change of the node in Slurm.
type ActionKind int

// Changes of a node.
const (
	// Nothing is changed.
	Nothing ActionKind = iota
	// Drain sets the state DRAIN with Text as its reason.
	Drain
	// Undrain sets the state RESUME.
	Undrain
	// SetComment sets the comment to Text, which may be empty.
	SetComment
)

// Action is what follows from a result.
type Action struct {
	Kind ActionKind
	Text string
	// Why nothing is done, where something was asked for.
	Why string
	// Need is what to find out before React is called again.
	Need Need
}

// Base returns the beginning of the check's reasons in a context.
func (c Check) Base(context Context) string {
	return node.SanitizeReason(strings.NewReplacer(variableName, c.Name, variableContext, string(context)).Replace(c.ReasonBase))
}

// Reason returns the text of a drain or a comment of the check: base, details and context, in one line that slurmctld takes.
func (c Check) Reason(context Context, details string) string {
	base, end := c.Base(context), " ["+string(context)+"]"
	if details = node.SanitizeReason(strings.Join(strings.Fields(details), " ")); details != "" && c.ReasonAppendDetails {
		base += ": " + details
	}
	// Readers look for the context at the end of the reason, so the details are cut.
	room := []rune(base)
	return strings.TrimSpace(string(room[:min(len(room), node.MaxReason-len(end))])) + end
}

// LogPath returns the file for the check's output, below the directory for outputs.
func (c Check) LogPath(worker string, context Context) string {
	return strings.NewReplacer(variableWorker, worker, variableName, c.Name, variableContext, string(context)).Replace(c.Log)
}

// owns reports whether the check has written a reason or a comment.
func (c Check) owns(text string, context Context) bool {
	rest, found := strings.CutPrefix(text, c.Base(context))
	if !found {
		return false
	}
	// "disk" has not written what "disk2" has.
	for _, next := range rest {
		return !unicode.IsLetter(next) && !unicode.IsDigit(next) && next != '_'
	}
	return true
}

// React returns what becomes of the node after a check. now is slurmctld's answer about the node, nil before it was asked.
//
//	| case                                                | what happens  | why                                                   |
//	|-----------------------------------------------------|---------------|-------------------------------------------------------|
//	| nothing was tested, or no reaction is configured    | nothing       |                                                       |
//	| failed, drain, the node has no drain                | drain         |                                                       |
//	| failed, drain, the node is drained                  | nothing       | the reason that is there stays                        |
//	| failed, comment, the comment is empty or the check's| comment       |                                                       |
//	| failed, comment, the comment is of somebody else    | nothing       | the operator finds a worker by the comment that it wrote |
//	| passed, undrain, drained with the check's reason    | undrain       |                                                       |
//	| passed, undrain, another reason or no drain         | nothing       | it is not the check's                                 |
//	| passed before or after a job, hc_program has it too | nothing yet   | slurmctld is not asked at each job                    |
func (c Check) React(result Result, context Context, now *Node) Action {
	var wanted string
	switch result.State {
	case Passed:
		wanted = c.OnOK
	case Failed:
		wanted = c.OnFail
	default:
		return Action{}
	}
	if wanted == "" || wanted == reactNot {
		return Action{}
	}
	if result.State == Passed && context != HealthProgram && c.runsIn(HealthProgram) {
		return Action{Why: "HealthCheckProgram takes back what the check has done"}
	}
	if now == nil {
		return Action{Why: "what slurmctld says of the node is not known", Need: NeedNode}
	}
	return c.change(wanted, c.Reason(context, result.Details), context, *now)
}

func (c Check) change(wanted, reason string, context Context, now Node) Action {
	switch wanted {
	case reactDrain:
		if now.Drained() {
			return Action{Why: "the node is drained already"}
		}
		return Action{Kind: Drain, Text: reason}
	case reactComment:
		if now.Comment != "" && !c.owns(now.Comment, context) {
			return Action{Why: "the comment of the node is somebody else's"}
		}
		return Action{Kind: SetComment, Text: reason}
	case reactUndrain:
		if !now.Drained() || !c.owns(now.Reason, context) {
			return Action{Why: "the node has no drain of this check"}
		}
		return Action{Kind: Undrain}
	default: // uncomment, as Parse knows no other
		if !c.owns(now.Comment, context) {
			return Action{Why: "the node has no comment of this check"}
		}
		return Action{Kind: SetComment}
	}
}
