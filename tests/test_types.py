"""Type checkers know every key: the README, the notebooks and a call of every kind pass mypy --strict and pyright."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from statmech.keys.config_keys import INTERNAL_FIELDS
from statmech.keys.scenario import get_kinds
from statmech.parameters.parameter_fields import collect_parameters

ROOT = Path(__file__).parents[1]
PYRIGHT = {"typeCheckingMode": "standard", "pythonVersion": "3.11", "extraPaths": [str(ROOT)]}
# what users' types do not name, and mypy would read for half a minute
MYPY = """[mypy]
[mypy-bokeh.*,dask.*,distributed.*,IPython.*,jax.*,jaxlib.*,rich.*,ruamel.*,typer.*,zarr.*]
follow_imports = skip
"""
WRONG = """import statmech

statmech.Scenario(rule="hebb", t=1, learning_rate=1)
statmech.Scenario(rule="hebb", t=1, K="three")
"""

pytest.importorskip("basedpyright", reason="needs pip install 'statmech[dev]'")
pytestmark = pytest.mark.slow


def readme() -> str:
    """The Python of the README, without prompts."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return "\n".join(re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", "\n".join(blocks), re.MULTILINE)) + "\n"


def notebook(path: Path) -> str:
    """The code of a notebook, without magic; functions that it defines for show are not annotated."""
    cells = json.loads(path.read_text())["cells"]
    code = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return "# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=var-annotated\n" + re.sub(
        r"^(\s*)%", r"\1# %", code, flags=re.MULTILINE
    )


def every_key() -> str:
    """A call of every kind with all of its keys, which is never made: values do not matter."""
    lines = ["from typing import Any", "", "import statmech", "", "", "def calls(value: Any) -> None:"]
    for kind in get_kinds().values():
        keys = [
            name
            for name in [*kind.model_fields, *collect_parameters(kind.classes()), "zip"]
            if name not in INTERNAL_FIELDS
        ]
        lines.append(f"    statmech.{kind.__name__}({', '.join(f'{name}=value' for name in dict.fromkeys(keys))})")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    (folder / "readme.py").write_text(readme())
    (folder / "every_key.py").write_text(every_key())
    (folder / "wrong.py").write_text(WRONG)
    for path in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        (folder / f"{path.stem}.py").write_text(notebook(path))
    (folder / "pyrightconfig.json").write_text(json.dumps(PYRIGHT))
    return folder


def complaints(folder: Path, *command: str) -> tuple[list[str], list[str]]:
    """The errors that a checker finds: of the programs, and of the one that is wrong."""
    done = subprocess.run([sys.executable, "-m", *command, "."], cwd=folder, capture_output=True, text=True)
    errors = [line for line in done.stdout.splitlines() if " error:" in line or " - error" in line]
    assert "error" in done.stdout.splitlines()[-1], done.stdout + done.stderr
    return [line for line in errors if "wrong.py" not in line], [line for line in errors if "wrong.py" in line]


def test_mypy_accepts_what_users_write_and_finds_a_wrong_key(programs, monkeypatch):
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    options = ["--strict", "--follow-imports=silent", "--config-file", str(programs / "mypy.ini")]
    (programs / "mypy.ini").write_text(MYPY)
    errors, planted = complaints(programs, "mypy", *options)
    assert errors == []
    assert len(planted) == 2


def test_pyright_accepts_what_users_write_and_finds_a_wrong_key(programs):
    errors, planted = complaints(programs, "basedpyright", "--pythonpath", sys.executable)
    assert errors == []
    assert len(planted) == 2
