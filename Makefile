# Start with `make demo` and `make test`. Both create .venv and install pinned versions themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PROJECTS := $(wildcard packages/*/pyproject.toml)
EDITABLE := $(patsubst %/pyproject.toml,--editable %,$(PROJECTS))
BENCH_VENV := .venv-bench
BENCH_PYTHON ?= $(PYTHON)
BENCH := $(BENCH_VENV)/bin/python
BENCH_STAMP := $(BENCH_VENV)/.installed
MUTANTS_VENV := .venv-mutants
MUTANTS_STAMP := $(MUTANTS_VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types pyright vocabulary fast framework wheels contract cluster processes matrix dist \
	control-plane generate golden fuzz faults campaigns interop engines mutants bench bench-smoke bench-scale bench-objects bench-client bench-transport bench-controlplane bench-cluster \
	bench-builtins bench-authorization bench-peers bench-cache bench-cache-events bench-controller bench-process-nodes bench-trace bench-profile bench-import bench-webapp pins clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(STAMP): $(PROJECTS) constraints/dev.in constraints/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints/dev.txt --requirement constraints/dev.in $(EDITABLE)
	@touch $@

$(BENCH_STAMP): $(PROJECTS) constraints/bench.in constraints/bench.txt
	$(BENCH_PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/pip install --quiet --disable-pip-version-check --constraint constraints/bench.txt --requirement constraints/bench.in $(EDITABLE)
	@touch $@

$(MUTANTS_STAMP): $(PROJECTS) constraints/mutants.in constraints/mutants.txt
	$(PYTHON) -m venv $(MUTANTS_VENV)
	$(MUTANTS_VENV)/bin/pip install --quiet --disable-pip-version-check --constraint constraints/mutants.txt --requirement constraints/mutants.in $(EDITABLE)
	@touch $@

demo: $(STAMP) ## the life of a WebApp on a cluster in this process, step by step, each step checked (ten seconds)
	@$(BIN)/konverge demo

# `make check PKG=cache` checks one part: its sources, its tests.
PKG_SOURCES = $(wildcard packages/*/src/*/$(PKG) packages/*/src/*/$(PKG).py)
PKG_TESTS = $(wildcard packages/*/tests/unit/$(PKG) packages/*/tests/unit/test_$(PKG).py packages/*/tests/$(PKG))

ifdef PKG
check: $(STAMP) ## lint, types, vocabulary, fast tests of the framework: about a minute; PKG=cache checks one part
	@test -n "$(PKG_SOURCES)" || { echo "make: no part is called '$(PKG)': see packages/*/src/*" >&2; exit 2; }
	$(BIN)/ruff check $(PKG_SOURCES) $(PKG_TESTS)
	$(BIN)/ruff format --check $(PKG_SOURCES) $(PKG_TESTS)
	$(BIN)/mypy $(PKG_SOURCES) $(PKG_TESTS)
	$(BIN)/python tools/vocabulary.py
	$(if $(PKG_TESTS),$(BIN)/pytest -m '$(QUICK)' $(PKG_TESTS),@echo 'no unit tests for $(PKG)')
else
check: lint types vocabulary framework
endif

lint: $(STAMP) ## ruff, check and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## mypy, strict, on everything
	$(BIN)/mypy

pyright: $(STAMP) ## pyright on the sources
	$(BIN)/basedpyright

vocabulary: $(STAMP) ## names and docstrings use the field's words
	$(BIN)/python tools/vocabulary.py

QUICK := not control_plane and not faults and not campaigns and not interop and not peers and not wheels and not processes and not engines

framework: $(STAMP) ## the fast tests of the framework, on two processes
	$(BIN)/pytest -m '$(QUICK)' -n 2 --dist loadfile packages/konverge/tests tests/test_layers.py tests/test_code_limits.py

fast: $(STAMP) ## all tests that need no control plane, on two processes
	nice -n 5 $(BIN)/pytest -m '$(QUICK)' -n 2 --dist loadfile

wheels: $(STAMP) ## build the packages, install them into an empty environment and run them there
	$(BIN)/pytest -m wheels tests/test_wheels.py

SLOW := -m '(control_plane or peers) and not faults and not campaigns and not processes'

contract: $(STAMP) ## the tests that compare with a real API server, on two processes
	$(BIN)/pytest $(SLOW) -n 2 --dist loadfile tests/contract

cluster: $(STAMP) ## all other tests that need a control plane
	$(BIN)/pytest $(SLOW) --ignore=tests/contract

# Only the files that have such tests are named: collecting all others takes longer than many of these tests.
processes: $(STAMP) ## containers as local processes, one test at a time (three minutes; Linux)
	$(BIN)/pytest -m processes $$(grep -rl --include='test_*.py' 'mark\.processes' packages examples tests | sort)

# Tests with a control plane mostly wait, the others compute: so two lanes, each on two processes, and those that compute
# let the others go first. Everything is run, whatever fails, and what each part prints comes in one piece when it ends.
LANES := --jobs=2 --keep-going --no-print-directory $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

test: lint vocabulary ## everything: lint, types, all tests (half an hour on two cores)
	@echo 'Types and all tests, two parts at a time; the output of a part comes when it is done.'
	@$(MAKE) $(LANES) contract types pyright fast cluster wheels
	@$(MAKE) --no-print-directory processes

matrix: ## the fast tests on every Python version of the classifiers
	$(PYTHON) tools/matrix.py

dist: $(STAMP) ## build wheels and source distributions into dist/
	@for package in packages/*; do (cd $$package && ../../$(BIN)/hatchling build --directory ../../dist); done

control-plane: $(STAMP) ## build the real etcd, kube-apiserver, controller manager, scheduler and kubectl once (needs go)
	$(BIN)/python -m konverge.testing.build

generate: $(STAMP) ## make the generated files anew: built-in kinds, data of the embedded server, public API
	$(BIN)/python tools/generate.py
	$(BIN)/python tools/generate_builtins.py
	$(BIN)/python tests/test_public_api.py
	PYTHONPATH=tests/support $(BIN)/python tests/test_architecture.py

golden: $(STAMP) ## record anew what a real API server answers, for the tests of the embedded one
	$(BIN)/python tools/record_golden.py
	$(BIN)/python tools/record_exchanges.py
	$(BIN)/python tools/record_responses.py
	KONVERGE_RECORD=1 $(BIN)/pytest tests/contract/test_crds_on_both.py

fuzz: $(STAMP) ## thousands of generated requests on the embedded and the real server, compared
	KONVERGE_FUZZ_REQUESTS=$${KONVERGE_FUZZ_REQUESTS:-50000} $(BIN)/pytest tests/contract/test_differential.py

faults: $(STAMP) ## the faults that last for minutes, on the real server
	$(BIN)/pytest -m faults

# Helm is built once, by `go install` through the usual module proxy, into the user's cache beside the control plane.
HELM_VERSION := v3.22.0
HELM_DIRECTORY := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/konverge/interop/helm-$(HELM_VERSION)
HELM := $(HELM_DIRECTORY)/helm

$(HELM):
	GOBIN=$(HELM_DIRECTORY) GOWORK=off CGO_ENABLED=0 go install -trimpath -ldflags='-s -w' helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)

interop: $(STAMP) $(HELM) ## kubectl's and Helm's commands on the embedded and the real control plane, compared (needs go once); alert rules in promtool
	KONVERGE_HELM=$(HELM) $(BIN)/pytest -m interop tests/interop tests/contract/test_go_clients_on_both.py

campaigns: $(STAMP) ## the generated cases of which make test runs a part, all of them, on both servers
	$(BIN)/pytest -m campaigns

engines: $(STAMP) ## real databases and Redis clusters on process nodes under faults, their figures printed (Linux)
	$(BIN)/pytest -m engines -s tests/engines

mutants: $(MUTANTS_STAMP) ## mutation tests of a part of konverge: PKG=queue, SAMPLE=200 for some, MINUTES=20 at most, SHOW=name for a survivor
	@$(MUTANTS_VENV)/bin/python tools/mutants.py '$(PKG)' $(if $(SAMPLE),--sample '$(SAMPLE)') $(if $(SEED),--seed '$(SEED)') $(if $(MINUTES),--minutes '$(MINUTES)') $(if $(WORKERS),--workers '$(WORKERS)') $(if $(SHOW),--show '$(SHOW)')

# Each benchmark writes bench/results/<name>.md and .json; report.py makes docs/benchmarks.md of the JSON files.
bench: bench-controller bench-client bench-transport bench-cache bench-cache-events bench-scale ## all benchmarks with peers, then docs/benchmarks.md (hours, on a quiet machine)
	$(BIN)/python bench/report.py

bench-smoke: $(STAMP) ## the benchmarks in small, without peers: whether they run (make test does so too)
	$(BIN)/pytest -m control_plane tests/test_benchmarks.py

bench-scale: $(BENCH_STAMP) ## the cache with 10,000, 100,000 and a million pods, then 1,000 changes a second
	$(BENCH) bench/bench_scale.py

bench-objects: $(BENCH_STAMP) ## objects against json, orjson, lightkube, kubernetes_asyncio, pydantic
	$(BENCH) bench/bench_objects.py

bench-transport: $(BENCH_STAMP) ## the HTTP engine of the client against aiohttp
	$(BENCH) bench/bench_transport.py

bench-client: $(BENCH_STAMP) ## the client against kubernetes_asyncio, lightkube, kr8s, cloudcoil, on a real API server
	$(BENCH) bench/bench_client.py

bench-controlplane: $(BENCH_STAMP) ## the embedded control plane against the real etcd and kube-apiserver
	$(BENCH) bench/bench_controlplane.py

bench-cluster: $(STAMP) ## the embedded cluster: time to a first ready Deployment, and what 500 of them cost
	$(BIN)/python bench/bench_cluster.py

bench-builtins: $(STAMP) ## what built-in objects cost the embedded control plane
	$(BIN)/python bench/bench_builtins.py

bench-authorization: $(STAMP) ## what RBAC adds to a request of the embedded server
	$(BIN)/python bench/bench_authorization.py

bench-peers: $(BENCH_STAMP) ## build the peers of cache and controllers: client-go, controller-runtime (go), kube-rs (cargo)
	cd bench/peers/client-go && go build -trimpath -o ../built/client-go .
	cd bench/peers/controller-runtime && go build -trimpath -o ../built/controller-runtime .
	cd bench/peers/kube-rs && cargo build --release --target-dir ../built/target
	cp bench/peers/built/target/release/kube-rs-peer bench/peers/built/kube-rs
	cp bench/peers/built/target/release/kube-rs-operator bench/peers/built/kube-rs-operator

bench-cache: bench-peers ## the cache against client-go, kube-rs and kopf, on a real API server (BENCH_CACHE=--large: 50,000 too)
	$(BENCH) bench/bench_cache.py $(BENCH_CACHE)

bench-controller: bench-peers ## an operator on konverge, controller-runtime, kube-rs and kopf, on a real API server
	$(BENCH) bench/bench_controller.py $(BENCH_CONTROLLER)

bench-cache-events: $(BENCH_STAMP) ## the cache on 2,000 changes a second
	$(BENCH) bench/bench_cache_events.py

bench-process-nodes: $(STAMP) ## process nodes: time to a ready pod, what 50 idle pods cost, throughput of a Service (Linux)
	$(BIN)/python bench/bench_process_nodes.py

bench-trace: $(STAMP) ## the functions and files that one change of an object runs through
	$(BIN)/python bench/trace_reconcile.py

bench-profile: $(BENCH_STAMP) ## where the CPU time of an operator goes, on a real API server; BEFORE=<commit> for an earlier version too
	$(BENCH) bench/profile_operator.py $(if $(BEFORE),--before '$(BEFORE)')

bench-import: $(STAMP) ## what importing the names of an operator costs
	$(BIN)/python bench/bench_import.py

bench-webapp: $(STAMP) ## 1,000 WebApps: how soon they are ready, requests for each, memory of the operator
	$(BIN)/python bench/bench_webapp.py

pins: ## renew the constraint files from pyproject.toml
	tools/pins

clean: ## remove what make made
	rm -rf $(VENV) $(BENCH_VENV) .venv-3.* .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
