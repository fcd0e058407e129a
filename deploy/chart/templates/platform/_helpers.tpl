{{/* The group of each installed API, as JSON. */}}
{{- define "platform.groups" -}}
{{- $other := eq .Values.apis "claims" | ternary "claims" "namespaced" }}
{{- $groups := dict $other .Values.group }}
{{- if eq .Values.apis "both" }}{{ $_ := set $groups "claims" .Values.claimsGroup }}{{ end }}
{{- toJson $groups }}
{{- end }}

{{/* The generated objects of an API, with the values in place of their marks. */}}
{{- define "platform.facts" -}}
{{- $root := index . 0 }}
{{- $root.Files.Get (printf "files/%s.json" (index . 1)) | replace "@group@" (index . 2) | replace "@function@" (include "platform.function" $root) | replace "@crossplane@" $root.Values.crossplane.user | replace "@release@" (include "chart.release" $root) }}
{{- end }}

{{/* The generated objects of all APIs. */}}
{{- define "platform.common" -}}
{{- .Files.Get "files/common.json" }}
{{- end }}

{{/* The name of the Function. By default, Crossplane's name for a dependency. */}}
{{- define "platform.function" -}}
{{- $path := printf "%s/function-paved-road" (regexReplaceAll "^[^/]*/" .Values.registry "") | trunc 63 }}
{{- .Values.function.name | default (regexReplaceAll "[./]" ($path | replace "_" "") "-" | trimAll "-") }}
{{- end }}

{{/* A version of our packages. */}}
{{- define "platform.package" -}}
{{- $root := index . 0 }}
{{- printf "%s/%s:%s" $root.Values.registry (index . 1) (include "chart.release" $root) }}
{{- end }}

{{/*
An object that environments need. Helm and Argo CD keep it when the chart is uninstalled:
`paved platform uninstall` removes it after the last environment.
*/}}
{{- define "platform.object" -}}
{{- $metadata := .metadata }}
{{- $annotations := dict "helm.sh/resource-policy" "keep" "argocd.argoproj.io/sync-options" "Prune=false,Delete=false" }}
{{- $_ := set $metadata "annotations" (merge $annotations ($metadata.annotations | default dict)) }}
{{- $_ := set $metadata "labels" (merge (dict "app.kubernetes.io/part-of" "paved-road") ($metadata.labels | default dict)) }}
---
{{ toYaml . }}
{{- end }}

{{/* Fails if values contradict each other. */}}
{{- define "platform.check" -}}
{{- $own := "the API group of your company, for example platform.example.org" }}
{{- if not .Values.group }}
{{- fail (printf "group: found none; allowed: %s. Environments keep their group, so choose it once: --set group=…" $own) }}
{{- end }}
{{- if and (eq .Values.apis "both") (not .Values.claimsGroup) }}
{{- fail "claimsGroup: found none, but apis is both; allowed: a second group, for example claims.platform.example.org, because the two APIs cannot share a group" }}
{{- end }}
{{- if and .Values.claimsGroup (ne .Values.apis "both") }}
{{- fail (printf "claimsGroup: found %s, but apis is %s; allowed: with apis both. Remove it, or set apis to both" .Values.claimsGroup .Values.apis) }}
{{- end }}
{{- $others := dict "claims" "platform.m.acme.io" "namespaced" "platform.acme.io" }}
{{- $seen := list }}
{{- range $api, $group := include "platform.groups" . | fromJson }}
{{- if has $group $seen }}
{{- fail (printf "claimsGroup: found %s, which is also group; allowed: another group, because the two APIs cannot share one" $group) }}
{{- end }}
{{- $seen = append $seen $group }}
{{- $field := and (eq $.Values.apis "both") (eq $api "claims") | ternary "claimsGroup" "group" }}
{{- if eq $group (index $others $api) }}
{{- fail (printf "%s: found %s, which belongs to the other API, and not to %s; allowed: %s" $field $group $api $own) }}
{{- end }}
{{- $default := (include "platform.facts" (list $ $api $group) | fromJson).defaultGroup }}
{{- if and $.Values.configurations.enabled (ne $group $default) }}
{{- fail (printf "configurations.enabled: found true with the group %s; allowed: with the group %s of the published Configurations. Set it to false: then the chart itself installs the APIs" $group $default) }}
{{- end }}
{{- end }}
{{- end }}
