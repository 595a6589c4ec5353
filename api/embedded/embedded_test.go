// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package embedded_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/coxswain-hpc/coxswain/api/embedded"
)

// holder is a piece of an API type that embeds a container.
type holder struct {
	Container *embedded.Container `json:"container,omitempty"`
}

func TestDecode(t *testing.T) {
	tests := []struct {
		name    string
		raw     string
		want    *corev1.Container
		wantErr string
	}{
		{name: "nothing written is no container", raw: ``},
		{name: "null is no container", raw: `null`},
		{name: "an empty object is an empty container", raw: `{}`, want: &corev1.Container{}},
		{
			name: "known fields arrive",
			raw:  `{"image":"slurmd:1","ports":[{"containerPort":6818}]}`,
			want: &corev1.Container{Image: "slurmd:1", Ports: []corev1.ContainerPort{{ContainerPort: 6818}}},
		},
		{
			name: "a key without a value is not there",
			raw:  `{"resources":{"limits":{"cpu":null,"memory":"1Gi"},"requests":{"cpu":null}}}`,
			want: &corev1.Container{Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
			}},
		},
		{
			name: "an unknown field is named with its path",
			raw:  `{"resources":{"limts":{}}}`, wantErr: `unknown field "resources.limts"`,
		},
		{
			name: "an unknown field in a list is named with its index",
			raw:  `{"env":[{"name":"A"},{"imaeg":"B"}]}`, wantErr: `unknown field "env[1].imaeg"`,
		},
		{name: "another case of a field is unknown", raw: `{"Image":"a"}`, wantErr: `unknown field "Image"`},
		{name: "a field given twice is named", raw: `{"image":"a","image":"b"}`, wantErr: `duplicate field "image"`},
		{
			name: "a mistyped field is named with its path",
			raw:  `{"ports":[{"containerPort":"ssh"}]}`, wantErr: `ports.containerPort`,
		},
		{name: "a list is no container", raw: `[]`, wantErr: `cannot unmarshal array`},
		{name: "a number that does not fit is refused", raw: `{"ports":[{"containerPort":99999999999}]}`, wantErr: `containerPort`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &embedded.Container{RawExtension: runtime.RawExtension{Raw: []byte(tt.raw)}}
			got, err := c.Decode()
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error = %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("container (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeReportsAllUnknownFields(t *testing.T) {
	c := &embedded.Container{RawExtension: runtime.RawExtension{Raw: []byte(`{"imag":"a","resources":{"limts":{}}}`)}}
	_, err := c.Decode()
	for _, want := range []string{`"imag"`, `"resources.limts"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want one that names %s", err, want)
		}
	}
}

func TestNilDecodesToNil(t *testing.T) {
	for name, decode := range map[string]func() (bool, error){
		"Container":   func() (bool, error) { v, err := (*embedded.Container)(nil).Decode(); return v == nil, err },
		"PodSpec":     func() (bool, error) { v, err := (*embedded.PodSpec)(nil).Decode(); return v == nil, err },
		"ServiceSpec": func() (bool, error) { v, err := (*embedded.ServiceSpec)(nil).Decode(); return v == nil, err },
		"PersistentVolumeClaim": func() (bool, error) {
			v, err := (*embedded.PersistentVolumeClaim)(nil).Decode()
			return v == nil, err
		},
		"PersistentVolumeClaimSpec": func() (bool, error) {
			v, err := (*embedded.PersistentVolumeClaimSpec)(nil).Decode()
			return v == nil, err
		},
		"Affinity":     func() (bool, error) { v, err := (*embedded.Affinity)(nil).Decode(); return v == nil, err },
		"VolumeSource": func() (bool, error) { v, err := (*embedded.VolumeSource)(nil).Decode(); return v == nil, err },
		"Volume":       func() (bool, error) { v, err := (*embedded.Volume)(nil).Decode(); return v == nil, err },
		"VolumeMount":  func() (bool, error) { v, err := (*embedded.VolumeMount)(nil).Decode(); return v == nil, err },
		"EnvVar":       func() (bool, error) { v, err := (*embedded.EnvVar)(nil).Decode(); return v == nil, err },
		"Probe":        func() (bool, error) { v, err := (*embedded.Probe)(nil).Decode(); return v == nil, err },
	} {
		if isNil, err := decode(); !isNil || err != nil {
			t.Errorf("%s: nil = %v, error = %v", name, isNil, err)
		}
	}
}

func TestDeepCopyIsIndependent(t *testing.T) {
	original := &embedded.Container{RawExtension: embedded.From(corev1.Container{Image: "before"})}
	want := string(original.Raw)
	copied := original.DeepCopy()
	for i := range copied.Raw {
		copied.Raw[i] = 'x'
	}
	if got := string(original.Raw); got != want {
		t.Errorf("writing to the copy changed the original to %s", got)
	}
}

func TestUnwrittenContainerStaysUnwritten(t *testing.T) {
	got, err := json.Marshal(holder{})
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != `{}` {
		t.Errorf("encoded %s, want {}", got)
	}
}

func TestEverythingWrittenSurvives(t *testing.T) {
	const written = `{"container":{"$patch":"replace","env":[{"$patch":"delete","name":"A"}],"livenessProbe":null,"later":1}}`
	var h holder
	if err := json.Unmarshal([]byte(written), &h); err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != written {
		t.Errorf("JSON round trip made %s", got)
	}

	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&h)
	if err != nil {
		t.Fatal(err)
	}
	var back holder
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &back); err != nil {
		t.Fatal(err)
	}
	var wantAny, gotAny any
	if err := json.Unmarshal(h.Container.Raw, &wantAny); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(back.Container.Raw, &gotAny); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantAny, gotAny); diff != "" {
		t.Errorf("unstructured round trip (-want +got):\n%s", diff)
	}
}

// A mistake inside a container must not keep the object around it, or a list of such objects, from being read.
func FuzzHolderDecodesWhateverIsInTheContainer(f *testing.F) {
	for _, seed := range []string{`{}`, `{"image":1}`, `{"ports":{"a":[]}}`, `{"image":"a","image":"b"}`, `null`, `[]`, `"x"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			t.Skip()
		}
		var h holder
		if err := json.Unmarshal([]byte(`{"container":`+string(raw)+`}`), &h); err != nil {
			t.Fatalf("the object around %s could not be read: %v", raw, err)
		}
		copied := h.Container.DeepCopy()
		first, firstErr := h.Container.Decode()
		second, secondErr := copied.Decode()
		if (firstErr == nil) != (secondErr == nil) {
			t.Fatalf("errors of original and copy differ: %v, %v", firstErr, secondErr)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("original and copy differ:\n%s", diff)
		}
		if firstErr != nil || first == nil {
			return
		}
		again, err := (&embedded.Container{RawExtension: embedded.From(first)}).Decode()
		if err != nil {
			t.Fatalf("what was decoded cannot be decoded again: %v", err)
		}
		if diff := cmp.Diff(first, again); diff != "" {
			t.Fatalf("decoding again differs:\n%s", diff)
		}
	})
}
