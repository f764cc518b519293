"""Parameter combinations that are simulated side by side: the bits of each alone, also after growth and failures."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import assert_same_bits

import simulate
from simulate.execution.store_simulation import run_into
from simulate.execution.work_units import make_simulator
from simulate.online import gram_engine
from statmech import Scenario
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.numerics.random_numbers import fold_in_key_data, make_generators
from statmech.stores import zarr_store
from statmech.stores.sweep_chunks import MAX_CELLS_PER_STORE_CHUNK, compute_chunk_lengths
from statmech.stores.sweep_cost import estimate_cost

ETA = np.linspace(0.3, 1.7, 70).tolist()
SWEEP = {"rule": "hebb", "N": 30, "t": [0, 0.5, 2], "eta": ETA, "seeds": 2}
CASES = {
    "perceptron": {"rule": "perceptron", "K": 3, "N": 20, "margin": [0, 0.5], "flip": 0.1},
    "changes": {"rule": "adatron", "K": 2, "N": 200, "drift": 0.1, "decay": [0.1, 0.2]},
    "float32": {"rule": "hebb", "N": 10_000, "dtype": "float32", "t": [0, 0.01]},
    "start, wide": {"rule": "bayes", "K": 2, "flip": 0.1, "start": {"length": 0.5, "R": 0.1, "q": 0.3}, "seeds": 8},
    "network": {"network": "erf", "K": 2, "M": 2, "N": 50, "eta_v": [0, 0.1], "noise": 0.1},
}
AS_USERS_COMPILE = ("float32", "start, wide")  # other sums, and most lanes; networks: test_simulate_networks.py


def together(scenario):
    """The largest number of combinations in a unit of work."""
    units = make_simulator(scenario).units(list(scenario.cells()), range(scenario.seeds))
    return max(len(unit.cells) for unit in units)


def differing(config, numbers):
    """The variables in which a sweep over eta differs from its combinations of these numbers alone."""
    scenario, found = scenario_from(config), set()
    assert together(scenario) >= 8
    swept = simulate.run(scenario)
    for number in numbers:
        single = scenario_from(config | {"eta": ETA[number]})
        assert together(single) == 1
        alone = simulate.run(single)
        found |= {
            name for name in alone if alone[name].values.tobytes() != swept[name].isel(eta=number).values.tobytes()
        }
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [case if case in AS_USERS_COMPILE else pytest.param(case, marks=pytest.mark.quick) for case in CASES]
)
def test_combinations_side_by_side_have_the_bits_of_each_alone(case):
    assert not differing(SWEEP | CASES[case] if "rule" in CASES[case] else without_rule(CASES[case]), (0, 1, 33, 69))


def without_rule(case):
    """A sweep of a network."""
    return {name: value for name, value in SWEEP.items() if name != "rule"} | case


@pytest.mark.quick
@pytest.mark.slow
def test_keys_of_neighbours_would_change_the_bits(monkeypatch):
    """The control of the test above."""
    monkeypatch.setattr(gram_engine, "fold_in_key_data", lambda keys, number: fold_in_key_data(keys, number)[::-1])
    assert "R" in differing(SWEEP, (0,))


def test_schedules_many_students_and_own_rules_stay_alone():
    assert together(Scenario(**SWEEP, schedule={"t0": 2})) == 1  # their rates would round otherwise
    assert together(Scenario(**SWEEP, K=4)) == 1


@pytest.mark.quick  # of the bits above
@pytest.mark.slow
def test_a_store_of_combinations_side_by_side_grows_and_keeps_those_beside_a_failure(tmp_path):
    large = Scenario(**SWEEP)
    run_into(tmp_path / "grown", Scenario(**SWEEP | {"eta": ETA[5:8]}))
    assert run_into(tmp_path / "grown", large).missing == 0
    assert_same_bits(tmp_path / "grown", large)
    failing = Scenario(**SWEEP | {"eta": [*ETA, 1e200]})
    outcome = run_into(tmp_path / "failing", failing)
    assert (outcome.done, outcome.failed) == (2 * len(ETA), 2)
    kept = zarr_store.load(tmp_path / "failing").R.sel(eta=ETA)
    np.testing.assert_array_equal(kept.values, simulate.run(large).R.values)


def test_the_estimate_counts_what_is_simulated_side_by_side():
    """Few students only: weight vectors, and more students, take a call of each combination."""
    swept = {"rule": "perceptron", "N": 100, "t": 1, "seeds": 2, "eta": {"linspace": [0.5, 2, 20_000]}}
    fast, many, direct = (Scenario(**swept, **given) for given in ({"K": 3}, {"K": 10}, {"engine": "vectors"}))
    assert min(estimate_cost(slow).seconds for slow in (many, direct)) > 20 * estimate_cost(fast).seconds
    assert compute_chunk_lengths(fast)[0] == MAX_CELLS_PER_STORE_CHUNK > compute_chunk_lengths(many)[0]


def test_several_keys_give_the_numbers_of_each():
    keys = np.arange(10, dtype=np.uint32).reshape(5, 2)
    words = np.array([0, 7, 2**32 - 1, 5, 6], np.uint32)
    expected = [fold_in_key_data(key, int(word)) for key, word in zip(keys, words, strict=True)]
    np.testing.assert_array_equal(fold_in_key_data(keys, words), expected)


def test_generators_of_many_keys_are_those_that_numpy_makes_of_each():
    keys = np.array([[0, 0], [1, 0], [0, 1], [2**32 - 1, 2**32 - 1], [928981903, 3453687069]], np.uint32)
    for (low, high), rng in zip(keys.tolist(), make_generators(keys), strict=True):
        assert rng.bit_generator.state == np.random.default_rng(low | high << 32).bit_generator.state
