// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"go.opentelemetry.io/otel/attribute"
)

// Keys of attributes. Those of HTTP and the namespace are OpenTelemetry's
// (https://opentelemetry.io/docs/specs/semconv/registry/attributes/). No value is the content of an object, a header or a body.
const (
	keyController = attribute.Key("coxswain.controller")
	keyReconcile  = attribute.Key("coxswain.reconcile.id")
	keyResult     = attribute.Key("coxswain.result")
	keyAgain      = attribute.Key("coxswain.requeue_after_seconds")

	keyChangedKind       = attribute.Key("coxswain.change.kind")
	keyChangedNamespace  = attribute.Key("coxswain.change.namespace")
	keyChangedName       = attribute.Key("coxswain.change.name")
	keyChangedGeneration = attribute.Key("coxswain.change.generation")

	keyNamespace   = attribute.Key("k8s.namespace.name")
	keyKind        = attribute.Key("k8s.object.kind")
	keyName        = attribute.Key("k8s.object.name")
	keyGeneration  = attribute.Key("k8s.object.generation")
	keyVerb        = attribute.Key("k8s.request.verb")
	keyGroup       = attribute.Key("k8s.request.group")
	keyResource    = attribute.Key("k8s.request.resource")
	keySubresource = attribute.Key("k8s.request.subresource")

	keyCluster  = attribute.Key("slurm.cluster")
	keyMethod   = attribute.Key("http.request.method")
	keyTemplate = attribute.Key("url.template")
	keyStatus   = attribute.Key("http.response.status_code")
	keySent     = attribute.Key("http.request.body.size")
	keyReceived = attribute.Key("http.response.body.size")
)

// Keys of the attributes of a rule that has decided: rule.Fired has what they mean.
const (
	KeyRuleQuestion = attribute.Key("coxswain.rule.question")
	KeyRuleWhen     = attribute.Key("coxswain.rule.when")
	KeyRuleThen     = attribute.Key("coxswain.rule.then")
	KeyRuleWhy      = attribute.Key("coxswain.rule.why")
)

// attributes returns which object has changed.
func (c change) attributes() []attribute.KeyValue {
	return []attribute.KeyValue{
		keyChangedKind.String(c.kind.String()), keyChangedNamespace.String(c.Namespace), keyChangedName.String(c.Name), keyChangedGeneration.Int64(c.generation),
	}
}
