// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"errors"
	"fmt"

	"github.com/coxswain-hpc/coxswain/internal/node/container/step"
)

// refuse returns an error for what a request has and nothing fulfils yet. A step that ignored it would do other things than its user wants.
func refuse(r *step.Request) error {
	for _, o := range []struct {
		option string
		given  bool
	}{
		{"--container-name", r.Name != ""},
		{"--container-save", r.Save != ""},
		{"--container-entrypoint", r.Entrypoint != nil && *r.Entrypoint},
		{"--container-entrypoint-log", r.EntrypointLog},
	} {
		if o.given {
			return fmt.Errorf("%s is not supported yet by this release; leave it out", o.option)
		}
	}
	if r.Importer != "" {
		return errors.New("plugstack.conf has the argument importer of spank_pyxis.so, which is not supported yet by this release; " +
			"ask the cluster's administrator to leave it out")
	}
	if r.Image == "" {
		return errors.New("--container-image is missing: name the image of the container")
	}
	return nil
}
