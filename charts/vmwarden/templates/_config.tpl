{{/* The configuration file. */}}

{{/* The environments as the configuration file has them, as a YAML list: the database Secret is none of its business, and each has
a reaper. */}}
{{- define "vmwarden.environments" -}}
{{- $root := . -}}
{{- $all := list -}}
{{- range .Values.environments -}}
{{- $reaper := .reaper | default (dict "namespace" $root.Release.Namespace "name" (include "vmwarden.reaper.name" (dict "root" $root "environment" .name))) -}}
{{- $all = append $all (merge (dict "reaper" $reaper) (omit . "database" "reaper")) -}}
{{- end -}}
{{- toYaml $all -}}
{{- end -}}

{{/* The environments whose reaper this release runs: those whose reaper lives where the release does. */}}
{{- define "vmwarden.reapers" -}}
{{- $root := . -}}
{{- $own := list -}}
{{- if .Values.reaper.enabled -}}
{{- range include "vmwarden.environments" . | fromYamlArray -}}
{{- if eq .reaper.namespace $root.Release.Namespace -}}
{{- $own = append $own . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $own -}}
{{- end -}}

{{- define "vmwarden.reaper.name" -}}
{{- printf "%s-reaper-%s" (include "vmwarden.fullname" .root) .environment | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "vmwarden.config" -}}
{{- $head := dict "apiVersion" "config.vmwarden.io/v1alpha1" "kind" "WardenConfig" -}}
{{- $environments := dict "environments" (include "vmwarden.environments" . | fromYamlArray) -}}
{{- toYaml (merge $head $environments .Values.config) -}}
{{- end -}}

{{/* A change of the configuration replaces the Pods. */}}
{{- define "vmwarden.config.checksum" -}}
checksum/config: {{ include "vmwarden.config" . | sha256sum }}
{{- end -}}

{{- define "vmwarden.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "vmwarden.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
