# Everything runs in a virtual environment of its own; nothing else is touched.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# One BLAS thread per process: the tests run as two processes side by side.
SINGLE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo test lint format bench accuracy clean

help:
	@echo "make demo    fit an example network and print what changed"
	@echo "make test    install what is needed, check style, types and layers, run all tests"
	@echo "make lint    style, types and layers only"
	@echo "make bench   measure speed, about five minutes (one BLAS thread)"
	@echo "make accuracy  measure errors on the paper's scenarios, about ten minutes"
	@echo "make clean   remove the virtual environment and caches"

$(READY): pyproject.toml
	@echo "== creating the virtual environment $(VENV) and installing graphratio (about a minute)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "graphratio needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]" 2>$(VENV)/pip.log || \
	  { cat $(VENV)/pip.log; exit 1; }
	@touch $(READY)

demo: $(READY)
	@$(BIN)/graphratio demo

lint: $(READY)
	@echo "== style (ruff)"
	@$(BIN)/ruff check src tests benchmarks studies
	@$(BIN)/ruff format --check src tests benchmarks studies
	@echo "== types (mypy --strict)"
	@$(BIN)/mypy
	@echo "== layers (import-linter)"
	@$(BIN)/lint-imports --no-cache

format: $(READY)
	@$(BIN)/ruff check --fix src tests benchmarks studies
	@$(BIN)/ruff format src tests benchmarks studies

test: lint
	@echo "== tests and doctests (pytest)"
	@$(SINGLE) $(BIN)/pytest -n 2 --dist worksteal

bench: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@$(SINGLE) $(BIN)/python benchmarks/run.py

accuracy: $(READY)
	@$(SINGLE) $(BIN)/python studies/accuracy.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
