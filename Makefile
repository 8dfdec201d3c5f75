# Everything runs from a virtual environment that make creates itself; it needs Python 3.11 or newer and nothing else.
#   make test PYTHON=python3.13 VENV=.venv-3.13     another interpreter, beside the usual one
# Without PYTHON the first of these that is new enough is taken.
VENV   ?= .venv
PYTHON ?=
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11 python

RUN   := $(VENV)/bin/python -m
READY := $(VENV)/.ready
BARE  := $(VENV)/.bare

# The npm client that the GraphQL tests use. npm leaves the versions alone that package.json pins.
CLIENTS := tests/clients/node_modules/.ready

PYTEST := $(RUN) pytest -n auto --maxprocesses 8

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help serve test test-all bench docs fmt lint types contracts unit clients browser pins clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(BARE) ## start the service on 127.0.0.1:8420; with options: make serve ARGS="--port 9000"
	@exec $(RUN) tool.main serve $(ARGS)

test: lint types contracts unit ## format, lint, types, room contracts, then the tests; says how many slow ones it leaves out

test-all: lint types contracts $(READY) $(CLIENTS) browser ## the same with the slow tests
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

unit: $(READY) $(CLIENTS) browser ## the tests alone, without the slow ones
	$(PYTEST) -m "not slow"

clients: $(CLIENTS) ## fetch the npm client that tests use; without it those tests are skipped and say so

# Never fails either. Only Debian and its kin are helped along, and only where nobody has to be asked for a password.
browser: ## install Chromium for the browser tests where that is possible; without it those are skipped and say so
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    echo "Installing Chromium for the browser tests"; \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 \
	        || echo "Chromium could not be installed: the browser tests will be skipped"; \
	else \
	    echo "Chromium is not installed: the browser tests will be skipped"; \
	fi

pins: ## resolve every dependency anew and write constraints.txt (use Python 3.11, the oldest we promise)
	@$(find-python); rm -rf build/pins && "$$python" -m venv build/pins
	build/pins/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	build/pins/bin/python -m pip freeze --exclude-editable > build/pins/frozen
	LC_ALL=C sort -f build/pins/frozen > constraints.txt

clean: ## remove what make created; data in .psi stays
	rm -rf $(VENV) build dist tests/clients/node_modules .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find psi resolvers tool tests -type d -name __pycache__ -exec rm -rf {} +

# Redone when the dependencies change, otherwise not even looked at. The build tools come first and the build is not
# isolated, because an isolated build would fetch whatever versions are newest today instead of the pinned ones.
$(BARE): pyproject.toml constraints.txt
	@if ! [ -x $(VENV)/bin/python ]; then \
	    $(find-python); \
	    echo "Creating $(VENV) with $$python ($$("$$python" -c 'import platform; print(platform.python_version())'))"; \
	    "$$python" -m venv --clear $(VENV); \
	fi
	@echo "Installing what constraints.txt pins"
	@$(RUN) pip install --quiet --disable-pip-version-check --constraint constraints.txt hatchling
	@$(RUN) pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation -e .
	@touch $@

# What tests and tools need besides; serving does without.
$(READY): $(BARE)
	@echo "Installing what the tests and tools need"
	@$(RUN) pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

# Never fails: where npm is missing or cannot fetch anything, the tests with that client are skipped with the reason, and
# the next make tries again, as there is no stamp.
$(CLIENTS): tests/clients/package.json tests/clients/.npmrc
	@if ! command -v npm >/dev/null; then \
	    echo "npm is not installed: the tests with the npm client graphql-ws will be skipped"; \
	elif cd tests/clients && npm install --no-audit --no-fund --loglevel=error --fetch-retries=1 --fetch-timeout=30000; then \
	    touch node_modules/.ready; \
	else \
	    echo "npm could not install graphql-ws: the tests with it will be skipped"; \
	fi

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
