// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package passivecheck

import (
	"fmt"
	"strconv"
	"strings"
)

// Job is what a Prolog or an Epilog gets about the job from slurmd, in environment variables
// (https://slurm.schedmd.com/prolog_epilog.html). slurmctld is not asked.
type Job struct {
	// ID is SLURM_JOB_ID.
	ID int64
	// UID and GID are the UID and GID of the user.
	UID, GID int
	// Comment is the comment of the job.
	Comment string
	// GPUs are the indices of the job's GPUs on this node.
	GPUs []int
}

// skipComment is the comment of a job, exactly, that asks for no checks.
const skipComment = "skip_checks"

// The operator finds the Slurm jobs of an ActiveCheck by their comments, which begin with checkJob. What the batch script of the check gives
// as a comment follows after givenComment.
const (
	checkJob     = "coxswain.dev/activecheck "
	givenComment = " comment="
)

// Skips reports whether the user asked for no checks.
func (j *Job) Skips() bool {
	if j == nil {
		return false
	}
	comment := j.Comment
	if strings.HasPrefix(comment, checkJob) {
		_, comment, _ = strings.Cut(comment, givenComment)
	}
	return comment == skipComment
}

// maxGPUs is how many GPUs a node has at most; a longer list is a mistake.
const maxGPUs = 1024

// JobOf reads the environment of a Prolog or an Epilog; nil when it has no job.
func JobOf(environment map[string]string) (*Job, error) {
	text, ok := environment["SLURM_JOB_ID"]
	if !ok {
		return nil, nil
	}
	job := &Job{Comment: environment["SLURM_JOB_COMMENT"]}
	var err error
	if job.ID, err = strconv.ParseInt(text, 10, 64); err != nil || job.ID <= 0 {
		return nil, fmt.Errorf("SLURM_JOB_ID is %q, which is no number of a job", text)
	}
	for name, to := range map[string]*int{"SLURM_JOB_UID": &job.UID, "SLURM_JOB_GID": &job.GID} {
		value, ok := environment[name]
		if !ok {
			continue
		}
		number, err := strconv.ParseInt(value, 10, 32)
		if err != nil || number < 0 {
			return nil, fmt.Errorf("%s is %q, which is no id", name, value)
		}
		*to = int(number)
	}
	if job.GPUs, err = indices(environment["SLURM_JOB_GPUS"]); err != nil {
		return nil, fmt.Errorf("SLURM_JOB_GPUS is %q: %w", environment["SLURM_JOB_GPUS"], err)
	}
	return job, nil
}

// indices reads 0,1,4-7.
func indices(text string) ([]int, error) {
	var out []int
	for span := range strings.SplitSeq(strings.TrimSpace(text), ",") {
		if span == "" {
			continue
		}
		low, high, isRange := strings.Cut(span, "-")
		first, err := strconv.ParseUint(low, 10, 16)
		last := first
		if err == nil && isRange {
			last, err = strconv.ParseUint(high, 10, 16)
		}
		if err != nil || last < first || len(out)+int(last-first) >= maxGPUs {
			return nil, fmt.Errorf("%q is no index of a GPU", span)
		}
		for i := first; i <= last; i++ {
			out = append(out, int(i))
		}
	}
	return out, nil
}
