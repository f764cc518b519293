"""Configs and stores with former names are read, resumed, extended and drawn as those with present ones.

`former_stores.tar.xz` has stores that were written before keys and variables were renamed; each lacks half of its runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import figures
import simulate
import theory
from simulate.execution.to_store import run_into
from statmech import Scenario, load_results
from statmech.config import load
from statmech.errors import ScenarioError
from statmech.parameters import parameter
from statmech.results import store
from statmech.results.checksums import group_of
from statmech.rules import RULES, Hebb
from statmech.scenarios.former_names import RenamedWarning
from statmech.scenarios.registry import SCENARIOS, scenario_from

STORES = Path(__file__).with_name("former_stores.tar.xz")
ROUNDING = 1e-6  # of learning online, whose inputs are drawn in float32, on other processors
RENAMED = [choice for choice, kind in SCENARIOS.items() if kind.FORMER]
pytestmark = [
    pytest.mark.quick,
    pytest.mark.filterwarnings("ignore::statmech.scenarios.former_names.RenamedWarning"),
]


@pytest.fixture
def extracted(tmp_path):
    with tarfile.open(STORES) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "former_stores"


def config_of(folder):
    return json.loads(group_of(folder / "simulation.zarr")["attributes"]["config"])


@pytest.mark.slow
@pytest.mark.parametrize("choice", RENAMED)
def test_a_store_of_former_names_is_read_resumed_extended_and_drawn(extracted, choice):
    folder, path = extracted / choice, extracted / choice / "simulation.zarr"
    with pytest.warns(RenamedWarning):
        scenario, before = scenario_from(config_of(folder)), store.load(path)
    expected = simulate.run(scenario)
    assert 0 < before.done.sum() < before.done.size
    xr.testing.assert_allclose(before.where(before.done), expected.where(before.done), rtol=ROUNDING)
    if not scenario.unsolved:
        assert set(store.load(folder / "theory.zarr").variables) == set(theory.solve(scenario).variables)
    assert run_into(path, scenario).missing == 0
    resumed = store.load(path)
    xr.testing.assert_allclose(resumed, expected, rtol=ROUNDING)
    assert figures.drawn("overlay", load_results(folder)).name == "overlay"
    larger = scenario_from(scenario.config() | {"seeds": scenario.seeds + 1})
    assert run_into(path, larger).missing == 0
    xr.testing.assert_equal(store.load(path).isel(seed=slice(scenario.seeds)), resumed)


@pytest.mark.slow
def test_other_words_would_draw_other_runs(extracted, monkeypatch):
    """A planted error: words of the present names do not give the stored numbers."""
    scenario, before = scenario_from(config_of(extracted / "rule")), store.load(extracted / "rule" / "simulation.zarr")
    monkeypatch.setattr(Scenario, "FORMER", {})
    runs = simulate.run(scenario)
    assert not np.isclose(runs.R, before.R)[before.done.values].all()


def test_the_sentence_names_the_present_key():
    with pytest.warns(RenamedWarning, match="`sigma` is called `noise` now"):
        network = scenario_from({"network": "erf", "t": 1, "sigma": 0.3})
    assert network.noise == 0.3
    assert "sigma" not in network.config()


def test_parallel_axes_have_former_names_as_well():
    given = {"boundary": "constant", "delta": 0.1, "zip": {"mean": [1, 0], "drift": [0, 0.1]}}
    assert scenario_from(given).shape == {"mean_feature_mean": 2}


def test_a_key_given_by_both_names_is_refused():
    with pytest.raises(ScenarioError, match="sigma: is called noise now, which is given as well"):
        scenario_from({"network": "erf", "t": 1, "sigma": 0.3, "noise": 0.3})


def test_an_override_by_either_name_replaces_the_value_of_the_config(tmp_path):
    former = tmp_path / "mine.yaml"
    former.write_text("network: erf\nt: 1\nsigma: 0.3\n")
    assert load("plateau", ["sigma=0.1"]).noise == load("plateau", ["noise=0.1"]).noise == 0.1
    with pytest.warns(RenamedWarning):
        assert load(former, ["noise=0.1"]).noise == 0.1


def test_a_former_name_is_the_own_key_of_a_class_of_the_user(monkeypatch):
    @dataclass(frozen=True)
    class Noisy(Hebb):
        label = "noisy"
        noise: float = parameter(0.0, "of mine")

    monkeypatch.setitem(RULES, "noisy", Noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RenamedWarning)
        assert next(Scenario(rule="noisy", t=1, noise=0.5).cells()).rule == Noisy(noise=0.5)


@pytest.mark.slow
def test_the_command_states_each_present_name_once(tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text("network: erf\nt: 1\nsigma: 0.3\n")
    command = [sys.executable, "-m", "statmech", "run", str(config), "--dry-run"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    stated = [line for line in found.stderr.splitlines() if "former name" in line]
    assert stated == ["`sigma` is called `noise` now; the former name was read"]
