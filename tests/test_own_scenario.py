"""A kind of scenario in one file outside the package is one like the others: docs/howto/own_scenario.md."""

from __future__ import annotations

import json
import runpy
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from conftest import disagreements, statmech

import simulate
import theory
from figures.explorer import settings
from figures.explorer.pages import PAGES
from statmech import ConfigError, ScenarioError, load, load_results
from statmech.keys.scenario import SCENARIOS
from statmech.keys.variables import Variable
from statmech.kinds.selection_and_vocabulary import make_config_schema, scenario_from

pytestmark = pytest.mark.quick

FILE = Path(__file__).parent.parent / "docs" / "howto" / "linear_perceptron.py"
CONFIG = """
algorithm: gradient
N: [50, 100]
eta: [0.5, 1.0]
noise: 0.3
t: {linspace: [0, 3, 7]}
seeds: 12
"""
COMMAND = [sys.executable, "-m", "statmech.cli", "--load", str(FILE)]


@cache
def loaded():
    """The kind in the file and its page, read without the record of files that are loaded once per process."""
    runpy.run_path(str(FILE))
    return SCENARIOS.pop("algorithm"), PAGES.pop("algorithm")


@pytest.fixture
def kind(monkeypatch):
    """The kind, registered with its page for one test."""
    kind, page = loaded()
    monkeypatch.setitem(SCENARIOS, "algorithm", kind)
    monkeypatch.setitem(PAGES, "algorithm", page)
    return kind


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "linear.yaml"
    path.write_text(CONFIG)
    return path


def large(**given):
    return scenario_from({"algorithm": "gradient", "N": 2000, "noise": 0.5, "t": [0.5, 1, 2], "seeds": 16, **given})


@pytest.mark.slow
def test_its_simulation_agrees_with_its_theory(kind):
    scenario = large(eta=[0.3, 1.5])
    assert not disagreements(simulate.run(scenario), theory.solve(scenario))


@pytest.mark.slow
def test_a_wrong_theory_is_found(kind, monkeypatch):
    right = kind.solve
    monkeypatch.setattr(kind, "solve", lambda self, cell: {**right(self, cell), "rho": 0.96 * right(self, cell)["rho"]})
    scenario = large()
    assert disagreements(simulate.run(scenario), theory.solve(scenario))


def test_growing_its_sweep_changes_no_earlier_number(kind):
    small, grown = large(N=50, eta=0.5, seeds=3), large(N=[30, 50], eta=[0.5, 1], seeds=5)
    before, after = simulate.run(small), simulate.run(grown).sel(N=50, eta=0.5).isel(seed=slice(3))
    np.testing.assert_array_equal(after.eps_g, before.eps_g)


def test_its_keys_are_checked_and_described_like_all_others(kind, config):
    config.write_text(CONFIG.replace("noise: 0.3", "noise: -1").replace("eta: [0.5, 1.0]", "eta: 2") + "rule: hebb\n")
    with pytest.raises(ConfigError, match="one of"):
        load(config)
    config.write_text(config.read_text().replace("rule: hebb\n", "etaa: 1\n"))
    with pytest.raises(ConfigError) as refused:
        load(config)
    message = str(refused.value)
    for sentence in ("noise: must be at least 0, not -1", "eta: must be less than 2, not 2", 'Did you mean "eta"?'):
        assert sentence in message
    assert "LinearPerceptron" in [one["title"] for one in make_config_schema()["anyOf"]]
    data = theory.solve(large(eta=1))
    assert data.noise.attrs["long_name"] == "standard deviation of the noise, on the teacher's output"
    assert data.eta.attrs["long_name"] == "learning rate"


def test_the_explorer_drags_it(kind):
    assert {"N", "eta", "noise", "t"} <= set(settings.list_slider_keys("algorithm"))
    for name in ("eta", "noise"):
        low, high, step = settings.get_slider_range("algorithm", name)
        assert low < high
        assert step > 0
    start = settings.get_page_settings("algorithm").start
    scenario = scenario_from(settings.expand_page_config("algorithm", start))
    assert theory.solve(scenario).eps_g.sizes["t"] == len(scenario.t)


def test_a_page_without_a_key_for_the_x_axis_is_refused(kind, monkeypatch):
    monkeypatch.setattr(kind, "USUAL_X_KEY", "")
    with pytest.raises(ConfigError, match="algorithm: a kind with a page requires `USUAL_X_KEY`"):
        settings.get_page_settings("algorithm")


@pytest.mark.slow
def test_one_command_simulates_solves_compares_draws_and_reports_it(kind, config, tmp_path, capsys):
    out = tmp_path / "results"
    assert statmech("run", config, "--out", out) == 0
    printed = capsys.readouterr().out
    assert "rho" in printed
    assert statmech("figure", out) == 0
    for suffix in ("png", "svg", "pdf"):
        assert (out / f"overlay.{suffix}").stat().st_size > 1000
    assert statmech("run", config, "seeds=20", "--out", out) == 0
    assert load_results(out).simulation.sizes["seed"] == 20
    assert statmech("compare", out) == statmech("verify", out) == statmech("report", out) == 0
    assert "overlap B.J / N of teacher and student" in (out / "report.html").read_text()
    assert statmech("export", out, "--to", tmp_path / "x.csv") == 0
    assert "eps_g" in (tmp_path / "x.csv").read_text()


@pytest.mark.slow
def test_a_run_that_is_killed_is_resumed_with_the_same_bits(kind, config, tmp_path):
    more = ["N=500", "seeds=60", "t=2"]
    whole = simulate.run(load(config, more))
    folder = tmp_path / "killed"
    command = [*COMMAND, "simulate", str(config), *more, "--out", str(folder), "--json"]
    begun = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    for line in begun.stdout:
        if json.loads(line)["event"] == "written":
            break
    begun.send_signal(signal.SIGKILL)
    begun.wait(30)
    begun.stdout.close()
    assert subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=240, check=False).returncode == 0
    xr.testing.assert_equal(load_results(folder).simulation.eps_g, whole.eps_g)


def test_a_figure_that_it_does_not_have_is_refused_with_its_line(kind, config, tmp_path, capsys):
    config.write_text("figure: ensemble\n" + CONFIG)
    assert statmech("theory", config, "--out", tmp_path / "results") == 2
    assert "linear.yaml:1: figure" in capsys.readouterr().err
    assert not (tmp_path / "results").exists()


def test_a_variable_that_differs_from_a_key_by_case_only_is_refused(kind, monkeypatch):
    variables = {"T": Variable(("t",), "a temperature", "$T$")}
    monkeypatch.setattr(kind, "variables", property(lambda _: variables))
    with pytest.raises(
        ScenarioError, match="T: differs from t by case only, which many disks ignore, so one of them needs"
    ):
        scenario_from({"algorithm": "gradient", "t": [1]})
