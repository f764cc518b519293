"""Folders and files of any name: each command works there, or says in one line why not."""

from __future__ import annotations

import errno
import os

import pytest
from conftest import statmech

from statmech import ScenarioError, StoreError
from statmech.cli import interrupts, terminal_output
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.runtime import operating_system
from statmech.stores.locks import lock_store

TINY = ("learner=hebb", "N=20", "alpha=1", "seeds=2")
LATIN = os.fsdecode(b"r\xe9sultats")
COMMANDS = {
    "run": ("run", "minover", *TINY, "--out", "res"),
    "compare": ("compare", "res"),
    "figure": ("figure", "res", "--formats", "png"),
    "report": ("report", "res"),
    "export": ("export", "res", "--to", "out.csv"),
    "status": ("status", "res"),
    "verify": ("verify", "res"),
}


@pytest.mark.slow
@pytest.mark.parametrize("inside", [True, False])
def test_every_command_works_in_a_folder_whose_name_is_not_utf_8(inside, tmp_path, monkeypatch, capsys):
    folder = tmp_path / LATIN
    folder.mkdir()
    monkeypatch.chdir(folder if inside else tmp_path)
    for name, given in COMMANDS.items():
        arguments = [word if inside or word not in ("res", "out.csv") else f"{LATIN}/{word}" for word in given]
        assert statmech(*arguments) == 0, (name, capsys.readouterr().err)
    assert (folder / "res" / "report.html").read_text(encoding="utf-8").startswith("<!")


def test_line_breaks_and_tabs_in_a_name_are_printed_as_escapes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert statmech("status", "new\nline/a\tb") == 2
    assert capsys.readouterr().err.count("\n") == 1
    monkeypatch.setattr("sys.argv", ["statmech", "run", "x", "--out", "new\nline"])
    terminal_output.print("wrote new\nline/simulation.zarr\nand more")
    assert capsys.readouterr().out == "wrote new\\u000aline/simulation.zarr\nand more\n"


@pytest.mark.parametrize("path", ["n" * 300, "loop/x.py", "loop", "file/x.py"])
@pytest.mark.parametrize(
    "command",
    [
        ("simulate", "minover", *TINY, "--out"),
        ("report", "res", "--out"),
        ("run", "votes", "--data-dir"),
        ("--load",),
        ("export", "minover", "--to"),
        ("run",),
        ("status",),
        ("verify",),
        ("report",),
        ("compare",),
        ("predict",),
    ],
    ids=" ".join,
)
def test_a_path_that_cannot_exist_is_one_line(command, path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("x")
    given = [*command, path, "info"] if command == ("--load",) else [*command, path]
    assert statmech(*given) == 2
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert 0 < len(said.splitlines()) <= (6 if "Usage" in said else 1), said


@pytest.mark.parametrize("keys", [{"N": 2, "rule": "hebb", "t": 1}, {"P": 30, "loss": "square", "lam": 1}])
def test_a_null_character_in_the_name_of_a_table_is_a_problem_of_its_key(keys):
    inputs = {"rows": "a\0b"} | ({"target": "x"} if "P" in keys else {})
    with pytest.raises(ScenarioError, match="a name cannot contain a null character"):
        raise ScenarioError(list(scenario_from({**keys, "inputs": inputs}).find_input_file_problems()))


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EIO])
def test_a_disk_without_locks_is_named_with_the_remedy(code, tmp_path, monkeypatch):
    def refuse(file):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(operating_system, "try_lock", refuse)
    with (
        pytest.raises(StoreError, match=r"\.simulation\.zarr\.lock: cannot be locked: .*local disk"),
        lock_store(tmp_path / "simulation.zarr"),
    ):
        pass


@pytest.mark.parametrize(
    "failure", [OSError(errno.EMFILE, "Too many open files"), RuntimeError("can't start new thread")]
)
def test_limits_that_no_command_can_live_with_are_one_line(failure, monkeypatch, capsys):
    def refuse():
        raise failure

    monkeypatch.setattr(interrupts, "install_signal_handlers", refuse)
    assert statmech("info") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_file_that_is_cut_is_never_an_abort(monkeypatch, capsys):
    def cut():
        raise EOFError("Compressed file ended before the end-of-stream marker was reached")

    monkeypatch.setattr("statmech.cli.terminal_output.print_published_figures", cut)
    assert statmech("figure", "--list") == 2
    assert "a file ends unexpectedly: Compressed file ended" in capsys.readouterr().err
