// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	nebiusv1 "github.com/coxswain-hpc/coxswain/api/nebius/v1"
)

func TestVolumeSourceIsANameBesideACoreVolumeSource(t *testing.T) {
	var source nebiusv1.VolumeSource
	if err := json.Unmarshal([]byte(`{"name":"jail","nfs":{"server":"s","path":"/p"}}`), &source); err != nil {
		t.Fatal(err)
	}
	if source.Name != "jail" {
		t.Errorf("name is %q, want jail", source.Name)
	}
	core, err := source.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if core.NFS == nil || core.NFS.Server != "s" || core.NFS.Path != "/p" {
		t.Errorf("volume source is %v", core)
	}
	again, err := json.Marshal(source)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"name":"jail","nfs":{"server":"s","path":"/p"}}`; string(again) != want {
		t.Errorf("written again: %s, want %s", again, want)
	}
}

func TestAMistypedVolumeSourceNamesItsPathWhenItIsDecoded(t *testing.T) {
	var source nebiusv1.VolumeSource
	if err := json.Unmarshal([]byte(`{"name":"jail","nfs":{"sever":"s"}}`), &source); err != nil {
		t.Fatalf("one bad volume source keeps the whole object from being read: %v", err)
	}
	_, err := source.Decode()
	if want := `unknown field "nfs.sever"`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzVolumeSource(f *testing.F) {
	f.Add([]byte(`{"name":"jail","emptyDir":{}}`))
	f.Add([]byte(`{"name":"jail"}`))
	f.Add([]byte(`{"emptyDir":null}`))
	f.Add([]byte(` null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var source nebiusv1.VolumeSource
		if json.Unmarshal(data, &source) != nil || bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
			return
		}
		written, err := json.Marshal(source)
		if err != nil {
			t.Fatalf("read but not written: %v", err)
		}
		var want, got map[string]any
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(written, &got); err != nil {
			t.Fatal(err)
		}
		want["name"] = source.Name
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s became %s:\n%s", data, written, diff)
		}
	})
}
