# Two commands do it all: `make reproduce` and `make test`. Everything is installed into .venv, again only when
# pyproject.toml has changed. Another interpreter: make PYTHON=python3.12 ...

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin

# One BLAS thread: the same bits and comparable times on every machine.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

# Bytecode is kept, whatever the shell says: the tests start hundreds of processes that load the same modules.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help reproduce test test-oldest studio lint check docs bench bench-deep fuzz mutants package clean
.NOTPARALLEL:

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

reproduce: .venv/.core ## reproduce the paper's figures and judge its claims, into report/index.html
	$(BIN)/python -m reproduction $(ARGS)

test: lint .venv/.kernels ## lint, types and the whole test suite (ARGS="-k maze" for a part)
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

test-oldest: .venv-oldest/.done ## a smoke suite with the lowest versions that pyproject.toml allows, in .venv-oldest
	EIGENOPTIONS_OLDEST=1 .venv-oldest/bin/python -m pytest -o addopts= -W default --import-mode=importlib -q $(ARGS) tests/smoke.py

studio: .venv/.studio ## draw a maze in the browser and watch its skills appear
	$(BIN)/eigenoptions studio $(ARGS)

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

check: lint ## lint and types only
	$(BIN)/mypy

docs: .venv/.dev ## the documentation, into docs/_build/html (the first time the examples run for their pictures: minutes)
	$(BIN)/python docs/gallery.py
	$(BIN)/sphinx-build -W --keep-going -q -d docs/_build/doctrees docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: .venv/.bench ## every benchmark in one run, against what else one would use, into out/bench/table.md
	$(BIN)/python benchmarks/compare.py $(ARGS)

bench-deep: .venv/.dev ## learned eigenfunctions on 13 grids, from xy to noisy frames, into out/bench/deep.jsonl (at most 20 minutes; ARGS=--full: all)
	$(BIN)/python benchmarks/deep.py $(ARGS)

fuzz: .venv/.dev ## random arrays, tables and files through the functions that take them, for ten minutes (ARGS="--seconds 60" for one)
	$(BIN)/python -m tests.fuzz $(ARGS)

package: .venv/.core ## build wheel and source distribution, install them with each extra into fresh environments, and try them
	$(BIN)/python -m tests.package $(ARGS)

mutants: .venv/.dev ## how many of 200 small wrong changes the tests notice, into out/mutants.jsonl (about half an hour)
	$(BIN)/python -m pip install --quiet --editable '.[mutants]'
	$(BIN)/python -m tests.mutants $(ARGS)

clean: ## remove .venv, built documents and caches (results in report/ and out/ stay)
	rm -rf .venv .venv-oldest docs/_build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests examples benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps. The core with the Atari games is enough to reproduce; the dev extra contains the others, so it sets all stamps.
.venv/.core: pyproject.toml
	$(venv)
	$(BIN)/python -m pip install --quiet --editable '.[atari]'
	@touch $@

.venv/.studio: pyproject.toml
	$(venv)
	$(BIN)/python -m pip install --quiet --editable '.[atari,studio]'
	@touch .venv/.core $@

.venv/.bench: pyproject.toml
	$(venv)
	$(BIN)/python -m pip install --quiet --editable '.[atari,bench,ray,studio]'
	@touch .venv/.core .venv/.studio $@

.venv/.dev: pyproject.toml
	$(venv)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch .venv/.core .venv/.studio $@

.venv/.kernels: .venv/.dev $(wildcard src/eigenoptions/_kernels/*.py)
	$(BIN)/python -m tests.kernels
	@touch $@

.venv-oldest/.done: pyproject.toml tests/oldest.txt
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --constraint tests/oldest.txt --editable '.[atari,deep,ray,sb3,studio]' minigrid pytest hypothesis httpx
	@touch $@

define venv
@command -v $(PYTHON) >/dev/null || \
	{ echo "no $(PYTHON) here: install Python 3.11 or newer, or name one with make PYTHON=..."; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "eigenoptions needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) --version 2>&1): name another with make PYTHON=..."; exit 1; }
$(PYTHON) -m venv .venv
endef
