# Everything runs in its own environment, .venv, with the versions locked in requirements-dev.txt.
PYTHON ?= python3
ARGS ?=
PYTHONS ?= 3.11 3.12 3.13 3.14

VENV := .venv
BIN := $(VENV)/bin
# Compiled once, not by each of the hundred processes that tests and kcga begin.
unexport PYTHONDONTWRITEBYTECODE
READY := $(VENV)/.ready
# Tests wait most of their time: many at once keep the processors busy. Which must not: tests/side_by_side.py.
SIDE_BY_SIDE := --numprocesses $(shell echo $$((2 * $$(nproc))))

.PHONY: up test tests unit explore pythons coverage tools test-keda test-pods test-kills test-hard-times guards check hooks docs reference chart changelog release dist images pictures format image bench fire lock clean

up: $(READY)  ## A real broker, a real lake, changing load: watch kcga scale (ARGS="--for 120" ends by itself)
	@$(BIN)/kcga up $(ARGS)

test: $(if $(CI),coverage,tests)  ## Every test, many side by side (ARGS="tests/consumer" names some; what this machine lacks is said)

tests: $(READY)
	@$(BIN)/python -m tests.prepare
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(ARGS)

unit: $(READY)  ## For every save: what needs no service, within a minute
	@$(BIN)/python -m pytest -m "not integration and not slow" --hypothesis-profile quick $(SIDE_BY_SIDE) --dist loadfile --no-loadscope-reorder $(ARGS)

explore: $(READY)  ## What goes through chance's states, through ten times as many as in make test, new ones each time: half an hour
	@$(BIN)/python -m pytest -m explores --hypothesis-profile deep --numprocesses $$(nproc) $(ARGS)

pythons:  ## The unit tests on every Python that kcga runs on and that is here, each in an environment of its own
	@failed=; for version in $(PYTHONS); do \
		if ! "python$$version" --version >/dev/null 2>&1; then echo "python$$version is not installed" >&2; continue; fi; \
		echo "python$$version:" >&2; \
		$(MAKE) --no-print-directory unit VENV=".venv-$$version" PYTHON="python$$version" || failed="$$failed $$version"; \
	done; \
	if [ -n "$$failed" ]; then echo "the tests fail on Python$$failed" >&2; exit 1; fi

coverage: $(READY)  ## Every test, with what they run of the product: its share, and the longest pieces that none runs (CI)
	@$(BIN)/python -m tests.prepare
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(SIDE_BY_SIDE) $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/python -m tests.coverage_gaps

tools:  ## What tests need of the system: a browser, Prometheus, Go (installs it as root on Debian)
	@$(PYTHON) -m tests.tools --install

guards: $(READY)  ## Breaks each guard of the protocol on purpose: tests must fail; an hour (ARGS="--unit": ten minutes)
	@$(BIN)/python -m tests.guards --page docs/guards.md $(ARGS)

check: $(READY)  ## Style, types, which package may import which, spelling, and that the reference is current
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/codespell
	@$(BIN)/python -m cli.reference --check

hooks: $(READY)  ## What check does, before each commit
	@$(BIN)/pre-commit install

test-kills: $(READY)  ## Kills and freezes every part of the system, each while a plan is under way, with a lake and with a program: half an hour
	@$(BIN)/python -m pytest tests/fire/kill_matrix.py $(ARGS)

test-hard-times: $(READY)  ## Wrong clocks, a table that refuses (KCGA_REFUSES_S=300: so long), no leader, lost records, tokens that expire: half an hour
	@$(BIN)/python -m pytest tests/fire/hard_times.py $(ARGS)

test-keda: $(READY)  ## KEDA, built from its module (the first time: long), scales a Deployment by the number of kcga watch
	@$(BIN)/python -m pytest tests/kubernetes/keda.py $(ARGS)

test-pods: $(READY)  ## A group in pods of the image kcga:local: real kubelet, containerd, runc (needs root, and make image)
	@nice -n 10 $(BIN)/python -m tests.kubernetes.real_node
	@unshare --net --mount --pid --fork --kill-child --mount-proc -- \
		sh -c '$(BIN)/python -m pytest -s tests/kubernetes/pods.py $(ARGS); exit $$?'

image:  ## The container image, kcga:local (needs docker or podman; ARGS="--build-arg BASE=..." as they take them)
	@if docker info >/dev/null 2>&1; then docker build --tag kcga:local $(ARGS) .; else podman build --tag kcga:local $(ARGS) .; fi

bench: $(READY)  ## The figures in docs/benchmarks, anew: some hours on a quiet machine (ARGS=--busy: on any)
	@$(BIN)/python -m bench.paper --iterations 150 $(ARGS)
	@$(BIN)/python -m bench.heuristics $(ARGS)
	@$(BIN)/python -m bench.regret --repairs 10 $(ARGS)
	@$(BIN)/python -m bench.engines $(ARGS)
	@$(BIN)/python -m bench.scaling $(ARGS)
	@$(BIN)/python -m bench.classes $(ARGS)
	@$(BIN)/python -m bench.parameters $(ARGS)
	@$(BIN)/python -m bench.consumer_throughput --memory-s 600 $(ARGS)
	@$(BIN)/python -m bench.command_sink $(ARGS)
	@$(BIN)/python -m bench.latency $(ARGS)
	@$(BIN)/python -m bench.latency.prices $(ARGS)
	@rm -rf build/check && mkdir -p build/check
	@$(BIN)/python -m bench.quiet $(ARGS)
	@$(BIN)/kcga up --for 120 --keep build/check/run --output json > build/check/summary.json
	@$(BIN)/python -m bench.latency.check build/check/run build/check/summary.json $(ARGS)
	@$(BIN)/python -m bench.positions $(ARGS)
	@$(BIN)/python -m bench.pipeline $(ARGS)
	@$(BIN)/python -m bench.scale $(ARGS)
	@$(BIN)/python -m bench.begin $(ARGS)
	@$(BIN)/python -m bench.one_machine $(ARGS)
	@$(BIN)/python -m tests.kubernetes.measure $(ARGS)
	@$(BIN)/python -m bench.reaction $(ARGS)
	@$(BIN)/python -m bench.rollout $(ARGS)
	@$(BIN)/python -m bench.asking $(ARGS)
	@$(BIN)/python -m bench.steady --seconds 600 $(ARGS)
	@$(BIN)/python -m bench.steady --seconds 600 --swing 50 --scale-down-window 40 $(ARGS)

docs: $(READY)  ## The documentation as a site, in build/site; fails where a link or a page is wrong
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

reference: $(READY)  ## docs/settings.md, commands.md and states.md, anew from the code
	@$(BIN)/python -m cli.reference

chart: $(READY)  ## The Helm chart, anew from the manifests and the settings (needs kubectl)
	@$(BIN)/python -m cli.chart

changelog: $(READY)  ## What is new, as it will stand in CHANGELOG.md (VERSION=0.2.0 puts it there, for a release)
	@$(BIN)/towncrier build $(if $(VERSION),--yes --version $(VERSION),--draft --version next)

release: $(READY)  ## A release: VERSION=0.2.0 goes into all that names it, as a commit with a tag; nothing is pushed
	@test -n "$(VERSION)" || { echo "which one? make release VERSION=0.2.0" >&2; exit 2; }
	@test -z "$$(git status --porcelain)" || { echo "what is not committed is no part of a release: commit it first" >&2; exit 1; }
	@sed -i 's/^version = .*/version = "$(VERSION)"/' pyproject.toml
	@$(MAKE) --no-print-directory changelog chart
	@git add --all
	@git commit --quiet --message "kcga $(VERSION)"
	@git tag --annotate "v$(VERSION)" --message "kcga $(VERSION)"

dist: $(READY)  ## What a release has beside its images, in dist/: wheel, Helm chart, bill of materials (needs Helm)
	@rm -rf dist
	@$(BIN)/python -m hatchling build --target wheel --directory dist
	@helm package deploy/helm/kcga --destination dist
	@$(BIN)/python -m cli.bill > dist/kcga.cdx.json

images:  ## Both images of a release, for amd64 and arm64, pushed: IMAGE=registry/kcga:0.2.0 (needs docker with buildx)
	@test -n "$(IMAGE)" || { echo "to where? make images IMAGE=registry/kcga:0.2.0" >&2; exit 2; }
	@base="debian@$$(docker buildx imagetools inspect debian:bookworm-slim --format '{{.Manifest.Digest}}')"; \
	build() { docker buildx build --platform linux/amd64,linux/arm64 --build-arg "BASE=$$base" --sbom=true --provenance=mode=max --push "$$@" .; }; \
	build --tag "$(IMAGE)" && build --target without-jvm --tag "$(IMAGE)-without-jvm"

pictures: $(READY)  ## The pictures of the status page in docs/images, from a real run (needs Chromium)
	@KCGA_PICTURES=docs/images $(BIN)/python -m pytest -q tests/test_status_page_live.py

fire: $(READY)  ## Breaks the whole system at random under load, and counts what is left (ARGS="--for 600 --seed 3")
	@$(BIN)/python -m tests.fire.run $(ARGS)

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

$(READY): requirements-dev.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "kcga needs Python 3.11 or newer: install it, or name it with PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "kcga needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Name another with PYTHON=..." >&2; exit 1; }
	@echo "Setting up $(VENV) (once) ..." >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@

lock:  ## Resolves the newest versions that pyproject.toml allows (needs uv)
	@uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate --quiet --upgrade pyproject.toml --extra plot --extra aws --extra gcp --output-file requirements.txt
	@uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate --quiet --upgrade pyproject.toml --extra dev --output-file requirements-dev.txt
	@uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate --quiet --upgrade tests/object_store/requirements.in --output-file tests/object_store/requirements.txt

clean:  ## Removes what make made; the jars stay in the cache folder of the user (KCGA_CACHE)
	@rm -rf $(VENV) $(PYTHONS:%=$(VENV)-%) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
