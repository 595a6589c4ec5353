// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/coxswain-hpc/coxswain/api/slinky/v1beta1"
	"github.com/coxswain-hpc/coxswain/internal/kube"
	"github.com/coxswain-hpc/coxswain/internal/problem"
	"github.com/coxswain-hpc/coxswain/internal/render/pod"
	"github.com/coxswain-hpc/coxswain/internal/render/slurmctld"
	"github.com/coxswain-hpc/coxswain/internal/slurm/conf"
	"github.com/coxswain-hpc/coxswain/internal/slurm/need"
	"github.com/coxswain-hpc/coxswain/internal/slurm/slurmcache"
)

// slurmctlds is what is known about the slurmctlds of a Controller.
type slurmctlds struct {
	pods []corev1.Pod
	// connected reports whether slurmctld can be asked, through a RestApi; daemons is what it answered.
	connected bool
	daemons   slurmcache.Daemons
	// needs are the jobs that need partitions which are to go.
	needs need.Answer
}

// refusal returns why slurmctld does not take the configuration with the digest: the words of its own tools, or its last words when it does
// not run. It is empty when no refusal is known.
func (s slurmctlds) refusal(digest string) string {
	for i := range s.pods {
		for _, words := range lastWords(s.pods[i].Status.InitContainerStatuses, pod.ReconfigureName) {
			if words, ok := strings.CutPrefix(words, digest+": "); ok {
				return "slurmctld does not accept the configuration: " + complaint(words)
			}
		}
		for _, words := range lastWords(s.pods[i].Status.ContainerStatuses, slinkyv1beta1.NameSlurmctld) {
			if strings.Contains(words, fatal) {
				return "slurmctld does not start: " + complaint(words)
			}
		}
	}
	return ""
}

// lastWords returns the messages with which a container ended. Those of a slurmctld that has become ready since do not matter any more.
func lastWords(statuses []corev1.ContainerStatus, name string) []string {
	var words []string
	for _, c := range statuses {
		if c.Name != name || c.Ready && name == slinkyv1beta1.NameSlurmctld {
			continue
		}
		for _, ended := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if ended != nil {
				words = append(words, ended.Message)
			}
		}
	}
	return words
}

// fatal begins the words with which the daemons and tools of Slurm end.
const fatal = "fatal: "

// complaint takes what matters out of a log: the line with which the daemon ended and, when the line before it has an error, that line too:
// it is often the cause.
func complaint(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	last := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, fatal) })
	if last < 0 {
		return lines[len(lines)-1]
	}
	text := from(lines[last], fatal)
	if last > 0 && strings.Contains(lines[last-1], "error: ") {
		text = from(lines[last-1], "error: ") + "; " + text
	}
	return text
}

func from(line, word string) string { return strings.TrimSpace(line[strings.Index(line, word):]) }

// loadedAtStart reports whether every slurmctld pod has started with the configuration and runs.
func (s slurmctlds) loadedAtStart(digest string) bool {
	for i := range s.pods {
		p := &s.pods[i]
		if p.Annotations[slinkyv1beta1.AnnotationSlurmConfigHash] != digest || p.DeletionTimestamp != nil || !isReady(p) {
			return false
		}
	}
	return len(s.pods) > 0
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// configApplied reports whether slurmctld has loaded the wanted configuration. before is the condition as it was; it stays while nothing
// newer is known about the same configuration.
func configApplied(c *slinkyv1beta1.Controller, problems problem.List, s slurmctlds, before *metav1.Condition) metav1.Condition {
	digest := c.Status.ConfigDigest
	is := func(status metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{Type: slinkyv1beta1.ConditionConfigApplied, Status: status, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	has := slurmctld.Stamp(s.daemons.Parameters)
	switch refusal := s.refusal(digest); {
	case c.Spec.External:
		return is(metav1.ConditionTrue, slinkyv1beta1.ReasonExternal, "slurmctld runs elsewhere, with a configuration of its own")
	case invalid(problems):
		return is(metav1.ConditionFalse, slinkyv1beta1.ReasonInvalidConfiguration, "slurmctld keeps the previous configuration: %s", problems.Message())
	case len(problems) > 0:
		return is(metav1.ConditionFalse, slinkyv1beta1.ReasonConfigPending, "slurmctld keeps the previous configuration: %s", problems.Message())
	case refusal != "":
		return is(metav1.ConditionFalse, slinkyv1beta1.ReasonConfigRejected, "%s", refusal)
	case s.daemons.Loaded && has == digest:
		return is(metav1.ConditionTrue, slinkyv1beta1.ReasonConfigLoaded, "slurmctld has loaded %s", digest)
	case s.daemons.Loaded:
		return is(metav1.ConditionFalse, slinkyv1beta1.ReasonConfigPending, "%s is on its way to slurmctld", digest)
	case before != nil && (before.Status == metav1.ConditionTrue || s.connected && before.Status == metav1.ConditionFalse) && strings.Contains(before.Message, digest):
		return *before // an operator that has just started has not asked slurmctld yet
	case !c.Spec.InplaceReconfigure && s.loadedAtStart(digest):
		return is(metav1.ConditionTrue, slinkyv1beta1.ReasonConfigLoaded, "slurmctld has started with %s", digest)
	case before != nil && before.Status != metav1.ConditionUnknown && strings.Contains(before.Message, digest):
		return *before
	case c.Suspended():
		return is(metav1.ConditionFalse, slinkyv1beta1.ReasonConfigPending, "%s; it starts with %s when it is resumed", suspended, digest)
	case !s.connected:
		return is(metav1.ConditionUnknown, slinkyv1beta1.ReasonConfigUnknown, "there is no RestApi, so it is not known whether slurmctld has loaded %s", digest)
	default:
		return is(metav1.ConditionUnknown, slinkyv1beta1.ReasonConfigUnknown, "%s, so whether it has loaded %s is not known", s.daemons.Why, digest)
	}
}

// invalid reports whether any of the problems is about the configuration.
func invalid(problems problem.List) bool {
	return slices.ContainsFunc(problems, func(p problem.Problem) bool {
		return p.Reason == slinkyv1beta1.ReasonInvalidConfiguration || p.Reason == slinkyv1beta1.ReasonConfigTooLarge
	})
}

// rejected returns the problem of a configuration that slurmctld has refused.
func rejected(applied metav1.Condition) problem.List {
	if applied.Reason != slinkyv1beta1.ReasonConfigRejected {
		return nil
	}
	return problem.List{problem.Errorf("", slinkyv1beta1.ReasonConfigRejected, "%s", applied.Message)}
}

// oldestRelease is the oldest Slurm that the operator is tested with.
const oldestRelease = "24.11"

// versionSupported reports whether the operator can drive the release of slurmctld, once that is known.
func versionSupported(release string) metav1.Condition {
	c := metav1.Condition{
		Type: slinkyv1beta1.ConditionVersionSupported, Status: metav1.ConditionUnknown,
		Reason: slinkyv1beta1.ReasonVersionUnknown, Message: "the release of slurmctld is not known yet",
	}
	switch {
	case release == "":
	case conf.CompareReleases(release, oldestRelease) >= 0:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, slinkyv1beta1.ReasonVersionSupported, "slurmctld has release "+release
	default:
		c.Status, c.Reason = metav1.ConditionFalse, slinkyv1beta1.ReasonVersionUnsupported
		c.Message = "slurmctld has release " + release + "; the operator supports " + oldestRelease + " and newer ones"
	}
	return c
}

// versionPart returns the part for the release of slurmctld, which the Controller has to be ready by, too.
func versionPart(c metav1.Condition) []kube.Part {
	if c.Status != metav1.ConditionFalse {
		return nil
	}
	return []kube.Part{{Name: "version", Stalled: true, Reason: c.Reason, Message: c.Message}}
}
