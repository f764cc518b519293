"""The benchmark scripts run at toy size, where their numbers are meaningless."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from conftest import quick_children

pytestmark = pytest.mark.quick

FOLDER = Path(__file__).parent.parent / "benchmarks"


SCRIPTS = (
    "attention",
    "boosting",
    "calibration",
    "descent",
    "engines",
    "equations",
    "fits",
    "fluctuations",
    "learners",
    "networks",
    "networks_theory",
    "precision",
    "risk",
    "real_tables",
    "visitors",
)
GROUPS = (
    "steps",
    "equations",
    "protocols",
    "replica",
    "fits",
    "votes",
    "commands",
    "demo",
    "programs",
    "memory",
    "stores",
    "explorer",
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
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("group", GROUPS)
def test_peers_are_compared(group, scripts, capfd):
    scripts("peers").main([group, "--tiny"])
    assert capfd.readouterr().out.count("\n| --- |") == 2  # the peers that are found, and this group


def test_every_group_of_peers_is_run(scripts):
    assert {*scripts("peers").GROUPS} == {*GROUPS, "browser"}  # the explorer's own tests open a browser
