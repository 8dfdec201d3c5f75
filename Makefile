# Everything runs from a virtual environment that make creates itself; it needs Python 3.11 or newer and nothing else.
#   make test PYTHON=python3.13 VENV=.venv-3.13     another interpreter, beside the usual one
# Without PYTHON the first of these that is new enough is taken.
VENV   ?= .venv
PYTHON ?=
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11 python

RUN   := $(VENV)/bin/python -m
READY := $(VENV)/.ready

PYTEST := $(RUN) pytest -n auto --maxprocesses 8

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help serve test test-all bench docs fmt lint types contracts unit pins clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(READY) ## start the service (arrives with a later version; says so until then)
	@$(RUN) tool.main serve

test: lint types contracts unit ## format, lint, types, room contracts, then all tests but the slow ones

test-all: lint types contracts $(READY) ## the same with the slow tests
	$(PYTEST)

bench: $(READY) ## measure; one alone: make bench ONLY=edn
	@$(RUN) tests.benchmarks $(ONLY)

docs: $(READY) ## write the generated pages
	@$(RUN) tool.pages

fmt: $(READY) ## write the code in its one form
	$(RUN) ruff check --fix-only --quiet
	$(RUN) ruff format

lint: $(READY) ## form and lint rules, nothing is changed
	$(RUN) ruff format --check
	$(RUN) ruff check

types: $(READY) ## mypy, strict
	$(RUN) mypy

contracts: $(READY) ## which room may import which
	$(VENV)/bin/lint-imports --no-logo

unit: $(READY) ## the tests alone, without the slow ones
	$(PYTEST) -m "not slow"

pins: ## resolve every dependency anew and write constraints.txt (use Python 3.11, the oldest we promise)
	@$(find-python); rm -rf build/pins && "$$python" -m venv build/pins
	build/pins/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	build/pins/bin/python -m pip freeze --exclude-editable > build/pins/frozen
	LC_ALL=C sort -f build/pins/frozen > constraints.txt

clean: ## remove what make created; data in .psi stays
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find psi resolvers tool tests -type d -name __pycache__ -exec rm -rf {} +

# Redone when the dependencies change, otherwise not even looked at. The build tools come first and the build is not
# isolated, because an isolated build would fetch whatever versions are newest today instead of the pinned ones.
$(READY): pyproject.toml constraints.txt
	@if ! [ -x $(VENV)/bin/python ]; then \
	    $(find-python); \
	    echo "Creating $(VENV) with $$python ($$("$$python" -c 'import platform; print(platform.python_version())'))"; \
	    "$$python" -m venv --clear $(VENV); \
	fi
	@echo "Installing what constraints.txt pins"
	@$(RUN) pip install --quiet --disable-pip-version-check --constraint constraints.txt hatchling
	@$(RUN) pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

# Sets the shell variable `python`, or ends the recipe with a sentence that says what is missing.
define find-python
set -e; python=; \
for candidate in $(or $(PYTHON),$(PYTHONS)); do \
    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
done; \
if [ -z "$$python" ]; then \
    echo "psi needs Python 3.11 or newer; none found as: $(or $(PYTHON),$(PYTHONS)). Name one with make PYTHON=/path/to/python" >&2; \
    exit 2; \
fi
endef
