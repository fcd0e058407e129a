{{/* The name of the namespaced objects. */}}
{{- define "portal.name" -}}
{{- $own := contains .Chart.Name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name .Chart.Name) }}
{{- .Values.fullnameOverride | default $own | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of the cluster-wide objects. */}}
{{- define "portal.clusterName" -}}
{{ .Release.Namespace }}:{{ include "portal.name" . }}
{{- end }}

{{- define "portal.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "portal.labels" -}}
{{ include "portal.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: paved-road
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "portal.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "portal.name" .) }}
{{- end }}

{{- define "portal.image" -}}
{{- with .Values.image }}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{/* The scheme of the pod, which is also the name of its port. */}}
{{- define "portal.scheme" -}}
{{ empty .Values.tls.secretName | ternary "http" "https" }}
{{- end }}

{{/* The portal's configuration, for `paved portal --config`. */}}
{{- define "portal.config" -}}
{{- $config := dict
  "listen" (printf "%s:8080" .Values.listenAddress)
  "public-url" .Values.publicUrl
  "log-level" .Values.logLevel
  "apis" .Values.apis
  "auth" "oidc"
  "oidc-issuer" .Values.oidc.issuer
  "oidc-client-id" .Values.oidc.clientId
  "oidc-scopes" .Values.oidc.scopes
  "oidc-username-claim" .Values.oidc.usernameClaim
  "oidc-groups-claim" .Values.oidc.groupsClaim
  "session-ttl" .Values.sessions.ttl }}
{{- $keys := list }}
{{- range .Values.sessions.keys }}
{{- $keys = append $keys (printf "/etc/paved-portal/sessions/%s" .) }}
{{- end }}
{{- $_ := set $config "session-key-file" $keys }}
{{- with .Values.oidc.usernamePrefix }}{{ $_ := set $config "oidc-username-prefix" . }}{{ end }}
{{- with .Values.oidc.groupsPrefix }}{{ $_ := set $config "oidc-groups-prefix" . }}{{ end }}
{{- if .Values.oidc.clientSecret.secretName }}
{{- $_ := set $config "oidc-client-secret-file" "/etc/paved-portal/oidc/client-secret" }}
{{- end }}
{{- if .Values.oidc.ca.configMapName }}{{ $_ := set $config "oidc-ca-file" "/etc/paved-portal/ca/ca.crt" }}{{ end }}
{{- if .Values.tls.secretName }}
{{- $_ := set $config "tls-cert" "/etc/paved-portal/tls/tls.crt" }}
{{- $_ := set $config "tls-key" "/etc/paved-portal/tls/tls.key" }}
{{- end }}
{{- with .Values.namespaceTemplate }}{{ $_ := set $config "namespace-template" . }}{{ end }}
{{- with .Values.trustedProxies }}{{ $_ := set $config "trusted-proxy" . }}{{ end }}
{{- toYaml $config }}
{{- end }}

{{/* The volumes for the configuration, each by its folder below /etc/paved-portal. */}}
{{- define "portal.volumes" -}}
- name: config
  configMap:
    name: {{ include "portal.name" . }}
- name: sessions
  secret:
    secretName: {{ quote .Values.sessions.secretName }}
    defaultMode: 288 # 0440
    items:
    {{- range .Values.sessions.keys }}
    - key: {{ . | quote }}
      path: {{ . | quote }}
    {{- end }}
{{- with .Values.oidc.clientSecret }}
{{- if .secretName }}
- name: oidc
  secret:
    secretName: {{ quote .secretName }}
    defaultMode: 288 # 0440
    items:
    - key: {{ .key | quote }}
      path: client-secret
{{- end }}
{{- end }}
{{- with .Values.oidc.ca }}
{{- if .configMapName }}
- name: ca
  configMap:
    name: {{ quote .configMapName }}
    items:
    - key: {{ .key | quote }}
      path: ca.crt
{{- end }}
{{- end }}
{{- with .Values.tls.secretName }}
- name: tls
  secret:
    secretName: {{ quote . }}
    defaultMode: 288 # 0440
{{- end }}
{{- end }}
