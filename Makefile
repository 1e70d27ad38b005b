# Every target works from a fresh clone; `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
SET_UP := .venv/.set-up
LAPTOP_TESTS := tests/laptop tests/soak
EXAMPLE_TESTS := tests/examples
MATRIX_TESTS := tests/spark/matrix
RESIZE_TESTS := tests/resize
CLUSTER_TESTS := tests/charts tests/cluster/e2e
FAULTS ?= 200
CHANGES ?= 30
SCHEDULES ?= 2000
SEED ?= 1
# More than there are cores: these tests wait half of their time, for timers and for each other.
UNIT_WORKERS ?= 3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
TRIES ?= 5
# Fetched once for all clones, regardless of the package index's caching headers.
WHEELS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tandem/wheels
EVERYTHING := .[dev,operator,spark]
VERSION := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' pyproject.toml)
BUILT_WITH := $(shell sed -n 's/^requires = \["\(.*\)"\]$$/\1/p' pyproject.toml)
INSTALL := $(BIN)/python -m pip install --quiet --no-index --find-links $(WHEELS) \
  --constraint requirements.lock --editable '$(EVERYTHING)'
heading = @printf '\n== %s\n' "$(1)"

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(SET_UP) ## Create .venv with bin/tandem, from the locked versions

# Redone when the dependencies change, not when the code does: the install is editable.
$(SET_UP): pyproject.toml requirements.lock
	$(call heading,setup: virtual environment and locked dependencies)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Tandem needs Python 3.11 or newer as '$(PYTHON)'; name another one with" \
	       "'make setup PYTHON=python3.12'."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    apt-get update -qq && apt-get install -qq -y python3-venv; \
	  else \
	    echo "Python's venv module is missing; on Debian or Ubuntu: apt-get install python3-venv"; \
	    exit 1; \
	  fi; }
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv
	@echo '  installing cached packages, if they are complete'
	@$(INSTALL) 2>/dev/null || { \
	  echo '  fetching missing packages'; \
	  mkdir -p $(WHEELS); fresh=$$(mktemp -d $(WHEELS)/.fresh-XXXXXX); trap 'rm -rf "$$fresh"' EXIT; \
	  $(BIN)/python -m pip wheel --use-pep517 --progress-bar off --find-links $(WHEELS) \
	    --wheel-dir "$$fresh" --constraint requirements.lock '$(EVERYTHING)' $(BUILT_WITH) \
	    | sed -un 's/^ *\(Downloading\|Building wheel\|error:\) /  \1 /p' | cut -c 1-100; \
	  rm "$$fresh"/tandem-*.whl; mv "$$fresh"/*.whl $(WHEELS); \
	  echo '  installing'; $(INSTALL); }
	@touch $@

.PHONY: java
java: $(SET_UP) ## Build the Java module, and the class archive that speeds up Spark's start
	@command -v javac >/dev/null || [ -x "$${JAVA_HOME:-}/bin/javac" ] || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing openjdk-17-jdk-headless"; \
	    apt-get update -qq && apt-get install -qq -y openjdk-17-jdk-headless >/dev/null; \
	  else \
	    echo "A Java compiler is missing; on Debian or Ubuntu: apt-get install openjdk-17-jdk-headless"; \
	    exit 1; \
	  fi; }
	@$(BIN)/python spark_images/java/build.py
	@$(BIN)/python -m tandem_runtime.spark.jvm.class_archive

.PHONY: demo
demo: java ## A pipeline of two pairs that survives kill -9 and a freeze, recounted at the end
	@$(BIN)/python -m demo

.PHONY: lint
lint: $(SET_UP) ## Style and formatting (ruff)
	$(call heading,lint)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

.PHONY: types
types: $(SET_UP) ## Static types (mypy, strict)
	$(call heading,types)
	@$(BIN)/mypy

.PHONY: layers
layers: $(SET_UP) ## Allowed imports between packages (import-linter)
	$(call heading,layers)
	@$(BIN)/lint-imports --no-logo

.PHONY: unit
unit: java ## Unit and property tests (pytest)
	$(call heading,unit and property tests)
	@$(BIN)/pytest $(addprefix --ignore=,$(LAPTOP_TESTS) $(EXAMPLE_TESTS) $(CLUSTER_TESTS) $(MATRIX_TESTS) $(RESIZE_TESTS)) \
	  --numprocesses $(UNIT_WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: laptop
laptop: java ## Whole pipelines on this machine: failures, a short soak (pytest)
	$(call heading,pipelines on this machine)
	@$(BIN)/pytest $(LAPTOP_TESTS) -v

.PHONY: matrix
matrix: java ## State moved by key: every operator, type of key and change of partitions (pytest)
	$(call heading,state moved by key)
	@$(BIN)/pytest $(MATRIX_TESTS) -v

.PHONY: resize
resize: java ## Six kinds of queries, each resized eight times under load and recounted (pytest)
	$(call heading,pipelines that are resized)
	@$(BIN)/pytest $(RESIZE_TESTS) -v

.PHONY: examples
examples: java ## The pipelines of examples/, each recounted (pytest)
	$(call heading,examples)
	@$(BIN)/pytest $(EXAMPLE_TESTS) -v

.PHONY: smoke
smoke: $(SET_UP) ## Tests of the chart, and a short set of tests on a kind cluster
	$(call heading,the chart)
	@$(BIN)/python -m cluster helm
	@$(BIN)/pytest tests/charts
	$(call heading,a pipeline on a kind cluster)
	@$(BIN)/pytest tests/cluster/e2e -m smoke -v

.PHONY: soak
soak: java ## Random kills and freezes of every process, FAULTS of them, among CHANGES of sizes
	$(call heading,soak: $(FAULTS) faults and $(CHANGES) changes)
	@$(BIN)/python -m tests.soak --faults $(FAULTS) --changes $(CHANGES)

.PHONY: simulate
simulate: $(SET_UP) ## 2,000 simulated schedules of failures; SCHEDULES, SEED, JOBS
	$(call heading,simulated schedules)
	@$(BIN)/tandem simulate --schedules $(SCHEDULES) --seed $(SEED) --jobs $(JOBS)

.PHONY: plants
plants: $(SET_UP) ## Every seeded bug must be found for the seeds 1 to 10; docs/simulator.md
	$(call heading,seeded bugs)
	@$(BIN)/python -m tests.simulator.sweep --jobs $(JOBS)

.PHONY: test
test: ## All tests: lint, unit, laptop, examples, smoke, simulate; what CI runs
	@$(MAKE) setup java
	@$(BIN)/python -m tests.stages lint types layers
	@$(BIN)/python -m tests.stages unit laptop --beside smoke simulate examples

.PHONY: mutation
mutation: $(SET_UP) ## 200 mutations of the protocol, which tests must find; docs/mutation.md
	$(call heading,mutation check)
	@$(BIN)/python -m tests.mutation

.PHONY: nightly
nightly: ## What takes too long for CI, one after the other, also after failures; docs/releasing.md
	@$(MAKE) setup java
	@$(BIN)/python -m tests.stages --keep-going e2e 'simulate SCHEDULES=20000 SEED=1' \
	  'simulate SCHEDULES=20000 SEED=2' plants soak matrix resize mutation

.PHONY: reference
reference: $(SET_UP) ## Generate docs/reference.md from the declarations of the fields
	@$(BIN)/python -m tandem_cli.reference > docs/reference.md.new
	@mv docs/reference.md.new docs/reference.md

.PHONY: crd
crd: $(SET_UP) ## Generate crds/streampipelines.yaml and the chart's copy from the declarations
	@$(BIN)/python -m tandem_cli.crd > crds/streampipelines.yaml.new
	@mv crds/streampipelines.yaml.new crds/streampipelines.yaml
	@$(BIN)/python -m tests.release.chart

.PHONY: version
version: ## Print the version that pyproject.toml declares
	@echo $(VERSION)

.PHONY: chart
chart: $(SET_UP) ## Copy the version and the CRD into the chart, write its table of values
	@$(BIN)/python -m tests.release.chart

.PHONY: release-check
release-check: java ## Check that this tree can be released; docs/releasing.md
	$(call heading,release check)
	@PIP_NO_INDEX=1 PIP_FIND_LINKS=$(WHEELS) $(BIN)/python -m tests.release

.PHONY: bench-routing
bench-routing: $(SET_UP) ## Routing: the paper's figures beside ours, timings, plots
	$(call heading,bench: routing)
	@$(BIN)/python -m bench.routing

.PHONY: bench-failover bench-services bench-throughput bench-epochs bench-catchup bench-memory
bench-failover: ## Gaps in the output when a driver is killed or frozen, compared with plain Spark
bench-services: ## Gaps when a split or a merge is killed, with and without the supervisor
bench-throughput: ## Rows per second and CPU, compared with plain Spark
bench-epochs: ## Latency at short epochs, and the CPU of an idle pipeline
bench-catchup: ## Time until a pair has both replicas again
bench-memory: ## Memory under load, and with every merge frozen
bench-failover bench-services bench-throughput bench-epochs bench-catchup bench-memory: bench-%: java
	$(call heading,bench: $*)
	@$(BIN)/python -m bench.streaming.$*

.PHONY: bench-rescale
bench-rescale: java ## Gaps when pairs are split, united or given keys, compared with plain Spark
	$(call heading,bench: rescale)
	@$(BIN)/python -m bench.rescale

.PHONY: bench-commits
bench-commits: java ## CPU and latency compared with another commit: BASE=COMMIT, TRIES
	@[ -n "$(BASE)" ] || { echo "Name the commit to compare with: make bench-commits BASE=HEAD~1"; exit 1; }
	$(call heading,bench: commits)
	@$(BIN)/python -m bench.streaming.commits '$(BASE)' --tries $(TRIES)

.PHONY: images
images: $(SET_UP) ## Build the images of operator and data plane; ENGINE, REGISTRY, TAG, BASE_IMAGE
	$(call heading,images)
	@$(BIN)/python -m spark_images.build $(if $(ENGINE),--engine $(ENGINE)) \
	  $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(TAG),--tag $(TAG)) \
	  $(if $(BASE_IMAGE),--base-image $(BASE_IMAGE))

.PHONY: cluster cluster-down
cluster: $(SET_UP) ## Create a kind cluster of one control plane and two workers
	$(call heading,cluster)
	@$(BIN)/python -m cluster up
cluster-down: $(SET_UP) ## Remove the kind cluster
	@$(BIN)/python -m cluster down

.PHONY: e2e
e2e: $(SET_UP) ## All tests of the chart, and on a kind cluster
	$(call heading,cluster tests)
	@$(BIN)/python -m cluster helm
	@$(BIN)/pytest $(CLUSTER_TESTS) -v

.PHONY: kind-demo
kind-demo: $(SET_UP) ## A pipeline on the kind cluster that survives a killed pod and a stopped node
	@$(BIN)/python -m demo.kind

.PHONY: bench-kind
bench-kind: java ## Gaps and costs on the kind cluster, compared with plain Spark in a pod
	$(call heading,bench: kind)
	@$(BIN)/python -m bench.cluster

.PHONY: lock
lock: $(SET_UP) ## Resolve all dependencies into requirements.lock
	@$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --all-extras \
	  --no-header --no-emit-index-url --no-emit-find-links pyproject.toml -o requirements.lock

.PHONY: clean
clean: ## Remove what the other targets created
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	@find core operator spark_images tests tools -name __pycache__ -prune -exec rm -rf {} +
	@rm -rf spark_images/runtime/tandem_runtime/spark/jars *.egg-info {core,operator,spark_images/runtime,tools}/*.egg-info
