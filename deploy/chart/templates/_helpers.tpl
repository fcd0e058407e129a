{{- define "chart.labels" -}}
app.kubernetes.io/version: {{ include "chart.release" . | quote }}
app.kubernetes.io/part-of: paved-road
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The version of the packages and images. */}}
{{- define "chart.release" -}}
{{ .Values.release | default .Chart.AppVersion }}
{{- end }}

{{/* The image of the portal and the controller. */}}
{{- define "chart.image" -}}
{{- $repository := .Values.image.repository | default (printf "%s/paved-portal" .Values.registry) }}
{{- with .Values.image }}
{{- if .digest }}{{ $repository }}@{{ .digest }}{{ else }}{{ $repository }}:{{ .tag | default (include "chart.release" $) }}{{ end }}
{{- end }}
{{- end }}

{{/* The groups of all installed APIs, as a JSON list with the API and the group of each. */}}
{{- define "chart.groups" -}}
{{- $groups := list }}
{{- range $api, $group := include "platform.groups" . | fromJson }}
{{- $groups = append $groups (dict "api" $api "group" $group) }}
{{- end }}
{{- range $api := list "claims" "namespaced" }}
{{- range $group := index $.Values.otherGroups $api }}
{{- $groups = append $groups (dict "api" $api "group" $group) }}
{{- end }}
{{- end }}
{{- toJson $groups }}
{{- end }}

{{/* The rights of the portal or the controller in the groups of all installed APIs. */}}
{{- define "chart.rights" -}}
{{- $root := index . 0 }}
{{- $program := index . 1 }}
{{- range include "chart.groups" $root | fromJsonArray }}
{{- $facts := include "platform.facts" (list $root .api .group) | fromJson }}
{{ index $facts $program | toYaml }}
{{- end }}
{{- end }}

{{/* Connections to DNS and to the API server. */}}
{{- define "chart.egress" -}}
{{- with .Values.networkPolicy.egress }}
{{- with .dns }}
{{- if .enabled }}
- ports:
  - port: {{ .port }}
    protocol: UDP
  - port: {{ .port }}
    protocol: TCP
  {{- with .to }}
  to: {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
{{- with .apiServer }}
{{- if .enabled }}
- ports:
  {{- range .ports }}
  - port: {{ . }}
    protocol: TCP
  {{- end }}
  {{- with .to }}
  to: {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
