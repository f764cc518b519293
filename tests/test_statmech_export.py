"""Exported files have the numbers of the results, and a folder of results serves as its config."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from test_statmech_cli import called

import simulate
import theory
from statmech import ConfigError, Scenario, StoredExamples, StoreError, load
from statmech.results import export_and_citations
from statmech.stores import zarr_store

pytestmark = pytest.mark.quick

SMALL = ["K=1,3", "N=30", "seeds=4", "t=2"]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "nc"])
def test_files_have_the_numbers(suffix, tmp_path):
    scenario = StoredExamples(learner="minover", N=10, alpha=[1, 2], epochs=[5, 30], seeds=4, strengths=True)
    sim, sol, file = simulate.run(scenario), theory.solve(scenario), tmp_path / "new" / f"results.{suffix}"
    zarr_store.save(sim, tmp_path / "sim.zarr")
    export_and_citations.write_export(zarr_store.load(str(tmp_path / "sim.zarr")), sol, file)
    if suffix == "csv":
        found = pd.read_csv(file).query("variable == 'eps_g'")["simulation"]
        assert sorted(found) == pytest.approx(sorted(sim.eps_g.mean("seed").values.ravel()))
    else:
        with xr.open_dataset(file, engine="scipy") as found:
            np.testing.assert_array_equal(found.eps_g.values, sim.eps_g.values)
            assert json.loads(found.attrs["versions"])["jax"]


def test_other_kinds_of_files_are_refused(tmp_path):
    sim = simulate.run(Scenario(rule="hebb", N=10, t=[1], seeds=2))
    with pytest.raises(ConfigError, match=r"must end with .csv or .nc"):
        export_and_citations.write_export(sim, None, tmp_path / "results.txt")


@pytest.mark.slow
def test_a_folder_of_results_stands_for_its_config(in_scratch, capsys, monkeypatch):
    def call(*arguments):
        return called(monkeypatch, capsys, *arguments)

    assert call("run", "adatron_ensemble", *SMALL, "--out", "mine")[0] == 0
    assert load("mine").K == (1, 3)
    (in_scratch / "mine" / "adatron_ensemble.png").unlink()
    assert call("figure", "mine")[0] == 0  # as it was drawn first
    assert (in_scratch / "mine" / "adatron_ensemble.png").exists()
    assert call("export", "mine", "--to", "mine.csv")[0] == 0
    assert set(pd.read_csv("mine.csv").variable) >= {"R", "eps_g_majority_vote"}
    assert call("compare", "mine")[0] == 0
    assert call("run", "mine", "seeds=6")[0] == 0  # is extended in place
    assert load("mine").seeds == 6


def test_a_folder_without_results_is_reported(in_scratch):
    (in_scratch / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty: a folder without results: no simulation.zarr$"):
        load("empty")
    (in_scratch / "empty" / "simulation.zarr").mkdir()
    with pytest.raises(ConfigError, match="its config is corrupted or missing"):
        load("empty")


def test_a_missing_result_is_reported_with_those_that_exist(in_scratch):
    zarr_store.save(
        simulate.run(Scenario(rule="hebb", N=10, t=[1], seeds=2)), in_scratch / "results/one/simulation.zarr"
    )
    with pytest.raises(ConfigError, match=r"Folders with results in it: results/one$"):
        load("results")
    with pytest.raises(ConfigError, match=r'Did you mean the shipped config "ensemble"'):
        load("configs/ensemble.yaml")
    with pytest.raises(ConfigError, match=r"no such file, nor a folder of results$"):
        load("results/two")
    with pytest.raises(StoreError, match=r"Load one of its stores: simulation.zarr"):
        zarr_store.load("results/one")
    assert load("results/one/simulation.zarr").rule == "hebb"


def test_a_single_override_needs_no_list():
    assert load("ensemble", "K=3").K == 3


@pytest.mark.parametrize("solved", [simulate.run, theory.solve])
def test_a_name_is_not_a_scenario(solved):
    with pytest.raises(TypeError, match=r"such as statmech.load\('ensemble'\)"):
        solved("ensemble")


def test_load_precedes_the_command(in_scratch, capsys, monkeypatch):
    code, message = called(monkeypatch, capsys, "run", "ensemble", "--load", "mine.py")
    assert (code, message) == (2, "--load must precede the command: statmech --load FILE.py run ...\n")
