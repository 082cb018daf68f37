module github.com/ttlab/vmwarden/hack/data

go 1.26

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/prometheus-operator/prometheus-operator v0.85.0
	golang.org/x/vulndb v0.0.0-20261105234957-e22db6528018
)
