# Everything runs in a virtual environment of its own; nothing else is touched.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
RUNS   := $(VENV)/.runs
comma  := ,
# One BLAS thread per process: the tests run as two processes side by side.
SINGLE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: help demo docs test browser lint format bench bench-check bench-scale bench-dask accuracy paper transfer calibration changepoints intervals fuzz dist matrix beyond clean

help:
	@echo "make demo    flights in winter and summer: which airports changed, and a report to open"
	@echo "make test    install what is needed, check style, types and layers, run all tests"
	@echo "make docs    build this documentation as a site, in docs/_build/html"
	@echo "make lint    style, types and layers only"
	@echo "make bench   measure speed, about twelve minutes (one BLAS thread)"
	@echo "make bench-scale  measure large graphs, up to 100,000 nodes, about half an hour, 8 GiB"
	@echo "make bench-dask  overhead and growth of the Dask engine, two minutes"
	@echo "make bench-check  measure again and fail where a ratio fell below the stored one"
	@echo "make accuracy  measure errors on the paper's scenarios, about ten minutes"
	@echo "make paper   run the paper's evaluation, about an hour on two cores; goes on if stopped"
	@echo "make transfer  measure reweighted models under covariate shift, about ten minutes"
	@echo "make calibration  measure false alarms and power of the tests, about a quarter of an hour"
	@echo "make changepoints  measure change-point detection, about half an hour"
	@echo "make intervals  measure bounds, intervals and verdicts on graphs, about two hours; goes on if stopped"
	@echo "make fuzz    20,000 hostile inputs for the command line, some minutes; goes on if stopped"
	@echo "make dist    build wheel and sdist and try them in fresh environments"
	@echo "make matrix  run most tests with the oldest and the newest NumPy, SciPy, scikit-learn"
	@echo "make beyond  the preset against the plain fits and on bad graphs, about half an hour; goes on if stopped"
	@echo "make clean   remove the virtual environment and caches"

# Install the package with the extras $(1), into the virtual environment.
define install
@echo "== installing graphratio with [$(1)] into $(VENV) (about a minute)"
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "graphratio needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11"; exit 1; }
@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$(1)]" 2>$(VENV)/pip.log || \
  { cat $(VENV)/pip.log; exit 1; }
@touch $@
endef

$(READY): pyproject.toml
	$(call install,dev)
	@touch $(RUNS)

# What the demo needs, which is less; installing for the tests covers it.
$(RUNS): pyproject.toml
	$(call install,cli$(comma)examples)

demo: $(RUNS)
	@$(BIN)/graphratio demo

# The site: pages and gallery are built, warnings are errors, and every link inside is followed.
DOCUMENTED := $(VENV)/.documented

$(DOCUMENTED): pyproject.toml
	$(call install,docs)

docs: $(DOCUMENTED)
	@echo "== pages and gallery (sphinx)"
	@$(SINGLE) $(BIN)/python -m sphinx -W --keep-going -q -j 2 -b html docs docs/_build/html
	@echo "== links inside the site"
	@$(BIN)/python docs/_ext/check_links.py docs/_build/html
	@echo "open docs/_build/html/index.html"

# What ruff looks at.
CHECKED := src tests benchmarks studies tools examples docs/conf.py docs/_ext docs/pictures

lint: $(READY)
	@echo "== style (ruff)"
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@echo "== types (mypy --strict)"
	@$(BIN)/mypy
	@echo "== layers (import-linter)"
	@$(BIN)/lint-imports --no-cache

format: $(READY)
	@$(BIN)/ruff check --fix $(CHECKED)
	@$(BIN)/ruff format $(CHECKED)

# The browser tests use an installed Chromium; as root with apt, it is installed once.
BROWSER := command -v chromium || command -v chromium-browser || command -v google-chrome

browser: $(READY)
	@if ! { $(BROWSER); } >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "== installing Debian's chromium for the browser tests (apt-get, a minute or two)"; \
	  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	    apt-get install -y -qq --no-install-recommends chromium; } >$(VENV)/apt.log 2>&1 || \
	    tail -n 3 $(VENV)/apt.log; \
	fi

test: lint browser
	@echo "== tests and doctests (pytest)"
	@if { $(BROWSER); } >/dev/null; then marks=""; \
	elif [ "$$CI" = true ]; then echo "CI=true, but there is no Chromium for the browser tests"; exit 1; \
	else marks="not browser"; echo "no Chromium found: the browser tests are left out"; fi; \
	$(SINGLE) $(BIN)/pytest -n 2 --dist worksteal -m "$$marks"

bench: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@$(SINGLE) $(BIN)/python benchmarks/run.py $(BENCH)

bench-check:
	@$(MAKE) --no-print-directory bench BENCH=--check

bench-scale: $(READY)
	@$(BIN)/python benchmarks/scale.py
	@$(SINGLE) $(BIN)/python benchmarks/dask_engine.py

bench-dask: $(READY)
	@$(SINGLE) $(BIN)/python benchmarks/dask_engine.py

beyond: $(READY)
	@$(SINGLE) $(BIN)/python studies/beyond.py

accuracy: $(READY)
	@$(SINGLE) $(BIN)/python studies/accuracy.py

# Where the results of the evaluation are kept, and how many processes compute it.
STUDY   ?= graphratio-study
WORKERS ?= 2

paper: $(READY)
	@$(SINGLE) $(BIN)/python -m studies.paper --folder $(STUDY) --workers $(WORKERS)

transfer: $(READY)
	@$(SINGLE) $(BIN)/python studies/transfer.py

calibration: $(READY)
	@$(SINGLE) $(BIN)/python studies/calibration.py

changepoints: $(READY)
	@$(SINGLE) $(BIN)/python studies/changepoints.py

intervals: $(READY)
	@$(SINGLE) $(BIN)/python studies/intervals.py

# Judged pieces are kept in the folder $(FUZZ); remove it to begin again.
FUZZ   ?= graphratio-fuzz
INPUTS ?= 20000

fuzz: $(READY)
	@$(SINGLE) $(BIN)/python -m tests.fuzz --inputs $(INPUTS) --workers $(WORKERS) \
	  --folder $(FUZZ) --output studies/fuzz.json

NOX = $(BIN)/python -m nox --noxfile noxfile.py

dist: $(READY)
	@$(NOX) -s dist

matrix: $(READY)
	@$(SINGLE) $(NOX) -s matrix

clean:
	rm -rf $(VENV) .nox graphratio-demo graphratio-fuzz docs/_build docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
