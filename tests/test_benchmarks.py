"""The benchmark scripts run at toy size, where their numbers are meaningless."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from conftest import quick_children, quick_environment

pytestmark = pytest.mark.quick

FOLDER = Path(__file__).parent.parent / "benchmarks"


SCRIPTS = (
    "attention",
    "boosting",
    "calibration",
    "descent",
    "engines",
    "equations",
    "everyday_fits",
    "everyday_live",
    "everyday_vote",
    "fits",
    "fluctuations",
    "learners",
    "networks",
    "networks_theory",
    "peers",
    "precision",
    "protocols",
    "risk",
    "real_tables",
    "visitors",
)


@pytest.fixture
def scripts(monkeypatch):
    """The scripts by name, at toy size, on all cores: `timing.pin` would replace this process."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("BENCHMARK_CORES", "0")
    monkeypatch.setattr(sys, "argv", ["script", "--tiny"])
    before = {*sys.modules}
    with quick_children():
        yield import_module
    for name in {*sys.modules} - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").parent == FOLDER:
            del sys.modules[name]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_benchmark_prints_its_tables(name, scripts, capsys):
    scripts(name).main()
    assert capsys.readouterr().out.count("| --- |") >= 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_processes_of_every_day_are_measured(scripts, capfd):
    tables = ["commands", "memory", "demo", "programs"]
    scripts("everyday").main([*tables, "--tiny"])
    assert capfd.readouterr().out.count("\n| --- |") == len(tables)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_faults_of_sweeps_cost_no_run():
    command = [sys.executable, FOLDER / "faults.py", "--tiny"]  # whose processes compare bits: compiled alike
    done = subprocess.run(command, capture_output=True, text=True, timeout=570, env=quick_environment())
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    assert done.stdout.count("| --- |") >= 1


@pytest.mark.slow
def test_random_command_lines_and_configs_are_answered_or_refused():
    command = [sys.executable, FOLDER / "fuzz.py", "--tiny"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=quick_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| command lines | 20 |" in done.stdout
