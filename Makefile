# `make demo` and `make test` are the two commands; each sets up `.venv` first, once.

# The newest supported Python of this machine, unless named.
PYTHON ?= $(shell sh .ci/pythons | head -n 1)
VENV ?= .venv
UV_VERSION := 0.13.7
BIN := $(VENV)/bin
DEPS := $(VENV)/.dependencies
READY := $(VENV)/.ready
WORKERS ?= 2
# What to test, what to change and how often: make test TESTS=tests/acbo, make mutate ROOM=src/acbo
TESTS ?=
ROOM ?= src/acbo/exact
N ?= 20
SEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-wheel check docs mutate bench bench-gate performance lock format clean

help:  ## List these commands.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(DEPS): requirements.lock
	@test -n "$(PYTHON)" || { echo "Worldloom needs Python 3.11, 3.12 or 3.13; name one with PYTHON=..."; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version), once ..."
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes -r requirements.lock
	@touch $@

$(READY): $(DEPS) pyproject.toml
	@VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps -e .
	@touch $@

demo: $(READY)  ## Run the demo; it ends with the path of its report page.
	$(BIN)/worldloom demo --out out

test: $(READY)  ## Run the quick tests.
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" --durations 25 $(TESTS)

test-all: $(READY)  ## Run every test, the slow ones too.
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations 25 $(TESTS)

test-wheel: $(READY)  ## Build the wheel and test it outside this folder.
	@sh .ci/test-wheel $(VENV) $(WORKERS)

check: $(READY)  ## Lint, format, types, import rules, docs build.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports --no-cache
	$(MAKE) --no-print-directory docs

docs: $(READY)  ## Build the documentation into site/.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

mutate: $(READY)  ## Change ROOM N times; list what no quick test notices.
	$(BIN)/python tools/mutate.py $(ROOM) --number $(N) --seed $(SEED) --tests $(TESTS)

bench: $(READY)  ## Run every benchmark script, rivals too.
	$(BIN)/worldloom bench --rivals

bench-gate: $(READY)  ## Fail where a ratio to naive code fell below the kept one.
	$(BIN)/python benchmarks/baseline/gate.py

performance: $(READY)  ## Measure everything, rivals too, and write the pages of figures.
	$(BIN)/worldloom bench --rivals --out out/bench
	cp out/bench/record.json benchmarks/baseline/performance.json
	$(BIN)/worldloom bench --read benchmarks/baseline/performance.json --out out/bench --page docs/performance.md
	$(BIN)/python benchmarks/baseline/promises.py

lock:  ## Resolve the dependencies anew into requirements.lock.
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
		--no-annotate --no-header --upgrade pyproject.toml -o requirements.lock

format: $(READY)  ## Format and fix what ruff can fix.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## Remove everything that the commands above made.
	rm -rf .venv .venv-* .wheel-venv build dist out site .pytest_cache .hypothesis .ruff_cache
