# make run | test | check | bench | setup | report | ui | clean       (Python 3.11+, git and make are all that is needed)

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
ARMS   := +arm=baseline,guided,floating,guided_floating

.PHONY: run test suite check lint style types setup bench stress calibrate report ui clean
.DEFAULT_GOAL := run

run: $(STAMP)
	@$(PY) -m xspec $(ARMS) -m

report: $(STAMP)
	@$(PY) -m xspec report

ui: $(STAMP)
	@$(PY) -m xspec ui

test: style
	@$(MAKE) --no-print-directory --jobs=2 types suite

suite: $(STAMP)
	@OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 3 --dist loadfile --no-loadscope-reorder

check: lint
	@$(PY) -m pytest -q tests/spec tests/route tests/records tests/guides tests/agents

lint: style types

style: $(STAMP)
	@$(PY) -m ruff format --check src tests bench tools stress
	@$(PY) -m ruff check src tests bench tools stress

types: $(STAMP)
	@$(PY) -m mypy

stress: $(STAMP)
	@$(PY) -m stress

bench: $(STAMP)
	@$(PY) -m bench

calibrate: $(STAMP)
	@$(PY) tools/calibrate.py --experiments 4000
	@$(PY) tools/calibrate_rehearsal.py

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "xspec needs Python 3.11 or newer: make PYTHON=/path/to/python" >&2; exit 2; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check uv
	@$(VENV)/bin/uv pip install --quiet --python $(PY) --compile-bytecode --constraint constraints.txt --group dev --editable '.[local]'
	@$(PY) -m compileall -q src  # else each command would, where PYTHONDONTWRITEBYTECODE is set
	@touch $(STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
