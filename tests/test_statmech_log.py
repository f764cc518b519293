"""Whatever a log contains, runs continue and are counted; only an intact config is computed."""

from __future__ import annotations

import shutil

import pytest

from figures.interactive.html_report import _get_write_time
from simulate.execution.store_simulation import run_into
from statmech import ConfigError, StoredExamples
from statmech.cli import main
from statmech.config import config_files
from statmech.stores.store_status import StoreLog, format_status, read_logged_runs, read_status
from statmech.stores.sweep_chunks import DONE_STATE, SweepStore

SWEEP = {"learner": "hebb", "N": 10, "alpha": [1.0, 2.0], "seeds": 16}
FOREIGN = [
    b"\xff\n",
    b"[1]\n",
    b"3\n",
    b"null\n",
    b'"word"\n',
    b'{"a": 1}\n',
    b'{"time": "2026-01-01T00:00:00"}\n',
    b'{"event": "begun"}\n',
    b'{"event": "begun", "time": "yesterday", "done": 0}\n',
    b'{"event": "begun", "time": "2026-01-01T00:00:00", "done": null}\n',
    b'{"event": "written", "time": "2026-01-01T00:00:00"}\n',
    b'{"event": "written", "time": "2026-01-01T00:00:00", "block": [], "done": 1}\n',
    b'{"event": "failed", "time": "2026-01-01T00:00:00"}\n',
    b'{"event": [], "time": "2026-01-01T00:00:00"}\n',
    b'{"event": "written", "time": 5, "block": 0, "done": 1}\n',
    b"[" * 5000 + b"\n",
    b"\0" * 100 + b"\n",
    b'{"event": "play',
]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished sweep, to be copied."""
    folder = tmp_path_factory.mktemp("finished")
    run_into(folder / "simulation.zarr", StoredExamples(**SWEEP))
    return folder


@pytest.mark.parametrize("line", FOREIGN, ids=range(len(FOREIGN)))
def test_a_line_that_is_not_an_event_is_skipped_wherever_it_is(line, finished, path):
    shutil.copytree(finished, path.parent, dirs_exist_ok=True)
    scenario = StoredExamples(**SWEEP)
    log, known = path.with_suffix(".log"), read_logged_runs(path.with_suffix(".log"))
    whole = log.read_bytes().splitlines(keepends=True)
    for at in range(len(whole) + 1):
        log.write_bytes(b"".join([*whole[:at], line if line.endswith(b"\n") else line + b"\n", *whole[at:]]))
        assert read_logged_runs(log) == known
    log.write_bytes(b"".join(whole) + line)
    assert "32 of 32 done" in "\n".join(format_status(read_status(path)))
    assert _get_write_time(path).endswith("according to its log")
    assert run_into(path, scenario) == (32, 0, 0)
    assert len(read_logged_runs(log)) == 2 or not line.endswith(b"\n")


def test_a_log_that_is_a_folder_or_cannot_be_read_is_omitted(path):
    path.with_suffix(".log").mkdir()
    assert run_into(path, StoredExamples(**SWEEP)) == (32, 0, 0)
    assert StoreLog(path).find_repeated_crash_chunks() == set()
    assert read_status(path)["rate"] == 0


@pytest.fixture
def damaged(path):
    """Results whose stored config says 17 seeds, though there are 16."""
    run_into(path, StoredExamples(**SWEEP))
    root = path / "zarr.json"
    root.write_text(root.read_text().replace('\\"seeds\\": 16', '\\"seeds\\": 17'))
    return path


@pytest.mark.parametrize("how", [["--fresh"], []])
def test_a_damaged_config_is_never_computed_from(how, damaged, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["statmech", "simulate", str(damaged.parent), *how])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert "its config is corrupted or missing (zarr.json). Give the config file instead" in message
    assert SweepStore(damaged, check=False).count_states()[DONE_STATE] == 32  # nothing was replaced


def test_an_intact_stored_config_is_computed_from(path):
    run_into(path, StoredExamples(**SWEEP))
    assert config_files.load(path.parent).seeds == 16
    with pytest.raises(ConfigError, match="a folder without results"):
        config_files.load(path.parent.parent)
