// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package slurmcluster

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/coxswain-hpc/coxswain/internal/compose"
	"github.com/coxswain-hpc/coxswain/internal/kube"
)

// served is a client that answers with one object, or that there is none.
type served struct {
	client.Reader
	text string
}

// Get is part of client.Reader.
func (s served) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if s.text == "" {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "mariadbs"}, key.Name)
	}
	u, _ := obj.(*unstructured.Unstructured)
	return json.Unmarshal([]byte(s.text), &u.Object)
}

func TestTheDatabaseIsAsTheMariaDBOperatorSays(t *testing.T) {
	waiting := kube.Part{Name: "MariaDB demo", Reason: kube.ReasonWaiting, Message: "the mariadb-operator has not reported on it yet"}
	for name, test := range map[string]struct {
		text string
		want kube.Part
	}{
		"nobody has made the database":                          {want: waiting},
		"the mariadb-operator has reported nothing":             {text: `{"status": {}}`, want: waiting},
		"the mariadb-operator has reported only something else": {text: `{"status": {"conditions": [{"type": "Updated", "status": "True"}]}}`, want: waiting},
		"the database is ready":                                 {text: `{"status": {"conditions": [{"type": "Ready", "status": "True", "message": "Running"}]}}`, want: kube.Part{Name: "MariaDB demo", Ready: true, Reason: kube.ReasonWaiting, Message: "Running"}},
		"the database is not ready":                             {text: `{"status": {"conditions": [{"type": "Ready", "status": "False", "message": "Not ready"}]}}`, want: kube.Part{Name: "MariaDB demo", Reason: kube.ReasonWaiting, Message: "Not ready"}},
		"nobody knows whether the database is ready":            {text: `{"status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "?"}]}}`, want: kube.Part{Name: "MariaDB demo", Reason: kube.ReasonWaiting, Message: "?"}},
		"the mariadb-operator reports in another form":          {text: `{"status": {"conditions": ["Ready"]}}`, want: waiting},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(compose.MariaDBKind)
			u.SetName("demo")
			got, err := database(t.Context(), served{text: test.text}, u, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]kube.Part{test.want}, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
