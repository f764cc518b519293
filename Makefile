# make demo   set up and run the main job: simulate, solve, compare and draw the ensemble paper
# make test   set up and show that it works here: every test that takes little, four minutes on two idle cores
# make test-all   lint, types, layers and all tests: what a change must pass
# make docs   build the site into docs/_build/html: every page and notebook is executed, a warning is an error
# make constraints   resolve the dependencies again

VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv)

# Python keeps what it compiles, whatever the environment says: tests start a hundred commands, and every page a kernel
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test test-all check docs format constraints clean

demo: $(VENV)/demo
	$(BIN)/statmech run configs/ensemble.yaml

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist loadfile --quick -m "not slow"

# files in alphabetical order: the expensive ones come before many small ones, which fill both workers to the end
test-all: check
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --costs

check: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# more processes than two cores: each waits while a kernel starts, and pages come in blocks of unequal cost
docs: $(VENV)/dev
	$(BIN)/python -m sphinx -W --keep-going -j 4 -b html docs docs/_build/html

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# a stamp file a set of extras: what is installed is installed again only when what it depends on changed
$(VENV)/demo: EXTRAS :=
$(VENV)/dev: EXTRAS := [dev]
$(VENV)/demo $(VENV)/dev: pyproject.toml constraints.txt | $(BIN)/python
ifdef UV
	$(UV) pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.$(EXTRAS)'
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.$(EXTRAS)'
endif
	@touch $@

$(BIN)/python:
ifdef UV
	$(UV) venv --quiet $(VENV)
else
	python3 -m venv $(VENV)
endif

constraints:
	uv pip compile --quiet --universal --no-header --no-annotate --python-version 3.11 \
	  --extra dev pyproject.toml -o constraints.txt

clean:
	rm -rf $(VENV) results dist
