// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifest lets tests read and write Kubernetes objects as people do, in YAML.
package manifest

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// Parse returns the object that text describes. A field that the type does not have fails the test.
func Parse[T any](t testing.TB, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatalf("parsing a %T: %v\n%s", out, err, text)
	}
	return out
}

// YAML returns the objects as one stream of documents, keys sorted. Core types get their apiVersion and kind.
func YAML[T runtime.Object](t testing.TB, objects ...T) []byte {
	t.Helper()
	var b bytes.Buffer
	for i, o := range objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		named := o.DeepCopyObject()
		if kinds, _, err := clientgoscheme.Scheme.ObjectKinds(named); err == nil {
			named.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
		if secret, ok := named.(*corev1.Secret); ok {
			readable(secret)
		}
		text, err := yaml.Marshal(named)
		if err != nil {
			t.Fatalf("encoding a %T: %v", o, err)
		}
		b.Write(text)
	}
	return b.Bytes()
}

// readable turns the values of a Secret into text.
func readable(secret *corev1.Secret) {
	secret.StringData = map[string]string{}
	for key, value := range secret.Data {
		secret.StringData[key] = string(value)
	}
	secret.Data = nil
}
