{{- /* Whether a check is made: (root, check). */}}
{{- define "checks.made" -}}
{{- $ := index . 0 }}{{ $check := index . 1 -}}
{{ and (ne (toString $check.enabled) "false") (or $.Values.gpus.enabled (not $check.gpus)) }}
{{- end }}

{{- /* The checks to wait for, without those of the chart that are not made: (root, check). */}}
{{- define "checks.dependsOn" -}}
{{- $ := index . 0 }}{{ $check := index . 1 }}{{ $out := list -}}
{{- range $check.dependsOn }}
{{- $other := get $.Values.checks . }}
{{- if or (not $other) (eq (include "checks.made" (list $ $other)) "true") }}{{ $out = append $out . }}{{ end }}
{{- end }}
{{- toJson $out }}
{{- end }}

{{- /* The script of a check: (root, name, check). */}}
{{- define "checks.script" -}}
{{- $ := index . 0 }}{{ $name := index . 1 }}{{ $check := index . 2 -}}
{{- if $check.inlineScript }}{{ $check.inlineScript }}
{{- else }}{{ $.Files.Get (printf "scripts/%s" $check.script) | required (printf "checks.%s: names no script of the chart, and has no inlineScript" $name) }}
{{- end }}
{{- end }}

{{- /* Variables of a check: (root, check). */}}
{{- define "checks.env" -}}
{{- $ := index . 0 }}{{ $check := index . 1 -}}
env:
  - name: SLURM_CLUSTER_REF_NAME
    value: {{ $.Values.slurmClusterRefName | quote }}
  {{- range $key, $value := $check.env }}
  - name: {{ $key }}
    value: {{ $value | quote }}
  {{- end }}
{{- end }}

{{- /* A check that is a pod: (root, name, check). */}}
{{- define "checks.k8sJob" -}}
{{- $ := index . 0 }}{{ $check := index . 2 -}}
hostUsers: {{ $.Values.jail.hostUsers }}
{{- with $.Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $.Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
k8sJobSpec:
  jobContainer:
    image: {{ printf "%s:%s" $.Values.image.repository $.Values.image.tag }}
    imagePullPolicy: {{ $.Values.image.pullPolicy }}
    {{- with $.Values.imagePullSecrets }}
    imagePullSecrets:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    command:
      - /bin/sh
      - -c
      - |
        {{- include "checks.script" . | trim | nindent 8 }}
    {{- include "checks.env" (list $ $check) | nindent 4 }}
    volumes:
      - name: jail
        persistentVolumeClaim:
          claimName: {{ $.Values.jail.claimName }}
    volumeMounts:
      - name: jail
        mountPath: /mnt/jail
{{- end }}

{{- /* A check that is Slurm jobs: (root, name, check). Options of sbatch come behind the first line of the script. */}}
{{- define "checks.slurmJob" -}}
{{- $ := index . 0 }}{{ $check := index . 2 }}{{ $lines := include "checks.script" . | trim | splitList "\n" }}{{ $options := list -}}
{{- range $check.sbatch }}{{ $options = append $options (printf "#SBATCH %s" .) }}{{ end }}
{{- if and $check.gpus (gt (int $.Values.gpus.perNode) 0) }}{{ $options = append $options (printf "#SBATCH --gpus-per-node=%d" (int $.Values.gpus.perNode)) }}{{ end -}}
slurmJobSpec:
  {{- if $check.eachWorkerJobs }}
  eachWorkerJobs: true
  {{- end }}
  {{- with $check.maxNumberOfJobs }}
  maxNumberOfJobs: {{ int . }}
  {{- end }}
  jobContainer:
    {{- include "checks.env" (list $ $check) | nindent 4 }}
  sbatchScript: |
    {{- concat (list (first $lines)) $options (rest $lines) | join "\n" | nindent 4 }}
{{- end }}
