# Every target says what it does; `make` alone lists them. `make test` is all that has to be green.
.DEFAULT_GOAL := help
.PHONY: help install demo test unit check format docs seeds bench clean

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# More workers than cores help: integration tests mostly wait for timers and disks.
WORKERS ?= auto

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## create .venv with .venv/bin/oncelog, and what tests and checks need
	@echo "ready: $(BIN)/oncelog ($$($(BIN)/oncelog --version))"

$(BIN)/python:
	@echo "creating .venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv

$(INSTALLED): pyproject.toml constraints.txt $(wildcard setup.py src/oncelog/*/*.c) | $(BIN)/python
	@echo "installing oncelog and its tools into .venv"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,check]'
	@$(BIN)/python -m compileall -q src/oncelog
	@touch $@

demo: $(INSTALLED) ## three exactly-once workers, a worker and the broker killed, and what arrived
	@$(BIN)/oncelog demo

test: check unit seeds ## everything that must be green: check, all tests, the seeds table
	@echo "make test: all green"

unit: $(INSTALLED) ## all tests (pass ARGS="-k name" for some)
	@$(BIN)/python tools/run_tests.py -q -n $(WORKERS) $(ARGS)

check: $(INSTALLED) ## style, types, layers, dead code, generated documents
	@echo "ruff";          $(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check . || { echo "see make format"; exit 1; }
	@echo "mypy --strict"; $(BIN)/mypy --no-error-summary
	@echo "import-linter"; $(BIN)/lint-imports >.venv/.import-linter 2>&1 || { cat .venv/.import-linter; exit 1; }
	@echo "vulture";       $(BIN)/vulture
	@echo "documents";     $(BIN)/python tools/configuration_doc.py --check

format: $(INSTALLED) ## let ruff lay out the code and sort the imports
	@$(BIN)/ruff check --quiet --fix --select I . ; $(BIN)/ruff format .

docs: $(INSTALLED) ## write again the documents that are made from tables in the code
	@$(BIN)/python tools/configuration_doc.py

seeds: $(INSTALLED) ## every promised behaviour, with the tests that prove it
	@$(BIN)/python tools/seeds.py

bench: $(INSTALLED) ## measure: broker against a floor server, start-up, memory
	@$(BIN)/python -m benchmarks

clean: ## remove .venv and every cache
	@rm -rf .venv build *.egg-info src/*.egg-info .hypothesis .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
