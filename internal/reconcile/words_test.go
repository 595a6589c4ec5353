// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-hpc/coxswain/internal/reconcile"
	"github.com/coxswain-hpc/coxswain/internal/testing/manifest"
)

func TestLastWords(t *testing.T) {
	const ended = `{metadata: {name: b}, status: {containerStatuses: [{name: other}, {name: login, lastState: {terminated: {message: "sshd refuses it:\r\nline 3\n"}}}]}}`
	for name, c := range map[string]struct {
		pods []string
		want string
	}{
		"a container that is started again has said something": {[]string{ended}, "; container login of b ended: sshd refuses it:; line 3"},
		"a container that has just ended has said something":   {[]string{strings.Replace(ended, "lastState", "state", 1)}, "; container login of b ended: sshd refuses it:; line 3"},
		"the first pod by name is told of": {
			[]string{ended, strings.Replace(ended, "name: b", "name: a", 1), strings.Replace(ended, "name: b", "name: c", 1)}, "; container login of a ended: sshd refuses it:; line 3"},
		"a container that is ready again is not told of":   {[]string{strings.Replace(ended, "name: login", "name: login, ready: true", 1)}, ""},
		"a container of a pod that goes is not told of":    {[]string{strings.Replace(ended, "name: b", "name: b, deletionTimestamp: 2026-01-01T00:00:00Z", 1)}, ""},
		"another container is not told of":                 {[]string{strings.Replace(ended, "name: login", "name: sidecar", 1)}, ""},
		"a container that has said nothing is not told of": {[]string{`{metadata: {name: b}, status: {containerStatuses: [{name: login, state: {terminated: {exitCode: 1}}}]}}`}, ""},
		"words are cut to what a condition takes": {[]string{strings.Replace(ended, "line 3", strings.Repeat("ä", 1000), 1)},
			"; container login of b ended: sshd refuses it:; " + strings.Repeat("ä", 247)},
	} {
		t.Run(name, func(t *testing.T) {
			var pods []corev1.Pod
			for _, text := range c.pods {
				pods = append(pods, *manifest.Parse[corev1.Pod](t, text))
			}
			if got := reconcile.LastWords(pods, "login"); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
