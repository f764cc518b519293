"""Files for people and other programs are written completely or not at all, and special files are not read."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys

import pytest
from conftest import in_child, limit_files, statmech
from test_statmech_cli import called

import simulate
import theory
from statmech import Scenario
from statmech.errors import StoreError
from statmech.runtime import files
from statmech.stores import zarr_store

WRITERS = {  # a command that overwrites an existing file; the second of two in a folder of results named "mine"
    "mine/overlay.png": ["figure", "mine", "figure=overlay"],
    "mine/overlay.svg": ["figure", "mine", "figure=overlay"],
    "mine/overlay.pdf": ["figure", "mine", "figure=overlay"],
    "a.csv": ["export", "mine", "--to", "a.csv"],
    "a.nc": ["export", "mine", "--to", "a.nc"],
    "a.html": ["report", "mine", "--out", "a.html"],
}
OLD = b"old and whole\n"


class Dying:
    """A file that takes half of what it is given, and then the process dies."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, content):
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        os.kill(os.getpid(), signal.SIGKILL)


def before_replacing(wanted, harm):
    """Call `harm` before a file of this name is replaced."""
    true = files._replace_file

    def replaced(target, content):
        if target.name == wanted:
            harm()
        true(target, content)

    files._replace_file = replaced


def killed(folder, at, wanted, given):
    """A command that is killed while it writes a file, or while it renames it."""

    def write():
        files.open = lambda *of, **how: Dying(open(*of, **how))  # noqa: SIM115

    def rename():
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

    os.chdir(folder)
    before_replacing(wanted, {"write": write, "rename": rename}[at])
    return statmech(*given)


def limited(folder, wanted, given):
    """A command whose file may not grow beyond 100 bytes."""
    os.chdir(folder)
    before_replacing(wanted, lambda: limit_files(100))
    return statmech(*given)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    scenario = Scenario(rule="hebb", N=20, t=[1, 2], seeds=2, figure="overlay")
    from simulate.execution.store_simulation import run_into

    run_into(folder / "mine/simulation.zarr", scenario)
    zarr_store.save(theory.solve(scenario), folder / "mine/theory.zarr")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("name", "at"), [*((name, "write") for name in WRITERS), ("a.csv", "rename")])
def test_a_kill_while_a_file_is_written_leaves_the_old_one_intact(name, at, results):
    file = results / name
    file.write_bytes(OLD)
    assert in_child(killed, results, at, file.name, WRITERS[name]) == (-signal.SIGKILL, "")
    assert file.read_bytes() == OLD
    left = [other for other in file.parent.iterdir() if other.name.endswith(".partial")]
    assert [other.name.startswith(".") for other in left] == [True]
    left[0].unlink()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mine/overlay.svg", "a.csv", "a.html"])
def test_a_full_disk_names_the_file_and_leaves_the_old_one_intact(name, results):
    file = results / name
    file.write_bytes(OLD)
    code, errors = in_child(limited, results, file.name, WRITERS[name])
    assert code == 2
    assert errors.splitlines()[-1] == f"{name}: cannot be written: File too large"
    assert "Traceback" not in errors
    assert file.read_bytes() == OLD
    assert not list(file.parent.glob(".*.partial"))


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITERS)
def test_an_old_file_is_replaced_by_a_complete_new_one(name, results, monkeypatch, capsys):
    monkeypatch.chdir(results)
    (results / name).write_bytes(OLD)
    code, message = called(monkeypatch, capsys, *WRITERS[name])
    assert code == 0, message
    assert len((results / name).read_bytes()) > 400
    assert not list((results / name).parent.glob(".*.partial"))


def test_a_link_that_was_planted_beside_the_file_is_not_followed(tmp_path, monkeypatch):
    precious = tmp_path / "precious"
    precious.write_bytes(OLD)
    monkeypatch.setattr(files.secrets, "token_hex", lambda _: "known")
    (tmp_path / f".{os.getpid()}-known.partial").symlink_to(precious)
    with pytest.raises(StoreError, match=r"a\.csv: cannot be written: File exists"):
        files.write_atomically(tmp_path / "a.csv", b"new")
    assert precious.read_bytes() == OLD


def test_a_link_to_a_file_stays_a_link_to_a_new_file(tmp_path):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far/a.csv", tmp_path / "a.csv"
    link.symlink_to(target)
    for content in (b"first", b"second"):  # the first creates the target
        files.write_atomically(link, content, named_by_user=True)
        assert link.is_symlink()
        assert target.read_bytes() == content


def test_a_link_or_a_pipe_under_a_name_that_the_user_has_not_given_is_refused(tmp_path):
    precious, link, pipe = tmp_path / "precious", tmp_path / "overlay.png", tmp_path / "overlay.txt"
    precious.write_bytes(OLD)
    link.symlink_to(precious)
    os.mkfifo(pipe)
    with pytest.raises(StoreError, match=r"overlay\.png: is a symbolic link, whose target would be overwritten"):
        files.write_with_suffixes(tmp_path / "overlay", {"png": b"new"})
    with pytest.raises(StoreError, match=r"overlay\.txt: is not a regular file"):
        files.write_with_suffixes(tmp_path / "overlay", {"txt": b"new"})
    assert precious.read_bytes() == OLD


def test_permissions_are_those_of_the_old_file_or_of_any_new_one(tmp_path):
    file, plain = tmp_path / "a.csv", tmp_path / "plain"
    plain.touch()
    files.write_atomically(file, b"first")
    assert stat.S_IMODE(file.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    file.chmod(0o640)
    files.write_atomically(file, b"second")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_pipe_is_written_in_place_and_one_without_a_reader_is_refused(tmp_path):
    pipe = tmp_path / "a.csv"
    os.mkfifo(pipe)
    with pytest.raises(StoreError, match=r"a\.csv: cannot be written: "):
        files.write_atomically(pipe, b"new", named_by_user=True)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    files.write_atomically(pipe, b"new", named_by_user=True)
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_standard_output_is_written_in_place(tmp_path):
    script = (
        "from pathlib import Path\nfrom statmech.runtime import files\n"
        "files.write_atomically(Path('/dev/stdout'), b'new', named_by_user=True)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "new", "")
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([sys.executable, "-c", script], stdout=out, timeout=60, check=True)
    assert (tmp_path / "out").read_text() == "new"
    assert os.path.islink("/dev/stdout")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda path: path.mkdir(), "is a folder, not an ordinary file"),
        (os.mkfifo, "is a pipe or a device, not an ordinary file"),
        (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device, not an ordinary file"),
        (lambda path: path.write_bytes(b"12345"), "is larger than 4 bytes"),
    ],
)
def test_a_file_that_is_special_or_too_large_is_not_read(made, message, tmp_path):
    made(tmp_path / "it")
    with pytest.raises(OSError, match=message):
        files.read_bounded_file(tmp_path / "it", max_bytes=4)


@pytest.mark.parametrize("folder", ["--out", "--to"])
def test_an_empty_name_is_refused_and_nothing_is_written(folder, results, in_scratch, monkeypatch, capsys):
    for given in (
        ["run", "ensemble", "--dry-run"],
        ["report", str(results / "mine")],
        ["export", str(results / "mine")],
    ):
        if (folder == "--to") == (given[0] == "export"):
            code, message = called(monkeypatch, capsys, *given, folder, "")
            assert code == 2
            assert "the name is empty" in message
    assert list(in_scratch.iterdir()) == []


@pytest.mark.slow
def test_a_formula_in_a_name_is_text_in_a_spreadsheet(monkeypatch, tmp_path):
    import pandas as pd

    from statmech.results import export_and_citations
    from statmech.students.rules import RULES

    bad = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"]
    for name in bad:
        monkeypatch.setitem(RULES, name, RULES["hebb"])
    scenario = Scenario(rule=["hebb", *bad], N=20, t=[0.01], seeds=2, start={"R": -0.9})
    export_and_citations.write_export(simulate.run(scenario), theory.solve(scenario), tmp_path / "a.csv")
    found = pd.read_csv(tmp_path / "a.csv")
    assert set(found.rule) == {"hebb", *(f"'{name}" for name in bad)}
    assert found.theory.min() < 0  # numbers are numbers
    assert (
        export_and_citations.make_export_table(simulate.run(scenario), None).rule.tolist().count("=1+1") > 0
    )  # and in Python names are names
