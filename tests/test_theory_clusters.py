"""Learners of two Gaussian clusters: recorded values, closed forms, limits of the penalty, and runs at finite N."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import disagreements

import simulate
import theory
from simulate.convex import training_data
from simulate.convex.minimisation_and_separability import minimise
from simulate.convex.objective_and_certificates import Problem
from statmech import Clusters, ScenarioError
from statmech.convex import gaussian_clusters as vocabulary
from statmech.convex.gaussian_clusters import GaussianClusters
from statmech.convex.losses import LOSSES, Hinge, Logistic, Square, SquaredHinge, convert_to_stability_loss
from statmech.convex.separability_thresholds import compute_cluster_separability_threshold
from statmech.inputs.covariance_modes import make_modes
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.numerics.gaussian import normal_cdf
from theory.convex.gaussian_clusters import (
    ClusterEquations,
    compute_best_plane_error,
    compute_learnt_separation,
    find_best_cluster_lambdas,
    solve_cluster_minimum,
)
from theory.convex.saddle_point import PenaltyPoint

EQUAL = GaussianClusters().combine_with_modes(None)
UNEQUAL = GaussianClusters(positives=0.3, distance=8**0.5).combine_with_modes(
    make_modes([0.3, 2.4], [2 / 3, 1 / 3], [0.25, 0.75])
)
SPECTRUM = {"eigenvalues": [0.3, 2.4], "shares": [2 / 3, 1 / 3], "teacher": [0.25, 0.75]}
FOUR = {
    "square": convert_to_stability_loss(Square()),
    "logistic": Logistic(),
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
}
every_loss = pytest.mark.parametrize("loss", FOUR.values(), ids=FOUR)


def at(loss, clusters, alpha, lam, intercept=False):
    alpha, lam = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(lam, float))
    return solve_cluster_minimum(loss, clusters, np.atleast_1d(alpha), np.atleast_1d(lam), intercept)


def test_recorded_values_are_those_of_two_routes():
    equal, unequal = at(Logistic(), EQUAL, 2, 0.1), at(convert_to_stability_loss(Square()), UNEQUAL, 1, 0.1)
    found = [*(equal[k][0] for k in (0, 1, 3, 8)), *(unequal[k][0] for k in (0, 1, 8))]
    recorded = [1.3755960258, 1.8802544406, 4.0697686354, 0.2322060694, 0.5441997758, 0.7204135457, 0.2711702007]
    np.testing.assert_allclose(found, recorded, rtol=0, atol=6e-11)


@every_loss
def test_an_infinite_penalty_is_hebbs_rule_and_the_best_of_equal_clusters(loss):
    strong = at(loss, EQUAL, [0.5, 2, 5], 1e6).eps_g
    np.testing.assert_allclose(
        strong,
        [compute_best_plane_error(compute_learnt_separation(EQUAL, alpha), 0.5) for alpha in (0.5, 2, 5)],
        atol=2e-7,
    )
    assert abs(strong[1] - 0.2071080891) < 2e-7
    assert np.isinf(find_best_cluster_lambdas(loss, EQUAL, np.array([0.5, 2.0]))).all()


@every_loss
@pytest.mark.parametrize("intercept", [False, True])
def test_derivatives_are_those_of_differences(loss, intercept):
    equations, alpha = ClusterEquations(loss, UNEQUAL, intercept), np.array([1.3])
    x, point = (
        np.array([0.3, -0.2, 0.2, 0.15][: 4 if intercept else 3])[:, None],
        PenaltyPoint(np.log([0.3]), np.array([0.6])),
    )
    exact, h = equations.linearise(x, alpha, point), 1e-6

    def moved(k, sign):
        return equations.linearise(x + sign * h * np.eye(len(x))[:, [k]], alpha, point).F

    J = np.stack([(moved(k, 1) - moved(k, -1)) / (2 * h) for k in range(len(x))], axis=1)
    up, down = (
        equations.linearise(x, alpha, PenaltyPoint(point.log_lam + s * h, point.l1_fraction)).F for s in (1, -1)
    )
    np.testing.assert_allclose(exact.J, J, atol=2e-9)
    np.testing.assert_allclose(exact.f, (up - down) / (2 * h), atol=2e-9)


@pytest.mark.parametrize(
    ("clusters", "intercept"), [(EQUAL, False), pytest.param(UNEQUAL, True, marks=pytest.mark.slow)], ids=["one", "two"]
)
def test_a_vanishing_penalty_is_the_limit_of_small_ones_on_both_sides_of_the_threshold(clusters, intercept):
    end = compute_cluster_separability_threshold(clusters, intercept)
    for loss in (Hinge(), SquaredHinge(), convert_to_stability_loss(Square())):
        for alpha in (0.6, 0.7 * end, 1.5 * end):
            none, small = at(loss, clusters, alpha, [0, 1e-8], intercept).eps_g
            assert abs(none - small) < 1e-7
    assert np.isnan(at(Logistic(), clusters, 0.9 * end, 0, intercept).eps_g[0])
    assert at(Logistic(), clusters, 1.1 * end, [0], intercept).residual[0] < 1e-9


def test_isotropic_least_squares_has_its_closed_form():
    """V = (1 - alpha A)/lam with A = V/(1 + V) is the root of a quadratic equation."""
    alpha, lam = 1.5, 0.3
    state = at(convert_to_stability_loss(Square()), EQUAL, alpha, lam)
    a = lam + alpha - 1
    V = (np.sqrt(a * a + 4 * lam) - a) / (2 * lam)
    weight = alpha / (1 + V) / (lam + alpha / (1 + V))  # m = weight (1 - m), of unit variance and power
    np.testing.assert_allclose([state.V[0], state.m_field[0]], [V, weight / (1 + weight)], rtol=1e-12)


@pytest.mark.slow
def test_an_error_with_an_intercept_is_least_at_the_best_penalty():
    clusters, alpha = GaussianClusters(positives=0.2).combine_with_modes(None), np.array([1.0, 5.0])
    best = find_best_cluster_lambdas(Logistic(), clusters, alpha, intercept=True)
    around = [at(Logistic(), clusters, alpha, best * factor, True).eps_g for factor in (0.97, 1, 1.03)]
    assert np.all(around[1] < np.minimum(around[0], around[2]))
    bayes = np.array([compute_best_plane_error(compute_learnt_separation(clusters, each), 0.2) for each in alpha])
    assert np.all(around[1] > bayes)
    assert np.all(bayes > compute_best_plane_error(clusters.separation, 0.2))


def test_the_bayes_optimal_learner_reaches_its_error_at_finite_N():
    """Its plane is across the posterior mean of the difference of the centres, at the offset of the posterior odds."""
    scenario = Clusters(
        clusters="gaussian", loss="square", inputs={"spectrum": SPECTRUM}, distance=3, positives=0.3, alpha=1, N=600
    )
    [cell] = scenario.cells()
    two, errors = cell.setting.clusters, []
    t, omega, nu = (np.repeat(part, [400, 200]) for part in (two.centre_powers, two.mode_variances, two.shares))
    for seed in range(12):
        data = training_data.draw_cluster_data(cell, 0, seed)
        far = np.where(data.y > 0, two.centre_distances[0], two.centre_distances[1])
        total = (data.y * far) @ data.X / np.sqrt(cell.N)  # of variance omega sum(far^2)/N around half sum(far^2)/N
        prior = t / nu
        mean = total * prior / (omega + prior * np.sum(far**2) / cell.N)
        w = mean / omega
        m, Q = w @ data.half_centre_difference / cell.N, np.sqrt(data.variances @ w**2 / cell.N)
        q = mean @ w / cell.N
        b = (two.centre_distances[1] - two.centre_distances[0]) * q / 2 + np.log(0.3 / 0.7) / 2
        errors.append(two.weights @ normal_cdf(-(two.centre_distances * m + vocabulary.CLUSTER_LABELS * b) / Q))
    expected = compute_best_plane_error(compute_learnt_separation(two, 1.0), 0.3)
    spread = np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - expected) < 3 * spread + 1 / cell.N
    assert spread < 0.003


@pytest.mark.slow
def test_examples_are_separable_below_the_threshold_and_not_above():
    config = {"clusters": "gaussian", "loss": "hinge", "lam": 1, "N": 120, "seeds": 3}
    for own in ({}, {"positives": 0.3, "intercept": True}):
        scenario = scenario_from(config | own | {"alpha": 1})
        end = float(theory.solve(scenario).alpha_c)
        runs = simulate.run(scenario_from(config | own | {"alpha": [0.75 * end, 1.25 * end]}))
        assert runs.separable.all("seed").values.tolist() == runs.separable.any("seed").values.tolist() == [True, False]


RUNS = {
    "isotropic": {"lam": 0.1, "alpha": 2},
    "spectrum, unequal": {"positives": 0.3, "distance": 8**0.5, "inputs": {"spectrum": SPECTRUM}, "alpha": 1},
    "intercept": {"positives": 0.3, "intercept": True, "alpha": 2, "lam": [0.1, 2]},
    "intercept, ridge": {
        **{"positives": 0.3, "distance": 8**0.5, "intercept": True, "alpha": 2},
        "inputs": {"spectrum": SPECTRUM | {"ridge": [0.5, 3]}},
    },
}


def run_of(name, **own):
    given = {"clusters": "gaussian", "loss": list(FOUR), "N": 300, "seeds": 16, **RUNS[name], **own}
    scenario = scenario_from(given)
    simulated = simulate.run(scenario)
    assert simulated.converged.all()
    return simulated.drop_vars("V"), theory.solve(scenario)  # of V the bias of order 1/N is larger than its error


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_runs_of_four_losses_agree_with_theory(name):
    assert not disagreements(*run_of(name))


def test_runs_of_few_seeds_agree_with_theory_and_swapped_distances_of_the_centres_do_not(monkeypatch):
    given = {"loss": ["square", "logistic"], "N": 150, "intercept": False, "lam": 0.1}
    simulated, solved = run_of("intercept", **given)
    assert not disagreements(simulated, solved)
    swapped = property(lambda self: 2 * self.weights)
    monkeypatch.setattr(vocabulary.TwoClusters, "centre_distances", swapped)
    assert disagreements(simulated, theory.solve(scenario_from({**RUNS["intercept"], "clusters": "gaussian", **given})))


@pytest.mark.parametrize("loss", [name for name in LOSSES])
@pytest.mark.parametrize(("P", "N"), [(20, 40), (120, 30)])
def test_weights_without_a_penalty_reach_a_certified_minimum(loss, P, N):
    rng = np.random.default_rng(3)
    y = np.where(rng.random(P) < 0.3, 1.0, -1.0)
    B = np.column_stack([rng.standard_normal((P, N)) * y[:, None] / N**0.5, y])
    problem = Problem(B, np.zeros(P), convert_to_stability_loss(LOSSES[loss]()), 0.0, 0.5, num_unpenalised_weights=1)
    found = minimise(problem)
    assert found.converged
    least = problem.value(found.w, problem.x(found.w))
    for step in (*(1e-3 * rng.standard_normal((5, N + 1))), *(np.eye(N + 1)[-1] * s for s in (1e-3, -1e-3, 0.3, -0.3))):
        assert problem.value(found.w + step, problem.x(found.w + step)) > least
    penalised = minimise(problem._replace(num_unpenalised_weights=0))  # another minimum: the intercept is held back
    assert abs(penalised.w[-1]) < abs(found.w[-1])


@pytest.mark.parametrize(
    ("keys", "place", "sentence"),
    [
        ({"teacher": "sign", "flip": 0.1}, "teacher", "clusters have labels of their own: remove teacher, flip"),
        ({"positives": 0}, "positives", "must be greater than 0"),
        ({"positives": [0.5, 1]}, "positives", "must be less than 1"),
        ({"distance": 0}, "distance", "must be greater than 0"),
        ({"inputs": "sphere"}, "inputs", "inputs around a centre are gaussian, anisotropic or a spectrum, not sphere"),
        ({"inputs": {"spectrum": [1, 2], "teacher": [1]}}, "inputs", "must be 2 numbers of 0 or more"),
        ({"inputs": {"spectrum": [1, 2], "shares": [0.5, 0.6]}}, "inputs", "shares of a spectrum must add up to 1"),
        ({"inputs": {"spectrum": [1, 2], "misfit": 0.1}}, "inputs", "misfit belongs to a teacher's field"),
        ({"inputs": {"spectrum": [1, 2], "ridge": [0, 1]}}, "inputs", "ridge must be greater than 0 in all groups"),
        ({"lam": 0}, "lam", "with lam = 0 the loss logistic has no minimum below alpha = 3.70003"),
        (
            {"loss": "hinge", "lam": 0, "intercept": True},
            "lam",
            "a vanishing penalty has its limit without an intercept",
        ),
    ],
)
def test_a_config_of_clusters_is_refused_in_a_sentence(keys, place, sentence):
    with pytest.raises(ScenarioError) as refused:
        scenario_from({"clusters": "gaussian", "loss": "logistic", "alpha": 2, **keys})
    [(where, why)] = refused.value.problems
    assert (where[0], sentence in why) == (place, True), why


@pytest.mark.parametrize("lam", [1e-6, 1000])
@pytest.mark.parametrize("name", ["square", "hinge", "huber", "squared_hinge", "absolute"])
def test_an_intercept_alone_is_the_certified_minimum_for_examples_of_one_label(name, lam):
    """Two examples, most of them of one label: the loss is 0, and so is the error relative to it."""
    given = {"clusters": "gaussian", "loss": name, "intercept": True, "positives": 0.1, "N": 20, "alpha": 0.1}
    runs = simulate.run(Clusters(**given, lam=lam, seeds=12))
    alone = runs.train_loss < 1e-9
    assert alone.sum() > 5
    assert runs.converged.all()
    assert (runs.eps_g.where(alone, 0.1).isin([0.1, 0.9])).all()
    assert (runs.length.where(alone, 0) < 1e-6).all()


def test_a_gap_is_relative_to_the_loss_unless_this_can_vanish():
    """Labels of both classes keep the scale of F, and so does a loss that falls everywhere."""
    B = np.array([[0.3, 1.0], [0.2, 1.0]])
    for loss, rows, size in ((Hinge(), B, 2.0), (Hinge(), B * [[1], [-1]], 0.5), (Logistic(), B, 0.5)):
        assert Problem(rows, np.zeros(2), loss, 0.0, 1.0, num_unpenalised_weights=1).relative_gap(1.0, 0.5) == 1 / size


def test_centres_have_the_stated_distance_and_powers_in_every_run():
    spectrum = {"spectrum": SPECTRUM}
    for law, powers in (("gaussian", None), (spectrum, [0.25, 0.75])):
        [cell] = Clusters(clusters="gaussian", loss="hinge", inputs=law, distance=3, alpha=1, N=60).cells()
        half = training_data.draw_cluster_data(cell, 0, 5).half_centre_difference
        assert np.isclose(half @ half / cell.N, 9 / 4)
        if powers:
            np.testing.assert_allclose([half[:40] @ half[:40], half[40:] @ half[40:]], np.array(powers) * 60 * 9 / 4)
