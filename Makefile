# make demo   from source to bitstream and report, on a sound clip and a picture
# make test   lint, types, layering, house rules and every test that ends within minutes
# The environment lives in .venv and is built from requirements.lock by the first target that needs it.
SHELL := /bin/sh
PY := .venv/bin/python
# Tests at a time: one a core, up to as many as 16 GiB of memory bear.
JOBS ?= $(shell cores=$$(nproc); echo $$((cores < 8 ? cores : 8)))
# Ceilings in seconds. A test that hangs ends by its own limit (pyproject.toml), a session that takes too
# long ends after the test in hand; `timeout` stands behind both, in the foreground so that ^C arrives.
TEST_LIMIT ?= 3600
LONG_LIMIT ?= 14400
STOP := timeout --foreground --kill-after=30
.DEFAULT_GOAL := help

.PHONY: help demo test style types suite check-long bench lint clean distclean relock

help:
	@sed -n 's/^# make /make /p' Makefile
	@echo 'also: check-long, bench, lint, clean, distclean, relock'

.venv/ready: requirements.lock pyproject.toml tools/bootstrap.sh
	@sh tools/bootstrap.sh

demo: .venv/ready
	$(PY) examples/demo.py

lint: style types

style: .venv/ready
	.venv/bin/ruff check .
	.venv/bin/lint-imports --no-logo

types: .venv/ready
	.venv/bin/pyright --warnings

# Types take one core a minute: beside the tests.
test: style
	@$(MAKE) --no-print-directory --jobs=2 types suite

suite: .venv/ready
	$(STOP) $$(($(TEST_LIMIT) + 60)) $(PY) -m pytest -q -n $(JOBS) --session-timeout=$(TEST_LIMIT) tests

# Exhaustive and long random checks; hours, not minutes. First, whether the recorded ones are about today's code.
check-long: .venv/ready
	$(PY) -m tests.conformance.current
	$(STOP) $(LONG_LIMIT) $(PY) -m pytest -q -n $(JOBS) -m long --timeout=7200 tests

bench: .venv/ready
	$(PY) -m bench

relock: .venv/ready
	sh tools/relock.sh

clean:
	rm -rf build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv *.egg-info
