{{- define "coxswain.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 52 | trimSuffix "-" }}
{{- end }}

{{- define "coxswain.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "coxswain.name" .) .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "coxswain.name" .) | trunc 52 | trimSuffix "-" }}
{{- end -}}
{{- end }}

{{- define "coxswain.selector" -}}
app.kubernetes.io/name: {{ include "coxswain.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "coxswain.labels" -}}
{{ include "coxswain.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: coxswain
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "coxswain.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "coxswain.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- define "coxswain.webhook.fullname" -}}
{{ include "coxswain.fullname" . }}-webhook
{{- end }}

{{- define "coxswain.webhook.selector" -}}
app.kubernetes.io/name: {{ include "coxswain.name" . }}-webhook
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "coxswain.webhook.labels" -}}
{{ include "coxswain.webhook.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: coxswain
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "coxswain.webhook.serviceAccount" -}}
{{- if .Values.webhook.serviceAccount.create -}}
{{ .Values.webhook.serviceAccount.name | default (include "coxswain.webhook.fullname" .) }}
{{- else -}}
{{ .Values.webhook.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- define "coxswain.webhook.secret" -}}
{{ .Values.certManager.secretName | default (printf "%s-ca" (include "coxswain.webhook.fullname" .)) }}
{{- end }}

{{- /* Flags of the webhook server, with what stands before their names: "--", or "--webhook-" in the manager. */}}
{{- define "coxswain.webhook.args" -}}
{{- $ := index . 0 }}{{ $prefix := index . 1 }}{{ $name := include "coxswain.webhook.fullname" $ -}}
- {{ $prefix }}server-addr=:{{ $.Values.webhook.serverPort }}
{{- if not $.Values.certManager.enabled }}
- {{ $prefix }}cert-secret={{ $.Release.Namespace }}/{{ include "coxswain.webhook.secret" $ }}
- {{ $prefix }}service={{ $name }}
- {{ $prefix }}validating-configuration={{ $name }}
{{- if $.Values.webhook.podsBinding }}
- {{ $prefix }}mutating-configuration={{ $name }}
{{- end }}
{{- end }}
{{- end }}
