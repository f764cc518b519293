"""The page on the five papers names commands that are valid, names that exist and figures that are registered."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import figures
import simulate.learners
from statmech.config import load, shipped

PAGE = (Path(__file__).parent.parent / "docs/papers.md").read_text()
COMMAND = re.compile(r"`statmech (\w+)((?: [^`]+)?)`")
NAME = re.compile(r"`((?:statmech|simulate|theory|figures)(?:\.\w+)+)`")
ROW = re.compile(r"^\| (?!item \||---)(.*) \|$", re.MULTILINE)


def commands(text):
    """Subcommand, config and overrides of every command on a page."""
    return [(name, *rest.split()) for name, rest in COMMAND.findall(text)]


def found(name):
    """The object that a dotted name leads to, whether it is in a module or in a class."""
    first, *parts = name.split(".")
    thing = import_module(first)
    for part in parts:
        thing = getattr(thing, part) if hasattr(thing, part) else import_module(f"{thing.__name__}.{part}")
    return thing


def subcommands():
    import typer

    from statmech.cli.commands import app

    return typer.main.get_command(app).commands


@pytest.mark.parametrize("command", sorted(set(commands(PAGE))), ids=" ".join)
def test_a_command_of_the_page_is_valid(command):
    name, config, *overrides = command
    assert name in subcommands()
    assert config in shipped()
    scenario = load(config, overrides)
    assert figures.named(scenario.figure, config, scenario.CHOICE) not in figures.OVERLAYS


@pytest.mark.parametrize("name", sorted(set(NAME.findall(PAGE))))
def test_a_name_on_the_page_exists(name):
    assert found(name) is not None


def test_a_row_says_how_it_is_reproduced_and_whether_it_agrees():
    rows = [re.split(r" \| ", row) for row in ROW.findall(PAGE)]
    assert len(rows) > 60
    assert [row[0] for row in rows if len(row) != 3] == []
    verdicts = ("**yes**", "**no**", "**in part**", "–")
    assert [row[0] for row in rows if not row[2].lower().startswith(verdicts)] == []
    assert [row[0] for row in rows if row[1] != "–" and "`" not in row[1] and "](" not in row[1]] == []


def test_every_config_of_a_paper_is_on_the_page():
    """All shipped configs, without those that show more than the papers ask."""
    named = {config for _, config, *_ in commands(PAGE)}
    assert set(shipped()) - named == set()


def test_what_does_not_exist_is_found():
    assert commands("`statmech run minover_x tmax=3`") == [("run", "minover_x", "tmax=3")]
    assert "minover_x" not in shipped()
    with pytest.raises(ModuleNotFoundError):
        found("theory.boosting.bounds.gone")
    assert found("simulate.learners.MinOver") is simulate.learners.MinOver
