# Two commands do it all: `make reproduce` and `make test`. Everything is installed into .venv, again only when
# a file of requirements has changed. Another interpreter: make PYTHON=python3.12 ...

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
# Tests that run other programs, in which coverage sees nothing.
STARTS_PROGRAMS := test_types test_examples test_docs test_machines test_architecture test_package \
  reproduction/test_reproduction studio/test_studio studio/test_studio_server
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt

# One BLAS thread: the same bits and comparable times on every machine.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help reproduce test test-all test-matrix test-oldest coverage studio lint check docs bench numbers mutants clean
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

reproduce: .venv/.reproduction ## run the paper's experiments and judge its claims, into report/index.html
	$(BIN)/python -m reproduction $(ARGS)

test: lint ## lint, types and the test suite (ARGS="-k maze" for a part)
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-all: .venv/.dev test-oldest ## what rarely breaks: CPU types, cluster faults, the wheel, the oldest versions
	$(BIN)/pytest -n auto -m slow --hypothesis-profile nightly $(ARGS)

test-matrix: .venv/.dev ## the whole suite under other CPU types, threads, Pythons and versions, into out/matrix.md (forty minutes)
	$(BIN)/python tests/matrix.py $(ARGS)

test-oldest: .venv/.dev ## the test suite with the lowest versions that pyproject.toml allows
	$(BIN)/python tests/matrix.py "oldest versions"

coverage: .venv/.dev ## which lines the tests run, in one process (ten minutes)
	mkdir -p out
	COVERAGE_FILE=out/coverage $(BIN)/python -m coverage run --source=src/eigenoptions -m pytest -q \
	  $(foreach name,$(STARTS_PROGRAMS),--ignore=tests/$(name).py)
	COVERAGE_FILE=out/coverage $(BIN)/python -m coverage report $(ARGS)

studio: .venv/.core ## draw a maze in the browser and watch its skills appear
	$(BIN)/eigenoptions studio $(ARGS)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check: lint ## lint and types only
	$(BIN)/mypy

docs: .venv/.dev ## the documentation, into docs/_build/html (the first time the examples run for their pictures: minutes)
	$(BIN)/sphinx-build -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: .venv/.dev ## ratios against what a user would write instead, in one run
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks $(ARGS)

numbers: .venv/.dev ## compare numbers, the map and the picture of the README with computed ones (ARGS=--write corrects them)
	$(BIN)/python docs/page_numbers.py $(ARGS)
	$(BIN)/python docs/draw_map.py $(ARGS)
	$(BIN)/python docs/draw_demo.py $(ARGS)

mutants: .venv/.dev ## which small wrong changes the tests notice, 29 per part (an hour; in a clone: sources are changed and restored)
	$(BIN)/python -m pip install --quiet 'cosmic-ray>=8.4'
	mkdir -p out
	COVERAGE_FILE=out/coverage PYTHONPATH=tests/mutants $(BIN)/python -m coverage run --source=src/eigenoptions -m pytest -q -p contexts \
	  $(foreach name,$(STARTS_PROGRAMS),--ignore=tests/$(name).py)
	export PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONDONTWRITEBYTECODE=1 && for config in $(or $(CONFIG),tests/mutants/*.toml); do \
	  session=out/$$(basename $$config .toml).sqlite && rm -f $$session && cosmic-ray init $$config $$session && \
	  python tests/mutants/sample.py $$session $(or $(MUTANTS),29) && cosmic-ray exec $$config $$session && \
	  cr-report --surviving-only $$session; done

clean: ## remove environments, built documents and caches (results in report/ and out/ stay)
	rm -rf .venv .venv-oldest .venv-torch .venv-3.12 .venv-3.13 docs/_build docs/gallery build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src reproduction studies tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps. The dev extra contains the others, so it sets all stamps.
.venv/.core: pyproject.toml constraints.txt
	$(venv)
	$(INSTALL) --editable .
	@touch $@

.venv/.reproduction: pyproject.toml constraints.txt reproduction/requirements.txt
	$(venv)
	$(INSTALL) --editable . --requirement reproduction/requirements.txt
	@touch .venv/.core $@

.venv/.dev: pyproject.toml constraints.txt reproduction/requirements.txt
	$(venv)
	$(INSTALL) --editable '.[dev]' --requirement reproduction/requirements.txt
	@touch .venv/.core .venv/.reproduction $@

define venv
@command -v $(PYTHON) >/dev/null || \
	{ echo "no $(PYTHON) here: install Python 3.11 or newer, or name one with make PYTHON=..."; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "eigenoptions needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1): name another with make PYTHON=..."; exit 1; }
$(PYTHON) -m venv .venv
endef
