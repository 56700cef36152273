# The environment lives in .venv; nothing is installed by hand. PYTHON chooses the interpreter to build it with.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SHARED ?= ../shared

.PHONY: demo test lint score bench docs clean env

env: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable . --group test --group lint
	@$(BIN)/python -m compileall -q triage
	@touch $@

demo: env
	@$(BIN)/triage demo

test: env
	$(BIN)/python -m pytest -n auto

lint: env
	$(BIN)/ruff check triage tests bench
	$(BIN)/mypy
	$(BIN)/triage signatures lint

score: env
	@if [ -d $(SHARED)/cases ]; then \
	  $(BIN)/python $(SHARED)/tools/score.py $(SHARED)/cases --command $(BIN)/triage --quiet; \
	  $(BIN)/python $(SHARED)/tools/score_real.py $(SHARED)/real --command $(BIN)/triage | tail -4; \
	else echo "make score: no labelled cases at $(SHARED)/cases; nothing to score"; fi

bench: env
	$(BIN)/python bench/run.py
	$(BIN)/python bench/ranking.py

docs: env
	$(BIN)/python -m triage.reference docs/reference

clean:
	rm -rf $(VENV) build dist .bench
