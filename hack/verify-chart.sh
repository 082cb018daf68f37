#!/usr/bin/env bash
# Checks what the chart renders against the schemas of Kubernetes, of Prometheus' operator and of cert-manager, each a field at a time. The arguments
# are the commands that run helm and kubeconform, with -- between them. The schemas are of Go modules: nothing else is downloaded.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
helm=()
while [ "$1" != -- ]; do
  helm+=("$1")
  shift
done
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

kubernetes=$(hack/module-directory.sh test/binaries/modules/kubernetes k8s.io/kubernetes)
operator=$(hack/module-directory.sh hack/data github.com/prometheus-operator/prometheus-operator)
certificates=$(hack/module-directory.sh hack/data github.com/cert-manager/cert-manager)
location=$(go run ./hack/schemas -o "$work/schemas" -swagger "$kubernetes/api/openapi-spec/swagger.json" \
  "$operator"/example/prometheus-operator-crd/*.yaml "$certificates"/deploy/crds/*.yaml)
conforms=("$@" -strict -schema-location "$location")

render() { # render NAME VALUES [FLAG...]
  local name=$1 values=$2
  shift 2
  "${helm[@]}" template vmwarden charts/vmwarden --namespace vmwarden --kube-version 1.34.0 --values "$values" "$@" >"$work/$name.yaml"
}

for values in charts/vmwarden/ci/*-values.yaml; do
  case=$(basename "$values" -values.yaml)
  render "$case" "$values"
  render "$case-monitored" "$values" --set monitoring.serviceMonitor.enabled=true,monitoring.prometheusRule.enabled=true,monitoring.dashboard.enabled=true
  for source in SelfManaged CertManager Secret; do
    render "$case-$source" "$values" --set "webhook.certificate.source=$source,webhook.certificate.secretName=given,webhook.certificate.caBundle=Z2l2ZW4="
  done
  render "$case-issuer" "$values" --set webhook.certificate.source=CertManager,webhook.certificate.issuerRef.name=given,webhook.certificate.issuerRef.kind=ClusterIssuer
  render "$case-one-replica" "$values" --set webhook.replicas=1
  render "$case-without-reaper" "$values" --set reaper.enabled=false
  for environment in prod dev; do
    # A reaper that has its backend's namespace is released there; where this has none, there is nothing to render.
    if grep -q "reaper: {namespace: ttlab-$environment" "$values"; then
      render "$case-reaper-$environment" "$values" --set webhook.enabled=false --namespace "ttlab-$environment"
    fi
  done
done
"${conforms[@]}" -summary "$work"/*.yaml

# A schema that takes everything would be content with everything.
for kind in apps/v1:Deployment monitoring.coreos.com/v1:ServiceMonitor cert-manager.io/v1:Certificate; do
  manifest="{apiVersion: ${kind%:*}, kind: ${kind#*:}, metadata: {name: wrong, surname: field}}"
  if told=$(echo "$manifest" | "${conforms[@]}") || [[ $told != *"'surname' not allowed"* ]]; then
    echo "verify-chart.sh: a ${kind#*:} with a field that it does not have is not refused: $told" >&2
    exit 1
  fi
done
