"""Every number of the draft has a command that makes it and a page that states it; every citation has one entry."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_papers import commands, found, subcommands

from statmech.config.config_files import list_shipped_configs, load
from statmech.results.export_and_citations import BIBTEX_FIELDS_BY_KEY

FOLDER = Path(__file__).parents[1] / "docs/paper"
DRAFT = (FOLDER / "paper.md").read_text().replace("−", "-")
BODY, _, TABLE = DRAFT.partition("# Numbers and where they come from")
OWN = re.findall(r"^@\w+\{(\w+),", (FOLDER / "paper.bib").read_text(), re.MULTILINE)
CITED = set(re.findall(r"@(\w+)", BODY))
ROWS = [row.split(" | ") for row in re.findall(r"^\| (\S.*\]\(.*\)) \|$", TABLE, re.MULTILINE)]
NUMBER = re.compile(r"(?<![\w.^{/])(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)(?:\(\d+\)| ?%)?")
CALLED = re.compile(r"\b((?:statmech|theory)(?:\.\w+)+)[(`]")
LOADED = re.compile(r"load\(\"(\w+)\", \[(.*?)\]\)")


def numbers(text: str) -> set[str]:
    """The numbers of a text that have a decimal point, a comma or a percent sign."""
    return {number for number in NUMBER.findall(text) if re.search("[.,%]", number)}


def in_results() -> str:
    """The sections on design and results, without the names of files and citations."""
    text = BODY[BODY.index("# Software design") : BODY.index("# Limits")]
    return re.sub(r"\]\([^)]*\)|`[^`]*`", "", text)


def missing(listed: list[str], page: str) -> list[str]:
    """The numbers that a page does not state."""
    stated = re.sub(r"\s+%", "%", page)
    return [it for it in listed if not re.search(rf"(?<![\d.,]){re.escape(it.replace(' ', ''))}(?![\d.]*\d)", stated)]


def test_every_number_of_the_results_is_in_the_table_and_no_other():
    listed = {number for row in ROWS for number in row[0].split("; ")}
    used = numbers(in_results())
    assert used - listed == set()
    assert {it for it in listed if re.search("[.,%]", it)} - used == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_a_number_is_on_the_page_that_its_row_names(row):
    [page] = re.findall(r"\]\((.+?)\)", row[2] + ")")
    assert missing(row[0].split("; "), (FOLDER / page).read_text()) == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[1])
def test_the_command_of_a_row_is_valid(row):
    scripts = re.findall(r"`python ([^\s`]+)[^`]*`", row[1])
    for script in scripts:
        assert (FOLDER.parents[1] / script).is_file()
    for name, config, *overrides in commands(row[1]):
        assert name in subcommands()
        assert config in list_shipped_configs()
        load(config, overrides)
    for config, overrides in LOADED.findall(row[1]):
        load(config, re.findall(r"\"(.*?)\"", overrides))
    called = CALLED.findall(row[1])
    assert scripts or commands(row[1]) or called
    assert all(callable(found(name)) for name in called)


def test_a_number_that_no_page_states_is_found():
    assert numbers("N = 100, at 1.5 % and .163 of 20,000 in $10^7$; t = 50.") == {"1.5 %", ".163", "20,000"}
    assert missing(["0.25", "1,000", "3 %"], "0.254, 11,000 and 3 % of it") == ["0.25", "1,000"]


def test_every_citation_has_one_entry_and_every_entry_of_the_paper_is_cited():
    assert CITED - set(OWN) - set(BIBTEX_FIELDS_BY_KEY) == set()
    assert set(OWN) <= CITED
    assert set(OWN) & set(BIBTEX_FIELDS_BY_KEY) == set()
    assert len(OWN) == len(set(OWN))


def test_the_draft_has_the_length_that_journals_of_software_ask_for():
    text = BODY.split("---", 2)[2]
    assert 1500 <= len(re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL).split()) <= 2500
