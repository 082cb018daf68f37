SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.ONESHELL:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Steps are in the order in which they help most; each uses all cores by itself.
.NOTPARALLEL:

# What the caller's environment says must not make another build of this one: no vendoring, no workspace around the checkout, no
# failure where git does not trust the checkout's owner. `make GOFLAGS=…` still does what it says.
export GOFLAGS := -mod=readonly -buildvcs=false
export GOWORK := off

# The commit goes into the binaries wherever git can name it.
stamp := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo true || echo false)

# Each tool is built from its module at the version in its own go.mod, so that no two tools argue over a dependency. The Go
# command keeps the result in its build cache.
tool = go tool -modfile=hack/tools/$(1)/go.mod $(1)

# The tag of an image is the version of the chart that asks for it.
chart_version := $(shell sed -n 's/^appVersion: //p' charts/vmwarden/Chart.yaml)

scripts = .ci/run $$(find . -name '*.sh' -not -path './bin/*')
checks := verify-format vet verify-modules verify-scripts verify-alerts verify-secrets verify-licenses verify-vulnerabilities verify-generated verify-chart lint

# Without the Go command every target but two would fail with a shell's words.
ifneq ($(filter-out help clean,$(or $(MAKECMDGOALS),help)),)
ifeq ($(shell command -v go),)
$(error The go command is not on PATH: install Go 1.26 or newer, see https://go.dev/doc/install)
endif
endif

.PHONY: help
help: ## List the targets
	@echo 'New here? make demo shows what it does, make playground lets you try it; README.md tells the rest.'
	sed -n -e 's/^##### \(.*\)/\n\1/p' -e 's/^\([a-z][a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | while IFS=$$'\t' read -r target what; do
		if [ -z "$$what" ]; then echo "$$target"; continue; fi
		printf '  make %-26s %s\n' "$$target" "$$what"
	done

##### See it at work

.PHONY: demo
demo: setup ## Show what vmwarden does, on a real control plane and PostgreSQL
	@echo '== the demo (the first time it is compiled: some minutes)'
	go run ./test/demo

.PHONY: playground
playground: setup ## The demo, left up until Ctrl-C, to try webhook, reapjob and kubectl on
	@echo '== the demo, to be left up (the first time it is compiled: some minutes)'
	go run ./test/demo -stay

##### Build

.PHONY: build
build: ## Build bin/webhook and bin/reapjob
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -buildvcs=$(stamp) -o bin/ ./cmd/webhook ./cmd/reapjob

# No registry and no daemon: bin/vmwarden-image.tar is for `ctr images import`, `docker load` or skopeo.
.PHONY: image
image: build licenses ## Make bin/vmwarden-image.tar, an image with both binaries, and bin/*.sbom.json, what is in them
	$(call tool,cyclonedx-gomod) bin -json -noserial -notimestamp -output bin/webhook.sbom.json bin/webhook
	$(call tool,cyclonedx-gomod) bin -json -noserial -notimestamp -output bin/reapjob.sbom.json bin/reapjob
	go -C hack/image run . -o $(CURDIR)/bin/vmwarden-image.tar -tag $(or $(TAG),vmwarden:$(chart_version)) -licenses $(CURDIR)/bin/licenses -arch $$(go env GOARCH) $(CURDIR)/bin/webhook $(CURDIR)/bin/reapjob

.PHONY: licenses
licenses: ## Put the licences of what the binaries carry into bin/licenses
	hack/licenses.sh $(call tool,go-licenses) -- save bin/licenses

.PHONY: generate
generate: ## Generate anew what is generated from the source
	go generate ./...
	hack/licenses.sh $(call tool,go-licenses) -- list >docs/licenses.md
	$(call tool,helm-docs) --chart-search-root charts --log-level warning

.PHONY: fmt
fmt: ## Format the source
	gofmt -w .
	$(call tool,golangci-lint) fmt

.PHONY: clean
clean: ## Remove what was built in this directory; caches stay
	rm -rf bin

##### Test

.PHONY: test
test: test-unit test-e2e test-kubevirt ## Run all tests that run on any machine, with all the set-up that they need

.PHONY: test-unit
test-unit: ## Run the tests that need no set-up, with the race detector
	@echo '== tests that need no set-up (the first time everything they use is compiled: some minutes)'
	packages=$$(hack/test-packages.sh unit)
	CGO_ENABLED=1 go test -race -timeout 10m $$packages

# One package after the other: each has the cores to itself, and go test prints what each test says at once.
.PHONY: test-e2e
test-e2e: setup ## Run the tests that need a real control plane and PostgreSQL, with their set-up
	@echo '== tests on a real control plane and PostgreSQL'
	hack/prometheus-program.sh prometheus >/dev/null
	packages=$$(hack/test-packages.sh stack)
	go test -c -o /dev/null $$packages
	go test -v -count=1 -p 1 -timeout 30m $$packages

.PHONY: test-kubevirt
test-kubevirt: setup ## Run the tests beside KubeVirt's own virt-api and virt-controller, with their set-up
	@echo "== tests on KubeVirt's own servers"
	go run ./test/binaries/cmd/build kubevirt scheduler >/dev/null
	packages=$$(hack/test-packages.sh kubevirt)
	go test -c -o /dev/null $$packages
	go test -v -count=1 -p 1 -timeout 30m $$packages

.PHONY: test-node
test-node: setup ## Run the tests that need a real kubelet: as root, with containerd; elsewhere they say what they skip
	@echo '== tests on a real kubelet'
	test/node/ensure.sh
	go run ./test/binaries/cmd/build kubevirt node kubectl >/dev/null
	packages=$$(hack/test-packages.sh node)
	go test -v -count=1 -p 1 -timeout 30m $$packages

.PHONY: test-faults
test-faults: setup ## Break one thing at a time around a school at work, and judge the invariants: about 6 minutes
	go test -v -count=1 -timeout 60m ./test/faults

.PHONY: soak
soak: setup ## Break things in any order for DURATION (default 1h), and judge the invariants
	VMWARDEN_SOAK=$(or $(DURATION),1h) go test -v -count=1 -timeout 0 -run TestSoak ./test/faults

.PHONY: test-browser
test-browser: ## Open the pages of -o html in a real browser; chromium is installed where there is none
	@echo '== tests in a browser'
	hack/ensure-program.sh chromium
	go test -v -count=1 -run Browser ./internal/denials ./internal/status

# The lab builds vmwarden's own binaries with the detector where the tests have it; a race in one of them fails the package.
.PHONY: test-race
test-race: setup ## Run the end-to-end tests with the race detector, in the tests and in vmwarden's own processes
	@echo '== end-to-end tests with the race detector'
	hack/prometheus-program.sh prometheus >/dev/null
	CGO_ENABLED=1 go test -race -v -count=1 -p 1 -timeout 60m ./test/store ./test/e2e

# The linked-in tracing of coverage makes another build of everything: the first time takes some minutes.
.PHONY: fuzz
fuzz: ## Send made-up reviews through the webhook's handlers for FUZZTIME (default 1m)
	go test ./internal/policy -run '^$$' -fuzz FuzzHandlers -fuzztime $(or $(FUZZTIME),1m)

.PHONY: soak-caps
soak-caps: setup ## Try the cap with BURSTS (default 1000) bursts of 40 creates: about 20 minutes
	VMWARDEN_BURSTS=$(or $(BURSTS),1000) go test ./test/e2e -run TestOfFortyConcurrentCreatesExactlyEightAreAdmitted -count=1 -v -timeout 2h

.PHONY: bench
bench: setup ## Measure what vmwarden costs, with a table at the end: about 10 minutes; BENCH='-only handlers,creates' for a part, BENCH=-help
	go run ./test/binaries/cmd/build kubectl >/dev/null
	go run ./test/bench $(BENCH)

.PHONY: measure-expiry
measure-expiry: setup ## Measure from a session's end to its machine's, over SESSIONS (default 104): about 10 minutes
	test/node/ensure.sh || echo 'nodes will be played'
	go run ./test/kubevirt/measure -sessions $(or $(SESSIONS),104) -interval $(or $(INTERVAL),1m)

.PHONY: setup
setup: ## Get PostgreSQL, and build Kubernetes and KubeVirt's definitions once (about 15 minutes)
	@echo '== set-up for tests: PostgreSQL; etcd, Kubernetes and KubeVirt from their Go modules'
	test/postgres/ensure.sh
	go run ./test/binaries/cmd/build >/dev/null
	@echo '== Helm (the first time it is built: some minutes)'
	$(call tool,helm) version --short

##### Verify

.PHONY: verify
verify: ## Check format, code, modules, scripts, alerts, chart, licences, vulnerabilities, secrets, generated files; name all faults
	@$(MAKE) --keep-going $(checks)

.PHONY: lint
lint: ## Run the linters
	@echo '== lint (the first time golangci-lint is built: some minutes)'
	$(call tool,golangci-lint) run

.PHONY: vet
vet: ## Run go vet
	@echo '== vet'
	go vet ./...

# With the nested modules, which lint does not see.
.PHONY: verify-format
verify-format:
	@echo '== format'
	unformatted=$$(gofmt -l .)
	if [ -n "$$unformatted" ]; then printf 'not formatted; run: make fmt\n%s\n' "$$unformatted" >&2; exit 1; fi

# The modules below test/binaries are left out: they are what upstream's own builds resolve to, and `go build -mod=readonly` checks
# that they are complete. Of hack/data nothing is imported.
.PHONY: verify-modules
verify-modules:
	@echo '== go.mod and go.sum'
	status=0
	for module in . hack/image hack/tools/*/; do go -C "$$module" mod tidy -diff || status=1; done
	exit $$status

.PHONY: verify-scripts
verify-scripts:
	@echo '== scripts'
	hack/ensure-program.sh shellcheck
	shellcheck --external-sources $(scripts)

# The dashboard's queries go through promtool as rules: it has no check for queries alone.
.PHONY: verify-alerts
verify-alerts: ## Check the alerts and the dashboard's queries, and try each alert on made-up series
	@echo '== alerts and dashboard'
	hack/promtool.sh check rules charts/vmwarden/files/alerts.yaml
	hack/promtool.sh test rules test/monitoring/alerts.yaml
	queries=$$(mktemp)
	trap 'rm -f "$$queries"' EXIT
	go run ./test/monitoring/queries >"$$queries"
	hack/promtool.sh check rules "$$queries"

.PHONY: verify-secrets
verify-secrets:
	@echo '== secrets'
	if [ $(stamp) = true ]; then mode=git; else mode=dir; fi
	$(call tool,gitleaks) $$mode --no-banner --no-color --platform none --redact --verbose .

.PHONY: verify-licenses
verify-licenses:
	@echo '== licences of what the binaries carry'
	hack/verify-licenses.sh $(call tool,go-licenses)

# Against the database in hack/data, so that what is clean stays clean until somebody takes a newer one; VULNDB=https://vuln.go.dev asks the
# newest, where it can be reached.
.PHONY: verify-vulnerabilities
verify-vulnerabilities: ## Look for known vulnerabilities that the binaries reach
	@echo '== known vulnerabilities'
	hack/verify-vulnerabilities.sh $(call tool,govulncheck)

# Not among the checks that `make verify` makes: it compiles everything anew.
.PHONY: verify-reproducible
verify-reproducible: ## Build the last commit twice, and compare what is given away (3 minutes)
	@echo '== two builds of one commit'
	hack/verify-reproducible.sh

.PHONY: verify-generated
verify-generated:
	@echo '== generated files'
	hack/verify-generated.sh

# What the chart renders is tested by test/chart, and applied to a real API server by the tests with a control plane.
.PHONY: verify-chart
verify-chart: ## Check the chart, and all that it renders against the schemas of its kinds
	@echo '== chart'
	$(call tool,helm) lint --strict --quiet charts/vmwarden --values charts/vmwarden/ci/newcomer-values.yaml
	$(call tool,helm) lint --strict --quiet charts/vmwarden --values charts/vmwarden/ci/everything-values.yaml
	hack/verify-chart.sh $(call tool,helm) -- $(call tool,kubeconform)
