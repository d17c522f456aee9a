# make run | test | check | bench | setup | report | clean       (Python 3.11+, git and make are all that is needed)

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
STAMP  := $(VENV)/.installed
ARMS   := +arm=baseline,guided,floating,guided_floating

.PHONY: run test check setup bench report clean
.DEFAULT_GOAL := run

run: $(STAMP)
	@$(PY) -m xspec $(ARMS) -m

report: $(STAMP)
	@$(PY) -m xspec report

test: check
	@$(PY) -m pytest -n 2 --dist loadfile

check: $(STAMP)
	@$(PY) -m ruff format --check src tests bench
	@$(PY) -m ruff check src tests bench
	@$(PY) -m mypy

bench: $(STAMP)
	@$(PY) -m bench

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "xspec needs Python 3.11 or newer: make PYTHON=/path/to/python" >&2; exit 2; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check uv
	@$(VENV)/bin/uv pip install --quiet --python $(PY) --compile-bytecode --constraint constraints.txt --group dev --editable .
	@touch $(STAMP)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
