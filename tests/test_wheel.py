"""The wheel works where nothing but its dependencies is installed, outside the checkout, as the README says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest
from conftest import quick_environment

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
DOCTEST = """
import doctest, sys
failed, tried = doctest.testfile(sys.argv[1], module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
sys.exit(0 if tried > 4 and not failed else 1)
"""

pytest.importorskip("uv", reason="needs pip install 'statmech[dev]'")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def completed(*words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command that sees neither this checkout nor the environment of the tests."""
    environment = {name: it for name, it in quick_environment().items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run([*map(str, words)], cwd=folder, env=environment, capture_output=True, text=True)


def run(*words: object, folder: Path) -> str:
    """The output of a command, which succeeds."""
    done = completed(*words, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def uv(*words: object, folder: Path) -> str:
    return run(sys.executable, "-m", "uv", *words, "--quiet", folder=folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--wheel", "--out-dir", folder, ROOT, folder=folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Path:
    """An environment with the wheel, its dependencies at the versions of `constraints.txt`, and nothing else."""
    folder = tmp_path_factory.mktemp("elsewhere")
    uv("venv", "--python", sys.executable, folder / "venv", folder=folder)
    uv("pip", "install", "--python", folder / "venv", "-c", ROOT / "constraints.txt", wheel, folder=folder)
    return folder / "venv"


@pytest.fixture
def statmech(environment, tmp_path):
    """The installed command, in an empty folder."""
    return lambda *words: run(environment / "bin" / "statmech", *words, folder=tmp_path)


def metadata(wheel: Path) -> str:
    with ZipFile(wheel) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("/METADATA"))).decode()


def test_the_commands_of_the_readme_run(statmech, tmp_path):
    statmech("run", "ensemble", "rule=adatron_textbook", "eta=0.5,1", "N=100", "t=1", "seeds=2")
    assert list(tmp_path.rglob("*.png"))


def test_the_python_of_the_readme_runs(environment, tmp_path):
    run(environment / "bin" / "python", "-c", DOCTEST, ROOT / "README.md", folder=tmp_path)


def test_the_environment_is_as_small_as_the_troubleshooting_page_says(environment):
    page = (ROOT / "docs" / "howto" / "stuck.md").read_text()
    of_newer, of_oldest = map(int, re.search(r"\((\d+) MB with Python 3.13, (\d+) MB with 3.11", page).groups())
    stated = of_oldest if sys.version_info < (3, 12) else of_newer
    measured = sum(file.lstat().st_size for file in environment.rglob("*") if file.suffix != ".pyc") / 1e6
    assert measured == pytest.approx(stated, rel=0.05)


def test_a_command_that_needs_an_extra_names_the_package_and_not_a_folder(environment, tmp_path):
    done = completed(environment / "bin" / "statmech", "run", "attention", "seeds=1", folder=tmp_path)
    sentence = "an attentive perceptron needs numba: pip install 'statmech[estimators]'\n"
    assert (done.returncode, done.stderr) == (2, sentence)


def test_every_link_of_the_readme_on_an_index_page_begins_with_the_address_of_the_repository(wheel):
    address = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    links = re.findall(r"\]\(([^)]+)\)", metadata(wheel))
    assert len(links) == len(re.findall(r"\]\(([^)]+)\)", README)) > 30
    assert {link for link in links if not link.startswith((f"{address}/blob/main/", f"{address}/raw/main/"))} == set()


def test_the_wheel_holds_the_configs_and_says_that_its_types_are_checked(wheel):
    names = set(ZipFile(wheel).namelist())
    assert {f"{package}/py.typed" for package in ("statmech", "simulate", "theory", "figures")} < names
    assert {f"statmech/configs/{file.name}" for file in (ROOT / "configs").glob("*.yaml")} < names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]
