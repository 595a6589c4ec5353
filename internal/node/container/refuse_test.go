// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"context"
	"strings"
	"testing"

	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
)

func TestWhatIsNotFulfilledIsRefused(t *testing.T) {
	const tail = " is not supported yet by this release; leave it out"
	for name, test := range map[string]struct {
		request step.Request
		want    string
	}{
		"a name":                          {step.Request{Image: "a", Name: "n"}, "--container-name" + tail},
		"a name without an image":         {step.Request{Name: "n:exec"}, "--container-name" + tail},
		"an image to save":                {step.Request{Image: "a", Save: "/x"}, "--container-save" + tail},
		"the entrypoint":                  {step.Request{Image: "a", Entrypoint: new(true)}, "--container-entrypoint" + tail},
		"the entrypoint's output":         {step.Request{Image: "a", EntrypointLog: true}, "--container-entrypoint-log" + tail},
		"the entrypoint's output alone":   {step.Request{Image: "a", Entrypoint: new(false), EntrypointLog: true}, "--container-entrypoint-log" + tail},
		"an importer of an administrator": {step.Request{Image: "a", Importer: "/x"}, "plugstack.conf has the argument importer"},
		"no image":                        {step.Request{}, "--container-image is missing"},
		"no entrypoint":                   {step.Request{Image: "a", Entrypoint: new(false)}, ""},
		"an image alone":                  {step.Request{Image: "a"}, ""},
		"all that is fulfilled": {step.Request{
			Image: "a", Workdir: "/w", Env: []string{"A"}, Unshare: []string{"net"}, MountHome: new(true), RemapRoot: new(true), Writable: new(false), JobScope: true,
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := refuse(&test.request)
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("the error is %v, want %s", err, test.want)
			}
			made, err := Start(context.Background(), "/nowhere/socket", &test.request, func(string) {})
			if made != nil || err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("the container is %+v, %v", made, err)
			}
		})
	}
}
