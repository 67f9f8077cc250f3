# `make demo` and `make test` are all a newcomer needs; each sets itself up in .venv.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
# Tests start certkit some hundred times: where the environment forbids bytecode, each start would compile it anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test setup interop docs pictures lint types schemas format house bench study fuzz vectors coverage-passport kills wheel-check clean

demo: setup
	rm -rf build/demo
	$(BIN)/certkit demo -o build/demo

# The checks take one core and the tests what is left.
test: setup
	$(MAKE) --no-print-directory --jobs=2 checks pytest

.PHONY: checks pytest
checks: lint types house

pytest: setup
	$(BIN)/python -m pytest -n auto --dist worksteal

setup: .venv/.ready

.venv/.ready: pyproject.toml
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer found"; \
	  echo "hint: Debian, Ubuntu: apt install python3 python3-venv; macOS: brew install python"; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "error: python cannot make a virtual environment"; \
	  echo "hint: Debian, Ubuntu: apt install python3-venv"; rm -rf .venv; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Rewrites schemas/ and the generated pages of docs/reference/ from the code.
schemas: setup
	$(BIN)/python -m tests.generate --write
	$(BIN)/python -m tests.published --write

# The documentation as a site, build/site. MkDocs is told the checkout's root by reading its file from a pipe.
docs: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file - <docs/mkdocs.yml

# Rewrites docs/pictures from the program; page 1 of the safety case only where Chromium is.
pictures: setup
	$(BIN)/python -m tests.pictures --write

# Lines by room, classes, modules that commands load; fails on circles, class names used twice, upward imports.
house: setup
	$(BIN)/python -m tests.house

bench: setup
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench_import
	$(BIN)/python -m tests.registry_bench
	$(BIN)/python -m tests.bench_report
	$(BIN)/python -m tests.bench_probes
	$(BIN)/python -m tests.bench_trial

# Rewrites docs/explanation/simulation-study*: page, figures, results. Four minutes.
study: setup
	$(BIN)/python -m tests.study --write

fuzz: setup
	$(BIN)/python -m tests.fuzz --seconds 180 --seed 1

# Wycheproof's signatures, which are no part of the project; tests/unit/passport/test_signatures.py finds them here.
WYCHEPROOF_FROM := https://raw.githubusercontent.com/C2SP/wycheproof/dac1dd4729fd1f8dd9e1e9f3dce51d783da6c166/testvectors_v1
vectors:
	mkdir -p build/vectors
	for name in ed25519 ecdsa_secp256r1_sha256 ecdsa_secp384r1_sha384; do \
	  curl -fsSL -o build/vectors/$${name}_test.json $(WYCHEPROOF_FROM)/$${name}_test.json || exit 1; done

# Which branches of certkit/passport the tests of passports and registries do not take; fails where there is one.
coverage-passport: setup
	$(BIN)/python -m coverage run --branch --source certkit/passport --data-file build/coverage -m pytest -n 0 -q \
	  tests/unit/passport tests/unit/registry tests/vectors/test_passport_vectors.py tests/cli/test_drift.py \
	  tests/test_chain.py
	$(BIN)/python -m coverage report --data-file build/coverage --show-missing --skip-covered --fail-under=100

# What tests/interop and tests/unit/trial need beyond the development packages; from PyPI, npm and Debian's
# packages.
interop: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'a2a-sdk>=1.3' \
	  'pydantic-sarif>=0.1.1' 'junitparser>=4' 'fastmcp>=4,<5' 'langchain>=1.2,<2' 'openai-agents>=0.24' \
	  'pydantic-ai-slim>=2.68' 'agentdojo>=0.1.35,<0.2' 'mpmath>=1.3'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'bfcl-eval>=2026.3.23'
	$(BIN)/python -m tests.interop.install

# A writer is killed 200 times, and loses nothing that it acknowledged; 50 trials are killed, and make every run
# once. Three minutes; continuous integration kills fewer.
WRITERS := 200
TRIALS := 50
kills: setup
	$(BIN)/python -m tests.faults.kills --count $(WRITERS)
	$(BIN)/python -m tests.faults.trial_kills --count $(TRIALS)

# The built wheel, in an empty environment outside the checkout, runs the demo.
wheel-check: setup
	$(BIN)/python -m tests.wheel

clean:
	rm -rf build dist .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
