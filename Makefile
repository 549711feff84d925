# Everything runs in a virtual environment of its own; nothing else is touched.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
RUNS   := $(VENV)/.runs
comma  := ,
# One BLAS thread per process: the tests run as two processes side by side. Compiled files are kept,
# whatever the environment says: both processes import everything, and tests start more of them.
SINGLE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

.PHONY: signals graphs dependent real-data restricted help demo docs quick test browser walk style lint format bench bench-check bench-scale bench-dask accuracy paper transfer calibration changepoints intervals fuzz dist matrix beyond kinds divergences clean

# Durations are those of two idle cores, after the installation, which takes one to two minutes.
help:
	@echo "make demo         flights in winter and summer, and a report to open: half a minute"
	@echo "make quick        style, types, layers and the fast tests: under two minutes"
	@echo "make test         style, types, layers and all tests: about five minutes"
	@echo "make lint         style, types and layers only: half a minute"
	@echo "make format       apply fixes and formatting: seconds"
	@echo "make docs         build the documentation in docs/_build/html: three minutes"
	@echo "make walk         print the files that a fit and a test visit: seconds"
	@echo "make bench        measure speed, one BLAS thread: twelve minutes"
	@echo "make bench-check  measure again, fail where a ratio fell below the stored one: twelve minutes"
	@echo "make bench-scale  measure large graphs, up to 100,000 nodes, 10 GiB: about an hour"
	@echo "make bench-dask   overhead and growth of the Dask engine, simulated clusters: five minutes"
	@echo "make accuracy     errors on the paper's scenarios: ten minutes"
	@echo "make paper        the paper's evaluation; resumes if stopped: about an hour"
	@echo "make transfer     reweighted models under covariate shift: ten minutes"
	@echo "make calibration  false alarms and power of the tests: about half an hour"
	@echo "make changepoints change-point detection: about half an hour"
	@echo "make intervals    bounds, intervals, verdicts on graphs; resumes if stopped: about two hours"
	@echo "make graphs       verdicts on graphs and their worth; resumes if stopped: about an hour"
	@echo "make dependent    tests and bounds on dependent data; resumes if stopped: about half an hour"
	@echo "make real-data    few observations of real networks; resumes if stopped: about half an hour"
	@echo "make restricted   cost of dictionaries without observations; resumes if stopped: ten minutes"
	@echo "make kinds        kinds of change in quiet and changed networks; resumes: a quarter of an hour"
	@echo "make divergences  ratios and divergences with every loss; resumes if stopped: a quarter of an hour"
	@echo "make beyond       GraphRatio beside the plain fits; resumes if stopped: about half an hour"
	@echo "make fuzz         20,000 hostile inputs for the command line; resumes: about a quarter of an hour"
	@echo "make signals      200 signals while results are written: ten minutes"
	@echo "make dist         build wheel and sdist, try them in fresh environments: ten minutes"
	@echo "make matrix       most tests with the oldest and the newest dependencies: about a quarter of an hour"
	@echo "make clean        remove the virtual environment and caches: seconds"

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
	$(call install,dev$(comma)geo)
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
	@echo "== search, and every page on a narrow screen"
	@$(BIN)/python docs/_ext/check_pages.py docs/_build/html
	@echo "open docs/_build/html/index.html"

# What ruff looks at.
CHECKED := src tests benchmarks studies tools examples docs/conf.py docs/_ext docs/pictures

style: $(READY)
	@echo "== style (ruff)"
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)
	@echo "== layers (import-linter)"
	@$(BIN)/lint-imports --no-cache

lint: style
	@echo "== types (mypy --strict)"
	@$(BIN)/mypy

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

# The tests that are neither marked slow nor open a browser.
quick: lint
	@echo "== fast tests and doctests (pytest)"
	@$(SINGLE) $(BIN)/pytest -q -n 2 --dist worksteal -m "not slow and not browser"

walk: $(READY)
	@$(BIN)/python tools/walk.py

# Types are checked while tests wait for timers, files and the browser, and reported at the end.
test: style browser
	@echo "== tests and doctests (pytest), and types beside them"
	@if { $(BROWSER); } >/dev/null; then marks=""; \
	elif [ "$$CI" = true ]; then echo "CI=true, but there is no Chromium for the browser tests"; exit 1; \
	else marks="not browser"; echo "no Chromium found: the browser tests are left out"; fi; \
	nice $(BIN)/mypy >$(VENV)/types.log 2>&1 & types=$$!; \
	trap 'kill $$types 2>/dev/null' INT TERM; \
	$(SINGLE) $(BIN)/pytest -n 2 --dist worksteal -m "$$marks"; tested=$$?; \
	wait $$types; typed=$$?; \
	echo "== types (mypy --strict)"; cat $(VENV)/types.log; \
	[ $$tested = 0 ] && [ $$typed = 0 ]

bench: $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	@$(SINGLE) $(BIN)/python benchmarks/run.py $(BENCH)

bench-check:
	@$(MAKE) --no-print-directory bench BENCH=--check

bench-scale: $(READY)
	@$(BIN)/python benchmarks/scale.py
	@$(SINGLE) $(BIN)/python benchmarks/capabilities.py --anew
	@$(SINGLE) $(BIN)/python benchmarks/dask_engine.py

bench-dask: $(READY)
	@$(SINGLE) $(BIN)/python benchmarks/dask_engine.py
	@$(SINGLE) $(BIN)/python benchmarks/simulated_cluster.py

graphs: $(READY)
	@$(SINGLE) $(BIN)/python studies/graphs.py

dependent: $(READY)
	@$(SINGLE) $(BIN)/python studies/dependent.py

real-data: $(READY)
	@$(SINGLE) $(BIN)/python studies/real_data.py

restricted: $(READY)
	@$(SINGLE) $(BIN)/python studies/restricted.py

beyond: $(READY)
	@$(SINGLE) $(BIN)/python studies/beyond.py

kinds: $(READY)
	@$(SINGLE) $(BIN)/python studies/kinds.py

divergences: $(READY)
	@$(SINGLE) $(BIN)/python studies/divergences.py

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

signals: $(READY)
	@$(SINGLE) $(BIN)/python -m tests.fuzz.signals --times 200

NOX = $(BIN)/python -m nox --noxfile noxfile.py

dist: $(READY)
	@$(NOX) -s dist

matrix: $(READY)
	@$(SINGLE) $(NOX) -s matrix

clean:
	rm -rf $(VENV) .nox graphratio-demo graphratio-fuzz docs/_build docs/_results docs/gallery docs/reference/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
