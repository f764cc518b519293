"""No command runs code of the current folder, which may hold a stranger's results, in any of its processes."""

from __future__ import annotations

import contextlib
import functools
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from importlib.metadata import packages_distributions

import numpy as np
import pytest
from conftest import quick_environment

from simulate.execution import chunk_simulation
from simulate.execution.store_simulation import _make_store_attributes
from statmech import RULES, ConfigError, Scenario, StoredExamples
from statmech.cli.command_group import COMMAND_PANELS
from statmech.config import user_files
from statmech.runtime import compiled_programs
from statmech.stores.store_creation import create_store
from statmech.stores.store_status import StoreLog
from statmech.stores.sweep_chunks import DONE_STATE, SweepStore

OURS = ("statmech", "simulate", "theory", "figures", "sitecustomize", "usercustomize")
SCENARIO = StoredExamples(learner="hebb", N=10, alpha=[0.5, 1.0], seeds=12)  # compiles nothing
IMPORTED = "imported"  # the file to which planted modules write their names
STARTED_BY_PYTHON = {"statmech", "lazy_loader"}  # what `python -m statmech` imports before its first own line
COMMANDS = """
import sys

from statmech.cli import main

if __name__ == "__main__":  # workers import this file
    failed = []
    for arguments in {commands}:
        sys.argv = ["statmech", *arguments]
        try:
            main()
        except SystemExit as done:
            if done.code not in (0, None):
                failed.append((arguments, done.code))
    sys.exit(str(failed) if failed else 0)
"""


@pytest.fixture
def folder(tmp_path):
    """A folder of modules with names of libraries, and of results, a chunk of which has killed the last two runs."""
    folder = tmp_path / "strange"
    folder.mkdir()
    create_store(folder / "simulation.zarr", SCENARIO, _make_store_attributes(SCENARIO))
    for _ in range(2):
        StoreLog(folder / "simulation.zarr")(event="begun", done=0)
        StoreLog(folder / "simulation.zarr")(event="playing", block=0)
    np.savetxt(folder / "table.csv", np.random.default_rng(0).standard_normal((60, 4)), delimiter=",")
    for name in names():
        plant(folder, name)
    return folder


@functools.cache
def names():
    """The names of the modules that our processes may import."""
    return {*OURS, *sys.stdlib_module_names, *(name.partition(".")[0] for name in packages_distributions())}


def plant(folder, name):
    """A module that leaves a mark when it is imported, and then is not what the importer needs."""
    (folder / f"{name}.py").write_text(f"open({str(folder / IMPORTED)!r}, 'a').write({name + ' '!r})\n")


def imported(folder):
    """The names of planted modules that have been imported."""
    return (folder / IMPORTED).read_text().split() if (folder / IMPORTED).exists() else []


def environment():
    """The environment of a user who has set nothing about the paths of Python."""
    given = quick_environment()
    return {name: value for name, value in given.items() if name not in ("PYTHONPATH", "PYTHONSAFEPATH")}


def run(folder, *command, **options):
    return subprocess.run(
        [*map(str, command)], cwd=folder, env=environment(), capture_output=True, text=True, check=False, **options
    )


def statmech(folder, *commands):
    """A process that runs these commands, started as an installed `statmech` is."""
    script = folder.with_name("statmech-script.py")
    script.write_text(COMMANDS.format(commands=repr(commands)))
    return run(folder, sys.executable, script)


EVERY = [
    ["run", "."],
    ["simulate", "."],
    ["theory", "."],
    ["predict", "table.csv", "--loss", "square", "--lam", "0.1", "--examples", "20"],
    ["compare", "."],
    ["figure", "."],
    ["status", "."],
    ["verify", "."],
    ["report", "."],
    ["export", ".", "--to", "results.csv"],
    ["cite", "."],
    ["configs"],
    ["info"],
    ["schema"],
]


def test_planted_modules_are_imported_where_python_looks_for_them(folder):
    """The control of the tests below."""
    run(folder, sys.executable, "-c", "import simulate, multiprocessing")
    assert {"simulate", "multiprocessing"} <= set(imported(folder))


@pytest.mark.slow
def test_no_command_imports_a_module_of_the_current_folder(folder):
    known = {command.__name__ for commands in COMMAND_PANELS.values() for command in commands}
    assert known == {command for command, *_ in EVERY} | {"explore"}
    done = statmech(folder, *EVERY)
    assert imported(folder) == []
    assert done.returncode == 0, done.stderr
    assert '"apart"' in (folder / "simulation.log").read_text()  # by a child process
    assert SweepStore(folder / "simulation.zarr").count_states()[DONE_STATE] == 24


@pytest.mark.slow
def test_no_job_of_slurm_imports_a_module_of_the_current_folder(folder, monkeypatch, tmp_path):
    pytest.importorskip("distributed", reason="needs pip install 'statmech[cluster]'")
    jobqueue = pytest.importorskip("dask_jobqueue", reason="needs pip install 'statmech[cluster]'")
    from simulate.execution import dask_cluster

    asked = {}

    class Rejected(Exception):
        pass

    def make(**keywords):
        asked.update(keywords)
        raise Rejected

    (tmp_path / "jobs.yaml").write_text("cores: 1\nmemory: 1GB\n")
    with monkeypatch.context() as patch, contextlib.suppress(Rejected):
        patch.setattr(jobqueue, "SLURMCluster", make)
        dask_cluster._start_slurm_cluster(tmp_path / "jobs.yaml")
    job = jobqueue.slurm.SLURMJob("tcp://127.0.0.1:1", "worker", cores=1, memory="1GB", python=asked.get("python"))
    python = shlex.split(job._command_template)
    done = run(folder, *python[: python.index("distributed.cli.dask_worker") + 1], "--help")
    assert imported(folder) == []
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_explorer_imports_no_module_of_the_current_folder(folder):
    pytest.importorskip("panel", reason="the extra [explore] is not installed")
    script = folder.with_name("explore.py")
    script.write_text(COMMANDS.format(commands=repr([["explore", "--no-browser"]])))
    options = {"cwd": folder, "env": environment(), "text": True, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, script], **options) as process:
        try:
            address = re.search(r"http\S+", process.stdout.readline())[0]
            with urllib.request.urlopen(address, timeout=60) as page:
                assert page.status == 200
        finally:
            process.send_signal(signal.SIGINT)
    assert imported(folder) == []


@pytest.mark.slow
def test_python_m_statmech_imports_nothing_more_from_the_current_folder(folder):
    for name in STARTED_BY_PYTHON | sys.stdlib_module_names:
        (folder / f"{name}.py").unlink(missing_ok=True)
    plant(folder, "multiprocessing")
    done = run(folder, sys.executable, "-m", "statmech", "run", ".")
    assert imported(folder) == []
    assert done.returncode == 0, done.stderr


RULES_FILE = """
from neighbour import FACTOR
from statmech.students.rules import RULES, Hebb

class Mine(Hebb):
    def g(self, kappa, length):
        from neighbour import FACTOR  # when the chunk is simulated
        return FACTOR + 0.0 * kappa

RULES["mine"] = Mine
"""


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    """A file of the user that imports a module beside it."""
    file = tmp_path / "rules" / "mine.py"
    file.parent.mkdir()
    file.with_name("neighbour.py").write_text("FACTOR = 2.0\n")
    file.write_text(RULES_FILE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(user_files, "_loaded_modules", {})
    monkeypatch.setitem(sys.modules, "neighbour", None)
    del sys.modules["neighbour"]
    known = dict(RULES)
    yield file
    RULES.clear()
    RULES.update(known)


@pytest.mark.slow
def test_a_child_imports_modules_beside_a_file_of_the_user_and_none_of_the_current_folder(
    own_file, folder, monkeypatch
):
    monkeypatch.chdir(folder)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    user_files.load_plugin(own_file)
    scenario = Scenario(rule="mine", N=20, t=1, seeds=2)
    of = create_store(folder / "mine.zarr", scenario, _make_store_attributes(scenario))
    assert chunk_simulation._run_child_and_get_death_cause(of.path, of.list_chunks()[0], False) == ""
    assert imported(folder) == []
    assert of.count_states()[DONE_STATE] == 2


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_worker_imports_modules_beside_a_file_of_the_user_and_none_of_the_current_folder(own_file, folder):
    pytest.importorskip("distributed", reason="needs pip install 'statmech[cluster]'")
    (folder / "c.yaml").write_text("rule: mine\nN: 20\nt: 1\nseeds: 2\n")
    done = statmech(folder, ["--load", str(own_file), "simulate", "c.yaml", "--out", "o", "--dask", "local:1"])
    assert imported(folder) == []
    assert done.returncode == 0, done.stderr
    assert SweepStore(folder / "o" / "simulation.zarr").count_states()[DONE_STATE] == 2


def test_a_relative_path_in_the_environment_names_no_code(own_file, monkeypatch):
    monkeypatch.chdir(own_file.parent)
    own_file.write_text("")
    monkeypatch.setenv(user_files.PLUGIN_FILES_ENV_VARIABLE, own_file.name)
    with pytest.raises(ConfigError, match="is relative to the current folder"):
        user_files.load_plugins_from_environment()
    monkeypatch.setenv("STATMECH_CACHE", "cache")
    assert compiled_programs.get_cache_folder() is None
    monkeypatch.setenv("STATMECH_CACHE", str(own_file.parent / "cache"))
    assert compiled_programs.get_cache_folder() is not None
