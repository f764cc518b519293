"""No name can command the terminal that it is shown on."""

from __future__ import annotations

import io
import json
import re
import time

import pytest
from rich.console import Console
from test_statmech_cli import called

from statmech.cli import terminal_output
from statmech.config.config_files import list_shipped_configs, load
from statmech.errors import escape_text
from statmech.results import tables
from statmech.results.tables import Table, TableCell, TableColumn, split_table
from statmech.runtime.progress_bar import SilentProgressBar, TerminalBar, _make_rich_progress, show_progress_bar

TITLE = "\x1b]0;owned\x07"
SHOWN = r"\u001b]0;owned\u0007"
HOSTILE = [
    TITLE,
    "\x9b31m",
    "\x7f",
    "\r",
    "\b",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\u2028",
    "\udcff",
    "\U000e0041",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_characters_that_are_invisible_or_commands_are_escaped(hostile):
    shown = escape_text(f"a{hostile}b")
    assert shown.isascii()
    assert shown.isprintable()
    assert shown.startswith("a\\")


def test_words_and_layout_are_kept():
    words = "η = 0,5 für Müller: ε_g ≤ 1/π, 学习 \U0001f600\nنص‌ها\tb"
    assert escape_text(words) == words


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "hebb_ensemble", f"{TITLE}=1"],
        ["run", "hebb_ensemble", f"rule={TITLE}x"],
        ["run", "hebb_ensemble", 'rule="\\u001b]0;owned\\u0007"'],
        ["run", "hebb_ensemble", f'figure="{TITLE}"'],
        ["run", f"{TITLE}.yaml"],
        ["run", "ensemble", "--shard", TITLE],
        ["status", TITLE],
        ["report", f"x{TITLE}"],
        ["--load", TITLE, "info"],
        ["run", "ensemble", f"--{TITLE}"],
        [TITLE],
    ],
)
def test_a_command_line_cannot_set_the_terminal_s_title(arguments, in_scratch, monkeypatch, capsys):
    code, told = called(monkeypatch, capsys, *arguments)
    assert code == 2
    assert "\x1b]" not in told
    assert "\x07" not in told
    assert "owned" in told


@pytest.mark.parametrize("arguments", [["run", "--\u202eowned"], ["info", "\u202eowned"], ["\u202eowned"]])
def test_a_line_that_cannot_be_parsed_is_shown_in_its_own_direction(arguments, in_scratch, monkeypatch, capsys):
    code, told = called(monkeypatch, capsys, *arguments)
    assert code == 2
    assert "\u202e" not in told
    assert "u202eowned" in told


def test_names_in_a_config_file_are_shown_escaped(in_scratch, monkeypatch, capsys):
    (in_scratch / "bad.yaml").write_text('rule: hebb\nt: 1\n"\\e]0;owned\\a": 3\n')
    code, told = called(monkeypatch, capsys, "run", "bad.yaml")
    assert code == 2
    assert told.startswith(f"bad.yaml:3: {SHOWN}: ")


def test_the_error_of_a_failed_run_is_shown_escaped_and_stays_json_for_programs(capsys):
    event = {"error": f"ValueError: {TITLE}\x7f"}
    terminal_output.print(f"failed {event['error']}")
    terminal_output.print(json.dumps(event))
    line, parsed = capsys.readouterr().out.splitlines()
    assert line == rf"failed ValueError: {SHOWN}\u007f"
    assert json.loads(parsed) == event


def test_a_table_shows_names_as_they_are(monkeypatch):
    shown = Console(file=io.StringIO(), force_terminal=True, width=200, color_system=None)
    monkeypatch.setattr(terminal_output, "get_stdout_console", lambda shown=shown: shown)
    name = f"[red]x[/red]{TITLE}"
    terminal_output._print_table(Table(f"of {name}", (TableColumn("[b]rule"),), ((TableCell(name),),)))
    text = shown.file.getvalue()
    assert text.count(f"[red]x[/red]{SHOWN}") == 2
    assert "[b]rule" in text
    assert "\x1b]" not in text


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_of_a_table_is_cut_however_narrow_the_terminal(width, monkeypatch):
    for scenario in (
        found for found in map(load, list_shipped_configs()) if not found.on_data
    ):  # studies have tables of their own
        shown = Console(file=io.StringIO(), width=width)
        monkeypatch.setattr(terminal_output, "get_stdout_console", lambda shown=shown: shown)
        columns = tables._make_columns(scenario.shape, scenario.variables, [(3, 4)])
        numbers = [[f"{10_000 * (row + 1) + at / 10:+.1f}" for at, _ in enumerate(columns)] for row in range(2)]
        terminal_output._print_table(Table("deviations", columns, tuple(tuple(map(TableCell, row)) for row in numbers)))
        text = shown.file.getvalue()
        assert all(number in text for row in numbers for number in row)
        assert all(word in text for column in columns for word in re.split("(?<=_)(?=[a-z]{4})| ", column.heading))
        assert max(map(len, text.splitlines())) <= width


def test_a_table_wider_than_the_terminal_is_split_where_it_has_to_be_and_keeps_its_keys(monkeypatch):
    columns = (TableColumn("rule", number=False, key=True), TableColumn("eps_g vote"), TableColumn("R"))
    table = Table("of", columns, ((TableCell("adatron_textbook"), TableCell("-188448.5"), TableCell("+1.2")),))
    assert [len(part.columns) for part in split_table(table, 46)] == [3]
    assert [len(part.columns) for part in split_table(table, 41)] == [3]  # with its heading on two lines
    assert [len(part.columns) for part in split_table(table, 37)] == [2, 2]
    for width in (37, 5):
        shown = Console(file=io.StringIO(), width=width)
        monkeypatch.setattr(terminal_output, "get_stdout_console", lambda shown=shown: shown)
        terminal_output._print_table(table)
        assert shown.file.getvalue().count("adatron_textbook") == 2
        assert "-188448.5" in shown.file.getvalue()


def test_a_bar_shows_a_steady_pace_in_plain_numbers(monkeypatch):
    clock = iter([0.0, 10.0, 15.0, 15.0, 20.0, 40.0])
    monkeypatch.setattr("statmech.runtime.progress_bar.time.monotonic", lambda: next(clock))
    bar = SilentProgressBar("simulation")
    bar.progress(1000, 160_000)  # those of an earlier run
    assert bar.pace == ""
    bar.progress(21_000, 160_000)
    assert bar.pace == "2,000/s 0:01:04"  # 139,000 runs are left, and 5 of 69.5 seconds have passed since the report
    bar.show_part("chunk 2")  # a new chunk does not reset it
    assert bar.pace == "2,000/s 0:01:04"
    assert bar.pace == "2,000/s 0:01:00"


def test_a_terminal_shows_the_pace_beside_the_bar():
    progress, shown = _make_rich_progress(), Console(file=io.StringIO(), width=100)
    bar = TerminalBar("simulation", progress)
    bar._first = (time.monotonic() - 10, 0)
    bar.progress(19_100, 191_000)
    shown.print(progress.get_renderable())
    assert re.search(r"simulation .* 19100/191000 1,9\d\d/s 0:01:\d\d", shown.file.getvalue())


def test_a_log_file_gets_a_line_of_progress_a_minute(monkeypatch, capsys):
    clock = [0.0]
    monkeypatch.setattr("statmech.runtime.progress_bar.time.monotonic", lambda: clock[0])
    with show_progress_bar("simulation", writes_log=True) as bar:
        for done in range(0, 541, 90):
            bar.progress(done, 540)
            clock[0] += 30.0
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "simulation: 180 of 540, 3/s 0:02:00 left",
        "simulation: 360 of 540, 3/s 0:01:00 left",
        "simulation: 540 of 540, 3/s 0:00:00 left",
    ]
