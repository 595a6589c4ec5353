// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
)

// Kind is what an unsuccessful answer means to the caller. A Kind is itself an error, so that
// errors.Is(err, rest.Absent) asks for it.
type Kind string

// The kinds of Error; see the package comment.
const (
	Refused      Kind = "refused"
	Unavailable  Kind = "unavailable"
	Malformed    Kind = "malformed"
	Unauthorized Kind = "unauthorized"
	Absent       Kind = "absent"
)

// Error is the kind's name.
func (k Kind) Error() string { return string(k) }

// Slurm's own error codes that change what a caller does; see slurm/slurm_errno.h.
const (
	CodeAuthentication   = 1007 // SLURM_PROTOCOL_AUTHENTICATION_ERROR
	CodeNoChange         = 1900 // SLURM_NO_CHANGE_IN_DATA
	CodeInvalidUser      = 2010 // ESLURM_USER_ID_MISSING: the token's user may not do this
	CodeNodesBusy        = 2016 // ESLURM_NODES_BUSY
	CodeInvalidJobID     = 2017 // ESLURM_INVALID_JOB_ID
	CodeInvalidNodeName  = 2018 // ESLURM_INVALID_NODE_NAME
	CodeStandby          = 2027 // ESLURM_IN_STANDBY_MODE
	CodeInvalidNodeState = 2028 // ESLURM_INVALID_NODE_STATE
	CodeStandbyBackup    = 2131 // ESLURM_IN_STANDBY_USE_BACKUP
	CodePartition        = 2000 // ESLURM_INVALID_PARTITION_NAME: there is none of that name
	CodePartitionInUse   = 2075 // ESLURM_PARTITION_IN_USE
	CodeReservation      = 2053 // ESLURM_RESERVATION_INVALID: there is none of that name, or it cannot be made like this
	CodeInvalidState     = 2180 // ESLURM_INVALID_NODE_STATE_TRANSITION
)

// Error is an answer that is not a success, or the lack of an answer.
type Error struct {
	Kind Kind
	// Status is the HTTP status, 0 when there was no answer.
	Status int
	// Code is Slurm's own error number (slurm/slurm_errno.h), 0 when it gave none.
	Code int
	// Message is Slurm's own message, on one line and of bounded length.
	Message string
	// Err is the cause below, if there is one: a network error, a context's error, a decoding error.
	Err error
}

// Error returns the kind, Slurm's words, its code and the HTTP status.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Kind))
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	var details []string
	if e.Code != 0 {
		details = append(details, fmt.Sprintf("Slurm code %d", e.Code))
	}
	if e.Status != 0 {
		details = append(details, fmt.Sprintf("HTTP %d", e.Status))
	}
	if len(details) > 0 {
		b.WriteString(" (" + strings.Join(details, ", ") + ")")
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's Kind.
func (e *Error) Is(target error) bool {
	kind, ok := target.(Kind)
	return ok && kind == e.Kind
}

// slurmError is one entry of errors[].
type slurmError struct {
	number      int
	description string
	text        string
}

// kindOf classifies by Slurm's code first, because the HTTP status differs between releases for the same refusal (500
// on 24.11, 422 on 26.05), and by status where the code means nothing.
func kindOf(status, code int) Kind {
	switch {
	case code == CodeAuthentication, code >= 6000 && code < 6100,
		status == http.StatusUnauthorized, status == http.StatusNetworkAuthenticationRequired:
		return Unauthorized
	case code == CodeInvalidNodeName, code == CodeInvalidJobID:
		return Absent
	case code >= 1000 && code < 1900, // communication with slurmctld
		code >= 5000 && code < 6000, // sockets
		code == CodeStandby, code == CodeStandbyBackup:
		return Unavailable
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Unavailable
	}
	return Refused
}

// fromSlurm makes an Error of errors[], which is not empty. The first entry with a number decides: Slurm appends an
// outer error after the one that caused it.
func fromSlurm(status int, list []slurmError, secret string) *Error {
	e := &Error{Status: status}
	var said []string
	for _, entry := range list {
		if e.Code == 0 {
			e.Code = entry.number
		}
		switch {
		case entry.description == "":
			said = append(said, entry.text)
		case entry.text == "" || entry.number == 0:
			said = append(said, entry.description)
		default:
			said = append(said, entry.description+": "+entry.text)
		}
	}
	e.Kind = kindOf(status, e.Code)
	e.Message = oneLine(strings.ReplaceAll(strings.Join(said, "; "), secret, "[token]"))
	return e
}

// NodesBusy reports whether Slurm refuses a change because something holds the nodes: a job, or a reservation.
func NodesBusy(err error) bool {
	refusal, ok := errors.AsType[*Error](err)
	return ok && refusal.Code == CodeNodesBusy
}

// maxMessage bounds Slurm's message in an error, in bytes: conditions and events repeat it.
const maxMessage = 300

// oneLine makes text safe to log and to show: no control characters, bounded.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.TrimSpace(text))
	return shorten(text, maxMessage)
}

// shorten cuts text after at most limit bytes, at the border of a rune.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}
