# `make demo` and `make test` need Python >= 3.11 and Java >= 17, nothing else; each makes .venv first.

PYTHON ?= $(firstword $(foreach name,python3 python3.14 python3.13 python3.12 python3.11,$(shell $(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))
BIN := .venv/bin

.PHONY: help install demo test test-long test-images release check unit docs clean java vendor

help:
	@echo 'make demo            PostgreSQL -> Kafka -> Iceberg on this machine, step by step (KEEP=1 leaves it running,'
	@echo '                     WORKERS=2 shares the work between two workers and kills one, KILL=1 kills task, Spark and worker,'
	@echo '                     ROWS=1000000 shows how fast it goes, SOURCE=mysql or mongodb takes another database)'
	@echo 'make test            checks and tests, against servers that the tests start (about 15 minutes on two cores)'
	@echo 'make test-long       all of them, the long tests too, in their long forms (an hour and more; RECORD=1 keeps times)'
	@echo 'make test-images     builds the images and runs them, docker-compose.yaml and the manifests (root, podman; half an hour)'
	@echo 'make release         wheel and source archive, installed into empty environments with each extra alone'
	@echo 'make check           ruff, mypy, import-linter, words, private names in tests, how pages read, error texts'
	@echo 'make unit            the tests that need no server'
	@echo 'make docs            the pages as a site, which a worker then serves at /ui/docs/; a broken link fails it'
	@echo 'make vendor          fetches what the page /ui uses of others (npm), and compares hashes'
	@echo 'make install         .venv with everything, .venv/bin/connect-py included'
	@echo 'make clean           removes .venv and caches of this folder'

install: .venv/installed

.venv/installed: pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo 'Python 3.11 or newer is needed and none was found: install one, or name it with make PYTHON=/path/to/python3.' >&2; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo '$(PYTHON) is not Python 3.11 or newer: name another one with make PYTHON=/path/to/python3.' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo '$(PYTHON) cannot make virtual environments: install its venv module (Debian, Ubuntu: apt-get install python3-venv).' >&2; exit 1; }
	@[ -x $(BIN)/python ] || { echo 'making .venv'; $(PYTHON) -m venv .venv; }
	@echo 'installing packages into .venv (about 450 MB the first time: Spark is most of it)'
	@$(BIN)/python -m pip install -q --disable-pip-version-check uv
	@# first from uv's cache alone: where a registry sends no cache headers, uv would build Spark's 450 MB again for each clone
	@$(BIN)/uv pip install -q --offline --python $(BIN)/python --editable '.[dev]' 2>/dev/null || \
	    $(BIN)/uv pip install -q --python $(BIN)/python --editable '.[dev]' || { \
	    echo 'uv could not install them (it does not read the configuration of pip): trying pip, which takes longer'; \
	    $(BIN)/python -m pip install -q --disable-pip-version-check --editable '.[dev]'; }
	@env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m compileall -q connect_py connectors offsets rest_api spark_sink
	@touch $@

demo: java install
	@$(BIN)/connect-py demo $(if $(WORKERS),--workers $(WORKERS)) $(if $(filter-out 0,$(KILL)),--kill) $(if $(ROWS),--rows $(ROWS)) $(if $(SOURCE),--source $(SOURCE)) $(if $(filter-out 0,$(KEEP)),--keep)

java:
	@command -v "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" >/dev/null || { echo 'Java 17 or newer is needed and none was found: install one (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME.' >&2; exit 1; }

check: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tests/words.py
	$(BIN)/python tests/privates.py
	$(BIN)/python tests/prose.py
	$(BIN)/python tests/messages.py
	$(BIN)/python tests/vendor.py

vendor: install
	$(BIN)/python tests/vendor.py --fetch

unit: install
	$(BIN)/python -m pytest -q tests/unit

test: java install
	@$(BIN)/python tests/lanes.py

test-long: java install
	@$(BIN)/python tests/lanes.py --long $(if $(RECORD),--record)

test-images: java install
	@TMPDIR=$${TMPDIR:-/var/tmp} $(BIN)/python tests/images/run.py $(STEPS)

release: install
	@$(BIN)/python -m tests.release

docs: install
	$(BIN)/mkdocs build --strict

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist rest_api/site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
