PYTHON := .venv/bin/python

.PHONY: install check lint types test format

install:
	python3 -m venv .venv
	$(PYTHON) -m pip install -q -e '.[dev]'

check: lint types test

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy
	$(PYTHON) -m basedpyright

test:
	$(PYTHON) -m pytest -n 2

format:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
