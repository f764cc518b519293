"""The notebooks cover every scenario with theory, are valid, and contain no outputs, for readable diffs."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import statmech

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
KINDS = {
    "lecture": "statmech.Scenario(",
    "online_ensemble": "statmech.Scenario(",
    "stored_examples": "statmech.StoredExamples(",
    "attentive_stopping": "statmech.Stopping(",
    "early_stopping": "statmech.Descent(",
    "sparse_boosting": "statmech.Boosting(",
    "network_plateau": "statmech.Network(",
    "hard_directions": "statmech.FixedLengthNetwork(",
    "convex_losses": "statmech.Risk(",
    "inference": "statmech.Inference(",
}


def cells(path):
    return json.loads(path.read_text())["cells"]


def code(path):
    return ["".join(cell["source"]) for cell in cells(path) if cell["cell_type"] == "code"]


def test_each_kind_of_scenario_has_a_notebook_listed_in_the_index():
    assert {path.stem for path in NOTEBOOKS} == set(KINDS)
    for path in NOTEBOOKS:
        assert KINDS[path.stem] in "\n".join(code(path))
        assert f"({path.name})" in (FOLDER / "index.md").read_text()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_contains_no_outputs(path):
    for cell in cells(path):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
        assert cell["metadata"] == {}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_valid_and_its_cell_ids_are_unique(path):
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.read(path, as_version=4))
    ids = [cell["id"] for cell in cells(path)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_code_cell_compiles(path):
    for source in code(path):
        compile("\n".join(line for line in source.splitlines() if not line.lstrip().startswith("%")), path.name, "exec")


NEED_ESTIMATORS = {"attentive_stopping", "sparse_boosting"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_first_cell_installs_statmech_from_its_repository_where_it_is_missing_alone(path, monkeypatch):
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    extra = "[estimators]" if path.stem in NEED_ESTIMATORS else ""
    transformers = pytest.importorskip("IPython.core.inputtransformer2", reason="needs pip install 'statmech[test]'")
    cell = transformers.TransformerManager().transform_cell(code(path)[0].partition("\n\n")[0])
    called = []

    def magic(name, line):
        called.append(f"{name} {line}")
        if name == "pip":
            sys.modules["statmech"] = statmech

    shell = {"get_ipython": lambda: SimpleNamespace(run_line_magic=magic)}
    exec(cell, shell)
    monkeypatch.setitem(sys.modules, "statmech", None)
    exec(cell, shell)
    inline = "matplotlib inline"
    assert called == [inline, inline, f'pip install --quiet "statmech{extra} @ git+{address}"']
