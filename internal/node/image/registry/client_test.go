// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-hpc/coxswain/internal/node/image/reference"
	"github.com/coxswain-hpc/coxswain/internal/node/image/registry"
)

func TestAnImageIsRead(t *testing.T) {
	for name, make := range map[string]func(*fake) (digest string){
		"a manifest of OCI": func(f *fake) string { return f.image("1", "amd64", "layer")["digest"].(string) },
		"a manifest of Docker": func(f *fake) string {
			return f.manifest("1", dockerManifest, object{"schemaVersion": 2, "mediaType": dockerManifest,
				"config": f.blob(dockerConfig, `{"architecture":"amd64"}`), "layers": []object{f.blob(dockerLayer, "layer")}})["digest"].(string)
		},
		"an index of OCI": func(f *fake) string {
			other, ours := f.image("arm", "arm64", "other"), f.image("amd", "amd64", "layer")
			f.manifest("1", ociIndex, object{"schemaVersion": 2, "mediaType": ociIndex,
				"manifests": []object{on(other, "unknown", ""), on(other, "arm64", "v8"), on(ours, "amd64", "")}})
			return ours["digest"].(string)
		},
		"a manifest list of Docker": func(f *fake) string {
			other, ours := f.image("arm", "arm64", "other"), f.image("amd", "amd64", "layer")
			f.manifest("1", dockerList, object{"schemaVersion": 2, "mediaType": dockerList,
				"manifests": []object{on(other, "arm64", ""), on(ours, "amd64", "")}})
			return ours["digest"].(string)
		},
		"an index with newer variants of the architecture": func(f *fake) string {
			newer, ours := f.image("v3", "amd64", "other"), f.image("amd", "amd64", "layer")
			f.manifest("1", ociIndex, object{"schemaVersion": 2, "manifests": []object{on(newer, "amd64", "v3"), on(ours, "amd64", "")}})
			return ours["digest"].(string)
		},
		"an index inside of an index": func(f *fake) string {
			ours := f.image("amd", "amd64", "layer")
			inner := f.manifest("inner", ociIndex, object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []object{on(ours, "amd64", "")}})
			f.manifest("1", ociIndex, object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []object{on(inner, "amd64", "")}})
			return ours["digest"].(string)
		},
		"an index without platforms": func(f *fake) string {
			ours := f.image("amd", "amd64", "layer")
			f.manifest("1", ociIndex, object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []object{ours}})
			return ours["digest"].(string)
		},
		"a manifest without a type, sent as a text": func(f *fake) string {
			return f.manifest("1", "text/plain; charset=utf-8", object{"schemaVersion": 2,
				"config": f.blob(ociConfig, "{}"), "layers": []object{f.blob(ociZstd, "layer")}})["digest"].(string)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, false)
			digest := make(f)
			c := clientOf(t, f)
			text, image, err := pull(t.Context(), c, f.reference(t, ":1"), nil)
			if err != nil || text != "layer" || image.Digest != digest || image.Host() != f.host {
				t.Fatalf("the image is %+v with the layers %q, %v", image, text, err)
			}
			if config, err := image.ReadConfig(t.Context()); err != nil || !strings.HasPrefix(string(config), "{") {
				t.Errorf("the configuration is %q, %v", config, err)
			}
			if again, err := c.Resolve(t.Context(), f.reference(t, "@"+digest), nil); err != nil || again.Digest != digest {
				t.Errorf("the image of the digest is %+v, %v", again, err)
			}
			if _, err := image.Open(t.Context(), registry.Layer{Digest: digest}); err == nil {
				t.Error("a layer of another image is opened")
			}
		})
	}
}

func TestAnImageForOtherNodesNamesBothPlatforms(t *testing.T) {
	f := newFake(t, false)
	arm, power := f.image("arm", "arm64", "a"), f.image("power", "ppc64le", "b")
	f.manifest("index", ociIndex, object{"schemaVersion": 2, "mediaType": ociIndex,
		"manifests": []object{on(arm, "arm64", "v8"), on(power, "ppc64le", ""), on(power, "ppc64le", "")}})
	f.manifest("empty", ociIndex, object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []object{}})
	c := clientOf(t, f)
	for tag, want := range map[string]string{
		"index": "is for linux/arm64/v8, linux/ppc64le, and this node is linux/amd64: choose an image for this node",
		"arm":   "is for linux/arm64, and this node is linux/amd64: choose an image for this node",
		"empty": "is for no platform, and this node is linux/amd64",
	} {
		image, err := c.Resolve(t.Context(), f.reference(t, ":"+tag), nil)
		if err == nil {
			_, err = image.ReadConfig(t.Context())
		}
		wantError(t, err, registry.WrongPlatform, want, f.host)
	}
}

func TestANodeOfArmTakesOlderVariants(t *testing.T) {
	f := newFake(t, false)
	v6, v7 := f.image("v6", "arm", "v6"), f.image("v7", "arm", "v7")
	f.manifest("1", ociIndex, object{"schemaVersion": 2, "mediaType": ociIndex,
		"manifests": []object{on(v6, "arm", "v6"), on(v7, "arm", "v7")}})
	for variant, want := range map[string]string{"v8": "v7", "v7": "v7", "v6": "v6"} {
		c := newClient(t, registry.Options{
			Insecure: []string{f.host}, Platform: registry.Platform{OS: "linux", Architecture: "arm", Variant: variant},
		})
		if text, _, err := pull(t.Context(), c, f.reference(t, ":1"), nil); err != nil || text != want {
			t.Errorf("a node of %s reads %q, %v", variant, text, err)
		}
	}
}

func TestAManifestThatIsNoGoodIsRefused(t *testing.T) {
	config := object{"mediaType": ociConfig, "digest": digestOf(nil), "size": 2}
	layer := object{"mediaType": ociZstd, "digest": digestOf(nil), "size": 0}
	manifest := func(config object, layers ...object) object {
		return object{"schemaVersion": 2, "mediaType": ociManifest, "config": config, "layers": layers}
	}
	var many []object
	for range 501 {
		many = append(many, layer)
	}
	for name, test := range map[string]struct {
		body   any
		reason registry.Reason
		want   string
	}{
		"a manifest of the old format": {object{"schemaVersion": 1, "name": "x"}, registry.Unsupported, "has a manifest of a Docker before 1.10"},
		"an artifact of another kind": {
			manifest(object{"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": digestOf(nil), "size": 2}),
			registry.Unsupported, `is no container image, but has the type "application/vnd.cncf.helm.config.v1+json"`,
		},
		"an encrypted layer": {manifest(config, object{"mediaType": ociZstd + "+encrypted", "digest": digestOf(nil), "size": 0}),
			registry.Unsupported, "tar+zstd+encrypted\", which is not read: build it with layers of gzip or zstd"},
		"501 layers": {manifest(config, many...), registry.Unsupported, "has 501 layers, and 500 are the limit"},
		"a digest that is a path": {
			manifest(config, object{"mediaType": ociZstd, "digest": "../../x", "size": 0}), registry.Corrupt,
			`with the digest "../../x" and the size 0`,
		},
		"a negative size": {
			manifest(config, object{"mediaType": ociZstd, "digest": digestOf(nil), "size": -1}), registry.Corrupt, "and the size -1",
		},
		"a configuration of a terabyte": {
			manifest(object{"mediaType": ociConfig, "digest": digestOf(nil), "size": 1 << 40}), registry.Unsupported,
			"has a configuration of 1099511627776 bytes",
		},
		"a manifest that is an index too": {object{"schemaVersion": 2, "mediaType": ociManifest, "config": config, "manifests": []object{layer}},
			registry.Corrupt, "that is both a manifest and an index"},
		"a text that is no JSON":       {"<html>", registry.Corrupt, "that is no JSON of a manifest: check that it is a registry"},
		"a manifest of five megabytes": {strings.Repeat(" ", 5<<20), registry.Unsupported, "sends a manifest of more than 4194304 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, false)
			switch body := test.body.(type) {
			case string:
				f.raw("1", ociManifest, body)
			case object:
				f.manifest("1", ociManifest, body)
			}
			_, err := clientOf(t, f).Resolve(t.Context(), f.reference(t, ":1"), nil)
			wantError(t, err, test.reason, test.want, f.host)
		})
	}
}

func TestIndexesInsideOfEachOtherEnd(t *testing.T) {
	f := newFake(t, false)
	inner := f.image("amd", "amd64", "layer")
	for range 4 {
		inner = f.manifest("1", ociIndex, object{"schemaVersion": 2, "mediaType": ociIndex, "manifests": []object{on(inner, "amd64", "")}})
	}
	_, err := clientOf(t, f).Resolve(t.Context(), f.reference(t, ":1"), nil)
	wantError(t, err, registry.Corrupt, "more than 3 indexes inside of each other")
}

func TestAnotherManifestThanThatOfTheDigestIsRefused(t *testing.T) {
	f := newFake(t, false)
	f.image("1", "amd64", "layer")
	digest := digestOf([]byte("another"))
	f.contents["/v2/team/app/manifests/"+digest] = f.contents["/v2/team/app/manifests/1"]
	_, err := clientOf(t, f).Resolve(t.Context(), f.reference(t, "@"+digest), nil)
	wantError(t, err, registry.Corrupt, "sends another manifest", digest)
}

func TestOnlyImagesOfRegistriesAreResolved(t *testing.T) {
	for _, argument := range []string{"./a.sqsh", "dockerd://a", "podman://a"} {
		r, err := reference.Parse(argument)
		if err != nil {
			t.Fatal(err)
		}
		_, err = newClient(t, registry.Options{}).Resolve(t.Context(), r, nil)
		if err == nil || !strings.Contains(err.Error(), "it is not an image of a registry") {
			t.Errorf("the error of %s is %v", argument, err)
		}
	}
}

func TestMirrorsAreAskedFirst(t *testing.T) {
	origin, mirror, empty := newFake(t, false), newFake(t, false), newFake(t, false)
	origin.image("1", "amd64", "layer")
	mirror.image("1", "amd64", "layer")
	failed := []string{}
	c := newClient(t, registry.Options{
		Insecure: []string{origin.host, mirror.host, empty.host}, Mirrors: map[string][]string{origin.host: {empty.host, mirror.host}},
		MirrorFailed: func(mirror string, _ error) { failed = append(failed, mirror) },
	})
	text, image, err := pull(t.Context(), c, origin.reference(t, ":1"), nil)
	if err != nil || text != "layer" || image.Host() != mirror.host {
		t.Errorf("%q of %+v is read, %v", text, image, err)
	}
	if diff := cmp.Diff([]string{empty.host}, failed); diff != "" || len(origin.requests()) != 0 {
		t.Errorf("the registry was asked for %q, and other mirrors failed (-want +got):\n%s", origin.requests(), diff)
	}

	t.Run("a mirror that has lost a layer is left", func(t *testing.T) {
		delete(mirror.contents, "/v2/team/app/blobs/"+digestOf([]byte("layer")))
		text, _, err := pull(t.Context(), c, origin.reference(t, ":1"), nil)
		if err != nil || text != "layer" || len(origin.requests()) == 0 {
			t.Errorf("%q is read, %v", text, err)
		}
	})
	t.Run("a mirror that is down is left", func(t *testing.T) {
		mirror.Close()
		text, image, err := pull(t.Context(), c, origin.reference(t, ":1"), nil)
		if err != nil || text != "layer" || image.Host() != origin.host {
			t.Errorf("%q of %+v is read, %v", text, image, err)
		}
	})
	t.Run("the error is that of the registry", func(t *testing.T) {
		_, _, err := pull(t.Context(), c, origin.reference(t, ":2"), nil)
		wantError(t, err, registry.NotFound, origin.host+" has no image", ":2 (404): check its name and its tag")
	})
}
