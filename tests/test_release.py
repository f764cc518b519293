"""The workflows and the checklist of a release name files and targets that exist, and every slot to be filled."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
WORKFLOWS = ROOT / ".github/workflows"
RELEASING = (ROOT / "RELEASING.md").read_text()
TARGETS = re.compile(r"^([\w$()./ -]+):(?!=)", re.MULTILINE)
FILE = re.compile(r"\.?[\w.-]+(?:/[\w.-]+)+|[\w.-]+\.(?:md|cff|toml|json|txt|ya?ml)")
MADE = (".venv/", "dist/")  # by the commands themselves


def read(name: str) -> dict:
    return YAML(typ="safe").load((ROOT / name).read_text())


def commands(workflow: dict) -> str:
    """The shell lines of a workflow."""
    return "\n".join(step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step)


def absent(text: str) -> list[str]:
    """The targets of `make` and the files that a text names and that do not exist."""
    rules = " ".join(TARGETS.findall((ROOT / "Makefile").read_text())).replace("$(VENV)", ".venv").split()
    targets = [f"make {it}" for it in re.findall(r"\bmake ([\w./-]+\w)", text) if it not in rules]
    words = [word for word in re.split(r"[\s\"'`(),:;=]+", text) if FILE.fullmatch(word) and not word.startswith(MADE)]
    return targets + [it for it in words if not ((ROOT / it).exists() or (WORKFLOWS / it).exists())]


@pytest.mark.parametrize("name", sorted(path.name for path in WORKFLOWS.glob("*.yml")))
def test_a_workflow_runs_targets_and_files_that_exist(name):
    workflow = read(f".github/workflows/{name}")
    assert workflow["permissions"] == {"contents": "read"}  # of all jobs that do not ask for more
    assert absent(commands(workflow)) == []
    for job in workflow["jobs"].values():
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else set(needs) <= set(workflow["jobs"])


def test_what_does_not_exist_is_found():
    text = 'make gone, `make test`, `make .venv/dev`: run tests/gone.py, .ci/run, `gone.yml` "wheel.yml" dist/x.whl'
    assert absent(text) == ["make gone", "tests/gone.py", "gone.yml"]


def test_the_checklist_and_the_site_name_what_exists():
    assert absent("\n".join(re.findall(r"`([^`]+)`", RELEASING))) == []
    assert absent(read(".readthedocs.yaml")["sphinx"]["configuration"]) == []


def with_slots() -> set[str]:
    """The files at the root, beside the checklist, that say slot or have the address that stands for one."""
    texts = {path.name: path.read_text() for path in ROOT.iterdir() if path.suffix in (".md", ".cff", ".json", ".toml")}
    return {name for name, text in texts.items() if re.search(r"\bslot\b|example\.org", text)} - {"RELEASING.md"}


def test_a_slot_is_on_the_checklist_and_keeps_the_wheel_from_being_uploaded():
    assert set(re.findall(r"^\| `([^`]+)` \|", RELEASING, re.MULTILINE)) == with_slots()
    [refused] = re.findall(r"! grep -nw slot (.*)", commands(read(".github/workflows/wheel.yml")))
    assert set(refused.split()) == with_slots()


def test_the_archive_states_the_facts_of_the_citation_file():
    archived, cited = json.loads((ROOT / ".zenodo.json").read_text()), read("CITATION.cff")
    found = [archived[key] for key in ("title", "description", "license", "creators")]
    assert found == [cited[key] for key in ("title", "abstract", "license", "authors")]
