{{/* The match conditions: CEL that the API server evaluates itself, also while every replica of ours is down. A request is reviewed where
all of them are true. Every look at a label is guarded: an error in a condition refuses the request under failurePolicy Fail. Names of
accounts, environments and labels hold no character that would need escaping; the binaries' validation and the schema see to it. */}}

{{- define "vmwarden.username" -}}
'system:serviceaccount:{{ .namespace }}:{{ .name }}'
{{- end -}}

{{/* The user names of all backends, then of all reapers, each sorted. */}}
{{- define "vmwarden.cel.byEnvironment" -}}
{{- $backends := list -}}
{{- $reapers := list -}}
{{- range include "vmwarden.environments" . | fromYamlArray -}}
{{- range .backends }}{{ $backends = append $backends (include "vmwarden.username" .) }}{{ end -}}
{{- $reapers = append $reapers (include "vmwarden.username" .reaper) -}}
{{- end -}}
(request.userInfo.username in [{{ concat ($backends | sortAlpha) ($reapers | sortAlpha) | join ", " }}])
{{- end -}}

{{- define "vmwarden.cel.byTrustedController" -}}
{{- $users := list -}}
{{- range .Values.config.trustedControllers }}{{ $users = append $users (include "vmwarden.username" .) }}{{ end -}}
(request.userInfo.username in [{{ $users | sortAlpha | join ", " }}])
{{- end -}}

{{/* What internal/lab calls marked: the session label, or the lab label with its value. */}}
{{- define "vmwarden.cel.isLabs" -}}
{{- $labels := .root.Values.config.labels -}}
{{- $has := printf "%s.metadata.labels" .object -}}
{{ .object }} != null && has({{ $has }}) && ('{{ $labels.session }}' in {{ $has }} || ('{{ $labels.lab }}' in {{ $has }} && {{ $has }}['{{ $labels.lab }}'] == '{{ $labels.labValue }}'))
{{- end -}}

{{- define "vmwarden.cel.has" -}}
{{ .object }} != null && has({{ .object }}.metadata.labels) && '{{ .label }}' in {{ .object }}.metadata.labels
{{- end -}}

{{- define "vmwarden.cel.launcher" -}}
request.resource.resource == 'pods' && has(object.metadata.labels) && 'kubevirt.io' in object.metadata.labels && object.metadata.labels['kubevirt.io'] == 'virt-launcher'
{{- end -}}

{{/* True where a golden disk would be deleted, or changed in what protects it. What the volume controllers write on it while it is bound and
used is not our business. */}}
{{- define "vmwarden.cel.goldenAtStake" -}}
{{- $labels := .Values.config.labels -}}
{{ include "vmwarden.cel.has" (dict "object" "oldObject" "label" $labels.golden) }} && ((request.operation == 'DELETE') || (object != null && has(object.metadata.ownerReferences)) || ({{ include "vmwarden.cel.has" (dict "object" "object" "label" $labels.session) }}) || (!({{ include "vmwarden.cel.has" (dict "object" "object" "label" $labels.golden) }})))
{{- end -}}

{{/* Leaves out the deletes of backends and reapers in their own environment, unless they would orphan what the object owns, or take a golden
disk. */}}
{{- define "vmwarden.cel.notOwnDelete" -}}
{{- $labels := .Values.config.labels -}}
{{- $entries := list -}}
{{- range include "vmwarden.environments" . | fromYamlArray -}}
{{- $name := .name -}}
{{- $backends := list -}}
{{- range .backends }}{{ $backends = append $backends (printf "%s: '%s'" (include "vmwarden.username" .) $name) }}{{ end -}}
{{- $entries = concat $entries ($backends | sortAlpha) (list (printf "%s: '%s'" (include "vmwarden.username" .reaper) $name)) -}}
{{- end -}}
{{- $map := printf "{%s}" ($entries | join ", ") -}}
{{- $key := $labels.environment -}}
(request.operation != 'DELETE') || (!(request.userInfo.username in {{ $map }})) || (!has(oldObject.metadata.labels) || !('{{ $key }}' in oldObject.metadata.labels)) || (oldObject.metadata.labels['{{ $key }}'] != {{ $map }}[request.userInfo.username]) || ({{ include "vmwarden.cel.has" (dict "object" "oldObject" "label" $labels.golden) }}) || (has(request.options.propagationPolicy) && request.options.propagationPolicy == 'Orphan') || (has(request.options.orphanDependents) && request.options.orphanDependents)
{{- end -}}

{{/* Leave out what no stamp is for. */}}
{{- define "vmwarden.mutateConditions" -}}
- name: concerns-a-lab
  expression: >-
    (request.resource.resource == 'virtualmachines') || ({{ include "vmwarden.cel.isLabs" (dict "root" . "object" "object") }}) || ({{ include "vmwarden.cel.byEnvironment" . }}) || ({{ include "vmwarden.cel.launcher" . }})
{{- end -}}

{{/* Leave out, in this order: what trusted controllers do, but for what they create (the cap binds everybody, and a launcher Pod past its
deadline comes from one); what concerns no lab (every virtual machine, instance, replica set and pool does: leaving out the labels is no way
around); deletions of a lab's Secret, Service, NetworkPolicy or Pod by whoever else RBAC lets, such as the kubelet or a node drain; deletions in
the own environment. */}}
{{- define "vmwarden.validateConditions" -}}
- name: not-by-a-trusted-controller
  expression: >-
    (request.operation == 'CREATE') || (!{{ include "vmwarden.cel.byTrustedController" . }})
- name: concerns-a-lab
  expression: >-
    (request.resource.group.endsWith('kubevirt.io')) || (request.operation == 'CREATE' && {{ include "vmwarden.cel.launcher" . }}) || ({{ include "vmwarden.cel.isLabs" (dict "root" . "object" "object") }}) || ({{ include "vmwarden.cel.isLabs" (dict "root" . "object" "oldObject") }}) || ({{ include "vmwarden.cel.goldenAtStake" . }}) || ({{ include "vmwarden.cel.byEnvironment" . }})
- name: not-a-delete-by-an-outsider
  expression: >-
    (request.operation != 'DELETE') || (request.resource.group.endsWith('kubevirt.io')) || ({{ include "vmwarden.cel.has" (dict "object" "oldObject" "label" .Values.config.labels.golden) }}) || ({{ include "vmwarden.cel.byEnvironment" . }})
- name: not-a-delete-in-the-own-environment
  expression: >-
    {{ include "vmwarden.cel.notOwnDelete" . }}
{{- end -}}

{{/* The lab's namespaces, by the label that the API server itself puts on each. */}}
{{- define "vmwarden.guarded" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: In
    values: {{ prepend (.Values.config.podNamespaces | default list) .Values.config.vmNamespace | toJson }}
{{- end -}}

{{- define "vmwarden.failurePolicy" -}}
{{- .Values.webhook.failurePolicy | default (ternary "Ignore" "Fail" (eq .Values.config.mode "Audit")) -}}
{{- end -}}

{{/* The caBundle is left out where somebody keeps it in step with the certificate: an upgrade must not blank it. */}}
{{- define "vmwarden.clientConfig" -}}
{{- with .root.Values.webhook.certificate }}
{{- if eq .source "Secret" }}
caBundle: {{ .caBundle | b64enc }}
{{- end }}
{{- end }}
service:
  namespace: {{ .root.Release.Namespace }}
  name: {{ include "vmwarden.fullname" .root }}-webhook
  path: {{ .path }}
  port: 443
{{- end -}}
