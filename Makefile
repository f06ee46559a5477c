# make check and make test are what CI runs; make help lists the rest.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
TOOL    := go tool -modfile=tools/go.mod
T       ?= 30s
N       ?= 6
SEED    ?= 1

.PHONY: check help build demo test unit web web-check bench-ui fmt fmt-check vet lint tidy-check layers docs docs-check quality fuzz faults bench bench-compare golden clean

check: fmt-check vet layers docs-check tidy-check lint web-check ## everything but the tests of Go: format, vet, layers, docs, modules, lint, the page

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

build: ## bin/chimbuko, with version and commit
	go build -trimpath -ldflags '-X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o bin/chimbuko ./cmd/chimbuko

demo: build ## a minute with a simulated program: it is analyzed while it runs, and its troubles are found
	bin/chimbuko demo

test: ## all tests with the race detector; the last line counts them
	scripts/test-setup
	$(TOOL) gotestsum --format pkgname-and-test-fails -- -race -timeout 20m ./...

unit: ## tests that need no server, browser or subprocess; under a minute when warm
	go test -short ./...

web: ## the page in the browser: shared types, and the files that the program embeds
	scripts/web build

web-check:
	scripts/web check

bench-ui: build ## what the page costs: server times with a million anomalies on 10 000 ranks (or of RUN=DIR), first paint, processor and memory while a run goes on
	CHIMBUKO_BENCH_RUN='$(abspath $(RUN))' go test -run '^$$' -bench Interactions -benchtime 1x -timeout 30m ./internal/show/dashboard
	scripts/web build
	cd web && CHIMBUKO=../bin/chimbuko node scripts/bench.mjs

fmt: ## rewrite the sources as gofumpt and goimports want them
	$(TOOL) golangci-lint fmt

fmt-check:
	@bad=$$(gofmt -l cmd internal); [[ -z $$bad ]] || { printf 'not formatted, run make fmt:\n%s\n' "$$bad" >&2; exit 1; }

vet:
	go vet ./...

lint:
	$(TOOL) golangci-lint run

tidy-check:
	go mod tidy -diff
	go -C tools mod tidy -diff

layers:
	go test -run TestLayers ./internal/testkit/layers

docs: ## write docs/cli.md from the program's help, and the output shown in README.md
	go test -count=1 -run TestREADME ./internal/cli -update
	@new=$$(mktemp); trap 'rm -f "$$new"' EXIT; \
	go run ./cmd/chimbuko help-markdown > "$$new"; cat "$$new" > docs/cli.md

docs-check:
	@new=$$(mktemp); trap 'rm -f "$$new"' EXIT; \
	go run ./cmd/chimbuko help-markdown > "$$new"; \
	diff -u docs/cli.md "$$new" || { echo "docs/cli.md is out of date, run make docs" >&2; exit 1; }

quality: ## docs/quality.md: how well each detector finds what was planted; takes minutes
	@new=$$(mktemp); trap 'rm -f "$$new"' EXIT; \
	go run ./internal/lab/quality/table | tee "$$new"; cat "$$new" > docs/quality.md

fuzz: ## every fuzz target for T (make fuzz T=5m)
	scripts/fuzz $(T)

faults: ## N runs that are disturbed by deaths of their processes, as SEED says and those after it (make faults N=20 SEED=1)
	go test -run 'TestWhoeverDies' -count=1 -timeout 0 ./internal/testkit/e2e -args -faults $(N) -seed $(SEED)

bench: ## N runs of all benchmarks into bench/new.txt (make bench N=10)
	@mkdir -p bench
	go test -run '^$$' -bench . -benchmem -count=$(N) -timeout 60m ./... | tee bench/new.txt

bench-compare: ## bench/new.txt against bench/baseline.txt
	@ls bench/baseline.txt bench/new.txt >/dev/null
	$(TOOL) benchstat bench/baseline.txt bench/new.txt

golden: ## results on all traces and scenarios against those in FILE, or with RECORD=1 record them there (make golden FILE=/tmp/before)
	@[[ -n "$(FILE)" ]] || { echo 'usage: make golden FILE=PATH [RECORD=1] [ONLY=REGEXP]' >&2; exit 2; }
	scripts/golden $(if $(RECORD),record,compare) '$(FILE)' -only '$(ONLY)'

clean: ## remove what the other targets made, but not the Python environment
	rm -rf bin chimbuko-demo bench/new.txt
