// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The keys of slurm.conf whose values have a type, by type. Listed is only what a slurmctld 26.05 was seen to end with
// when the value is of another type; what it merely complains about passes.
const (
	numbers16 = `
	AccountingStoragePort AcctGatherNodeFreq BatchStartTimeout CompleteWait EioTimeout EpilogTimeout
	FairShareDampeningFactor GroupUpdateForce GroupUpdateTime HealthCheckInterval HealthCheckTimeout InactiveLimit
	JobFileAppend JobRequeue KillOnBadExit KillWait MaxTasksPerNode MessageTimeout OverTimeLimit PrologEpilogTimeout
	PrologTimeout ResumeRate ResumeTimeout ResvOverRun ReturnToService SchedulerTimeSlice
	SlurmctldTimeout SlurmdTimeout SlurmSchedLogLevel SuspendRate SuspendTimeout TCPTimeout TreeWidth
	UnkillableStepTimeout VSizeFactor WaitTime`

	numbers32 = `
	EpilogMsgTime FirstJobId JobCompPort MaxArraySize MaxBatchRequeue MaxDBDMsgs MaxJobCount MaxJobId MaxNodeCount
	MaxStepCount MinJobAge PriorityWeightAge PriorityWeightAssoc PriorityWeightFairshare PriorityWeightJobSize
	PriorityWeightPartition PriorityWeightQOS SlurmdPort`

	numbers64 = `
	DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode`

	booleans = `
	AllowSpecResourcesUsage DisableRootJobs PriorityFavorSmall TrackWCKey UsePAM`

	times = `
	PriorityDecayHalfLife PriorityMaxAge`
)

// The same for the options of a PartitionName line.
const (
	partitionNumbers16 = `Priority PriorityJobFactor PriorityTier ResumeTimeout SuspendTimeout`
	partitionNumbers32 = `GraceTime MaxCPUsPerNode MaxCPUsPerSocket MaxNodes MinNodes`
	partitionNumbers64 = `DefCpuPerGPU DefMemPerCPU DefMemPerGPU DefMemPerNode MaxMemPerCPU MaxMemPerNode`
	partitionBooleans  = `Default DisableRootJobs ExclusiveTopo ExclusiveUser Hidden LLN PowerDownOnIdle ReqResv RootOnly`
	partitionTimes     = `DefaultTime MaxTime`
)

// The same for the options of a NodeName line.
const (
	nodeNumbers16 = `Boards CoreSpecCount CoresPerSocket CPUs Procs RestrictedCoresPerGPU Sockets SocketsPerBoard ThreadsPerCore`
	nodeNumbers32 = `TmpDisk Weight`
	nodeNumbers64 = `MemSpecLimit RealMemory`
)

// check returns why slurmctld would not start with a value, or nil. The error may quote the value: none of the keys
// with a type is a secret.
type check func(value string) error

// Checks of values by key, in lower case.
//
//nolint:gochecknoglobals // constant tables
var (
	valueChecks = joined(
		tabulate(map[string]check{numbers16: number(16), numbers32: number(32), numbers64: number(64), booleans: boolean, times: span}),
		map[string]check{
			"accountingstorageenforce": each("associations limits nojobs nosteps qos safe wckeys all none yes no 0 1 2"),
			"enforcepartlimits":        oneOf("ALL ANY NO YES"),
			"preemptmode":              each("OFF CANCEL GANG REQUEUE SUSPEND WITHIN PRIORITY"),
			"priorityusageresetperiod": oneOf("NONE NOW DAILY WEEKLY MONTHLY QUARTERLY YEARLY"),
			"prologflags":              items(prologFlags),
			"propagateresourcelimits":  each("ALL NONE AS CORE CPU DATA FSIZE MEMLOCK NOFILE NPROC RSS STACK"),
			"selecttype":               oneOf("select/cons_tres"), // dynamic nodes need it
			"selecttypeparameters":     items(selectParameters),
			"slurmctlddebug":           logLevel,
			"slurmctldsyslogdebug":     logLevel,
			"slurmddebug":              logLevel,
			"slurmdsyslogdebug":        logLevel,
			"schedulertype":            oneOf("sched/backfill sched/builtin"),
			"prioritytype":             oneOf("priority/basic priority/multifactor"),
			"preempttype":              oneOf("preempt/none preempt/partition_prio preempt/qos"),
			"topologyplugin":           oneOf("topology/flat topology/default topology/tree topology/block topology/ring topology/torus3d topology/3d_torus"),
			"mcsplugin":                plugin("mcs/none mcs/account mcs/group mcs/label mcs/user"),
			"switchtype":               plugin("switch/none switch/hpe_slingshot switch/nvidia_imex"),
			"jobcomptype":              plugin("jobcomp/none jobcomp/elasticsearch jobcomp/filetxt jobcomp/kafka jobcomp/lua jobcomp/mysql jobcomp/script"),
			"jobacctgathertype":        plugin("jobacct_gather/none jobacct_gather/cgroup jobacct_gather/linux"),
			"jobsubmitplugins":         plugins("all_partitions defaults logging lua partition pbs require_timelimit throttle"),
			"burstbuffertype":          plugin("burst_buffer/none burst_buffer/datawarp burst_buffer/lua"),
			"prepplugins":              plugins("prep/script"),
			"nodefeaturesplugins":      plugins("node_features/helpers node_features/knl_generic"),
			"acctgatherenergytype":     plugin("acct_gather_energy/none acct_gather_energy/gpu acct_gather_energy/ipmi acct_gather_energy/pm_counters acct_gather_energy/rapl acct_gather_energy/xcc"),
			"acctgatherprofiletype":    plugin("acct_gather_profile/none acct_gather_profile/hdf5 acct_gather_profile/influxdb"),
			"accountingstoragetype":    plugin("accounting_storage/none accounting_storage/slurmdbd"),
			"hashplugin":               plugin("hash/k12 hash/sha3"),
			"metricstype":              plugin("metrics/openmetrics"),
			"licenses":                 licenses,
			"propagateprioprocess":     oneOf("0 1 2"),
			"preemptexempttime":        duration,
			"prioritycalcperiod":       period,
			"priorityweighttres":       weights,
			"sallocdefaultcommand":     gone("use LaunchParameters=use_interactive_step"),
		})

	partitionChecks = joined(
		tabulate(map[string]check{
			partitionNumbers16: number(16), partitionNumbers32: number(32), partitionNumbers64: number(64),
			partitionBooleans: boolean, partitionTimes: span,
		}),
		map[string]check{
			"state":                oneOf("UP DOWN DRAIN INACTIVE"),
			"oversubscribe":        sharing,
			"shared":               sharing,
			"selecttypeparameters": items(selectParameters),
			"tresbillingweights":   weights,
		})

	nodeChecks = joined(
		tabulate(map[string]check{nodeNumbers16: number(16), nodeNumbers32: number(32), nodeNumbers64: number(64)}),
		map[string]check{
			"state": plugin(nodeStates),
			"port":  ports,
		})
)

func joined(a, b map[string]check) map[string]check {
	maps.Copy(a, b)
	return a
}

// number checks a count of so many bits. Slurm reads hexadecimal and octal numbers too, and with more than 16 bits the
// letters k, m, g … behind them.
func number(bits int) check {
	return func(value string) error {
		lower := strings.ToLower(value)
		if lower == "" || strings.HasPrefix(lower, "inf") || strings.HasPrefix(lower, "unlim") {
			return nil
		}
		if strings.HasPrefix(lower, "-") {
			return fmt.Errorf("%.40q is less than zero", value)
		}
		digits := lower
		if bits > 16 {
			digits = strings.TrimRight(lower, "kmgtp")
		}
		n, err := strconv.ParseUint(digits, 0, 64)
		switch {
		case err != nil && errors.Is(err, strconv.ErrSyntax):
			return fmt.Errorf("%.40q is not a number", value)
		case err != nil || bits < 64 && n > math.MaxUint64>>(64-bits):
			return fmt.Errorf("%.40q is greater than %d", value, uint64(math.MaxUint64)>>(64-bits))
		}
		return nil
	}
}

func boolean(value string) error {
	return oneOf("YES NO UP DOWN TRUE FALSE 1 0")(value)
}

// timePattern is minutes, minutes:seconds, hours:minutes:seconds, days-hours and so on, or a word for never.
var timePattern = regexp.MustCompile(`(?i)^(\d+(:\d+){0,2}|\d+-\d+(:\d+){0,2}|-1|INFINITE|UNLIMITED|NONE)?$`)

func duration(value string) error {
	if timePattern.MatchString(value) {
		return nil
	}
	return fmt.Errorf("%.40q is not a time; write minutes, hours:minutes:seconds, days-hours:minutes:seconds or UNLIMITED", value)
}

// span checks a time that slurmctld keeps in 32 bits.
func span(value string) error {
	if err := duration(value); err != nil {
		return err
	}
	if total, ok := minutes(value); ok && total < -1 { // -1 is UNLIMITED
		return fmt.Errorf("%.40q is too long; write 24855 days or less, or UNLIMITED", value)
	}
	return nil
}

// period checks a time that has to be a minute or longer.
func period(value string) error {
	if err := duration(value); err != nil || value == "" {
		return err
	}
	if total, ok := minutes(value); !ok || total < 1 {
		return fmt.Errorf("%.40q is not possible; write a time from a minute to 24855 days", value)
	}
	return nil
}

// minutes is a time in minutes, rounded up, as slurmctld counts it: in 32 bits, so that a time that is too long may become any number.
// Words for never are no time.
func minutes(value string) (total int32, ok bool) {
	days, clock, withDays := strings.Cut(value, "-")
	if !withDays {
		days, clock = "0", value
	}
	parts := strings.Split(clock, ":")
	units := []uint64{60, 1}
	if withDays || len(parts) == 3 {
		units = []uint64{3600, 60, 1}
	}
	sum, err := strconv.ParseUint(days, 10, 64)
	sum *= 24 * 3600
	for i := 0; i < len(parts) && err == nil; i++ {
		var n uint64
		n, err = strconv.ParseUint(parts[i], 10, 64)
		sum += n * units[i]
	}
	return int32(uint32(sum+59)) / 60, err == nil //nolint:gosec // as slurmctld does
}

// weightPattern is a number with a unit, after which slurmctld ignores the rest, or a unit alone.
var weightPattern = regexp.MustCompile(`(?i)^[-+]?(inf|infinity|nan|0x[0-9a-f.]+|[0-9]*[.]?[0-9]*(e[-+]?[0-9]+)?)([kmgtp].*)?$`)

// weights checks weights of resources: CPU=1.0,Mem=0.25G. Which resources there are is not known here.
func weights(value string) error {
	for _, item := range splitItems(value) {
		name, weight, _ := strings.Cut(item, "=")
		if name == "" || weight == "" || !weightPattern.MatchString(weight) {
			return fmt.Errorf("%.40q is not a weight; write a resource and a number, such as CPU=1.0 or Mem=0.25G", item)
		}
	}
	return nil
}

// portPattern is the beginning of a port, or of ports as [7000-7001], which may be one for each node of a line.
var portPattern = regexp.MustCompile(`^\[?([0-9]+)`)

func ports(value string) error {
	digits := portPattern.FindStringSubmatch(value)
	if digits != nil {
		if n, err := strconv.ParseUint(digits[1], 10, 16); err == nil && n > 0 {
			return nil
		}
	}
	return fmt.Errorf("%.40q is not a port; it is a number from 1 to 65535", value)
}

// oneOf checks a word of a list that is complete.
func oneOf(list string) check {
	words := strings.Fields(list)
	return func(value string) error {
		if value == "" || slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, value) }) {
			return nil
		}
		if meant := similar(value, slices.Values(words), 2); meant != "" {
			return fmt.Errorf("%.40q is not possible; did you mean %s?", value, meant)
		}
		if len(words) > 20 {
			return fmt.Errorf("%.40q is not possible; it is none of the words that Slurm knows", value)
		}
		return fmt.Errorf("%.40q is not possible; it can be %s", value, strings.Join(words, ", "))
	}
}

// each checks that the items of a list are of a list that is complete.
func each(list string) check {
	one := oneOf(list)
	return func(value string) error {
		for _, item := range splitItems(value) {
			if err := one(item); err != nil {
				return err
			}
		}
		return nil
	}
}

// items checks the items of a list of words by a list that may lack those of a newer Slurm. It refuses only what is at most
// two letters away from one that exists.
func items(list string) check { return plugins(list) }

// plugin checks the name of a plugin. There may be others than those listed, of a newer Slurm or of a site's own.
func plugin(list string) check {
	words := strings.Fields(list)
	return func(value string) error {
		meant := similar(value, slices.Values(words), 2)
		if meant == "" || strings.EqualFold(meant, value) {
			return nil
		}
		return fmt.Errorf("%.40q is not possible; did you mean %s?", value, meant)
	}
}

// plugins is plugin for a list of them.
func plugins(list string) check {
	one := plugin(list)
	return func(value string) error {
		for _, item := range splitItems(value) {
			if err := one(item); err != nil {
				return err
			}
		}
		return nil
	}
}

// logLevel checks a level of the log, which may be a number.
func logLevel(value string) error {
	if _, err := strconv.ParseUint(value, 10, 8); err == nil {
		return nil
	}
	return oneOf("quiet fatal error info verbose debug debug2 debug3 debug4 debug5")(value)
}

// sharing checks OverSubscribe: NO, YES, EXCLUSIVE or FORCE, the latter with a count.
func sharing(value string) error {
	word, _, _ := strings.Cut(value, ":")
	return oneOf("NO YES EXCLUSIVE FORCE")(word)
}

// licenses checks names with counts: matlab:10,ansys@server:5.
func licenses(value string) error {
	for _, item := range splitItems(value) {
		if _, count, ok := strings.Cut(item, ":"); ok {
			if _, err := strconv.ParseUint(count, 10, 32); err != nil {
				return fmt.Errorf("%.40q has no count behind the colon", item)
			}
		}
	}
	return nil
}

// gone refuses any value of a key that slurmctld ends with.
func gone(instead string) check {
	return func(string) error { return errors.New("slurmctld ends with this key; " + instead) }
}
