# CI runs make check and make test. make help lists all targets.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-print-directory

COMMIT  ?= $(shell scripts/version commit)
TOOL    := go tool -modfile=tools/go.mod
PREFIX  ?= /usr/local
T       ?= 30s
N       ?= 6
SEED    ?= 1

# Programs with the race detector wait before they exit, by default for a second: tests, and the processes of their queries.
export GORACE ?= atexit_sleep_ms=0

# Builds do not depend on the directory of the clone, so that a new one uses the cache of others.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell go env GOFLAGS 2>/dev/null)) -trimpath)

.PHONY: check help build demo test unit stress web web-check pictures bench-ui fmt fmt-check lint vuln tidy-check layers docs docs-check quality fuzz faults disk-faults partitions bench bench-compare golden golden-run clean
.PHONY: damage soak nightly licenses dist install source release-check wheel site site-check

check: ## check format, vet, layers, docs, links, modules, licenses, lint, vulnerabilities and the page
	@$(MAKE) -j $(PROCESSORS) --output-sync $(CHECKS)

# The checks are independent of each other. Those that take longest begin first. The linters include those of go vet.
CHECKS = fmt-check lint web-check site-check vuln tidy-check docs-check layers licenses

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

build: ## build bin/chimbuko and bin/chimbuko-ad with version and commit
	go build -trimpath -ldflags "$$(scripts/ldflags $(COMMIT))" -o bin/chimbuko ./cmd/chimbuko
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.commit=$(COMMIT)' -o bin/chimbuko-ad ./cmd/chimbuko-ad

dist: ## build release archives, packages and wheels for old Linux systems into dist (make dist ARCH=amd64)
	ARCH='$(or $(ARCH),amd64 arm64)' scripts/dist dist

install: build ## install programs, manual pages, completion and licenses (make install PREFIX=$HOME/.local)
	install -D -t '$(DESTDIR)$(PREFIX)/bin' bin/chimbuko bin/chimbuko-ad
	scripts/share bin/chimbuko '$(DESTDIR)$(PREFIX)/share'
	install -D -m 644 -t '$(DESTDIR)$(PREFIX)/share/doc/chimbuko' README.md CHANGELOG.md LICENSE
	scripts/license-files '$(DESTDIR)$(PREFIX)/share/doc/chimbuko/licenses'

source: ## build an archive of the sources with all Go modules into dist, for builds without a network
	scripts/source dist

release-check: ## check everything of a release on clean clones of HEAD (SKIP_TESTS=1 without make check and make test)
	scripts/release-check

wheel: build ## build a Python wheel of bin/chimbuko for this machine into bin (scripts/wheel builds wheels for others)
	rm -rf bin/licenses && scripts/license-files bin/licenses
	scripts/wheel --tag linux_$$(uname -m) --licenses bin/licenses bin/chimbuko bin

demo: build ## analyze a simulated program while it runs, for a minute
	bin/chimbuko demo

test: ## run all tests with the race detector and count them
	scripts/test-setup
	$(TOOL) gotestsum --format pkgname-and-test-fails -- -race -vet=off -timeout 40m $(LINK) \
		./internal/testkit/e2e ./internal/testkit/page ./...

# End-to-end tests and that of the page take longest, so they begin first. make check vets the code, so they do not.
# Linking DuckDB is a large part of the work, less without symbols for debuggers, and some tests wait for timeouts.
PROCESSORS = $$(getconf _NPROCESSORS_ONLN)
LINK   = -ldflags='-s -w $(if $(LINKER),-extldflags=-fuse-ld=$(LINKER))'
LINKER = $(firstword $(foreach l,mold lld gold,$(if $(shell command -v ld.$(l)),$(l))))

# The linker and most tests end before they need much memory, so they collect garbage less often.
unit: ## run the tests without servers, browser or subprocesses
	GOGC=400 go test -short -vet=off -p $$((2 * $(PROCESSORS))) $(LINK) $$(go list ./... | grep -v -e /testkit/e2e$$ -e /testkit/page$$)

stress: ## run the tests of packages N times under load (make stress N=50 PKG=./internal/store/wire RUN=REGEXP)
	RUN='$(RUN)' scripts/stress $(N) $(PKG)

web: ## build the page: shared types and embedded files
	scripts/web build

pictures: build ## take the screenshots of docs/img
	cd web && CHIMBUKO=../bin/chimbuko node scripts/pictures.mjs

web-check:
	scripts/web check

bench-ui: build ## measure the page: server times (a million anomalies on 10 000 ranks, or RUN=DIR), first paint, load during a run
	mkdir -p bin/scale
	CHIMBUKO_BENCH_RUN='$(abspath $(RUN))' CHIMBUKO_BENCH_STORE='$(abspath bin/scale)' \
		go test -run '^$$' -bench Interactions -benchtime 1x -timeout 30m ./internal/show/dashboard
	scripts/web build
	cd web && CHIMBUKO=../bin/chimbuko SCALE=$(if $(RUN),'$(abspath $(RUN))',../bin/scale/scale.duckdb) node scripts/bench.mjs

fmt: ## format the sources with gofumpt and goimports
	$(TOOL) golangci-lint fmt

fmt-check:
	@bad=$$(gofmt -l cmd internal); [[ -z $$bad ]] || { printf 'not formatted, run make fmt:\n%s\n' "$$bad" >&2; exit 1; }

lint:
	$(TOOL) golangci-lint run

vuln: ## check for known vulnerabilities; skipped without access to the database
	scripts/vuln

licenses: ## check that dependencies are pinned and have an allowed license
	scripts/licenses

tidy-check:
	go mod tidy -diff
	go -C tools mod tidy -diff

layers:
	go test -run TestLayers ./internal/testkit/layers

docs: ## generate docs/cli.md and the output in README.md, guides and docs/notebook.ipynb
	scripts/test-setup
	go test -count=1 -run TestDocsShowRealOutput ./internal/testkit/e2e -update
	go test -count=1 -run TestNotebook ./internal/testkit/python -update
	@new=$$(mktemp); trap 'rm -f "$$new"' EXIT; \
	go run ./cmd/chimbuko help-markdown > "$$new"; cat "$$new" > docs/cli.md

docs-check:
	@new=$$(mktemp); trap 'rm -f "$$new"' EXIT; \
	go run ./cmd/chimbuko help-markdown > "$$new"; \
	diff -u docs/cli.md "$$new" || { echo "docs/cli.md is out of date, run make docs" >&2; exit 1; }

site: ## build the documentation site from docs into site
	scripts/site build

site-check:
	scripts/site check

quality: ## measure all detectors and write docs/quality.md (takes minutes)
	@new=$$(mktemp); trap 'rm -f "$$new"' EXIT; \
	go run ./internal/lab/quality/table | tee "$$new"; cat "$$new" > docs/quality.md

fuzz: ## run every fuzz target for T, from the corpus of earlier runs (make fuzz T=5m)
	scripts/fuzz $(T)

damage: N := $(if $(filter file,$(origin N)),3000,$(N))
damage: ## read N mutations of every recorded format, with seeds from SEED on (make damage N=3000 SEED=1)
	go test -run '^TestDamaged' -count=1 -timeout 0 -p 1 \
		$$(grep -rl --include='*_test.go' 'testkit/damage"' internal | xargs -n 1 dirname | sort -u | sed 's|^|./|') \
		-args -damage $(N) -damage-seed $(SEED)

soak: T := $(if $(filter file,$(origin T)),1h,$(T))
soak: build ## analyze a simulated program for T with restarts and queries, and check for leaks (make soak T=1h)
	go run ./internal/testkit/soak -program bin/chimbuko -for $(T)

nightly: ## continue fuzzing, read other mutations each day, and look for races in the tests that make test runs without the detector
	$(MAKE) fuzz T=$(if $(filter file,$(origin T)),5m,$(T))
	$(MAKE) damage SEED=$$((10000 * $$(date +%j)))
	RACE_EVERYWHERE=1 go test -race -count=1 -timeout 60m $(LINK) $$(grep -rl 'tracetest\..*WithoutRace' --include='*_test.go' internal | xargs dirname | sort -u | sed 's,^,./,')

faults: ## kill and restart processes in N runs with seeds from SEED on (make faults N=20 SEED=1)
	go test -run 'TestKillSchedule' -count=1 -timeout 0 ./internal/testkit/e2e -args -faults $(N) -seed $(SEED)

partitions: ## cut, delay and heal networks in N runs with seeds from SEED on; logs of failures in partitions/ (make partitions N=200 SEED=1)
	go test -run 'TestPartitionSchedule' -count=1 -timeout 0 ./internal/testkit/e2e -args -partitions $(N) -partition-seed $(SEED) \
		-partition-logs $(CURDIR)/partitions $(ARGS)

disk-faults: ## fail, kill or lose power at every operation on files, of parts and of a run (long)
	FAULTDISK_SAMPLE=all go test -run 'FailingDisk|DiskFailed|LossOfPower' -count=1 -timeout 0 \
		./internal/testkit/faultdisk ./internal/store/... ./internal/online/... ./internal/judge/analyzer ./internal/testkit/e2e

bench: ## run all benchmarks N times into bench/new.txt (make bench N=10)
	@mkdir -p bench
	go test -run '^$$' -bench . -benchmem -count=$(N) -timeout 60m ./... | tee bench/new.txt

bench-compare: ## compare bench/new.txt with bench/baseline.txt
	@ls bench/baseline.txt bench/new.txt >/dev/null
	$(TOOL) benchstat bench/baseline.txt bench/new.txt

golden-run: ## record a run, lists and answers of this version for tests of compatibility (make golden-run DIR=testdata/golden/1.1)
	@[[ -n '$(DIR)' && ! -e '$(DIR)/run.tar.zst' ]] || { echo 'DIR must name a new directory, as testdata/golden/1.1' >&2; exit 2; }
	scripts/golden-run '$(DIR)'
	go test -count=1 ./internal/testkit/golden -update

golden: ## compare results on all traces and scenarios with FILE, or write it with RECORD=1 (make golden FILE=/tmp/before)
	@[[ -n "$(FILE)" ]] || { echo 'usage: make golden FILE=PATH [RECORD=1] [ONLY=REGEXP]' >&2; exit 2; }
	scripts/golden $(if $(RECORD),record,compare) '$(FILE)' -only '$(ONLY)'

clean: ## remove build products, except the Python environment
	rm -rf bin site chimbuko-demo bench/new.txt
