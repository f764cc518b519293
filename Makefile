# make demo   set up and run the main job: simulate, solve, compare and draw the ensemble paper
# make test   set up and show that it works here: every test that takes little, two to three minutes on two idle cores
# make test-all   lint, types, layers, language and all tests: what a change must pass
# make docs   build the site into docs/_build/html: every page and notebook is executed, a warning is an error
# make test-versions   the quick tests with the oldest and with the newest dependencies
# make constraints   resolve the dependencies again

VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv)

# Python keeps what it compiles, whatever the environment says: tests start a hundred commands, and every page a kernel
export PYTHONDONTWRITEBYTECODE :=

# two workers: further threads of BLAS would wait for each other, as those of pages (docs/kernels.py)
test all-tests: export OPENBLAS_NUM_THREADS := 1

.PHONY: demo test test-all all-tests test-versions check docs format constraints clean

demo: $(VENV)/demo
	$(BIN)/statmech run configs/ensemble.yaml

test: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist loadfile --quick -m "not slow"

# make -j2 runs the type checker, which uses one core for a minute, while the tests run
test-all: check all-tests

# files in alphabetical order: the expensive ones come before many small ones, which fill both workers to the end
all-tests: $(VENV)/dev
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --costs

check: $(VENV)/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/language_lint.py . --count --base tests/language_limits.json

# more processes than two cores: each waits while a kernel starts, and pages come in blocks of unequal cost
docs: $(VENV)/dev
	$(BIN)/python -m sphinx -W --keep-going -j 4 -b html docs docs/_build/html

format: $(VENV)/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# the sentence where a Python is too old; pip would list conflicting packages instead
NEWER = -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
  "statmech needs Python 3.11 or later, and %s is %d.%d" % (sys.executable, *sys.version_info[:2]))'

# a stamp file a set of extras: what is installed is installed again only when what it depends on changed
$(VENV)/demo: EXTRAS :=
$(VENV)/dev: EXTRAS := [dev]
$(VENV)/demo $(VENV)/dev: pyproject.toml constraints.txt | $(BIN)/uv
	@$(BIN)/python $(NEWER) || { echo 'make clean removes it' >&2; exit 1; }
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -c constraints.txt -e '.$(EXTRAS)' || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.$(EXTRAS)'
	@touch $@

# installs in two fifths of the time that pip takes, which follows settings that uv does not read, as those of a mirror
$(BIN)/uv: | $(BIN)/python
ifdef UV
	$(UV) pip install --quiet --python $(BIN)/python -c constraints.txt uv
else
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
endif

# an environment that could not be completed, or was interrupted, is not there: the next call makes it again
$(BIN)/python:
ifdef UV
	$(UV) venv --quiet --clear --python '>=3.11' $(VENV)
else
	@python3 $(NEWER)
	python3 -m venv --clear $(VENV) && $@ -m pip --version >/dev/null || { rm -rf $(VENV); exit 1; }
endif

# the oldest dependencies that pyproject.toml allows, and the newest that there are, each with the quick tests; floors are
# those of Python 3.11: make test-versions RESOLUTIONS=highest tests the newest with another
RESOLUTIONS := lowest-direct highest
test-versions: | $(VENV)/dev
	for resolution in $(RESOLUTIONS); do \
	  $(BIN)/uv venv --quiet --clear --python $(BIN)/python $(VENV)/$$resolution && \
	  $(BIN)/uv pip install --quiet --resolution $$resolution --python $(VENV)/$$resolution -e '.[dev]' && \
	  $(VENV)/$$resolution/bin/python -m pytest -n 2 --dist loadfile --quick -m "not slow" || exit 1; \
	done

constraints:
	uv pip compile --quiet --universal --no-header --no-annotate --python-version 3.11 \
	  --extra dev pyproject.toml -o constraints.txt

clean:
	rm -rf $(VENV) dist
