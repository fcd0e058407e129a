{{/* The name of the portal's objects in its namespace. */}}
{{- define "portal.name" -}}
{{ .Values.portal.fullnameOverride | default (printf "%s-portal" (.Release.Name | trunc 56 | trimSuffix "-")) }}
{{- end }}

{{/* The name of the portal's cluster-wide objects. */}}
{{- define "portal.clusterName" -}}
{{ .Release.Namespace }}:{{ include "portal.name" . }}
{{- end }}

{{- define "portal.selector" -}}
app.kubernetes.io/name: paved-portal
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "portal.labels" -}}
{{ include "portal.selector" . }}
{{ include "chart.labels" . }}
{{- end }}

{{- define "portal.serviceAccount" -}}
{{- .Values.portal.serviceAccount.name | default (include "portal.name" .) }}
{{- end }}

{{/* The scheme of the pod, which is also the name of its port. */}}
{{- define "portal.scheme" -}}
{{ empty .Values.portal.tls.secretName | ternary "http" "https" }}
{{- end }}

{{/* The portal's configuration, for `paved portal --config`. */}}
{{- define "portal.config" -}}
{{- $config := dict
  "listen" (printf "%s:8080" .Values.listenAddress)
  "public-url" .Values.portal.publicUrl
  "log-level" .Values.logLevel
  "apis" (.Values.portal.apis | default .Values.apis)
  "auth" "oidc"
  "oidc-issuer" .Values.portal.oidc.issuer
  "oidc-client-id" .Values.portal.oidc.clientId
  "oidc-scopes" .Values.portal.oidc.scopes
  "oidc-username-claim" .Values.portal.oidc.usernameClaim
  "oidc-groups-claim" .Values.portal.oidc.groupsClaim
  "session-ttl" .Values.portal.sessions.ttl }}
{{- $keys := list }}
{{- range .Values.portal.sessions.keys }}
{{- $keys = append $keys (printf "/etc/paved-portal/sessions/%s" .) }}
{{- end }}
{{- $_ := set $config "session-key-file" $keys }}
{{- with .Values.portal.oidc.usernamePrefix }}{{ $_ := set $config "oidc-username-prefix" . }}{{ end }}
{{- with .Values.portal.oidc.groupsPrefix }}{{ $_ := set $config "oidc-groups-prefix" . }}{{ end }}
{{- if .Values.portal.oidc.clientSecret.secretName }}
{{- $_ := set $config "oidc-client-secret-file" "/etc/paved-portal/oidc/client-secret" }}
{{- end }}
{{- if .Values.portal.oidc.ca.configMapName }}{{ $_ := set $config "oidc-ca-file" "/etc/paved-portal/ca/ca.crt" }}{{ end }}
{{- if .Values.portal.tls.secretName }}
{{- $_ := set $config "tls-cert" "/etc/paved-portal/tls/tls.crt" }}
{{- $_ := set $config "tls-key" "/etc/paved-portal/tls/tls.key" }}
{{- end }}
{{- with .Values.portal.namespaceTemplate }}{{ $_ := set $config "namespace-template" . }}{{ end }}
{{- with .Values.portal.trustedProxies }}{{ $_ := set $config "trusted-proxy" . }}{{ end }}
{{- toYaml $config }}
{{- end }}

{{/* The volumes for the configuration, each by its folder below /etc/paved-portal. */}}
{{- define "portal.volumes" -}}
- name: config
  configMap:
    name: {{ include "portal.name" . }}
- name: sessions
  secret:
    secretName: {{ quote .Values.portal.sessions.secretName }}
    defaultMode: 288 # 0440
    items:
    {{- range .Values.portal.sessions.keys }}
    - key: {{ . | quote }}
      path: {{ . | quote }}
    {{- end }}
{{- with .Values.portal.oidc.clientSecret }}
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
{{- with .Values.portal.oidc.ca }}
{{- if .configMapName }}
- name: ca
  configMap:
    name: {{ quote .configMapName }}
    items:
    - key: {{ .key | quote }}
      path: ca.crt
{{- end }}
{{- end }}
{{- with .Values.portal.tls.secretName }}
- name: tls
  secret:
    secretName: {{ quote . }}
    defaultMode: 288 # 0440
{{- end }}
{{- end }}
