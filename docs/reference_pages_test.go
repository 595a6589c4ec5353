// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestTextsOfFields(t *testing.T) {
	for _, c := range []struct{ text, schema, want, fallback string }{
		{"Port is a port. Default: 6817, with 0 as well.\nSlurm: SlurmctldPort,\nhttps://slurm.schedmd.com/slurm.conf.html#OPT_SlurmctldPort", "1",
			"Port is a port. [SlurmctldPort](https://slurm.schedmd.com/slurm.conf.html#OPT_SlurmctldPort)", "6817, with 0 as well"},
		{"Name is <a>_b|c.", `"x"`, `Name is &lt;a&gt;\_b\|c.`, "`\"x\"`"},
		{"No default. More info: https://kubernetes.io/docs/a_b/#c.", "", "No default. [Kubernetes](https://kubernetes.io/docs/a_b/#c).", ""},
	} {
		property := apiextensionsv1.JSONSchemaProps{Description: c.text}
		if c.schema != "" {
			property.Default = &apiextensionsv1.JSON{Raw: []byte(c.schema)}
		}
		if have, fallback := describe(property); have != c.want || fallback != c.fallback {
			t.Errorf("%q became %q, default %q", c.text, have, fallback)
		}
	}
}

// TestPagesOfKindsSayWhatHasNoEffect looks at single rows that people rely on.
func TestPagesOfKindsSayWhatHasNoEffect(t *testing.T) {
	for page, rows := range map[string][]string{
		"reference/slurm.nebius.ai/slurmcluster.md": {
			"| `spec.slurmNodes.accounting.mariadbOperator.command` | list of string |  | **No effect in this version.** ",
			"| `spec.slurmNodes.login.users[].shell` | string | /bin/bash | Shell is the login shell. ",
		},
		"reference/slurm.nebius.ai/activecheck.md":       {"| `spec.slurmJobSpec.jobContainer.image` | string |  | **No effect in this version.** "},
		"reference/slinky.slurm.net/loginset.md":         {"| `spec.login` | Container (core/v1) |"},
		"reference/slinky.slurm.net/controller.md":       {"| `status.conditions` | list of Condition (meta/v1) |", "* clusterName cannot be changed"},
		"reference/slinky.slurm.net/nodeset.md":          {"| `spec.updateStrategy.scheduledUpdate.duration` | duration |"},
		"reference/slurm.nebius.ai/jailedconfig.md":      {"| in kubectl | scope |"},
		"reference/slurm.nebius.ai/nodeset.md":           {"**No effect in this version.** "},
		"reference/slinky.slurm.net/accounting.md":       {"| `spec.storageConfig.port` | integer | "},
		"reference/slinky.slurm.net/token.md":            {"| required |"},
		"reference/slinky.slurm.net/restapi.md":          {"| `spec.replicas` | integer | "},
		"reference/slurm.nebius.ai/nodesetpowerstate.md": {"Nothing acts on this kind in this version"},
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if !strings.Contains(string(text), row) {
				t.Errorf("%s lacks %q", page, row)
			}
		}
	}
}
