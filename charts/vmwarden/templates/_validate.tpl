{{/* What a schema cannot say, in sentences that name the key. Included by the configuration's template, which is always rendered. */}}

{{- define "vmwarden.validate" -}}
{{- $faults := list -}}
{{- $root := . -}}
{{- if not .Values.environments -}}
{{- $faults = append $faults "environments is empty: name at least one environment, with its backends' ServiceAccounts" -}}
{{- end -}}
{{- $names := dict -}}
{{- $accounts := dict -}}
{{- $claims := list -}}
{{- range $i, $environment := .Values.environments -}}
{{- $path := printf "environments[%d]" $i -}}
{{- if hasKey $names $environment.name -}}
{{- $faults = append $faults (printf "%s.name: %q is the name of %s already; each environment has a name of its own" $path $environment.name (get $names $environment.name)) -}}
{{- end -}}
{{- $_ := set $names $environment.name $path -}}
{{- range $j, $backend := $environment.backends -}}
{{- $claims = append $claims (dict "path" (printf "%s.backends[%d]" $path $j) "account" $backend) -}}
{{- end -}}
{{- with $environment.reaper -}}
{{- $claims = append $claims (dict "path" (printf "%s.reaper" $path) "account" .) -}}
{{- end -}}
{{- end -}}
{{- range $i, $controller := .Values.config.trustedControllers -}}
{{- $claims = append $claims (dict "path" (printf "config.trustedControllers[%d]" $i) "account" $controller) -}}
{{- end -}}
{{- range $claims -}}
{{- $account := printf "%s/%s" .account.namespace .account.name -}}
{{- if contains "/" .account.name -}}
{{- $faults = append $faults (printf "%s.name: %q is no name of a ServiceAccount; write the namespace into %s.namespace, and the name alone here" .path .account.name .path) -}}
{{- else if not (regexMatch "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" .account.name) -}}
{{- $faults = append $faults (printf "%s.name: %q is no name of a ServiceAccount" .path .account.name) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" .account.namespace) -}}
{{- $faults = append $faults (printf "%s.namespace: %q is no name of a namespace" .path .account.namespace) -}}
{{- end -}}
{{- if hasKey $accounts $account -}}
{{- $faults = append $faults (printf "%s: ServiceAccount %s is %s already; a ServiceAccount stands for one thing" .path $account (get $accounts $account)) -}}
{{- end -}}
{{- $_ := set $accounts $account .path -}}
{{- end -}}
{{- with .Values.webhook.certificate -}}
{{- if and $root.Values.webhook.enabled (eq .source "Secret") (or (not .secretName) (not .caBundle)) -}}
{{- $faults = append $faults "webhook.certificate: source Secret needs secretName and caBundle" -}}
{{- end -}}
{{- end -}}
{{- if and (not .Values.webhook.enabled) (not (include "vmwarden.reapers" . | fromYamlArray)) -}}
{{- $faults = append $faults (printf "webhook.enabled is false, and no environment's reaper is in namespace %s: this release would install nothing; set environments[].reaper.namespace to the namespace of the release that is to run it" .Release.Namespace) -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n\nvmwarden cannot be installed with these values:\n- %s\n" ($faults | join "\n- ")) -}}
{{- end -}}
{{- end -}}
