"""The command runs the main tasks, refuses impossible ones with exit code 2, and never writes incomplete results."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import typer
import xarray as xr
from conftest import quick_environment
from conftest import statmech as exit_code

from figures import list_figures_by_kind
from statmech import Scenario, __version__, load_results
from statmech.cli import main, run_steps
from statmech.cli.command_group import app
from statmech.cli.completion import complete_override
from statmech.cli.options_and_jobs import SimulateOptions
from statmech.cli.run_steps import execution_from_options
from statmech.config.config_files import list_shipped_configs
from statmech.config.shipped_configs import group_configs_by_question, read_shipped_configs
from statmech.errors import ConfigError
from statmech.keys.scenario import SCENARIOS
from statmech.stores import zarr_store
from statmech.stores.store_status import read_status

pytestmark = pytest.mark.quick

TINY = ["N=30", "t=0,1", "seeds=4", "K=1,2"]


def statmech(*arguments: str, **kwargs) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "statmech.cli", *arguments]
    given = {"capture_output": True, "text": True, "timeout": 240, "env": quick_environment(), **kwargs}
    return subprocess.run(command, **given)


def answer(capsys, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The same in this process, which takes no second to start."""
    code = exit_code(*arguments)
    return subprocess.CompletedProcess(arguments, code, *capsys.readouterr())


def test_one_command_simulates_solves_compares_and_draws(in_scratch, capsys):
    done = answer(capsys, "run", "ensemble", *TINY, "rule=hebb,perceptron")
    assert done.returncode == 0, done.stderr
    assert "standard errors" in done.stdout
    assert done.stdout.count("perceptron") == 2
    folder = in_scratch / "results" / "ensemble"
    made = {path.name for path in folder.iterdir()}
    assert made == {
        "simulation.zarr",
        "simulation.log",
        "theory.zarr",
        *(f"ensemble.{s}" for s in ("png", "txt", "tex")),
    }
    simulation = xr.open_zarr(folder / "simulation.zarr", consolidated=False)
    theory = xr.open_zarr(folder / "theory.zarr", consolidated=False)
    assert simulation.R.dims == ("rule", "K", "seed", "t", "student")
    assert theory.R.dims == ("rule", "K", "t", "student")
    assert json.loads(simulation.attrs["config"])["N"] == 30
    assert '"jax"' in simulation.attrs["versions"]


@pytest.mark.slow
def test_run_draws_png_and_every_format_that_is_asked_for_or_already_there(in_scratch, capsys, monkeypatch):
    small = ["variety", "rule=hebb", "N=20", "t=0,1", "seeds=2", "K=2"]

    def drawn(*arguments: str) -> set[str]:
        assert called(monkeypatch, capsys, *arguments)[0] == 0
        return {path.suffix for path in (in_scratch / "results" / "variety").glob("variety.*")} - {".txt", ".tex"}

    assert drawn("run", *small) == {".png"}
    assert drawn("run", *small, "--formats", "pdf") == {".png", ".pdf"}
    old = in_scratch / "results" / "variety" / "variety.pdf"
    old.write_bytes(b"the picture of older results")
    assert drawn("run", *small) == {".png", ".pdf"}
    assert old.read_bytes().startswith(b"%PDF")
    assert drawn("figure", *small) == {".png", ".svg", ".pdf"}


def test_an_unknown_format_is_refused_before_anything_runs(in_scratch, capsys, monkeypatch):
    code, message = called(monkeypatch, capsys, "run", "variety", "--formats", "png,sgv")
    assert code == 2
    assert '"sgv" is not a picture format. Did you mean "svg"?' in " ".join(message.replace("│", " ").split())
    assert list(in_scratch.iterdir()) == []


@pytest.mark.slow
def test_a_stored_result_is_kept_and_that_of_another_config_never_overwritten_silently(in_scratch, capsys, monkeypatch):
    def call(*arguments: str) -> tuple[int, str]:
        return called(monkeypatch, capsys, *arguments)

    small = ["rule=hebb", "N=20", "t=1", "seeds=2", "K=1"]
    assert call("run", "variety", *small)[0] == 0
    assert "is up to date (use --fresh to recompute it)" in call("run", "variety", *small)[1]
    code, message = call("run", "variety", *small, "eta=0.5")
    assert code == 2
    assert "eta: stored nothing, asked for 0.5" in message
    assert "--fresh" in message
    assert call("compare", "variety", *small)[0] == 0
    assert call("figure", "variety", *small, "figure=overlay")[0] == 0
    folder = in_scratch / "results" / "variety"
    assert (folder / "overlay.png").exists()
    assert call("theory", "variety", *small, "eta=0.5", "--fresh")[0] == 0
    assert not [path for path in folder.iterdir() if "partial" in path.name]


@pytest.mark.slow
def test_a_config_of_ones_own_with_the_name_of_a_figure_is_drawn_by_the_overlay(in_scratch, capsys, monkeypatch):
    (in_scratch / "committee.yaml").write_text("network: linear\nM: 1\nK: 1\nN: 20\nt: [1, 2]\nseeds: 2\n")
    assert called(monkeypatch, capsys, "run", "committee.yaml")[0] == 0
    folder = in_scratch / "results" / "committee"
    assert (folder / "overlay.png").exists()
    code, message = called(monkeypatch, capsys, "run", "committee", "N=20", "seeds=2", "t=1,2")
    assert code == 2
    assert "holds the result of another config" in message
    code, message = called(monkeypatch, capsys, "figure", "committee.yaml", "figure=committee")
    assert code == 0
    assert "committee.png\n" in message  # with the panel of the only variable that these results have
    code, message = called(monkeypatch, capsys, "figure", "committee.yaml", "figure=plateau_spread")
    assert code == 0
    assert "the figure plateau_spread needs inputs, which these results lack; drawing overlay\n" in message


BAD_FILES = {
    "rule: adtron\nt: 1\n": 'bad.yaml:1: rule: "adtron" is not a learning rule. Did you mean "adatron"?',
    "t: 1\nrule: [hebb, adtron]\n": 'bad.yaml:2: rule[1]: "adtron"',
    "rule: hebb\nt: 1\nruel: 3\n": 'bad.yaml:3: ruel: "ruel" is not a key of a config. Did you mean "rule"?',
    "rule: hebb\nt: 1\nt: 2\n": 'bad.yaml:3: "t" is given twice',
    "rule: hebb\nt: [1, 2\n": "bad.yaml:2: the bracket [ is not closed: ] is missing",
    "rule: hebb\n": "bad.yaml: t: is missing",
    "rule: hebb\nt: 1\nstart:\n  R: 0.5\n  q: 2\n": "bad.yaml:5: start.q: must be at most 1, not 2",
    "- 1\n": "bad.yaml: a config is a mapping",
    "": "bad.yaml: a config is a mapping",
    "rule: hebb\nt: 1\nfigure: nothing\n": 'bad.yaml:3: figure: "nothing" is not a figure',
    "rule: hebb\nt: 1\nK: 0\nfigure: minover\n": 'bad.yaml:4: figure: "minover" is not a figure of a config',
    "rule: hebb\nt: 1\neta: 1e-3x\n": 'bad.yaml:3: eta: must be a number, not "1e-3x"',
    "zip:\n  eta: [1, 2]\n  flip: [0, 0.9]\nrule: hebb\nt: 1\n": "bad.yaml:3: flip[1]: must be at most 0.5",
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.items())
def test_a_bad_config_names_its_line_and_writes_nothing(in_scratch, capsys, monkeypatch, text, message):
    (in_scratch / "bad.yaml").write_text(text)
    answer = refused(monkeypatch, capsys, "run", "bad.yaml")
    assert message in answer
    assert [path.name for path in in_scratch.iterdir()] == ["bad.yaml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "ensembel"), '"ensembel" is not a shipped config. Did you mean "ensemble"?'),
        (("run", "losses"), 'Configs about "losses": bayes_gap, best_lambda, early_stopping, mnist_curves.'),
        (("run", "tassk"), 'Configs about "task": forgetting, optimal_protocol, replay. `statmech configs` lists all.'),
        (("run", "nonsense"), '"nonsense" is not a shipped config. `statmech configs` lists them.'),
        (("run", "no/such.yaml"), "no/such.yaml: no such file"),
        (("run", "ensemble", "K=0"), "K=0: K: must be at least 1, not 0"),
        (("run", "ensemble", "K"), "K: an override has the form key=value"),
        (("run", "ensemble", "Kk=3"), '"Kk" is not a key of a config. Did you mean "K"?'),
        (("run", "ensemble", "t=]"), "t=]: ']' is neither a value nor a list of values v1,v2"),
        (("run", "ensemble", "K=[1,2"), "the bracket [ is not closed: ] is missing"),
        (("run", "ensemble", "K", "t=]"), "K: an override has the form key=value or key=v1,v2, without spaces\nt=]: "),
        (
            ("run", "ensemble", "K=0", "figure=x"),
            'K=0: K: must be at least 1, not 0\nfigure=x: figure: "x" is not a figure',
        ),
        (("run", "K=3"), "The config comes first, KEY=VALUE after it"),
        (("run", "ensemble", "K=1..5"), "A range is written 'K={linspace: [1, 5, 5]}'"),
        (("compare", "ensemble"), "`statmech run ensemble` computes them"),
        (("figure",), "figure needs a CONFIG, or --list"),
        (("list",), "`statmech configs` lists the configs"),
    ],
)
def test_a_bad_command_is_refused(in_scratch, capsys, monkeypatch, arguments, message):
    assert message in refused(monkeypatch, capsys, *arguments)
    assert list(in_scratch.iterdir()) == []


def refused(monkeypatch, capsys, *arguments: str) -> str:
    """The message of the command when it exits with 2, without a traceback."""
    code, message = called(monkeypatch, capsys, *arguments)
    assert code == 2
    assert "Traceback" not in message
    return message


def called(monkeypatch, capsys, *arguments: str) -> tuple[int, str]:
    """The command in this process: its exit code and its standard error."""
    monkeypatch.setattr(sys, "argv", ["statmech", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code, capsys.readouterr().err


def test_unknown_commands_and_options_exit_with_2(capsys):
    assert answer(capsys, "rnu").returncode == 2
    assert answer(capsys, "run", "ensemble", "--frehs").returncode == 2


PAGES = [(), *((name,) for name in typer.main.get_command(app).commands)]
BANNED = (
    r"\b(told|tell|tells|anew|apart|play|plays|played|player|promise|promised|moments?|cells?|whoever|for ever|yet)\b"
)


def help_of(page, monkeypatch, capsys, width=80) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERMINAL_WIDTH", str(width))
    monkeypatch.setattr(sys, "argv", ["statmech", *page, "--help"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 0
    return capsys.readouterr().out


def words_of(text: str) -> list[str]:
    """The words of a text without the frames and line breaks of a page."""
    return re.sub(r"[│╭╮╰╯─•]", " ", text.replace("`", "")).split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: " ".join(page) or "statmech")
def test_a_help_page_shows_every_word_of_its_texts(page, monkeypatch, capsys):
    shown = " ".join(words_of(help_of(page, monkeypatch, capsys)))
    command = typer.main.get_command(app)
    command = command.commands[page[0]] if page else command
    assert f" {' '.join(words_of(re.sub(r'(?m)^ *- ', '', command.help)))} " in f" {shown} "
    for one in command.params:
        assert set(words_of(one.help or "")) <= set(shown.split()), one.name
        if isinstance(one.show_default, str):
            assert set(f"[default: ({one.show_default})]".split()) <= set(shown.split()), one.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: " ".join(page) or "statmech")
def test_a_help_page_of_80_columns_has_plain_words_and_no_broken_ones(page, monkeypatch, capsys):
    shown = help_of(page, monkeypatch, capsys)
    assert not re.search(BANNED, shown, re.IGNORECASE)
    assert "…" not in shown
    assert not re.search(r"<\w|[<>]=|\{", shown)  # types and ranges of typer, which explain nothing
    assert max(map(len, shown.splitlines())) <= 80
    assert set(words_of(shown)) <= set(words_of(help_of(page, monkeypatch, capsys, width=200)))  # no word is cut
    assert page == () or "Example" in shown


def test_help_names_the_extra_that_a_command_needs(monkeypatch, capsys):
    assert "statmech[explore]" in help_of((), monkeypatch, capsys)
    assert "statmech[explore]" in help_of(("explore",), monkeypatch, capsys)


def test_commands_are_grouped_and_cluster_options_separate_from_common_ones(monkeypatch, capsys):
    page = help_of((), monkeypatch, capsys)
    assert re.findall(r"╭─ (.*?) ─", page) == ["Options", "Compute", "Look", "Share", "About"]
    daily, _, cluster = help_of(("run",), monkeypatch, capsys).partition("─ Clusters and job arrays ─")
    assert all(name in daily for name in ("--out", "--fresh", "--dry-run", "--set"))
    assert all(name in cluster for name in ("--shard", "--dask", "--memory", "--patience"))


def test_run_takes_the_options_of_simulate_and_the_formats_of_its_figure():
    commands = typer.main.get_command(app).commands
    assert [it.name for it in commands["run"].params] == [*(it.name for it in commands["simulate"].params), "formats"]


def test_the_version_is_shown(capsys):
    done = answer(capsys, "--version")
    assert (done.returncode, done.stdout) == (0, f"statmech {__version__}\n")


@pytest.mark.parametrize("module", ["statmech", "statmech.cli"])
def test_the_package_runs_as_a_command(module):
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == f"statmech {__version__}\n"


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.slow
@pytest.mark.parametrize("command", [["configs"], ["info"], ["run", "ensemble", *TINY, "rule=hebb"]])
def test_a_locale_without_unicode_changes_no_result(command, tmp_path):
    done = statmech(*command, cwd=tmp_path, env=quick_environment() | ASCII)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("streams", [">&-", "<&- >&-", ">&- 2>&-"])
def test_a_closed_standard_output_is_named_and_receives_no_file(streams, tmp_path):
    run = shlex.join([sys.executable, "-m", "statmech.cli", "run", "ensemble", *TINY, "rule=hebb", "--out", "x"])
    given = {"cwd": tmp_path, "env": quick_environment(), "stderr": subprocess.PIPE, "text": True, "timeout": 240}
    done = subprocess.run(["sh", "-c", f"exec {run} {streams}"], **given)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert ("standard output is closed" in done.stderr) == ("2>&-" not in streams)
    [picture] = (tmp_path / "x").glob("*.png")
    assert picture.read_bytes().endswith(b"IEND\xaeB`\x82")
    assert load_results(tmp_path / "x").complete


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "theory"])
def test_devices_that_are_not_there_are_refused_in_one_sentence(command, tmp_path):
    done = statmech(command, "ensemble", *TINY, cwd=tmp_path, env=quick_environment() | {"JAX_PLATFORMS": "bogus"})
    assert (done.returncode, len(done.stderr.splitlines()), list(tmp_path.iterdir())) == (2, 1, [])
    assert done.stderr.startswith("JAX finds no device of JAX_PLATFORMS=bogus")


@pytest.mark.slow
def test_programs_are_compiled_where_jax_does_not_compile(tmp_path):
    env = quick_environment() | {"JAX_DISABLE_JIT": "1"}
    done = statmech("run", "ensemble", "rule=hebb", "K=3", "N=1000", "t=20", "seeds=8", cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr  # without programs 400 steps did not end in 150 s


@pytest.mark.parametrize(
    ("config", "overrides", "incomplete", "completed"),
    [
        ("ensemble", [], "ru", ["rule="]),
        ("ensemble", ["K=3"], "rule=hebb,ada", ["rule=hebb,adatron", "rule=hebb,adatron_textbook"]),
        ("ensemble", ["rule", "="], "ada", ["adatron", "adatron_textbook"]),  # as Bash splits the words
        ("ensemble", ["rule"], "", ["hebb", "perceptron", "adatron", "adatron_textbook", "bayes"]),
        ("own.yaml", [], "corrections=", ["corrections=true", "corrections=false"]),
        ("best_lambda", [], "loss=logistic,h", ["loss=logistic,hinge", "loss=logistic,huber"]),
        ("no_such_config", [], "K", []),
        ("ensemble", [], "no_key=", []),
    ],
)
def test_tab_completes_keys_and_values(in_scratch, config, overrides, incomplete, completed):
    (in_scratch / "own.yaml").write_text("rule: hebb\nt: 1\n")
    context = SimpleNamespace(params={"config": config, "overrides": overrides})
    offered = [item if isinstance(item, str) else item[0] for item in complete_override(context, [], incomplete)]
    assert [item for item in offered if item.startswith(incomplete)] == completed


def test_tab_completes_shipped_configs_and_files(in_scratch):
    (in_scratch / "adatron_own.yaml").write_text("rule: hebb\nt: 1\n")
    words = {"COMP_WORDS": "statmech run adat", "COMP_CWORD": "2", "_STATMECH_COMPLETE": "complete_bash"}
    code = "from statmech.cli.command_group import app; app(prog_name='statmech')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=240, env=quick_environment() | words
    )
    assert done.stdout.split() == ["adatron_ensemble", "adatron_own.yaml"], done.stderr


def test_completion_is_offered(monkeypatch, capsys):
    page = help_of((), monkeypatch, capsys)
    assert "--install-completion" in page
    assert "--show-completion" in page


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"event": "failed", "cell": [1, 0], "seeds": [0, 1, 2], "attempt": 2, "error": "ValueError: x"},
         "rule adatron, K 1, seeds 0 to 2: attempt 2 failed: ValueError: x"),
        ({"event": "failed", "cell": [0, 1], "seeds": [5], "attempt": 1, "error": "x"},
         "rule hebb, K 3, seeds 5: attempt 1 failed: x"),
        ({"event": "failed", "cell": [0, 1], "seeds": [5, 7], "attempt": 1, "error": "x"},
         "rule hebb, K 3, seeds 5, 7: attempt 1 failed: x"),
        ({"event": "damaged", "block": 3, "faults": ["R"]}, "chunk 3 is corrupted and is recomputed (R)"),
        ({"event": "restored", "file": "zarr.json"}, "zarr.json is corrupted and is rewritten"),
        ({"event": "grown", "differences": ["  K: 1"]}, "the sweep has grown, and its stored runs are kept:\n  K: 1"),
        ({"event": "written", "block": 3}, ""),
    ],
)  # fmt: skip
def test_an_event_is_a_sentence_that_names_the_parameters(event, message):
    assert run_steps.describe_event(event, Scenario(rule=["hebb", "adatron"], K=[1, 3], t=1)) == message


def test_every_shipped_config_is_listed_once_with_a_line_below_its_question(capsys):
    groups = [group.splitlines() for group in answer(capsys, "configs").stdout.split("\n\n")]
    by_question, shipped = group_configs_by_question(), read_shipped_configs()
    assert {heading: [line.split()[0] for line in lines] for heading, *lines in groups} == by_question
    names = {line.split()[0]: line for _, *lines in groups for line in lines}
    assert sorted(name for of in by_question.values() for name in of) == sorted(names) == list_shipped_configs()
    assert all(line.endswith(shipped[name].figure.title) and line[-1] in ".?" for name, line in names.items())
    assert len({line.index(shipped[name].figure.title) for name, line in names.items()}) == 1


def test_run_without_a_config_names_the_command_that_lists_the_shipped_ones(capsys):
    for command in ("run", "simulate", "theory", "compare", "cite"):
        done = answer(capsys, command)
        assert done.returncode == 2
        assert "statmech configs lists" in " ".join(words_of(done.stderr))
    assert "configs" not in answer(capsys, "status").stderr


def test_a_folder_of_folders_suggests_those_with_results(in_scratch, capsys, monkeypatch):
    for name in ("one", "two"):
        (in_scratch / f"results/{name}/simulation.zarr").mkdir(parents=True)
    (in_scratch / "results/three").mkdir()
    for command in ("status", "verify", "report", "run"):
        message = refused(monkeypatch, capsys, command, "results")
        assert message.startswith("results: a folder without results")
        assert message.endswith("Folders with results in it: results/one, results/two\n")


@pytest.mark.parametrize(
    ("size", "number"),
    [("4GiB", 4 * 2**30), ("500MB", 500_000_000), ("1.5TiB", 1.5 * 2**40), ("2 GB", 2e9), ("1048576", 2**20)],
)
def test_sizes_are_read_with_their_units(size, number):
    assert execution_from_options(SimulateOptions("ensemble", memory=size)).memory == number


@pytest.mark.parametrize("size", ["lots", "", "-1GiB", "4 GoB", "1023KiB", "nan", "inf", "1e400GB", "9" * 400, "0x10"])
def test_a_bad_size_is_one_message(size):
    with pytest.raises(ConfigError) as refusal:
        execution_from_options(SimulateOptions("ensemble", memory=size))
    assert str(refusal.value) == f"--memory {size}: must be a size of at least 1 MiB, such as 500MB or 4GiB"


def test_a_dry_run_counts_and_writes_nothing(in_scratch, capsys):
    done = answer(capsys, "run", "ensemble", "--dry-run", "eta={linspace: [0.1, 1, 10]}")
    assert "parameter combinations  210 (3 rule x 7 K x 10 eta)" in done.stdout
    assert list(in_scratch.iterdir()) == []


def test_a_dry_run_searches_no_optimum_and_says_how_many_there_are(in_scratch, capsys, monkeypatch):
    from theory.control import optimal_controls

    monkeypatch.setattr(optimal_controls, "_find_best_controls", lambda *_: pytest.fail("a search"))
    done = answer(capsys, "run", "optimal_rate", "--dry-run", "N=[100, 200]")
    assert "parameter combinations have keys at the optimum: each is searched before" in done.stderr


def test_info_and_schema_and_figures_answer(capsys):
    assert "(`statmech configs` lists them)" in answer(capsys, "info").stdout
    for kind in json.loads(answer(capsys, "schema").stdout)["anyOf"]:
        assert set(kind["properties"]) & set(SCENARIOS)
    listed = answer(capsys, "figure", "--list").stdout
    assert all(name in listed for figures_of in list_figures_by_kind().values() for name in figures_of)


def test_help_needs_no_numerics():
    code = "import sys, statmech.cli; print([m for m in ('jax', 'matplotlib', 'numpy', 'xarray') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.slow
def test_a_user_without_a_home_runs_without_a_cache_and_reports_are_refused_in_a_sentence(in_scratch):
    code = """
import pwd, sys
def absent(uid): raise KeyError(uid)
pwd.getpwuid = absent
from statmech.cli import main
main()
"""
    env = {name: value for name, value in quick_environment().items() if name not in ("HOME", "XDG_CACHE_HOME")}

    def done(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=env | {"STATMECH_CACHE": ""})

    ran = done("run", "minover", "learner=hebb", "N=20", "alpha=1", "seeds=2")  # compiles nothing
    assert (ran.returncode, "Traceback" in ran.stderr) == (0, False)
    assert list((in_scratch / "results" / "minover").glob("*.png"))
    reported = done("report", "results/minover")
    assert reported.returncode == 2
    assert reported.stderr.endswith("needs a home directory: set HOME to a folder\n")


@pytest.mark.slow
def test_the_table_counts_converged_runs_and_fits_the_screen(in_scratch, capsys):
    done = answer(capsys, "run", "capacity", "N=10", "alpha=0.5,6", "seeds=4")
    assert done.returncode == 0, done.stderr
    assert "4/4" in done.stdout
    assert "0/4" in done.stdout
    assert "4 of 8 runs returned no solution and are excluded." in done.stdout
    many = answer(capsys, "run", "capacity", "N=10", "alpha={linspace: [0.5, 3, 50]}", "seeds=2", "--out", "many")
    assert "the 40 largest deviations of 50 parameter combinations" in many.stdout
    assert len(many.stdout.splitlines()) < 55


@pytest.mark.slow
def test_the_table_counts_the_runs_that_satisfy_a_bound(in_scratch, capsys, monkeypatch):
    def printed(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["statmech", *arguments, "N=8", "tests=500"])
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 0
        return capsys.readouterr().out

    table = printed("run", "boosting", "s=1,3", "P=60", "seeds=5")
    assert "runs that satisfy theory's bounds" in table
    assert "standard errors" not in table
    assert table.count("5/5") == 2 * 3
    assert table.startswith("agrees: no bound is violated, of 30 values\n")
    capped = printed("run", "boosting", "s=5", "P=200", "seeds=1", "cap=1", "--out", "capped")
    assert "agrees: no bound is violated" in capped  # fewer stages than the bound allows prove nothing
    monkeypatch.setattr("theory.classification.boosting.bound_stages", lambda *_: 1.0)
    table = printed("run", "boosting", "s=5", "P=200", "seeds=1", "--out", "wrong")
    assert "violates: stages 1 of " in table
    assert "0/1" in table


@pytest.mark.slow
def test_an_import_starts_nothing():
    code = (
        "import statmech, simulate, theory, figures, jax, logging\n"
        "print(jax.config.jax_enable_x64, bool(logging.getLogger().handlers), jax._src.xla_bridge._backends)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False False {}"


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_work_ends_at_once_and_keeps_what_is_finished(in_scratch, sent, code):
    start = (  # tests in the background of a shell ignore the signal, and so would their children
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom statmech.cli import main; main()"
    )
    command = [sys.executable, "-c", start, "simulate", "ensemble", "seeds=4096", "N=1000000"]
    env = quick_environment()
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, env=env)
    log = in_scratch / "results" / "ensemble" / "simulation.log"
    for _ in range(1200):
        if log.exists() and "playing" in log.read_text():
            break
        time.sleep(0.1)
    os.killpg(running.pid, sent)
    try:
        message = running.communicate(timeout=30)[1]  # a unit of work would run for minutes
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == code, message
    assert "Completed work is saved; rerun the command to resume." in message
    assert "Traceback" not in message
    counted = read_status(log.parent)
    assert counted["writer"] == ""
    assert counted["missing"] > 0


@pytest.mark.slow
def test_a_signal_that_does_not_wake_the_main_thread_ends_the_process():
    code = (  # the kernel delivers the signal to another thread
        "import signal, threading\n"
        "from statmech.cli import interrupts\n"
        "interrupts.install_signal_handlers()\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "print('waiting', flush=True)\n"
        "threading.Event().wait()"
    )
    waiting = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert waiting.stdout.readline() == "waiting\n"
    waiting.terminate()
    try:
        waiting.communicate(timeout=30)
    finally:
        waiting.kill()
        waiting.communicate()
    assert waiting.returncode == 143


@pytest.mark.slow
def test_a_signal_that_is_being_handled_does_not_end_the_process_early():
    code = (
        "import time\n"
        "from statmech.cli import interrupts\n"
        "interrupts.install_signal_handlers()\n"
        "try:\n"
        "    print('waiting', flush=True)\n"
        "    time.sleep(60)\n"
        "finally:\n"
        "    time.sleep(interrupts.SIGNAL_HANDLER_GRACE_SECONDS + 1)\n"
        "    print('tidied')"
    )
    waiting = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert waiting.stdout.readline() == "waiting\n"
    waiting.terminate()
    try:
        said = waiting.communicate(timeout=30)[0]
    finally:
        waiting.kill()
        waiting.communicate()
    assert (said, waiting.returncode) == ("tidied\n", 143)


@pytest.mark.slow
def test_a_run_without_shard_completes_compares_and_draws_what_shards_have_simulated(in_scratch, capsys, monkeypatch):
    small = ["rule=hebb,perceptron", "N=20", "t=1", "seeds=130", "K=2"]
    folder = in_scratch / "results" / "variety"
    code, message = called(monkeypatch, capsys, "run", "variety", *small, "--shard", "1/2")
    assert code == 0
    assert "wrote results/variety/simulation.1-of-2.zarr\nafter the other shards, `statmech run variety" in message
    assert called(monkeypatch, capsys, "theory", "results/variety")[0] == 0
    message = called(monkeypatch, capsys, "compare", "results/variety")[1]
    assert "128 runs are missing and 0 have failed; they are omitted (no store of shard 2 of 2)" in message
    code, message = called(monkeypatch, capsys, "run", "results/variety")
    assert code == 0
    assert "simulating 128 runs\nwrote results/variety/simulation.zarr" in message
    assert "variety.png" in message
    assert read_status(folder)["done"] == 260
    message = called(monkeypatch, capsys, "run", "results/variety/simulation.1-of-2.zarr", "seeds=140")[1]
    assert "simulation.1-of-2.zarr: holds the result of another config" in message
    assert "Repeat this command with the shards, or: Use --fresh" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--shard", "3/2"), "--shard 3/2: must be K/N"),
        (("--shard", "slurm"), "this is not a task of a job array"),
        (("--shard", "1/100000"), "K/N with integers 1 <= K <= N <= 99999"),
        (("--memory", "lots"), "--memory lots: must be a size"),
        (("--memory", "2MB"), "GiB is too little"),
    ],
)
def test_options_that_make_no_sense_are_refused(in_scratch, capsys, monkeypatch, arguments, message):
    assert message in refused(monkeypatch, capsys, "run", "variety", "t=1", *arguments)
    assert list(in_scratch.iterdir()) == []


@pytest.mark.slow
def test_events_are_lines_of_json_for_programs(in_scratch, capsys):
    done = answer(capsys, "simulate", "variety", "N=20", "t=1", "seeds=2", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["begun", "ended"]
    assert json.loads(answer(capsys, "status", "results/variety", "--json").stdout)["missing"] == 0


@pytest.mark.slow
def test_a_store_that_cannot_be_written_or_read_is_reported(in_scratch, capsys, monkeypatch):
    (in_scratch / "taken").write_text("a file, not a folder")
    message = refused(monkeypatch, capsys, "theory", "variety", "rule=hebb", "t=1", "--out", "taken")
    assert "cannot be written" in message
    broken = in_scratch / "broken" / "theory.zarr"
    broken.mkdir(parents=True)
    (broken / "zarr.json").write_text("{")
    with pytest.raises(zarr_store.StoreError, match="not a readable store"):
        zarr_store.load(broken)


@pytest.mark.slow
def test_a_study_prints_its_tables_and_the_concept(in_scratch, data_folder, capsys):
    given = [
        "--set",
        "classifier=boosting,tree",
        "--set",
        "folds=3",
        "seeds=2",
        "stages=4",
        "--data-dir",
        str(data_folder),
    ]
    done = answer(capsys, "run", "votes", *given)
    assert done.returncode == 0, done.stderr
    assert "C4.5-like tree" in done.stdout
    assert "91.5" in done.stdout
    assert "handicapped-infants = " in done.stdout
    made = {path.name for path in (in_scratch / "results" / "votes").iterdir()}
    assert made == {"simulation.zarr", "simulation.log", *(f"votes.{s}" for s in ("png", "txt", "tex"))}
    again = answer(capsys, "figure", "votes", *given[:-2])
    assert again.returncode == 0, again.stderr
    compared = answer(capsys, "compare", "votes", *given[:-2])
    assert compared.returncode == 2
    assert "nothing to compare" in compared.stderr
    assert "Traceback" not in compared.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "data=vots"], 'Did you mean "votes"'),
        (["--data-dir", "nowhere"], "--data-dir nowhere: no such folder"),
        (["--data-dir", "."], "house-votes-84.data: cannot be read"),
        (["--set", "data=digits-3-3"], "is not a data set"),
    ],
)
def test_a_study_of_missing_data_writes_nothing(in_scratch, data_folder, capsys, arguments, message):
    done = answer(capsys, "run", "votes", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(in_scratch.iterdir())


@pytest.mark.slow
def test_an_incomplete_folder_names_what_it_lacks_and_the_command_that_computes_it(in_scratch, capsys, monkeypatch):
    small = ["rule=hebb", "N=20", "t=1", "seeds=2", "K=1"]
    assert exit_code("simulate", "variety", *small, "--out", "simulate") == 0
    capsys.readouterr()
    assert exit_code("compare", "variety", *small) == 2
    given = f"variety {' '.join(small)}"
    missing = f"results/variety: no simulation and no theory. `statmech run {given}` computes them\n"
    assert capsys.readouterr().err == missing
    assert exit_code("theory", "variety", *small) == 0
    capsys.readouterr()
    assert exit_code("export", "simulate", "--to", "out.csv") == 2
    assert capsys.readouterr().err == "simulate: no theory. `statmech theory simulate` computes it\n"
    assert exit_code("compare", "variety", *small) == 2
    lacking = f"results/variety: no simulation. `statmech simulate {given}` computes it\n"
    assert capsys.readouterr().err == lacking
    assert exit_code("compare", "results/variety") == 2
    assert "variety: a folder with theory.zarr alone: no simulation.zarr" in capsys.readouterr().err
    monkeypatch.chdir(in_scratch / "simulate")
    assert exit_code("export", ".", "--to", "out.csv") == 2
    assert capsys.readouterr().err == ".: no theory. `statmech theory .` computes it\n"


@pytest.mark.slow
def test_theory_that_stays_on_a_plateau_is_said_once(in_scratch, capsys):
    (in_scratch / "flat.yaml").write_text(
        "network: erf\nM: 2\nK: 2\nN: 20\nt: [0.1]\nseeds: 2\nstart: {R: 0, Q: 0.25}\n"
    )
    assert exit_code("simulate", "flat.yaml", "--out", "alone") == 0
    assert "stay on the plateau" in capsys.readouterr().err
    assert exit_code("run", "flat.yaml") == 0
    out = capsys.readouterr()
    assert (out.out + out.err).count("stay on the plateau") == 1


def test_a_table_shows_the_names_that_a_figure_takes(in_scratch, capsys):
    (in_scratch / "mine.yaml").write_text("rule: hebb\nK: 3\nN: 20\nt: [0.5, 1]\nseeds: 3\n")
    assert exit_code("run", "mine.yaml") == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [re.split("[┃│]", line)[1:-1] for line in lines if "┃" in line]
    names = ["".join("".join(words).split()) for words in zip(*heads, strict=True)]
    assert "eps_g_majority_vote" in names
    assert exit_code("figure", "results/mine", "--formats", "png", "--y", ",".join(names), "--out", "pictures") == 0
    assert list((in_scratch / "pictures").glob("*.png"))
