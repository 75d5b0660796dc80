# make demo        compile a real model, write the result, compare both
# make test        every test; make test-fast leaves out the slow ones
# make lint        ruff and pyright
# make zoo         fetch the models of the benchmarks; make check-zoo checks every one of them
# make bench       time Foldline beside its peers; bench-nodes counts nodes; bench-scale 100,000 nodes
# make check-optimised run the files that ONNX Runtime's offline optimiser writes
# make bench-exact exact mode: equal bits at O0 and O3, and its cost, per model
# make bench-patterns  patterns that are there, those that are fused, and why others are not
# make bench-threads what a second thread gains; bench-memory: peak memory beside ONNX Runtime
# make marks       potential constants per model; check-stability: fixed points, equal bytes
# make clean       remove the environment and everything that was made
# Each target makes what it needs of .venv first. Another Python: make demo PYTHON=python3.12

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
RUN := $(VENV)/bin/python
PYTEST := $(RUN) -m pytest -n $(JOBS) --dist loadfile

.PHONY: demo test test-fast lint zoo check-zoo check-optimised bench bench-nodes bench-scale bench-exact bench-patterns bench-threads bench-memory marks check-stability clean
.DELETE_ON_ERROR:
.NOTPARALLEL:

demo: $(VENV)/installed
	$(RUN) -m benchmarks.demo

test: $(VENV)/with-test
	$(PYTEST)

test-fast: $(VENV)/with-test
	$(PYTEST) -m "not slow"

lint: $(VENV)/with-lint
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m pyright --pythonpath $(RUN)

zoo: $(VENV)/with-bench
	$(RUN) -m benchmarks.fetch_zoo
	$(RUN) -m benchmarks.derive_zoo

check-zoo: zoo
	$(RUN) -m benchmarks.run_zoo

check-optimised: zoo
	$(RUN) -m benchmarks.run_optimised

bench: zoo
	$(RUN) -m benchmarks.bench

bench-nodes: zoo
	$(RUN) -m benchmarks.bench_nodes

bench-threads: zoo
	$(RUN) -m benchmarks.threads

bench-memory: zoo
	$(RUN) -m benchmarks.memory

bench-exact: zoo
	$(RUN) -m benchmarks.exact

bench-patterns: zoo
	$(RUN) -m benchmarks.patterns

marks: zoo
	$(RUN) -m benchmarks.marks

check-stability: zoo
	$(RUN) -m benchmarks.stability

bench-scale: $(VENV)/installed
	$(RUN) -m benchmarks.scale

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamp files: a second make installs nothing unless pyproject.toml has changed.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Foldline needs Python 3.11 or later: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	$(RUN) -m pip install -q --disable-pip-version-check -e .
	@touch $@

$(VENV)/with-%: pyproject.toml | $(VENV)/installed
	$(RUN) -m pip install -q --disable-pip-version-check -e '.[$*]'
	@touch $@
