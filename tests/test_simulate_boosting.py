"""Boosting random sparse perceptrons satisfies the bounds of Jackson & Craven, and violations are detected."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import brief

import figures
import simulate
import theory
from simulate.classification import boosting as simulation
from simulate.classification import conjunctions
from statmech import Boosting, Results, ScenarioError
from statmech.classification.boosting import AdaBoost, BoostingCell
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.results import comparison
from theory.classification import boosting


def scenario(**given):
    return Boosting(**{"booster": "adaboost", "N": 8, "s": 3, "P": 200, "seeds": 6, "tests": 2000, **given})


def broken(of):
    """The bounds that hold with certainty and that some runs of a scenario violate."""
    found = comparison.count_runs_within_bounds(simulate.run(of), theory.solve(of))
    return {name for _, kept in found for name, one in kept.items() if one.runs < one.of and name != "eps_g"}


def skip_half_of_the_pairs(monkeypatch):
    find = conjunctions.ConjunctionSearch._find_allowed_pairs
    odd = lambda search, others: find(search, others) * (np.add.outer(others, others) % 2)  # noqa: E731
    monkeypatch.setattr(conjunctions.ConjunctionSearch, "_find_allowed_pairs", odd)


SWEEP = {"s": [1, 2, 3, 5, 8], "P": [20, 200], "k": [1, 2, 3], "discount": [1.0, 0.5]}


@pytest.mark.slow
def test_stages_and_advantages_satisfy_their_bounds():
    assert broken(scenario(**SWEEP)) == set()


def test_a_search_that_skips_half_of_the_pairs_violates_them(monkeypatch):
    skip_half_of_the_pairs(monkeypatch)
    assert broken(scenario(s=[1, 3], k=2)) == {"advantage"}


def test_a_teacher_of_more_conjunctions_than_stated_violates_them(monkeypatch):
    draw = simulation.draw_teacher
    monkeypatch.setattr(
        simulation, "draw_teacher", lambda rng, cell: draw(rng, BoostingCell(cell.booster, cell.N, 15, 0, ()))
    )
    assert "advantage" in broken(scenario(s=3, N=12, P=1000))


def cells(k):
    return [BoostingCell(AdaBoost(k=k), 7, s, 80, ()) for s in range(1, 8)]


def lacking(k):
    """The largest violation of Lemma 1 by the best conjunction, over many teachers and distributions."""
    rng, short = np.random.default_rng(k), []
    for cell in cells(k):
        for unevenness in (0.0, 0.5, 1.0, 2.0, 4.0, 8.0):
            X, y = simulation.draw_examples(rng, simulation.draw_teacher(rng, cell), cell.N, cell.P)
            D = rng.random(cell.P) ** unevenness
            D /= D.sum()
            right = D[conjunctions.ConjunctionSearch(1.0 * X, D * y, np.arange(cell.N), k, 1.0).best()(X) == y].sum()
            short.append(0.5 + 1 / (2 * cell.s) - right)
    return max(short)


@pytest.mark.parametrize("k", brief([1, 2, 3], 2))
def test_lemma_1_holds_under_any_distribution(k):
    assert lacking(k) <= 1e-12


def test_a_search_that_skips_half_of_the_pairs_violates_lemma_1(monkeypatch):
    skip_half_of_the_pairs(monkeypatch)
    assert lacking(2) > 1e-3


def test_few_runs_exceed_the_bound_on_eps_g_and_most_exceed_a_wrong_one(monkeypatch):
    one = scenario(s=[1, 3], P=[30, 100, 3000], seeds=20)
    sim, sol = simulate.run(one), theory.solve(one)
    assert float((sim.eps_g > sol.eps_g).mean()) <= boosting.BOUND_FAILURE_PROBABILITY
    assert sol.eps_g.min() < 0.1
    few = scenario(s=9, P=30, N=20, seeds=20)
    monkeypatch.setattr(
        boosting, "bound_log_perceptrons", lambda features, r: 0.0
    )  # as if there were a single function
    assert float((simulate.run(few).eps_g > theory.solve(few).eps_g).mean()) > 0.5


def test_more_values_and_seeds_change_no_earlier_number():
    few = simulate.run(scenario(s=3, P=100, seeds=2))
    many = simulate.run(scenario(s=[2, 3], P=[50, 100, 150], discount=[0.7, 1.0], seeds=3))
    for name in few.data_vars:
        np.testing.assert_array_equal(few[name], many[name].sel(s=3, P=100, discount=1.0, seed=[0, 1]))
    other = simulate.run(scenario(s=3, P=100, seeds=2, key=1))
    assert not np.array_equal(few.eps_g, other.eps_g) or not np.array_equal(few.advantage, other.advantage)


def test_labels_are_the_signs_of_nonzero_sums_and_more_examples_change_no_earlier_ones():
    for seed, cell in enumerate(cells(3)):
        teacher = simulation.draw_teacher(np.random.default_rng(seed), cell)
        X, y = simulation.draw_examples(np.random.default_rng(1), teacher, cell.N, 5000)
        assert np.array_equal(np.sign(teacher(X)), y)
        assert np.all(y != 0)
        fewer, _ = simulation.draw_examples(np.random.default_rng(1), teacher, cell.N, 70)
        assert np.array_equal(X[:70], fewer)


def test_a_teacher_s_conjunctions_have_uniformly_one_to_k_inputs_and_random_signs():
    rng = np.random.default_rng(0)
    teachers = [simulation.draw_teacher(rng, BoostingCell(AdaBoost(k=3), 6, 5, 1, ())) for _ in range(200)]
    all_of_them = [h for teacher in teachers for h in teacher.conjunctions]
    for j in (1, 2, 3):
        fraction = np.mean([len(h.indicators) == j for h in all_of_them])
        assert abs(fraction - 1 / 3) < 4 * np.sqrt(2 / 9 / 1000)
    assert abs(np.mean([h.sense for h in all_of_them])) < 4 / np.sqrt(1000)
    assert all(len(set(h.indicators)) == len(h.indicators) for h in all_of_them)


def test_a_run_that_ends_before_its_bound_has_no_stages_and_is_not_judged_by_it():
    one = scenario(s=9, P=300, N=12, cap=3)
    sim = simulate.run(one)
    assert not sim.converged.any()
    assert np.isnan(sim.stages).all()
    assert comparison.count_converged_runs(sim) == [(0, 6)]
    [(_, kept)] = comparison.count_runs_within_bounds(sim, theory.solve(one))
    assert (kept["stages"].runs, kept["stages"].of) == (0, 0)
    assert kept["advantage"].of == 6
    assert np.isnan(kept["stages"].ratio)


def test_a_run_that_is_abandoned_at_its_bound_violates_it(monkeypatch):
    stage = conjunctions.BoostingStage(conjunctions.Conjunction((0,), 1), 0.4, 0.4)
    monkeypatch.setattr(simulation, "boost_until_correct", lambda *args: ([stage], False))
    one = scenario(s=1, cap=boosting.bound_stages(1, 200))
    [(_, kept)] = comparison.count_runs_within_bounds(simulate.run(one), theory.solve(one))
    assert (kept["stages"].runs, kept["stages"].of) == (0, 6)


def test_a_fraction_of_the_labels_is_flipped_and_more_flips_keep_those_of_fewer():
    y = np.where(np.arange(10_000) % 3, 1.0, -1.0)
    few, many = (simulation.flip_labels(np.random.default_rng(5), y, flip) != y for flip in (0.1, 0.3))
    for flips, wanted in ((few, 0.1), (many, 0.3)):
        assert abs(flips.mean() - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / y.size)
    assert np.all(many[few])
    assert np.array_equal(simulation.flip_labels(np.random.default_rng(5), y, 0.0), y)


FLIPPED = {"s": 5, "P": 1000, "N": 12, "flip": [0, 0.1], "cap": [30, 300], "seeds": 16}


@pytest.mark.slow
def test_without_flips_nothing_changes_and_with_them_the_teacher_is_learnt_less_well():
    found = simulate.run(scenario(**FLIPPED))
    plain = simulate.run(scenario(**{**FLIPPED, "flip": 0, "cap": 300}))
    for name in plain.data_vars:
        np.testing.assert_array_equal(plain[name], found[name].sel(flip=0, cap=300))
    rise = (found.eps_g.sel(flip=0.1) - found.eps_g.sel(flip=0)).values
    assert np.all(rise.mean(axis=1) > 4 * rise.std(axis=1, ddof=1) / np.sqrt(16))


@pytest.mark.slow
def test_boosting_from_flipped_labels_is_best_ended_early_and_from_clean_ones_never():
    eps = simulate.run(scenario(**FLIPPED)).eps_g
    later = (eps.sel(cap=300) - eps.sel(cap=30)).values
    clean, flipped = later.mean(axis=1)
    assert flipped > 4 * later[1].std(ddof=1) / np.sqrt(16)
    assert clean <= 0


def test_bounds_are_those_of_labels_without_flips():
    sol = theory.solve(scenario(flip=[0, 0.1]))
    assert np.all([np.isfinite(sol[name].sel(flip=0)) for name in ("stages", "eps_g", "advantage")])
    assert np.all([np.isnan(sol[name].sel(flip=0.1)) for name in ("stages", "eps_g", "advantage")])
    with pytest.raises(ScenarioError, match="are those of labels without flips"):
        theory.solve(scenario(flip=[0.1, 0.2]))


def test_flips_that_do_not_depend_on_the_inputs_leave_part_of_the_advantage_of_lemma_1_and_not_all():
    rng, left, whole = np.random.default_rng(3), [], []
    for cell in cells(2):
        X, y = simulation.draw_examples(rng, simulation.draw_teacher(rng, cell), cell.N, 20_000)
        for flip in (0.1, 0.3):
            labels = simulation.flip_labels(rng, y, flip)
            found = (
                np.mean(conjunctions.ConjunctionSearch(1.0 * X, labels, np.arange(cell.N), 2, 1.0).best()(X) == labels)
                - 0.5
            )
            left.append(boosting.guaranteed_advantage(cell.s, flip=flip) - found)
            whole.append(boosting.guaranteed_advantage(cell.s) - found)
    error = 0.5 / np.sqrt(20_000)
    assert max(left) < 4 * error
    assert max(whole) > 4 * error


def test_without_pairs_there_is_no_bound_for_a_teacher_of_pairs():
    one = scenario(s=3, discount=0.0, cap=200)
    sol = theory.solve(one)
    assert np.isnan(sol.stages)
    assert sol.advantage == 0
    sim = simulate.run(one)
    assert not sim.converged.all()
    assert np.all(sim.advantage >= 0)
    [(_, kept)] = comparison.count_runs_within_bounds(sim, sol)
    assert kept["stages"].of == 0
    assert theory.solve(scenario(s=3, discount=0.0, k=1)).stages == boosting.bound_stages(3, 200)


def test_runs_that_satisfy_a_bound_are_counted_on_the_right_side():
    one = scenario(s=[3, 5], seeds=3)
    sim, sol = simulate.run(one), theory.solve(one)
    sim.stages[:] = [[1, 2, 3], [1, np.nan, 500]]
    sim.advantage[:] = [[0.2, 0.3, 0.4], [0.2, 0.05, 0.1]]
    sol.stages[:] = [2, 100]
    (_, first), (cell, second) = comparison.count_runs_within_bounds(sim, sol)
    assert cell == {"s": 5}
    assert first["stages"] == comparison.BoundCount(2, 3, 1.5)
    assert second["stages"] == comparison.BoundCount(1, 3, 5.0)
    assert first["advantage"] == comparison.BoundCount(3, 3, pytest.approx(1.2))
    assert second["advantage"] == comparison.BoundCount(2, 3, pytest.approx(0.5))
    assert comparison.list_bounded_variables(sim, sol) == ["stages", "eps_g", "advantage"]
    assert list(comparison.distances(sim, sol).data_vars) == []


def test_bounds_are_those_of_the_lemmas():
    sol = theory.solve(scenario(s=[3, 9], P=[1000], discount=[1.0, 0.5], N=20))
    assert sol.stages.sel(discount=1.0).values.ravel().tolist() == [125, int(162 * np.log(1000)) + 1]
    assert sol.stages.sel(discount=0.5, s=3).item() == int(72 * np.log(1000)) + 1
    np.testing.assert_allclose(sol.advantage.values[..., 0], [[1 / 6, 1 / 18], [1 / 12, 1 / 36]])
    eps = boosting.bound_generalization_error(10**6, 0.05, boosting.bound_log_perceptrons(211, 250))
    assert boosting.bound_sample_size(eps, 0.05, boosting.bound_log_perceptrons(211, 250)) in (10**6, 10**6 + 1)
    assert boosting.bound_generalization_error(10, 0.05, 100.0) == 1.0
    assert "upper bound" in sol.stages.attrs["long_name"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"booster": "adabost"}, '"adabost" is not a booster. Did you mean "adaboost"?'),
        ({"s": 0}, "s: must be at least 1, not 0"),
        ({"P": [100, 0]}, "P[1]: must be at least 1, not 0"),
        ({"k": 0}, "k: must be at least 1, not 0"),
        ({"k": 1.5}, "k: must be a whole number, not 1.5"),
        ({"discount": 1.5}, "discount: must be at most 1, not 1.5"),
        ({"discount": [0.5, -1]}, "discount: must be at least 0, not -1"),
        ({"cap": 0}, "cap: must be at least 1, not 0"),
        ({"flip": 0.6}, "flip: must be at most 0.5, not 0.6"),
        ({"alpha": 2}, '"alpha" is not a key of this config'),
    ],
)
def test_a_bad_scenario_of_boosting_is_refused(given, message):
    with pytest.raises(ScenarioError) as refused:
        scenario(**given)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"N": 2000, "k": 4}, "k: conjunctions of 4 of 2000 inputs are too many to search"),
        ({"P": 10**11}, "P: a run with 100,000,000,000 examples of 8 inputs takes"),
    ],
)
def test_a_sweep_too_large_for_this_machine_is_refused_before_it_begins(given, message):
    with pytest.raises(ScenarioError, match=message):
        simulate.run(scenario(**given))


def test_a_boosting_scenario_survives_a_round_trip_through_yaml():
    one = Boosting(booster="adaboost", s=[1, 3], zip={"N": [5, 6], "P": [10, 20]}, k=2, seeds=6)
    assert scenario_from(one.config()) == one
    assert dict(simulate.run(one).stages.sizes) == {"N_P": 2, "s": 2, "seed": 6}
    results = Results(one, simulate.run(one), theory.solve(one))
    assert figures.draw_with_fallback("boosting", results)[::2] == ("boosting", "")
