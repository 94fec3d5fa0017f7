# Everything here needs python3 (3.11 or newer, with venv) and make; the rest is installed into .venv.
#
#   make demo       import the example sessions and print one sheet
#   make test       run the tests (SHARED=DIR names the folder of captures and cases, if you have it)
#   make lint types contracts docs-check
#   make test-live  tests against real agents
#   make bench      measurements
#   make clean
#
# PYTHON=… picks the interpreter, PYTEST_ARGS=… is passed to pytest.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

# The first of these that is new enough, unless PYTHON is given.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c '$(NEW_ENOUGH)' >/dev/null 2>&1 && { echo "$$p"; exit; }; done; echo python3)

ifeq ($(origin SHARED),undefined)
SHARED := $(if $(wildcard ../shared/.),../shared)
endif
PYTEST_SHARED := $(if $(SHARED),--shared=$(SHARED))
PYTEST_ARGS ?= -n 2

DEMO_SESSION := examples/claude-code/projects/-home-dev-acme-app/5dd2e94d-807f-4903-b8e4-2497aa981da8.jsonl

.PHONY: help demo test lint types contracts docs-check test-live bench format clean

help:
	@sed -n 's/^#   //p' Makefile

$(VENV)/.core: pyproject.toml
	@"$(PYTHON)" -c '$(NEW_ENOUGH)' 2>/dev/null || { \
		echo "callsheet: Makefile: needs Python 3.11 or newer, found $$("$(PYTHON)" --version 2>/dev/null || echo none); set PYTHON=…" >&2; exit 1; }
	@$(BIN)/python -c 'import pip; $(NEW_ENOUGH)' 2>/dev/null || "$(PYTHON)" -m venv --clear $(VENV)
	$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core pyproject.toml
	$(PIP) install --editable '.[dev]'
	@touch $@

demo: $(VENV)/.core
	@rm -rf build/demo
	$(BIN)/callsheet import examples --out build/demo
	@echo
	$(BIN)/callsheet show $(DEMO_SESSION)

$(VENV)/.live: $(VENV)/.dev pyproject.toml
	$(PIP) install --editable '.[dev,live]'
	@touch $@

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(PYTEST_SHARED) $(PYTEST_ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

docs-check: $(VENV)/.dev
	$(BIN)/python -m pytest -q tests/test_docs.py
	$(BIN)/python -m callsheet.testing.reference --check
	$(BIN)/python -m callsheet.testing.silences --check

test-live: $(VENV)/.live
	@if [ -n "$$(find tests/live -name 'test_*.py' 2>/dev/null)" ]; then \
		$(BIN)/python tests/live/npm.py && \
		$(BIN)/python -m pytest tests/live $(PYTEST_SHARED); \
	else \
		echo "make test-live: there are no tests against real agents yet; nothing was run"; \
	fi

bench: $(VENV)/.dev
	@if [ -n "$$(find tests/budget -name 'test_*.py' 2>/dev/null)" ]; then \
		$(BIN)/python -m pytest tests/budget $(PYTEST_SHARED) -s --durations=0; \
	else \
		echo "make bench: there are no measurements yet; nothing was run"; \
	fi

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
