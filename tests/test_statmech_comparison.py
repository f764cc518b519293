"""Deviations of simulation from theory are judged by a bound that counts correlated values once, by enough seeds."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import disagreements
from scipy.special import ndtri
from scipy.stats import binomtest

import simulate
import theory
from figures.curves import compute_mean_and_error
from simulate.convex.objective_and_certificates import Minimum
from simulate.kinds import empirical_risk
from statmech import Network, Risk, Scenario, StoredExamples, compare, run
from statmech.numerics import statistics
from statmech.results import comparison
from statmech.results.tables import make_comparison_tables

pytestmark = pytest.mark.quick

CURVES = {"rule": "hebb", "eta": [0.5, 1], "N": 10_000, "t": [0.1, 0.2, 0.4, 0.7, 1]}


def samples(seeds: int, rng: np.random.Generator) -> np.ndarray:
    """Two curves of six times, of which neighbouring ones are correlated by 0.9, each with a function of itself."""
    steps = 0.9 ** np.abs(np.subtract.outer(range(6), range(6)))
    curves = rng.standard_normal((seeds, 2, 6)) @ np.linalg.cholesky(steps).T
    return np.concatenate([curves, 1 - 2 * curves], axis=1).reshape(seeds, -1)


def count(runs: np.ndarray) -> float:
    return statistics.count_independent_values(np.array([runs.shape[1]]), lambda _: runs, len(runs))


def largest(runs: np.ndarray, mean: np.ndarray) -> float:
    return float(np.max(np.abs(runs.mean(0) - mean) / runs.std(0, ddof=1)) * len(runs) ** 0.5)


@pytest.mark.parametrize("seeds", [8, 64])
def test_functions_of_each_other_count_once_and_independent_values_all(seeds):
    x = np.random.default_rng(1).standard_normal((seeds, 5))
    assert count(np.concatenate([x, -3 * x, x + 1], axis=1)) == pytest.approx(count(x), rel=0.1)
    assert count(x) == pytest.approx(5, rel=0.1)
    assert count(np.concatenate([x, x**3], axis=1)) > 6  # correlated, and yet not the same


def test_missing_runs_are_left_out():
    x = np.random.default_rng(2).standard_normal((32, 3))
    x[:5, 1] = np.nan
    assert count(np.concatenate([x, 2 * x], axis=1)) == pytest.approx(3, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [8, 64])
def test_the_bound_is_exceeded_in_one_sweep_of_a_hundred_and_one_that_counts_wrongly_is_not(seeds, monkeypatch):
    """`benchmarks/calibration.py` does the same with simulations; here with 20 times the level, and fewer sweeps."""
    monkeypatch.setattr(statistics, "FALSE_ALARM_PROBABILITY", 0.2)
    monkeypatch.setattr(statistics, "NUM_GAUSSIAN_SAMPLES", 30)
    rng, zero = np.random.default_rng(3), np.array([0.0] * 12 + [1.0] * 12)
    sweeps = [samples(seeds, rng) for _ in range(300)]
    deviations = [largest(runs, zero) for runs in sweeps]

    def agrees(values: list[float]) -> bool:
        beyond = sum(z > statistics.compute_deviation_bound(v, seeds) for z, v in zip(deviations, values, strict=True))
        return bool(binomtest(beyond, len(sweeps), 0.2).pvalue > 0.001)

    assert agrees([count(runs) for runs in sweeps])
    assert not agrees([24.0] * 300)  # Bonferroni's bound
    assert not agrees([2.0] * 300)  # every curve counted as one value


def test_as_many_seeds_can_judge_as_find_what_half_of_them_would_with_known_standard_deviations():
    for values in (1, 10, 1000):
        fewest, known = (
            statistics.compute_min_seeds(values),
            -ndtri(statistics.FALSE_ALARM_PROBABILITY / 2 / values),
        )
        assert statistics.compute_deviation_bound(values, fewest) / fewest**0.5 <= known / (fewest / 2) ** 0.5
        assert statistics.compute_deviation_bound(values, fewest - 1) / fewest**0.5 > known / (fewest / 2) ** 0.5


@pytest.mark.parametrize("seeds", [2, 8])
def test_few_seeds_judge_nothing_however_large_the_deviations(seeds):
    scenario = Scenario(**CURVES, seeds=seeds)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    solution["R"] *= 1.5
    [table] = compare(simulation, solution)
    assert not any(cell.highlighted for row in table.rows for cell in row)
    z = comparison.get_deviation_magnitudes(comparison.distances(simulation, solution))
    assert table.verdict == (
        f"not judged: {seeds} seeds are too few, 14 can judge; largest |z| {z.max():.1f} of 50 values"
    )


@pytest.mark.slow
def test_as_many_seeds_as_the_note_asks_for_judge():
    scenario = Scenario(**CURVES, seeds=14)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    [table] = compare(simulation, solution)
    assert not any(cell.highlighted for row in table.rows for cell in row)
    assert re.fullmatch(r"agrees: largest \|z\| \d\.\d of 50 values, bound \d\.\d", table.verdict)
    assert [column.heading for column in table.columns] == [
        "eta",
        "R",
        "length",
        "eps_g",
        "eps_g_majority_vote",
        "eps_g_weight_mean",
    ]
    solution["R"] *= 1.5
    [table] = compare(simulation, solution)
    assert [cell.highlighted for row in table.rows for cell in row][:2] == [False, True]
    assert re.match(r"deviates: \d+ of 50 values beyond the bound \d\.\d, largest \|z\| \d", table.verdict)


@pytest.mark.slow
def test_three_per_cent_too_much_in_theory_is_found_with_64_seeds():
    scenario = Scenario(**CURVES, seeds=64)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    assert not disagreements(simulation, solution)
    for variable in ("length", "eps_g", "eps_g_majority_vote", "eps_g_weight_mean"):
        wrong = solution.assign({variable: 1.03 * solution[variable]})
        assert any(f" {variable}: " in line for line in disagreements(simulation, wrong))


@pytest.mark.slow
def test_one_student_s_three_errors_and_r_are_counted_once():
    scenario = Scenario(**CURVES, seeds=64)
    distance = comparison.distances(simulate.run(scenario), theory.solve(scenario))
    alone = comparison.distances(simulate.run(scenario)[["R", "length"]], theory.solve(scenario))
    assert (distance.attrs["values"], alone.attrs["values"]) == (50, 20)
    assert distance.attrs["independent"] == pytest.approx(alone.attrs["independent"], rel=0.15)
    assert comparison.get_deviation_bound(distance) < statistics.compute_deviation_bound(50, 64) - 0.2


@pytest.mark.slow
def test_values_of_which_a_run_has_not_converged_are_not_judged():
    scenario = StoredExamples(learner="minover", N=20, alpha=[0.5, 4], epochs=[1, 200], seeds=12)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    solution["R"] *= 0.5
    every = simulation.converged.all("seed")
    assert 0 < every.sum() < every.size
    distance = comparison.distances(simulation, solution)
    np.testing.assert_array_equal(np.isfinite(distance.R), every)
    assert distance.attrs["values"] == 3 * every.sum()
    [table] = compare(simulation, solution)
    assert [cell.text for cell in table.rows[1][1:-1]] == ["-", "-", "-"]
    assert any(cell.highlighted for cell in table.rows[0])
    assert table.notes[-1] == "Theory describes runs that have converged: values are compared only where all runs have."


@pytest.mark.slow
def test_runs_without_a_solution_are_counted_and_enter_no_mean(monkeypatch):
    scenario = Risk(loss="square", penalty="l1", teacher="linear", noise=0.5, N=30, alpha=[0.5, 1], seeds=10)
    whole, solution = simulate.run(scenario), theory.solve(scenario)
    found, lost = empirical_risk.minimise_risk, iter([True, False, True] + 17 * [False])

    def learnt(problem, *given):
        return Minimum(np.zeros(problem.B.shape[1]), np.inf) if next(lost) else found(problem, *given)

    monkeypatch.setattr(empirical_risk, "minimise_risk", learnt)
    simulation = simulate.run(scenario)
    missing = np.isnan(simulation.R)
    assert missing.sum() == 2
    np.testing.assert_array_equal(simulation.R.mean("seed"), whole.R.where(~missing).mean("seed"))
    np.testing.assert_array_equal(compute_mean_and_error(simulation.eps_g)[0], whole.eps_g.where(~missing).mean("seed"))
    assert comparison.count_unsolved_runs(simulation) == (2, 20)
    assert comparison.count_unsolved_runs(whole) == (0, 20)
    [table] = compare(simulation, solution)
    assert table.notes[-1] == "2 of 20 runs returned no solution and are excluded."
    assert "-" not in [cell.text for row in table.rows for cell in row[1:3]]  # R and length


def test_a_sweep_that_agrees_to_rounding_has_nothing_to_judge():
    scenario = Risk(
        loss="square", penalty="l1", lam=0, teacher="linear", weights="sparse", rho=0.1, alpha=0.8, seeds=20, N=40
    )
    [table] = compare(simulate.run(scenario), theory.solve(scenario))
    assert table.verdict == "nothing to judge: all runs agree with theory to rounding, or theory has no value"
    assert table.rows == ()


def test_a_sweep_in_which_no_run_converges_is_not_judged():
    scenario = StoredExamples(learner="minover", N=20, alpha=4, epochs=2, seeds=12)
    [table] = compare(simulate.run(scenario), theory.solve(scenario))
    assert table.verdict == "not judged: in no parameter combination have all runs converged"
    assert [cell.text for cell in table.rows[0]] == ["0/12"]


@pytest.mark.slow
def test_values_that_theory_rounds_are_not_judged_by_a_spread_far_below_its_rounding():
    """Runs near 0 that scatter by 1e-16 beside a theory of 2e-9; a theory that errs by 1e-6 is found all the same."""
    scenario = Scenario(rule="hebb", N=100, t=[1, 2], seeds=20)
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    simulation["eps_g"] = 0 * simulation.eps_g + np.random.default_rng(0).uniform(0, 1e-16, simulation.eps_g.shape)
    for error, judged in ((2e-9, False), (1e-6, True)):
        solution["eps_g"] = 0 * solution.eps_g + error
        assert (np.max(np.abs(comparison.distances(simulation, solution).eps_g)).item() > 5) is judged


def notes_of(results):
    """The notes below the table of a comparison."""
    return [note for table in make_comparison_tables(results) for note in table.notes]


@pytest.mark.slow
def test_a_table_says_of_a_network_at_its_best_rate_that_it_does_not_leave_the_plateau():
    start = {"Q": 0.25, "R": {"diagonal": 0.01}}
    held = run(Network(network="erf", N=50, seeds=2, t=[1, 2], start=start, eta={"optimal": {"segments": 1}}))
    sentence = "At its best learning rate the network does not leave the plateau before the last time."
    assert sentence in notes_of(held)
    ones = np.eye(2)[None].repeat(2, 0)
    left = held.theory.assign(R=held.theory.R.copy(data=ones), Q=held.theory.Q.copy(data=ones))
    assert sentence not in notes_of(replace(held, theory=left))


def test_only_tables_of_several_recorded_times_state_that_deviations_are_the_largest_of_them():
    times, minima = Scenario(rule="hebb", N=20, t=[1, 2], seeds=4), Risk(loss="square", alpha=2, N=20, seeds=4)
    for scenario, ending in ((times, "(the largest over all recorded times)"), (minima, "in standard errors")):
        [table] = make_comparison_tables(simulate.run(scenario), theory.solve(scenario))
        assert table.title.endswith(ending)
