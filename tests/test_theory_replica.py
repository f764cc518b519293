"""Learning curves of stored examples: published values, limits, identities, independent forms of every equation."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import brief
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.special import comb, log_ndtr, ndtr
from scipy.stats import norm

from statmech import ScenarioError
from statmech.errors import SolverError
from theory import capacity, learning_curves, noisy_capacity, separable_fraction
from theory.stored_examples import learning_curves_and_bounds

ALPHAS = np.array([0.05, 0.3, 0.9, 1.1, 2.0, 5.0, 20.0])


def eps(alpha, learner, flip=0.0):
    return float(learning_curves([alpha], flip).eps_g.sel(learner=learner).item())


@pytest.mark.parametrize(
    ("learner", "expected"),
    [
        ("hebb", 0.230823),
        ("gibbs", 0.240312),
        ("max_stability", 0.188479),
        ("bayes", 0.174534),
        ("pseudo_inverse", 0.205952),
    ],
)
def test_values_at_alpha_2_are_the_known_ones(learner, expected):
    assert eps(2.0, learner) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize(
    ("learner", "power", "amplitude"),
    [
        ("gibbs", 1, 0.62466),
        ("max_stability", 1, 0.50049),
        ("bayes", 1, 0.44170),
        ("hebb", 0.5, 0.39894),
        ("pseudo_inverse", 0.5, 0.24049),
    ],
)
def test_errors_at_large_alpha_follow_the_known_laws(learner, power, amplitude):
    for alpha in (1e6, 1e9):
        assert alpha**power * eps(alpha, learner) == pytest.approx(amplitude, abs=6e-6)


def test_at_small_alpha_all_learners_but_gibbs_learn_like_hebb():
    """R = sqrt(2 alpha/pi) for all but Gibbs, whose R is the square of this."""
    R = learning_curves([1e-8]).R.isel(alpha=0)
    for learner in ("hebb", "pseudo_inverse", "max_stability", "bayes"):
        assert R.sel(learner=learner) == pytest.approx(np.sqrt(2e-8 / np.pi), rel=1e-6)
    assert R.sel(learner="gibbs") == pytest.approx(2e-8 / np.pi, rel=1e-6)


def test_nothing_beats_bayes_and_gibbs_errs_less_than_twice_as_often():
    curves = learning_curves(np.geomspace(1e-3, 1e3, 200)).eps_g
    assert np.all(curves.sel(learner="bayes") <= curves + 1e-15)
    assert np.all(curves.sel(learner="gibbs") <= 2 * curves.sel(learner="bayes"))
    assert np.all(curves.sel(learner=["hebb", "gibbs", "max_stability", "bayes"]).diff("alpha") < 0)


def test_the_pseudo_inverse_is_no_better_than_chance_at_alpha_1():
    assert eps(1.0, "pseudo_inverse") == 0.5
    assert eps(0.99, "pseudo_inverse") < 0.47 > eps(1.01, "pseudo_inverse")


@pytest.mark.parametrize("alpha", brief([0.3, 2.0, 8.0]))
def test_gibbs_learning_is_the_stationary_point_of_its_entropy(alpha):
    """An independent form: the replica-symmetric entropy per weight, extremised numerically in q."""

    def entropy(q):
        gamma = np.sqrt(q / (1 - q))
        energy = quad(lambda t: norm.pdf(t) * ndtr(-gamma * t) * log_ndtr(-gamma * t), -12, 12, epsabs=1e-13)[0]
        return 0.5 * np.log1p(-q) + q / 2 + 2 * alpha * energy

    q = brentq(lambda q, h=1e-5: entropy(q + h) - entropy(q - h), 1e-3, 1 - 1e-3, xtol=1e-10)
    assert np.arccos(q) / np.pi == pytest.approx(eps(alpha, "gibbs"), abs=1e-6)


def volume_edge(alpha, flip, R, kappa, wrong=1.0):
    """(1 - R^2) - alpha <(kappa - h)_+^2>, by adaptive quadrature; `wrong` scales the density without noise."""
    gamma = R / np.sqrt(1 - R * R)
    density = lambda h: 2 * norm.pdf(h) * (flip + wrong * (1 - 2 * flip) * ndtr(gamma * h))  # noqa: E731
    cost = quad(lambda h: density(h) * (kappa - h) ** 2, -12, kappa, epsabs=1e-13, points=[0.0], limit=200)[0]
    return 1 - R * R - alpha * cost


def largest_kappa(alpha, flip, wrong=1.0):
    """The largest stability that any overlap allows: the edge of Gardner's volume."""

    def kappa_at(R):
        return brentq(lambda kappa: volume_edge(alpha, flip, R, kappa, wrong), -5, 20)

    best = minimize_scalar(lambda R: -kappa_at(R), bounds=(0.0, 0.999), method="bounded", options={"xatol": 1e-7})
    return -best.fun, best.x


@pytest.mark.slow
@pytest.mark.parametrize(("alpha", "flip"), [(0.5, 0.0), (2.0, 0.0), (2.0, 0.1), (0.5, 0.1)])
def test_maximum_stability_is_the_largest_kappa_that_any_overlap_allows(alpha, flip):
    """An independent form: maximise kappa over R directly. A wrong term in the density must give a different value."""
    curve = learning_curves([alpha], flip).sel(learner="max_stability").isel(alpha=0)
    kappa, R = largest_kappa(alpha, flip)
    assert float(curve.kappa) == pytest.approx(kappa, abs=1e-8)
    assert float(curve.R) == pytest.approx(R, abs=1e-4)  # the maximum is flat in R
    assert abs(largest_kappa(alpha, flip, wrong=0.99)[0] - float(curve.kappa)) > 1e-4


def test_capacity_is_gardner_s():
    np.testing.assert_allclose(capacity([0, 1]), [2, 0.519572], atol=5e-7)
    expected = 1 / quad(lambda t: norm.pdf(t) * (t + 0.7) ** 2, -0.7, 12)[0]
    assert capacity(0.7) == pytest.approx(expected, rel=1e-10)


def test_noisy_capacity_takes_arrays_and_broadcasts_flip_and_kappa():
    flips, kappas = np.array([0, 0.05, 0.2, 0.5])[:, None], np.array([0, 0.3, 2])
    together = noisy_capacity(flips, kappas)
    assert together.shape == (4, 3)
    separate = [[noisy_capacity(flip, kappa) for kappa in kappas] for flip in flips[:, 0]]
    np.testing.assert_allclose(together, separate, rtol=1e-12)
    assert noisy_capacity([]).shape == (0,)
    np.testing.assert_array_equal(together[-1], capacity(kappas))
    assert np.ndim(noisy_capacity(0.1)) == 0


@pytest.mark.parametrize("flip", [0.0, 0.05, 0.3])
def test_noisy_capacity_at_a_stability_is_where_the_maximum_stability_has_that_value(flip):
    kappa = np.array([0.05, 0.5, 2.0])
    curve = learning_curves_and_bounds.solve_max_stability(noisy_capacity(flip, kappa), flip)
    np.testing.assert_allclose(curve.kappa, kappa, rtol=1e-9)
    shifted = learning_curves_and_bounds.solve_max_stability(
        1.01 * noisy_capacity(flip, kappa), flip
    )  # 1 % more examples make a difference
    assert np.all(shifted.kappa < 0.999 * kappa)


def test_noise_bounds_the_examples_that_a_perceptron_can_classify():
    assert noisy_capacity(0.1) == pytest.approx(2.992286, abs=5e-7)
    assert noisy_capacity(0) == np.inf
    assert noisy_capacity(0.5) == 2 == pytest.approx(noisy_capacity(0.499999), abs=1e-9)
    edge = noisy_capacity(0.2)
    curves = learning_curves([0.999999 * edge, 1.000001 * edge], 0.2).sel(learner="max_stability")
    assert 0 < curves.kappa[0] < 1e-5
    assert curves.exists.values.tolist() == [True, False]
    assert np.isnan(curves.eps_g[1])


def test_random_labels_teach_nothing():
    curves = learning_curves([0.5, 1.5], 0.5)
    learners = ["hebb", "pseudo_inverse", "max_stability"]
    np.testing.assert_allclose(curves.eps_g.sel(learner=learners), 0.5, atol=1e-12)
    np.testing.assert_allclose(capacity(curves.kappa.sel(learner="max_stability")), [0.5, 1.5], rtol=1e-9)
    nearly = learning_curves([0.5, 1.5], 0.5 - 1e-7)
    np.testing.assert_allclose(
        nearly.kappa.sel(learner="max_stability"), curves.kappa.sel(learner="max_stability"), atol=1e-6
    )


@pytest.mark.parametrize("flip", [0.0, 1e-6, 0.05, 0.3, 0.49])
def test_every_solution_carries_its_residual(flip):
    alphas = np.geomspace(1e-6, 1e8, 60)
    curves = learning_curves(alphas, flip)
    assert np.all(curves.residual.where(curves.exists, 0) < 1e-10)
    assert bool(curves.exists.sel(learner="hebb").all())
    assert curves.exists.sel(learner="max_stability").values.tolist() == (alphas < noisy_capacity(flip)).tolist()


def test_maximum_stability_takes_few_integrals(monkeypatch):
    """One unknown per alpha is solved for: an angle within each step of another root would take hundreds."""
    calls = []
    lifted = learning_curves_and_bounds._lifting_integral
    monkeypatch.setattr(
        learning_curves_and_bounds, "_lifting_integral", lambda *given: calls.append(given) or lifted(*given)
    )
    learning_curves(np.geomspace(0.1, 50, 200))
    assert 5 < len(calls) < 50


def test_the_separable_fraction_is_cover_s_counting_function():
    for P, N in ((5, 3), (12, 7), (30, 11), (3, 8)):
        counted = 2.0 ** (1 - P) * sum(comb(P - 1, k, exact=True) for k in range(N))
        assert separable_fraction(P, N) == pytest.approx(counted, rel=1e-12)
    assert separable_fraction(2000, 1000) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: learning_curves([0.0]), "greater than 0"),
        (lambda: learning_curves([[1.0]]), "greater than 0"),
        (lambda: learning_curves([np.nan]), "greater than 0"),
        (lambda: learning_curves([1.0], 0.6), "between 0 and 0.5"),
        (lambda: noisy_capacity(-0.1), "between 0 and 0.5"),
        (lambda: noisy_capacity([0.1, 0.7]), "flip: must lie between 0 and 0.5 .*, not 0.7"),
        (lambda: noisy_capacity([0.1, np.nan]), "between 0 and 0.5 .*, not nan"),
        (lambda: noisy_capacity(0.1, kappa=[0.0, -1.0]), "kappa: must be 0 or more .*, not -1"),
        (lambda: capacity(-1.0), "replica symmetry breaks below"),
        (lambda: separable_fraction(0, 3), "P: must be an integer"),
        (lambda: separable_fraction(3, 2.5), "N: must be an integer"),
    ],
)
def test_impossible_parameters_are_refused(call, message):
    with pytest.raises(ScenarioError, match=message):
        call()


def test_a_point_that_does_not_converge_is_named(monkeypatch):
    monkeypatch.setattr(learning_curves_and_bounds, "MAX_LOG_BRACKET", -59.0)  # a bracket without a root
    with pytest.raises(SolverError, match="gibbs are not solved at 2"):
        learning_curves([2.0])
