# Everything a contributor needs; `make help` lists it. Each target sets up what it uses.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FUZZ_S ?= 60
FUZZ_SEED ?= 0
TEST_PROCESSES ?= 3
FAST_PROCESSES ?= 2
RECORDS := loadgen/evaluation/records

# With it in the environment every process would compile all code and rewrite all assertions again.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast calibrate fuzz lint format bench lab record figures schemas lock pictures site sbom clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## Make the virtual environment in .venv (done by every other target too)

demo: $(READY) ## Watch the whole pipeline catch one slow commit of a live service (DEMO_ARGS="...")
	@$(BIN)/smidgen demo $(DEMO_ARGS)

# A file stays in one process, and the order is that of tests/conftest.py. The first process runs what counts, at a
# low priority, while the others wait for brokers and workers: the cores are never idle, and no heartbeat is late.
test: $(READY) ## Run all that guards behaviour (PYTEST_ARGS="tests/unit -k name" runs some)
	@$(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-fast: $(READY) ## Run what is quick and needs no broker and no store: unit, property and decoder tests
	@$(BIN)/python -m pytest --numprocesses $(FAST_PROCESSES) --dist loadfile --no-loadscope-reorder \
	  --hypothesis-profile fast -m "not e2e and not slow" tests/unit tests/properties tests/fuzz $(PYTEST_ARGS)

calibrate: $(READY) ## Measure false alarms and power over many seeds, properties over many examples
	@$(BIN)/python -m pytest --numprocesses $(FAST_PROCESSES) --dist load --calibrate -m calibrate $(PYTEST_ARGS)
	@$(BIN)/python -m pytest --numprocesses $(FAST_PROCESSES) --hypothesis-profile calibrate tests/properties $(PYTEST_ARGS)

fuzz: $(READY) ## Look for inputs that break a decoder, a minute long (FUZZ_S=600 FUZZ="profile scan")
	@$(BIN)/python -m tests.fuzz --seconds $(FUZZ_S) --seed $(FUZZ_SEED) $(FUZZ)

lint: $(READY) ## Check style, types and the direction of imports
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY) ## Format the code and fix what can be fixed by itself
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY) ## Measure speed on this machine (BENCH="NAME --json" chooses)
	@$(BIN)/smidgen bench $(BENCH)

record: $(READY) ## Rewrite docs/accuracy*.md from the results in loadgen/evaluation/records
	@$(BIN)/smidgen bench accuracy --from $(RECORDS)/accuracy.json.gz --from $(RECORDS)/ablation.json.gz \
	  --page docs/accuracy.md --json > /dev/null
	@$(BIN)/smidgen bench accuracy --from $(RECORDS)/world.json.gz --page docs/accuracy-world.md --json > /dev/null
	@$(BIN)/smidgen bench accuracy --from $(RECORDS)/hosts.json.gz --page docs/accuracy-hosts.md --json > /dev/null

figures: $(READY) ## Draw the figures of docs/maths and docs/sampling.md again
	@$(BIN)/python -m loadgen.evaluation.maths_figures docs/maths/figures
	@$(BIN)/smidgen bench sampling --from $(RECORDS)/sampling.json --figure docs/figures/sampling.svg > /dev/null

lab: $(READY) ## Judge commits of the demo's shop by replayed traffic; some minutes (LAB_ARGS="--repeats 10")
	@$(BIN)/smidgen lab $(LAB_ARGS)

schemas: $(READY) ## Rewrite docs/asyncapi.yaml, docs/schemas, docs/commands.md and docs/steps.md from the code
	@$(BIN)/smidgen topics schemas --output docs
	@$(BIN)/python -m tests.support.step_tables
	@$(BIN)/python -m tests.support.command_reference

lock: $(READY) ## Rewrite requirements.lock from pyproject.toml (UPGRADE=1 takes newer versions)
	@cp requirements.lock requirements.lock.new
	@$(BIN)/uv pip compile pyproject.toml --quiet --universal --python-version 3.11 --fork-strategy fewest \
	  --extra all --extra dev --generate-hashes --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) --output-file requirements.lock.new
	@{ echo "# Every version and hash, for Python 3.11 and newer. Written by: make lock"; \
	   cat requirements.lock.new; } > requirements.lock
	@rm requirements.lock.new

pictures: $(READY) ## Take the pictures of docs/dashboard.md anew
	@$(BIN)/python -m pytest tests/e2e/test_dashboard.py --pictures docs/dashboard

site: $(READY) ## Build the documents as a site of plain files in dist/site
	@$(BIN)/mkdocs build --quiet --strict --config-file deploy/site/mkdocs.yml --site-dir $(CURDIR)/dist/site
	@echo dist/site/index.html

sbom: $(READY) ## Write the bill of materials of what runs in production (CycloneDX) to dist/smidgen.cdx.json
	@mkdir -p dist
	@$(BIN)/python -m tests.support.bill_of_materials dist/smidgen.cdx.json

clean: ## Remove caches and the virtual environment
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Wheels only: nothing is built from an sdist, which would fetch build tools that no hash covers.
# uv, which the lock pins too, takes a sixth of pip's time; where only pip's own settings lead to an index, pip does it.
INSTALL := install --quiet --require-hashes --only-binary :all:
$(READY): requirements.lock pyproject.toml
	@PYTHON="$(PYTHON)" VENV="$(VENV)" sh .ci/venv
	@echo "Installing what requirements.lock pins (a minute at most the first time) ..."
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.lock
	@$(BIN)/python -m pip $(INSTALL) --disable-pip-version-check -r $(VENV)/uv.lock
	@$(BIN)/uv pip $(INSTALL) --python $(BIN)/python -r requirements.lock \
	  || $(BIN)/python -m pip $(INSTALL) --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
