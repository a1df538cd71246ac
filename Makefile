# Everything runs in .venv, made on first use. Needs Python 3.11+ with venv, make and a C compiler; the rest comes from PyPI.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
export PATH := $(CURDIR)/$(BIN):$(PATH)

CSOURCES := $(shell find flaot -name '*.[ch]') CMakeLists.txt
LIBRARY := build/.native

.PHONY: help demo toy test test-slow lint format bench generate chips two-chips native clean
.DEFAULT_GOAL := help

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

demo: $(LIBRARY) ## Compile, run and verify a digit classifier, and show what it sees
	@$(BIN)/python samples/mnist/demo.py

toy: $(LIBRARY) ## Build the toy chip of samples/vendor_adapter, and run the digit classifier on it
	@$(MAKE) --no-print-directory -s -C samples/vendor_adapter BUILD=$(CURDIR)/build/toy FLAOT=$(CURDIR)/flaot
	@$(BIN)/flaot compile samples/mnist/digits.onnx --hcd samples/vendor_adapter/toy_npu.hcd --prefer toy_npu -o build/toy/digits.flp
	@$(BIN)/flaot verify build/toy/digits.flp samples/mnist/digits.onnx --adapter build/toy/libtoy_adapter.so

test: $(LIBRARY) .venv/.dev ## Run the quick tests (the models of FLAOT_MODELS too, when it is set)
	$(BIN)/python -m pytest -n 2 --dist loadfile -q

test-slow: $(LIBRARY) .venv/.dev .venv/.torch ## Run the slow tests: whole models, cases, export samples, packaging
	$(BIN)/python -m pytest -n 2 --dist load -q -m slow

lint: .venv/.dev ## Check style, types and generated files
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m flaot.kernels.generate --check
	$(BIN)/python -m flaot.plan.generate --check
	$(BIN)/python -m flaot.mapping.document docs/operators.md --check
	$(BIN)/python -m flaot.about.document docs/supported.md --check

format: .venv/.dev ## Let ruff mend what it can
	$(BIN)/ruff check --fix .

bench: $(LIBRARY) .venv/.torch ## Measure against onnxruntime: latency, start-up, compile time, arena
	$(BIN)/python -m benchmarks

generate: .venv/.core ## Refresh the tables that C and Python share, and docs/operators.md
	$(BIN)/python -m flaot.kernels.generate
	$(BIN)/python -m flaot.plan.generate
	$(BIN)/python -m flaot.mapping.document docs/operators.md
	$(BIN)/python -m flaot.about.document docs/supported.md

chips: $(LIBRARY) .venv/.torch ## Refresh docs/chips.md: what real models take on every chip (needs FLAOT_MODELS)
	$(BIN)/python -m tests.models.chips

two-chips: $(LIBRARY) .venv/.torch .venv/.picture ## Refresh docs/two_chips.md: ResNet-50 on two NPUs, and what a wrong descriptor costs
	@$(BIN)/python samples/two_chips.py --page docs/two_chips.md

native: $(LIBRARY) ## Build the native library

clean: ## Remove what was built, .venv included
	rm -rf build dist .venv flaot/runtime/lib .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

# Stamps: nothing below runs again until the file it depends on changes.
.venv/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "flaot needs Python 3.11 or newer: make PYTHON=python3.x")'
	@echo "Setting up .venv (once)"
	@$(PYTHON) -m venv .venv
	@touch $@

# The package is installed without its library: the build tree below makes that, and rebuilds it incrementally.
.venv/.core: pyproject.toml | .venv/.made
	@$(PIP) --config-settings=wheel.cmake=false --editable . cmake ninja
	@touch $@

.venv/.dev: .venv/.core
	@echo "Installing what the tests and lint need (once)"
	@$(PIP) --config-settings=wheel.cmake=false --editable '.[dev]'
	@touch $@

# torch first and alone: pip then takes the pinned build and nothing newer.
.venv/.torch: .venv/.dev
	@echo "Installing PyTorch for the export samples (once)"
	@$(PIP) torch==2.13.0
	@$(PIP) --config-settings=wheel.cmake=false --editable '.[torch]'
	@touch $@

.venv/.picture: .venv/.core
	@echo "Installing matplotlib for pictures (once)"
	@$(PIP) --config-settings=wheel.cmake=false --editable '.[picture]'
	@touch $@

$(LIBRARY): $(CSOURCES) | .venv/.core
	@echo "Building the native library"
	@$(BIN)/cmake -S . -B build -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja > build.log || { cat build.log; exit 1; }
	@$(BIN)/cmake --build build >> build.log || { cat build.log; exit 1; }
	@rm -f build.log
	@touch $@
