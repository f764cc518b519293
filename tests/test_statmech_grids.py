"""Grids of any size are counted and estimated at once, or refused before any of their points is visited."""

from __future__ import annotations

import math

import pytest
from conftest import FIXED_EXAMPLES
from hypothesis import given
from hypothesis import strategies as st

import simulate
import theory
from simulate.execution import work_units
from simulate.execution.store_simulation import run_into
from simulate.execution.work_units import make_simulator
from statmech import Clusters, Scenario, StoredExamples
from statmech.config.config_files import load
from statmech.errors import ConfigError, ScenarioError
from statmech.keys.sweep_grid import Grid
from statmech.stores import sweep_cost
from statmech.stores.sweep_chunks import compute_chunk_lengths, count_chunks, iterate_chunks
from statmech.stores.sweep_cost import MEMORY_BYTES_PER_CELL


def test_a_grid_of_a_billion_combinations_is_estimated_at_once(tmp_path):
    path = tmp_path / "large.yaml"
    path.write_text("learner: hebb\nalpha: {linspace: [1, 2, 100_000]}\nflip: {linspace: [0, 0.5, 10_000]}\n")
    found = sweep_cost.estimate_cost(load(path))
    assert found.cells == 10**9
    assert 0 < found.seconds < math.inf


def test_more_combinations_than_a_store_holds_are_refused_before_any_is_visited(tmp_path, monkeypatch):
    path = tmp_path / "large.yaml"
    path.write_text("rule: hebb\nt: 1\neta: {linspace: [0, 1, 1_000_000]}\nflip: {linspace: [0, 0.5, 1_000_000]}\n")
    monkeypatch.setattr(Grid, "_iterate_points", None)
    product = "1,000,000 eta x 1,000,000 flip = 1,000,000,000,000 combinations"
    with pytest.raises(
        ConfigError, match=f"large.yaml:3: eta: {product} are more than the 40,960,000,000 that a store"
    ):
        load(path)


def test_more_combinations_than_memory_holds_are_refused_before_any_is_visited(monkeypatch):
    axes = {"alpha": {"linspace": [1, 2, 100_000]}, "flip": {"linspace": [0, 0.5, 10_000]}}
    large = StoredExamples(learner="hebb", **axes)
    monkeypatch.setattr(sweep_cost, "get_total_memory", lambda: 2**30)
    for compute in (simulate.run, theory.solve):
        with pytest.raises(ScenarioError, match="1,000,000,000 parameter combinations require 745 GiB"):
            compute(large)


def test_values_that_only_a_combination_can_refuse_are_checked_up_to_a_limit():
    axes = {"alpha": {"linspace": [1, 2, 10_000]}, "lam": {"linspace": [0.1, 2, 10_000]}}
    with pytest.raises(ScenarioError, match=r"10,000 lam x 10,000 alpha = 100,000,000 combinations are more than"):
        Clusters(clusters="gaussian", loss="square", **axes)


def test_more_chunks_than_a_store_holds_are_refused_and_nothing_is_written(tmp_path):
    eta = {"linspace": [0.1, 1, 10_000]}
    with pytest.raises(ScenarioError, match=r"10,000,000,000,000 runs are stored in .* chunks, and a store has at"):
        run_into(tmp_path / "new" / "simulation.zarr", Scenario(rule="hebb", t=1, eta=eta, seeds=10**9))
    assert not (tmp_path / "new").exists()


@FIXED_EXAMPLES
@given(lengths=st.lists(st.integers(1, 4), min_size=3, max_size=3), zipped=st.booleans(), seeds=st.integers(1, 5))
def test_a_grid_is_counted_as_it_is_visited(lengths, zipped, seeds):
    names = ("eta", "flip", "N")
    values = {name: [0.1 + 0.1 * i for i in range(n)] for name, n in zip(names, lengths, strict=True)}
    values["N"] = [10 + i for i in range(lengths[2])]
    if zipped:
        values["flip"] = [0.05 * i for i in range(lengths[0])]
        values = {"zip": {name: values.pop(name) for name in ("eta", "flip")}, **values}
    scenario = Scenario(rule=["hebb", "adatron"], t=1, seeds=seeds, **values)
    cells = list(scenario.cells())
    found = sweep_cost.estimate_cost(scenario)
    assert (found.cells, found.runs) == (len(cells), len(cells) * seeds)
    lengths_of_chunks = compute_chunk_lengths(scenario)
    grid = (*scenario.shape.values(), seeds)
    assert count_chunks(grid, lengths_of_chunks) == len(list(iterate_chunks(grid, lengths_of_chunks)))


def test_the_memory_of_a_large_grid_is_that_of_its_largest_unit_and_its_combinations(monkeypatch):
    eta, flip = [i / 1000 for i in range(1, 41)], [i / 1000 for i in range(40)]
    few = Scenario(rule="hebb", engine="vectors", N=[50, 5000], t=1, eta=[0.001, 0.04], flip=[0, 0.039], seeds=4)
    many = Scenario(rule="hebb", engine="vectors", N=[50, 5000], t=1, eta=eta, flip=flip, seeds=4)
    monkeypatch.setattr(work_units, "get_peak_memory", lambda: 0.0)
    more = work_units.estimate_peak_memory(make_simulator(many)) - work_units.estimate_peak_memory(make_simulator(few))
    assert MEMORY_BYTES_PER_CELL * 3192 <= more < 2 * MEMORY_BYTES_PER_CELL * 3192
