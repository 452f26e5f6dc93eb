# Every verb sets up .venv by itself; when that is done, it costs nothing.
PYTHON ?= python3.11
BIN := .venv/bin
STAMP := .venv/.installed
PACKAGES := protos stream features recmodels trainer checkpointer publisher headrace

# Where pip's default torch is the CUDA build, set this to the URL of PyTorch's CPU package index (see README.md).
TORCH_INDEX ?=
INDEX := $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# For a machine with a GPU, in a fresh checkout: make install CUDA=1. A .venv is for one of the two.
CUDA ?=
CONSTRAINTS := $(if $(CUDA),constraints-cuda.txt,constraints-cpu.txt)
KERNELS := $(if $(CUDA),fbgemm-gpu,./packaging/fbgemm-gpu-shim)

.PHONY: demo test check bench bench-faults e2e install

demo: $(STAMP)
	$(BIN)/headrace demo

test: $(STAMP)
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(PACKAGES)
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m benchmarks

# Kills of real processes at named points: make bench-faults N=1000 [RANKS=2]
N ?= 40
RANKS ?= 1
bench-faults: $(STAMP)
	$(BIN)/python -m benchmarks.faults $(N) --ranks $(RANKS)

e2e: $(STAMP)
	$(BIN)/python -m pytest -m "(e2e or kafka) and not slow"

install: $(STAMP)

# torch first: the shim and torchrec must find it. On the CPU the shim stands in for torchrec's requirement of the CUDA
# fbgemm-gpu; where it is installed, pip takes it for that, so that an environment is of the one or the other.
$(STAMP): pyproject.toml $(CONSTRAINTS) packaging/fbgemm-gpu-shim/pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(INDEX) -c $(CONSTRAINTS) torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) $(KERNELS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e '.[dev]'
	$(BIN)/python -m pip check
	touch $@
