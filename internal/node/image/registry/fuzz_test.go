// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import "testing"

func FuzzDocument(f *testing.F) {
	const named = `{"mediaType":"application/vnd.oci.image.config.v1+json",` +
		`"digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","size":0}`
	f.Add(`{"schemaVersion":2,"config":`+named+`,"layers":[]}`, "application/vnd.oci.image.manifest.v1+json")
	f.Add(`{"schemaVersion":2,"manifests":[`+named+`]}`, "")
	f.Add(`{"schemaVersion":1}`, "text/plain")
	f.Fuzz(func(t *testing.T, text, contentType string) {
		s := &source{host: "reg.test", image: "reg.test/a:1"}
		d, err := parseDocument([]byte(text), contentType)
		if err != nil || s.checkDocument(d) != nil {
			return
		}
		all := append([]descriptor{}, d.Manifests...)
		if !d.isIndex() {
			all = append(append(all, d.Config), d.Layers...)
		}
		for _, one := range all {
			if len(one.Digest) != len(d.digest) || one.Size < 0 {
				t.Errorf("%q of %q has %+v", text, contentType, one)
			}
		}
		if chosen, found := choose(d.Manifests, Platform{OS: "linux", Architecture: "amd64"}); found && chosen.Digest == "" {
			t.Errorf("%q has a manifest without a digest", text)
		}
		_ = offered(d.Manifests)
	})
}
