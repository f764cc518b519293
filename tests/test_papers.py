"""The pages on papers and on courses name commands that are valid, names that exist and figures that are registered."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

import figures
import simulate.learners
from statmech.config.config_files import list_shipped_configs, load

DOCS = Path(__file__).parent.parent / "docs"
PAGE, COURSES = ((DOCS / f"{name}.md").read_text() for name in ("papers", "courses"))
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

    from statmech.cli.command_group import app

    return typer.main.get_command(app).commands


@pytest.mark.parametrize("command", sorted(set(commands(PAGE + COURSES))), ids=" ".join)
def test_a_command_of_a_page_is_valid(command):
    name, config, *overrides = command
    assert name in subcommands()
    assert config in list_shipped_configs()
    scenario = load(config, overrides)
    assert figures.choose_figure(scenario.figure, config, scenario.CHOICE) != figures.OVERLAY


EXERCISE = re.compile(r"`statmech run (\w+)[^`]*` \| \[[^\]]+\]\(gallery/(\w+)\.md\)$")


def strays(page):
    """The exercises of a page without a command followed by the page of the gallery on what it draws."""
    rows = [row for row in ROW.findall(page) if not row.startswith(("chapter |", "topic |", "lecture |"))]
    leads = [EXERCISE.search(row) for row in rows]
    return [row for row, it in zip(rows, leads, strict=True) if it is None or it[1] != it[2]]


def test_an_exercise_has_a_command_and_the_figure_that_it_draws():
    assert len(ROW.findall(COURSES)) > 40
    assert strays(COURSES) == []
    assert len(strays(COURSES.replace("`statmech run plateau`", "`statmech run escape`"))) == 2


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
    assert set(list_shipped_configs()) - named == set()


def test_what_does_not_exist_is_found():
    assert commands("`statmech run minover_x tmax=3`") == [("run", "minover_x", "tmax=3")]
    assert "minover_x" not in list_shipped_configs()
    with pytest.raises(ModuleNotFoundError):
        found("theory.classification.boosting.gone")
    assert found("simulate.learners.MinOver") is simulate.learners.MinOver
