# Everything runs in .venv, made on first use. Another interpreter: make test PYTHON=/path/to/python
PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3.11)
# Where a worker dies the run ends and names its test: pytest-xdist may wait for ever for another.
PYTEST_FLAGS ?= -n auto --dist loadfile --no-loadscope-reorder --max-worker-restart=0
# A few simulations take minutes each: dealt out one by one, none waits for another of its file.
SLOW_SAMPLE ?= 5
SLOW_FLAGS ?= -n auto --dist loadgroup --max-worker-restart=0
BIN := .venv/bin
# A worker for each core: threads of linear algebra would wait for cores that are taken.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/pytest
# pip's own notices (a newer pip, an unused mirror) are not news for whoever runs `make`. A module is
# compiled when it is first imported: most never are.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check \
  -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo docs check test slow soak calibrate bench constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.installed ## audit the shipped planted models and print where the report is
	@$(BIN)/equipoise demo --overwrite

test: .venv/.installed-test ## lint, format, import contract, then types beside tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy & types=$$!; $(PYTEST) $(PYTEST_FLAGS); tests=$$?; wait $$types && exit $$tests

check: .venv/.installed-test ## what a change needs at once: lint, contract, types, the tests of the files changed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(PYTEST) -q -n auto $$($(BIN)/python -m tools.changed_tests)

docs: .venv/.installed-docs ## build the documentation, its reports and its notebooks: docs/_build/html
	OMP_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html

slow: .venv/.installed-test ## a fifth of the simulations that check what the statistics promise (minutes)
	EQUIPOISE_SLOW_SAMPLE=$(SLOW_SAMPLE) $(PYTEST) -m slow --durations=15 $(SLOW_FLAGS)

soak: .venv/.installed-test ## kill, damage and change work at random; checks docs/guarantees.md (15 minutes)
	OMP_NUM_THREADS=1 timeout 900 $(BIN)/python -m tools.soak

calibrate: .venv/.installed-test ## all simulations; measures metrics and audits in worlds of known bias (2 hours)
	$(MAKE) slow SLOW_SAMPLE=1
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.calibration

bench: .venv/.installed-bench ## time the metrics beside their peers; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks --keep
	$(BIN)/python -m benchmarks.scale

constraints: ## resolve the dependencies anew and write constraints.txt
	rm -rf .venv-constraints
	$(PYTHON) -m venv .venv-constraints
	sed -n '/^# models/,$$p' constraints.txt > constraints.kept
	.venv-constraints/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c constraints.kept '.[test]'
	sed -n 's/^\([^#=]*\)==.*/^\1[ =]/p' constraints.kept > constraints.names
	{ sed -n '/^#/!q;p' constraints.txt && \
	  .venv-constraints/bin/python -m pip freeze --exclude equipoise | \
	    grep -vif constraints.names && \
	  cat constraints.kept; } > constraints.new
	mv constraints.new constraints.txt
	rm -rf .venv-constraints constraints.kept constraints.names

clean: ## remove the environment, the builds and every cache
	rm -rf .venv .venv-constraints build dist .hypothesis .import_linter_cache .mypy_cache \
	  .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "equipoise needs Python 3.11 or newer; '$(PYTHON)' is not."; \
	  echo "Name one: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }

# Editable, so that an edit is seen without a reinstall and the second run starts at once. That the
# wheel itself is whole is checked by .ci/run, which installs it outside this tree.
.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP_INSTALL) -e .
	@touch $@

.venv/.installed-test: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP_INSTALL) -e '.[test]'
	@touch $@ .venv/.installed

.venv/.installed-docs: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP_INSTALL) -e '.[docs]'
	@touch $@ .venv/.installed

.venv/.installed-bench: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP_INSTALL) -e '.[bench]'
	@touch $@ .venv/.installed
