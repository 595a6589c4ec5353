// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-hpc/coxswain/internal/slurm/rest"
)

// maxNumber bounds numbers of nodes, tasks and CPUs.
const maxNumber = 65535

// number reads a number above 0.
func number(value string) (int, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil || n == 0 || n > maxNumber {
		return 0, fmt.Errorf("%q is no number from 1 to %d", value, maxNumber)
	}
	return int(n), nil
}

// digits reads a number of at most nine digits.
func digits(value string) (int64, bool) {
	n, err := strconv.ParseUint(value, 10, 63)
	return int64(n), err == nil && len(value) < 10
}

// timeLimit reads minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes or days-hours:minutes:seconds.
func timeLimit(s *rest.Submission, value string) error {
	s.Unlimited, s.TimeLimit = false, 0
	if slices.Contains([]string{"infinite", "unlimited"}, strings.ToLower(value)) {
		s.Unlimited = true
		return nil
	}
	bad := fmt.Errorf("%q is no time such as 30, 30:00, 1:30:00 or 1-12", value)
	units := map[int][]time.Duration{1: {time.Minute}, 2: {time.Minute, time.Second}, 3: {time.Hour, time.Minute, time.Second}}
	days, clock, dashed := strings.Cut(value, "-")
	total := time.Duration(0)
	if dashed {
		n, ok := digits(days)
		if !ok {
			return bad
		}
		total = time.Duration(n) * 24 * time.Hour
		units = map[int][]time.Duration{1: {time.Hour}, 2: {time.Hour, time.Minute}, 3: {time.Hour, time.Minute, time.Second}}
	} else {
		clock = value
	}
	parts := strings.Split(clock, ":")
	if len(parts) > 3 {
		return bad
	}
	for i, unit := range units[len(parts)] {
		n, ok := digits(parts[i])
		if !ok || n > int64(maxTime/unit) {
			return bad
		}
		total += time.Duration(n) * unit
	}
	switch {
	case total < 0 || total > maxTime:
		return fmt.Errorf("%q is longer than a year; write UNLIMITED", value)
	case total == 0:
		s.Unlimited = true // sbatch(1): "A time limit of zero requests that no time limit be imposed."
	}
	s.TimeLimit = total
	return nil
}

// maxTime bounds times.
const maxTime = 366 * 24 * time.Hour

// deadline reads now+N with a unit, seconds without one. Times of the day depend on a time zone, which the operator does not know.
func deadline(s *rest.Submission, value string) error {
	bad := fmt.Errorf("%q is not now+N[seconds|minutes|hours|days|weeks]", value)
	rest, ok := strings.CutPrefix(value, "now+")
	if !ok {
		return bad
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	n, ok := digits(rest[:end])
	unit, known := map[string]time.Duration{
		"": time.Second, "second": time.Second, "seconds": time.Second, "minute": time.Minute, "minutes": time.Minute, "hour": time.Hour,
		"hours": time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour, "week": 7 * 24 * time.Hour, "weeks": 7 * 24 * time.Hour,
	}[rest[end:]]
	if !ok || !known || n == 0 || n > int64(maxTime/unit) {
		return bad
	}
	s.Deadline = time.Duration(n) * unit
	return nil
}

// nodes reads N or N-M.
func nodes(s *rest.Submission, value string) error {
	least, most, ranged := strings.Cut(value, "-")
	if !ranged {
		most = least
	}
	minimum, err := number(least)
	if err != nil {
		return err
	}
	maximum, err := number(most)
	if err != nil {
		return err
	}
	if maximum < minimum {
		return fmt.Errorf("%q ends before it begins", value)
	}
	s.MinNodes, s.MaxNodes = minimum, maximum
	return nil
}

// memory reads an amount with a unit, MiB without one, and rounds it up to MiB.
func memory(of func(*rest.Submission) **int64) func(*rest.Submission, string) error {
	return func(s *rest.Submission, value string) error {
		amount, unit := value, "M"
		if value != "" && strings.ContainsAny(value[len(value)-1:], "kKmMgGtT") {
			amount, unit = value[:len(value)-1], strings.ToUpper(value[len(value)-1:])
		}
		n, ok := digits(amount)
		if !ok {
			return fmt.Errorf("%q is no amount of memory such as 500M", value)
		}
		mib := map[string]int64{"K": (n + 1023) / 1024, "M": n, "G": n << 10, "T": n << 20}[unit]
		*of(s) = &mib
		return nil
	}
}

// checkResource reads N or type:N.
func checkResource(value string) error {
	kind, count, typed := strings.Cut(value, ":")
	if !typed {
		count = kind
	}
	if typed && !word(kind) {
		return fmt.Errorf("%q is not N or type:N", value)
	}
	if _, err := number(count); err != nil {
		return fmt.Errorf("%q is not N or type:N", value)
	}
	return nil
}

// word reports whether a text is a name of a resource.
func word(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' && r != '.'
	})
}

// signal reads [B:]signal[@seconds].
func signal(s *rest.Submission, value string) error {
	w := rest.Warning{Before: time.Minute}
	text, batchOnly := strings.CutPrefix(value, "B:")
	name, before, timed := strings.Cut(text, "@")
	if timed {
		n, ok := digits(before)
		if !ok || n > math.MaxUint16 {
			return fmt.Errorf("%q is no number of seconds from 0 to %d", before, math.MaxUint16)
		}
		w.Before = time.Duration(n) * time.Second
	}
	w.Batch, w.Signal = batchOnly, strings.TrimPrefix(strings.ToUpper(name), "SIG")
	if !knownSignal(w.Signal) {
		return errors.New("the signal is neither a number nor one of " + strings.Join(signals(), ", "))
	}
	s.Warning = &w
	return nil
}

// signals are those that have names; see scancel(1), --signal.
func signals() []string {
	return []string{"HUP", "INT", "QUIT", "ABRT", "KILL", "ALRM", "TERM", "USR1", "USR2", "URG", "CONT", "STOP", "TSTP", "TTIN", "TTOU"}
}

func knownSignal(name string) bool {
	n, ok := digits(name)
	return ok && n > 0 && n < 65 || slices.Contains(signals(), name)
}
