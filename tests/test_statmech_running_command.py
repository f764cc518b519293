"""Messages advise only the options of the command that is running, and in Python arguments."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer
from conftest import statmech

from simulate.execution.store_simulation import run_into
from statmech import Scenario
from statmech.cli.command_group import app
from statmech.errors import ConfigError, StoreError, declare_running_command
from statmech.inputs import data_sets
from statmech.stores.checksums import GROUP_METADATA_FILE

pytestmark = pytest.mark.quick

ROOT_FOLDER = Path(__file__).parents[1]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
COMMANDS = {
    name: {flag for parameter in command.params for flag in parameter.opts} | {"--help", "--load", "--version"}
    for name, command in typer.main.get_command(app).commands.items()
}
WITH_DATA = [name for name, options in COMMANDS.items() if "--data-dir" in options]
CONFIG = {"rule": "hebb", "N": 20, "t": [1], "seeds": 2}
EXPORTED = {"export": ["--to", "out.csv"]}


def texts(tree):
    """Return the strings of a module, with "{}" for values, but for docstrings and arguments of `format_option`."""
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            skipped.add(node.body[0].value)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "format_option":
            skipped |= {inner for argument in node.args for inner in ast.walk(argument)}
        if isinstance(node, ast.JoinedStr) and node not in skipped:
            skipped |= {*ast.walk(node)} - {node}
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in skipped:
            yield node.value


def unknown_options(text):
    """Return the options in a text that do not belong to a command that the text names."""
    for named in re.finditer(r"statmech (?:--load \S+ )?([a-z]+)[^`]*", text):
        known = COMMANDS.get(named[1], set())
        text = text.replace(named[0], " ".join(flag for flag in FLAG.findall(named[0]) if flag not in known))
    return FLAG.findall(text)


MODULES = [
    path for part in ("statmech", "simulate", "theory", "figures") for path in (ROOT_FOLDER / part).rglob("*.py")
]


def test_an_option_in_a_message_is_that_of_a_command_in_it_or_of_the_running_one():
    """Those of `statmech.cli` are of the command whose file it is: the next test."""
    found = {
        f"{path.relative_to(ROOT_FOLDER)}: {text}"
        for path in MODULES
        if "statmech/cli/" not in str(path) and "explorer" not in str(path)
        for text in texts(ast.parse(path.read_text()))
        if " " in text and "var(--" not in text and unknown_options(text)  # neither CSS nor arguments of other programs
    }
    # a key is described for the commands that simulate, which all have the option
    assert {text for text in found if "data set, from --data-dir or OpenML" not in text} == set()


def test_options_in_messages_of_the_command_line_are_of_the_commands_that_print_them():
    printed_by = {
        "run_steps.py": ("run", "simulate"),
        "jobs.py": [name for name in WITH_DATA if "--out" in COMMANDS[name]],
    }
    for path in (ROOT_FOLDER / "statmech" / "cli").glob("*.py"):
        for text in texts(ast.parse(path.read_text())):
            flags = {flag for flag in unknown_options(text) if not FLAG.fullmatch(text)}
            for command in printed_by.get(path.name, ()):
                assert flags <= COMMANDS[command], (path.name, text)


def advised(message):
    """Return the options that a message advises for the command that printed it."""
    return {*FLAG.findall(re.sub(r"`statmech [^`]*`", "", message))}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of the results of a config."""
    monkeypatch.chdir(tmp_path)
    run_into(Path("results/mine/simulation.zarr"), Scenario(**CONFIG))
    Path("mine.yaml").write_text("rule: hebb\nN: 20\nt: [1]\nseeds: 2\n")
    return Path("results/mine")


@pytest.mark.parametrize("command", ["run", "simulate", "compare", "figure", "export"])
def test_a_store_of_another_config_is_refused_with_options_of_the_command(command, folder, capsys):
    assert statmech(command, "mine.yaml", "eta=2", *EXPORTED.get(command, [])) == 2
    message = capsys.readouterr().err
    assert "eta: stored nothing, asked for 2.0" in message
    assert advised(message) <= COMMANDS[command]
    assert ("--fresh" in advised(message)) == ("--fresh" in COMMANDS[command])
    if "--fresh" not in COMMANDS[command]:
        assert f"`statmech {command} {folder}`" in message


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("configs", "info", "schema", "predict")])
def test_a_folder_whose_config_is_corrupted_is_refused_with_options_of_the_command(command, folder, capsys):
    root = folder / "simulation.zarr" / GROUP_METADATA_FILE
    root.write_text(root.read_text().replace("hebb", "hebd"))
    assert statmech(command, folder, *EXPORTED.get(command, [])) in (1, 2)
    out = capsys.readouterr()
    assert "zarr.json" in out.err + out.out
    assert advised(out.err) <= COMMANDS[command]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_folder_of_data_is_set_by_an_option_only_where_there_is_one(command, monkeypatch, tmp_path):
    monkeypatch.delenv(data_sets.DATA_FOLDER_ENV_VARIABLE, raising=False)
    with declare_running_command(command, COMMANDS[command]), pytest.raises(ConfigError) as refused:
        data_sets._read_data_file(data_sets.find_data_source("votes"), tmp_path / "votes.data")
    assert ("--data-dir DIR or STATMECH_DATA" in str(refused.value)) == ("--data-dir" in COMMANDS[command])
    assert "STATMECH_DATA" in str(refused.value)


def test_in_python_arguments_are_advised(tmp_path):
    path = tmp_path / "simulation.zarr"
    run_into(path, Scenario(**CONFIG))
    with pytest.raises(StoreError, match=r"Use fresh=True to replace it, or another path to keep both\.$"):
        run_into(path, Scenario(**CONFIG, eta=2))
    with pytest.raises(ConfigError) as refused:
        data_sets._read_data_file(data_sets.find_data_source("votes"), tmp_path / "votes.data")
    assert advised(str(refused.value)) == set()


def test_a_command_without_memory_left_advises_an_option_only_if_it_has_one(capsys, monkeypatch, in_scratch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr("statmech.cli.options_and_jobs.job_from_source", fail)
    for command in ("run", "compare"):
        assert statmech(command, "ensemble") == 2
        message = capsys.readouterr().err
        assert "simulate a smaller scenario" in message
        assert ("--memory" in message) == (command == "run")
