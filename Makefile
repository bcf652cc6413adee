# Every target sets up what it needs; `make help` lists them.
.DEFAULT_GOAL := help
PY := .venv/bin/python
BIN := .venv/bin
OUT ?=
KILL ?=
SPLIT ?=
ONLY ?=
ROUNDS ?=
CASES ?= tests/conformance/stream-cases.json
BACKEND ?= kernel
QUICK ?=
SCENARIO ?=
RECORD ?=
SEED ?=
MINUTES ?=
# most tests share one; a second works while those wait for leases, epochs and restarts
MESHES ?= 2
LONG ?=
SINCE ?=

HA ?=
STANDBY ?=
SCALE ?=

.PHONY: help setup check format lint types unit test test-sql test-faults test-security test-console stack integration test-containers demo demo-stack demo-federation bench conformance fuzz fuzz-select mutants dist
.PHONY: up down ps images secrets mesh-up mesh-down mesh-status nightly clean site

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  \033[1m%-16s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## make .venv from the lock; fetch jars and Java (seconds when done)
	@bash .ci/setup
	@$(BIN)/penstock setup

check: setup lint types  ## lint, types, import rules, unit tests that what changed can break [SINCE=COMMIT]
	@PENSTOCK_EXAMPLES=few POLARS_MAX_THREADS=1 $(PY) -m tests.affected $(if $(SINCE),--since $(SINCE))

lint:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo

types:
	@$(BIN)/mypy

# one thread of polars in each of many test processes: more only fight over the cores
unit:  ## all unit tests
	@POLARS_MAX_THREADS=1 $(BIN)/pytest -q -n auto tests/unit

format: setup  ## format and sort imports in place
	@$(BIN)/ruff check --fix-only -q .
	@$(BIN)/ruff format -q .

test: setup lint types unit stack  ## what `check` does, with all unit tests and examples; then the whole mesh: tests/stack

stack: setup  ## the whole mesh as real processes, two meshes beside each other [MESHES=n] [LONG=1: what takes minutes, too]
	@$(BIN)/pytest -q -n $(MESHES) -m "not alone$(if $(filter 1,$(LONG)),, and not long)" tests/stack

dist: setup  ## wheels and source archives of penstock and penstock-mesh in dist/, checked in clean environments: `penstock demo`, the README's commands
	@.ci/dist
	@$(BIN)/pytest -q tests/dist

demo-federation: setup  ## two deployments, a link that is cut, a cloud that is restarted [ROWS=n] [KEEP_UP=1]
	@$(PY) -m penstock.demo.federation $(if $(ROWS),--rows $(ROWS)) $(if $(filter 1,$(KEEP_UP)),--keep-up)

integration: setup  ## contracts of Kafka and Redis, whole meshes from outside: embedded and in containers (skips by name without Docker) [ONLY=TEXT]
	@$(BIN)/pytest -q $(if $(ONLY),-k "$(ONLY)") tests/integration

test-containers: setup  ## the whole stack in containers, and what else needs Docker
	@PENSTOCK_TEST_BACKEND=containers $(BIN)/pytest -q tests/integration

# a file is played by one process
test-sql: setup  ## each function on both engines beside plain Python, and the corpus of statements, in process [ONLY=TEXT]
	@POLARS_MAX_THREADS=1 $(BIN)/pytest -q -n auto $(if $(ONLY),-k "$(ONLY)") tests/sql

test-faults: setup  ## what dies, fills up or sleeps, against what must hold [QUICK=1] [ONLY=streams|tables|federation] [ROUNDS=20] [OUT=DIR] [SCENARIO=TEXT] [RECORD=1: docs/faults.md]
	@QUICK=$(QUICK) ROUNDS=$(ROUNDS) OUT='$(OUT)' SCENARIO='$(SCENARIO)' RECORD=$(RECORD) $(BIN)/pytest -q tests/faults$(if $(ONLY),/test_$(ONLY).py)

test-security: setup  ## attacks on a mesh: without a key, with few rights, from another account, from a hostile peer [LONG=1: what takes minutes, too]
	@$(BIN)/pytest -q $(if $(filter 1,$(LONG)),,-m "not long") tests/security

# the driver of the browser is no part of the environment: a mesh needs none
test-console: setup  ## the console in a browser against a real mesh; skips by name without Debian's chromium [LONG=1]
	@$(PY) -m pip install -q --disable-pip-version-check --require-hashes -r .ci/console/requirements.lock
	@$(BIN)/pytest -q $(if $(filter 1,$(LONG)),,-m "not long") tests/console

test-clients: setup  ## clients of other databases against a mesh, each in an environment of its own; skips by name what no registry serves [ONLY=TEXT]
	@$(BIN)/pytest -q $(if $(ONLY),-k "$(ONLY)") tests/clients

soak: setup  ## 20 minutes of load; fails when memory, file handles or lag keep growing [MINUTES=N]
	@$(PY) -m tests.soak $(if $(MINUTES),--minutes $(MINUTES))

site: setup  ## the documentation as a site, in site/: strict, every link checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict -q

demo: setup  ## replay 336,776 flights through the mesh and check every window [OUT=DIR]
	@$(PY) -m penstock.cli demo $(if $(OUT),--out $(OUT))

demo-stack: setup  ## the same demo against a compose stack of its own: built, brought up, and removed again [OUT=DIR]
	@deploy/stack demo $(if $(OUT),--out $(OUT))

bench: setup  ## measure [ONLY=spine|windows|tables|federation|select|start|recovery|rest|crossovers]; results in bench/RESULTS.md
	@$(PY) -m bench $(if $(ONLY),--only $(ONLY))

conformance: setup  ## run cases [CASES=FILE] [BACKEND=kernel|stack] [OUT=FILE] [SPLIT=SEED] [KILL=N] [EVERY=N] [WITHOUT=TEXT]
	@$(PY) -m tests.conformance $(CASES) --backend $(BACKEND) $(if $(OUT),--out $(OUT)) $(if $(SPLIT),--split $(SPLIT)) $(if $(KILL),--kill $(KILL)) $(if $(EVERY),--every $(EVERY)) $(if $(WITHOUT),--without $(WITHOUT))

# a seed names a run for good; without one it is the date
fuzz: setup  ## random streams on the kernels against a slow calculator, 2,000 cases; failing ones are shrunk to a case file [SEED=TEXT] [CASES=N] [OUT=FILE]
	@POLARS_MAX_THREADS=1 $(PY) -m tests.fuzz $(if $(SEED),--seed $(SEED)) $(if $(filter command line environment,$(origin CASES)),--cases $(CASES)) $(if $(OUT),--out $(OUT))

fuzz-select: setup  ## random SELECTs over random rows against plain Python, the kernels and streams, 3,000 cases; failing ones are shrunk to statements of the corpus [SEED=TEXT] [CASES=N] [OUT=FILE]
	@POLARS_MAX_THREADS=1 $(PY) -m tests.fuzz_select $(if $(SEED),--seed $(SEED)) $(if $(filter command line environment,$(origin CASES)),--cases $(CASES)) $(if $(OUT),--out $(OUT))

# each mutant costs its tests once, so time is what it takes
mutants: setup  ## small faults put into a copy of the code, and whether its tests notice; a seeded sample [ONLY=windows|processor|codec|lease] [MINUTES=N] [SEED=TEXT] [OUT=FILE]
	@$(PY) -m tests.mutants $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(if $(OUT),--out $(OUT))

up: images  ## the stack in containers, until all is healthy [HA=1] [STANDBY=1] [SCALE="gateway=2 spark-worker=3"]
	@HA=$(HA) STANDBY=$(STANDBY) deploy/stack up $(foreach s,$(SCALE),--scale $(s))

down:  ## stop whatever this checkout started, in containers or not; data stays
	@deploy/stack down
	@test ! -x $(BIN)/penstock || $(BIN)/penstock down

ps:  ## containers of the stack, their health and ports
	@deploy/stack ps

images:  ## build the stack's images and print their sizes
	@deploy/stack build

secrets:  ## passwords for the stack, where there are none yet; `docker compose up` needs them
	@deploy/stack secrets

mesh-up: setup  ## the embedded mesh in the background, without Docker
	@$(BIN)/penstock up --detach

mesh-down:  ## stop the embedded mesh
	@test ! -x $(BIN)/penstock || $(BIN)/penstock down

mesh-status: setup  ## health, ports, memory and restarts of each service of the embedded mesh
	@$(BIN)/penstock status

nightly: test  ## everything, in its long and strict forms; hours
	@PENSTOCK_NIGHTLY=1 $(BIN)/pytest -q tests/unit tests/stack tests/integration
	@PENSTOCK_NIGHTLY=1 $(MAKE) --no-print-directory test-security LONG=1
	@$(MAKE) --no-print-directory test-console LONG=1
	@$(MAKE) --no-print-directory test-clients
	@$(MAKE) --no-print-directory fuzz SEED=$(shell date -u +%Y%m%d) CASES=20000
	@$(MAKE) --no-print-directory fuzz-select SEED=$(shell date -u +%Y%m%d) CASES=20000
	@$(PY) -m tests.conformance $(CASES) --backend stack
	@$(PY) -m tests.conformance $(CASES) --backend stack --kill 3
	@for round in 1 2 3 4 5; do $(BIN)/pytest -q tests/faults || exit 1; done
	@$(MAKE) --no-print-directory dist
	@$(MAKE) --no-print-directory soak
	@$(MAKE) --no-print-directory mutants SEED=$(shell date -u +%Y%m%d) MINUTES=240

clean:  ## stop all; remove .venv, caches and data, those of the stack too while it runs
	@deploy/stack down --volumes
	@$(MAKE) --no-print-directory mesh-down
	@rm -rf .venv .penstock .secrets .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache *.egg-info
