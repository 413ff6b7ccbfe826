# Everything a person or a pipeline does here. `make help` lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Bytecode is kept, whatever the environment says: many processes import the same, and to compile it takes half of a start.
BYTECODE := PYTHONDONTWRITEBYTECODE=
PYTEST := $(BYTECODE) $(BIN)/pytest

# The processes of `make test`, one per core. Each has a PostgreSQL of its own.
WORKERS ?= 2
# The markers of tests that other targets run.
OF_OTHER_TARGETS := slow or exhaustive or dist or guides

# A tenth of the mutants: those whose number ends in 7. MUTANTS='*' takes all, which lasts hours.
MUTANTS ?= *__mutmut_*7
MUTMUT := $(BIN)/mutmut run --max-children 1

# The duration of `make soak`.
MINUTES ?= 60

# What benchmarks compare with, in an environment of its own.
PEERS := .compat/peers
# Some need a newer Python than ours.
PEERS_PYTHON ?= $(BIN)/python
# Patroni, for the tests of deploy/ha.
HA := .compat/ha
# The tools that build the packages of the clients, likewise.
BUILD := .compat/build

# What builds the documentation, in an environment of its own: it is installed while the server starts from the other one.
DOCS := .compat/docs
# From nothing, because Sphinx cannot continue an interrupted build. Replaces site/ when it is complete. A broken link fails.
SITE = rm -rf .compat/site .compat/doctrees && \
	$(1)/sphinx-build --quiet --fail-on-warning --doctree-dir .compat/doctrees docs .compat/site && \
	rm -rf site && mv .compat/site site

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header

.DEFAULT_GOAL := help
.PHONY: help run site serve test test-system check check-deploy e2e chaos soak exhaustive bench mutation compat guides dist test-dist docs client-types screenshots vendor lock audit sbom clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# If serve fails, make waits for the documentation, which takes minutes the first time. So the usual causes are checked before.
run: $(VENV)/run.stamp ## install what is missing and start everything; Ctrl-C stops it
	@$(MAKE) --silent --no-print-directory --question site/index.html || $(BYTECODE) $(BIN)/python manage.py serve --check
	@$(MAKE) --silent --no-print-directory --jobs=2 serve site

# The server starts while the documentation is built, whose output would hide that of the server.
site:
	@mkdir -p .compat
	@$(MAKE) --silent --no-print-directory site/index.html >.compat/site.log 2>&1 || \
		echo "The documentation is not built: see .compat/site.log" >&2

serve:
	@exec env $(BYTECODE) $(BIN)/python manage.py serve

test: $(VENV)/dev.stamp ## all tests but those of test-system, on a PostgreSQL of their own: 6 minutes on two cores; WORKERS=8 uses eight, ARGS goes to pytest
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "not (system or $(OF_OTHER_TARGETS))" $(ARGS)

# For two cores: the tests wait for other processes, leases and restarts.
test-system: WORKERS = 4
test-system: $(VENV)/dev.stamp ## the tests that start brokers, browsers or a server of their own: 15 minutes on two cores
	$(PYTEST) -n $(WORKERS) --dist worksteal -m "system and not ($(OF_OTHER_TARGETS))" $(ARGS)

check: $(VENV)/dev.stamp check-deploy ## lint, formats, types, layers, links of the documentation, migrations, deployment files and settings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	[ ! -x $(BIN)/hadolint ] || $(BIN)/hadolint Dockerfile deploy/ha/Dockerfile  # there is none for macOS
	find templates -name '*.html' -exec $(BIN)/djade --check --target-version 5.2 {} +
	$(call SITE,$(BIN))
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check --fail-level WARNING
	SITE_URL=https://commonhold.example ALLOWED_HOSTS=commonhold.example \
	SECURE_SSL_REDIRECT=true SECRET_KEY=$$($(BIN)/python -c 'import secrets; print(secrets.token_urlsafe(50))') \
	$(BIN)/python manage.py check --deploy --tag security --fail-level WARNING

# `--quiet` prints problems only, also an unknown kind, after which kubernetes-validate exits with 0.
check-deploy: | $(VENV)/dev.stamp
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec compose.yaml deploy/ha/compose.yaml
	mkdir -p .compat && $(BIN)/kubectl kustomize deploy/kubernetes --output .compat/kubernetes.yaml
	$(BIN)/kubectl kustomize deploy/kubernetes/network-policy --output .compat/network-policy.yaml
	! $(BIN)/kubernetes-validate --strict --quiet .compat/kubernetes.yaml .compat/network-policy.yaml 2>&1 | grep .
	! command -v promtool >/dev/null || promtool check config --syntax-only deploy/observability/prometheus.yml
	! command -v promtool >/dev/null || promtool check rules deploy/observability/alerts.yml

e2e: $(VENV)/dev.stamp ## the pages in a real browser
	$(PYTEST) -m "e2e and not exhaustive"

# For two cores: half of the time, the tests wait for leases, restarts or the disk.
chaos: WORKERS = 5
chaos: $(VENV)/dev.stamp $(HA)/ha.stamp ## every promise of docs/reliability.md, with kill -9, failovers and races; report in artifacts/
	$(PYTEST) -m "(slow or promise) and not exhaustive" -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		--report=artifacts/chaos.md $(ARGS)

soak: $(VENV)/dev.stamp ## an hour of constant load: memory, files and connections; MINUTES=5 is shorter
	SOAK_MINUTES=$(MINUTES) $(PYTEST) -m slow -n 0 tests/project/test_adverse_conditions.py -k needs_no_more_memory --report=artifacts/soak.md $(ARGS)

exhaustive: $(VENV)/dev.stamp ## all cases of what `make test` samples, and large data. TRANSCRIPTS=FILE imports your recorded chats, too
	$(PYTEST) -m exhaustive -n 2 --dist worksteal $(ARGS)

bench: $(VENV)/dev.stamp $(PEERS)/peers.stamp ## speed, side by side; TRANSCRIPTS=FILE adds your recorded chats (asks the network)
	$(BIN)/python -m benchmarks --peer $(PEERS)/bin/python

mutation: $(VENV)/dev.stamp ## change the rules and the hot services in every tenth place, and list the changes that no test detects
	# Not in requirements-dev.txt: it brings setproctitle, with which Celery renames its processes.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check mutmut==3.8.1
	rm -rf mutants
	PYTEST_ADDOPTS="--deselect=tests/services --deselect=tests/api" $(MUTMUT) 'state_admin.domain.$(MUTANTS)'
	rm mutants/mutmut-stats.json
	PYTEST_ADDOPTS="--deselect=tests/domain" $(MUTMUT) 'state_admin.services.$(MUTANTS)'
	$(BIN)/mutmut results

compat: $(VENV)/dev.stamp ## the frameworks' own suites against a running server; ARGS=langgraph runs one (asks the network)
	$(BIN)/python -m compat $(ARGS)

guides: $(VENV)/dev.stamp ## every code block of README and guides against a running server (network, Node 20, npm)
	$(PYTEST) tests/docs -m guides -n 0 $(ARGS)

dist: $(BUILD)/build.stamp ## build the wheel, the sdist and the npm tarball of the clients into dist/ (Node 20, npm)
	rm -rf dist
	cp LICENSE clients/python/LICENSE
	$(BUILD)/bin/python -m build --no-isolation --outdir dist clients/python
	cp LICENSE clients/typescript/LICENSE
	cd clients/typescript && rm -rf dist && npm ci --ignore-scripts --no-audit --no-fund && \
		npm run build && npm pack --pack-destination $(CURDIR)/dist

test-dist: dist $(VENV)/dev.stamp ## install each package of dist/ into an empty folder and use it (network)
	$(PYTEST) -m dist -n 0 tests/clients/test_install.py $(ARGS)

docs: $(VENV)/run.stamp $(DOCS)/docs.stamp ## write the generated pages of docs/ again, and build the documentation into site/
	$(BIN)/python manage.py write_docs
	$(call SITE,$(DOCS)/bin)

site/index.html: $(DOCS)/docs.stamp $(wildcard docs/*.* docs/*/*.* docs/*/*/*.*)
	@$(call SITE,$(DOCS)/bin)

client-types: ## lint docs/openapi.json with Spectral, and make the TypeScript client's types from it and its reference again (Node 20, npm)
	npx --yes @stoplight/spectral-cli@6.16.3 lint --fail-severity hint docs/openapi.json
	cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund && npm run types && npm run reference

screenshots: $(VENV)/dev.stamp ## take the pictures of the README and the tutorial again, and a contact sheet of all pages
	$(PYTEST) tests/e2e/test_screenshots.py tests/docs/test_tutorial.py --screenshots

vendor: ## fetch the vendored scripts again and check their hashes
	static/vendor/vendor.sh

lock: $(VENV)/dev.stamp ## compile requirements*.in into requirements*.txt, with hashes
	$(BIN)/pip install --quiet uv
	$(LOCK) --output-file requirements.txt requirements.in
	$(LOCK) --output-file requirements-login.txt requirements-login.in
	$(LOCK) --output-file requirements-otel.txt requirements-otel.in
	$(LOCK) --output-file requirements-s3.txt requirements-s3.in
	$(LOCK) --output-file requirements-docs.txt requirements-docs.in
	$(LOCK) --output-file requirements-dev.txt requirements-dev.in
	$(LOCK) --output-file requirements-dist.txt requirements-dist.in
	$(LOCK) --output-file deploy/ha/requirements.txt deploy/ha/requirements.in

audit: $(VENV)/dev.stamp ## known vulnerabilities of the pinned packages; fails if a package cannot be looked up (asks the network)
	$(BIN)/pip-audit --strict --require-hashes --disable-pip --requirement requirements-login.txt --requirement requirements-otel.txt --requirement requirements-s3.txt

sbom: $(VENV)/dev.stamp ## write the software bill of materials (CycloneDX) to dist/
	$(BIN)/python -m deploy.sbom dist/commonhold.cdx.json

clean: ## forget the environment and the tests' data (never the data of `make run`)
	rm -rf $(VENV) .compat mutants dist site .data/test staticfiles .pytest_cache .mypy_cache .ruff_cache .hypothesis

# The environment. A stamp holds the hash of what was installed: a touched file installs nothing.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Commonhold needs Python 3.11 or newer; name one: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
		echo "Cannot make $(VENV); on Debian: apt-get install python3-venv" >&2; rm -rf $(VENV); exit 1; }

$(VENV)/run.stamp: requirements.txt | $(BIN)/python
	@cksum $< | cmp -s - $@ || { echo "Installing …"; $(INSTALL) $<; }
	@cksum $< > $@

$(VENV)/dev.stamp: requirements-dev.txt | $(VENV)/run.stamp
	@cksum $< | cmp -s - $@ || { echo "Installing what tests need …"; $(INSTALL) $<; }
	@cksum $< > $@

PEER_FILES := benchmarks/peers/requirements.txt $(wildcard benchmarks/peers/mastra/*)
$(PEERS)/peers.stamp: $(PEER_FILES) | $(BIN)/python
	@cat $(PEER_FILES) | cksum | cmp -s - $@ || { echo "Installing what benchmarks compare with …"; \
		$(PEERS_PYTHON) -m venv --clear $(PEERS) && \
		$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r $< && \
		cp -r benchmarks/peers/mastra $(PEERS)/mastra && \
		{ npm install --prefix $(PEERS)/mastra --silent --no-audit --no-fund --ignore-scripts || echo "Without Mastra: npm failed"; }; }
	@cat $(PEER_FILES) | cksum > $@

$(BUILD)/build.stamp: requirements-dist.txt | $(BIN)/python
	@cksum $< | cmp -s - $@ || { echo "Installing what builds packages …"; \
		$(BIN)/python -m venv --clear $(BUILD) && \
		$(BUILD)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<; }
	@cksum $< > $@

$(DOCS)/docs.stamp: requirements-docs.txt | $(BIN)/python
	@cksum $< | cmp -s - $@ || { \
		$(BIN)/python -m venv --clear $(DOCS) && \
		$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<; }
	@cksum $< > $@

$(HA)/ha.stamp: deploy/ha/requirements.txt | $(BIN)/python
	@cksum $< | cmp -s - $@ || { echo "Installing Patroni …"; \
		$(BIN)/python -m venv --clear $(HA) && \
		$(HA)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<; }
	@cksum $< > $@
