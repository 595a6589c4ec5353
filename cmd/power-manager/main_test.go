// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
)

func TestCommands(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := nebiusv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "gpu"}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&nebiusv1alpha1.NodeSet{ObjectMeta: meta, Spec: nebiusv1alpha1.NodeSetSpec{EphemeralNodes: true}},
		&nebiusv1alpha1.NodeSetPowerState{ObjectMeta: meta, Spec: nebiusv1alpha1.NodeSetPowerStateSpec{NodeSetRef: "gpu"}},
	).Build()
	for _, step := range []struct {
		line string
		fail string
		want []int32
	}{
		{"resume -nodes gpu-[0-2] -namespace ns", "", []int32{0, 1, 2}},
		{"wait-added -nodes gpu-[0-2] -namespace ns", "", []int32{0, 1, 2}},
		{"wait-removed -nodes gpu-[0-2] -namespace ns -timeout 1ms", "gpu-[0-2]", []int32{0, 1, 2}},
		{"suspend --nodes=gpu-[0-1] --namespace=ns", "", []int32{2}},
		{"wait-removed -nodes gpu-[0-1] -namespace ns", "", []int32{2}},
		{"wait-added -nodes gpu-[0-2] -namespace ns -timeout 1ms", "gpu-[0-1]", []int32{2}},
	} {
		var output bytes.Buffer
		err := run(t.Context(), strings.Fields(step.line), &output, func() (client.Client, error) { return api, nil })
		if (err != nil) != (step.fail != "") || err != nil && !strings.Contains(err.Error(), step.fail) {
			t.Errorf("%s: %v", step.line, err)
		}
		var state nebiusv1alpha1.NodeSetPowerState
		if err := api.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "gpu"}, &state); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, state.Spec.ActiveNodes); diff != "" {
			t.Errorf("%s (-want, +got):\n%s", step.line, diff)
		}
	}
}

func TestMistakesOfTheCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"":                                "no command is given",
		"start -nodes a-1":                `there is no command "start"`,
		"resume":                          "-nodes is missing",
		"resume -nodes a-1 b-1":           `unexpected argument "b-1"`,
		"resume -nodes a-1 -timeout soon": "invalid value",
	} {
		_, _, err := parse(strings.Fields(line), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", line, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	var output bytes.Buffer
	if _, _, err := parse([]string{"--help"}, &output); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{"wait-removed", "-timeout"} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("the help lacks %s:\n%s", want, &output)
		}
	}
}

func TestTheNamespaceIsThatOfThePod(t *testing.T) {
	file := filepath.Join(t.TempDir(), "namespace")
	if _, err := ownNamespace(file); err == nil || !strings.Contains(err.Error(), "-namespace") {
		t.Errorf("without a file: %v", err)
	}
	if err := os.WriteFile(file, []byte("here\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := ownNamespace(file); err != nil || got != "here" {
		t.Errorf("it is %q, %v", got, err)
	}
}
