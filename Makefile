# The one command surface. PYTHON picks the interpreter (3.11 or newer), VENV the folder to install into.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# One more than there are cores: many tests wait for servers and browsers.
WORKERS ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 1)
PYTEST ?= $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
unexport PYTHONDONTWRITEBYTECODE # each of the programs that tests start would compile the package again

# Real servers that the tests drive; installed only where apt-get works and we are root.
DEBIAN_PACKAGES := prometheus prometheus-alertmanager docker-compose chromium postgresql pgbouncer
DEBIAN_COMMANDS := prometheus prometheus-alertmanager docker-compose chromium pg_ctlcluster pgbouncer

.PHONY: help demo test test-all lint format docs bench campaign servers frameworks compiled clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /	/' | expand -t 12

demo: $(VENV)/.installed-all ## install, then show recorded sessions in the browser and on /metrics
	$(BIN)/windowpane demo

test: servers $(VENV)/.installed-dev ## format, lint, types, then every test
	$(MAKE) --no-print-directory -j3 lint frameworks compiled
	$(PYTEST)

test-all: servers lint ## like test, with the large matrices, more generated examples and the types on other systems
	for system in win32 darwin; do $(BIN)/mypy --platform $$system --no-warn-unreachable || exit 1; done
	-$(BIN)/python -m tests.providers.environments all
	WINDOWPANE_TEST_ALL=1 $(PYTEST)

# Agent frameworks that the tests observe, in virtualenvs of their own; the tests are skipped without them.
frameworks: $(VENV)/.installed-dev
	-$(BIN)/python -m tests.providers.environments

# After a change each of the workers would compile the package and the tests at the same time.
compiled: $(VENV)/.installed-dev
	-$(BIN)/python -m pytest --collect-only -q >/dev/null

lint: $(VENV)/.installed-dev ## format check, lint, words and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tests/vocabulary/check.py
	$(BIN)/mypy

format: $(VENV)/.installed-dev ## rewrite the files in the one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-dev ## run every benchmark and write benchmarks/RESULTS.md; each prints a ratio against a floor
	$(BIN)/python benchmarks/write_results.py

docs: $(VENV)/.installed-dev ## build the documentation site into build/site/site
	$(BIN)/python docs/build_site.py

campaign: servers $(VENV)/.installed-dev ## run every fault campaign in its long form and write benchmarks/RELIABILITY.md
	$(BIN)/python benchmarks/write_reliability.py

servers:
	@missing=""; for name in $(DEBIAN_COMMANDS); do command -v $$name >/dev/null 2>&1 || missing="$$missing $$name"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if command -v apt-get >/dev/null 2>&1 && [ "$$(id -u)" = 0 ]; then \
	  echo "installing the Debian packages for:$$missing"; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -q && apt-get install -q -y --no-install-recommends $(DEBIAN_PACKAGES) </dev/null; \
	else \
	  echo "not found and not installed (needs apt-get and root):$$missing; the tests that need them are skipped"; \
	fi

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Windowpane needs Python 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The stamps make a second run start at once; a changed pyproject.toml installs again.
$(VENV)/.installed-all: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[all]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev]'
	@touch $@

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
