// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package activecheckplan

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-hpc/coxswain/api/embedded"
	nebiusv1alpha1 "github.com/coxswain-hpc/coxswain/api/nebius/v1alpha1"
	"github.com/coxswain-hpc/coxswain/internal/problem"
)

// A Source is a key of a Secret or ConfigMap whose value is a variable of Slurm jobs.
type Source struct{ Kind, Name, Key string }

// SourceOf returns what a variable refers to, and whether it must be there; false if it refers to no Secret and no ConfigMap.
func SourceOf(v corev1.EnvVar) (s Source, required, refers bool) {
	switch from := v.ValueFrom; {
	case from == nil:
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return Source{"Secret", ref.Name, ref.Key}, ref.Optional == nil || !*ref.Optional, true
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return Source{"ConfigMap", ref.Name, ref.Key}, ref.Optional == nil || !*ref.Optional, true
	}
	return Source{}, false, false
}

// Variables returns the variables of a check of Slurm jobs, as its spec has them. Those that cannot be read are left out.
func Variables(check *nebiusv1alpha1.ActiveCheck) []corev1.EnvVar {
	return list(&Output{}, slurmSpec(check).JobContainer.Env, EnvironmentPath, (*embedded.EnvVar).Decode)
}

// environment returns the variables of the Job of a run. Those about a pod beyond its metadata have no effect, as there is no pod.
func (o *Output) environment(check *nebiusv1alpha1.ActiveCheck) []corev1.EnvVar {
	out := []corev1.EnvVar{{Name: variableCheck, Value: name(check)}}
	for i, v := range list(o, slurmSpec(check).JobContainer.Env, EnvironmentPath, (*embedded.EnvVar).Decode) {
		_, _, refers := SourceOf(v)
		known := v.ValueFrom == nil || refers
		if !known && v.ValueFrom.FieldRef != nil {
			_, known = field(v.ValueFrom.FieldRef.FieldPath, metav1.ObjectMeta{})
		}
		o.Ignore(!known, fmt.Sprintf("%s[%d].valueFrom", EnvironmentPath, i))
		if known && v.Name != variableCheck {
			out = append(out, v)
		}
	}
	return out
}

// variables returns the values of variables. Those of fields are of meta. A problem is a value that is required and not known.
func (in Input) variables(env []corev1.EnvVar, meta metav1.ObjectMeta) (map[string]string, problem.List) {
	out := map[string]string{}
	var problems problem.List
	for _, v := range env {
		source, required, refers := SourceOf(v)
		switch {
		case v.ValueFrom == nil:
			out[v.Name] = v.Value
		case refers:
			value, known := in.Sources[source]
			if known {
				out[v.Name] = value
			} else if required {
				problems = append(problems, problem.Waitingf(EnvironmentPath, nebiusv1alpha1.ReasonInvalidSpec,
					"variable %s needs key %s of %s %s", v.Name, source.Key, source.Kind, source.Name))
			}
		case v.ValueFrom.FieldRef != nil:
			if value, known := field(v.ValueFrom.FieldRef.FieldPath, meta); known {
				out[v.Name] = value
			}
		}
	}
	return out, problems
}

// field returns a field of a pod's metadata that a variable may name. That of a Job stands for it, as no pod is made.
func field(path string, meta metav1.ObjectMeta) (value string, known bool) {
	switch path {
	case "metadata.name":
		return meta.Name, true
	case "metadata.namespace":
		return meta.Namespace, true
	case "metadata.uid":
		return string(meta.UID), true
	}
	for prefix, values := range map[string]map[string]string{"metadata.labels['": meta.Labels, "metadata.annotations['": meta.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok && strings.HasSuffix(key, "']") {
			return values[strings.TrimSuffix(key, "']")], true
		}
	}
	return "", false
}
