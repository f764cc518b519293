"""Convex losses on inputs of unequal variance: values of two routes, limits, and the isotropic equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

import theory
from statmech.convex.losses import Absolute, Hinge, Logistic, Penalty, Square, SquaredHinge
from statmech.convex.separability_thresholds import compute_separability_threshold
from statmech.convex.teachers import LinearTeacher, LogitTeacher, ProbitTeacher, SignTeacher
from statmech.convex.weight_distributions import Gauss
from statmech.errors import ScenarioError
from statmech.inputs.covariance_modes import Modes
from statmech.inputs.input_distributions import Features, InputPopulation, PowerLaw, Spectrum, make_input_population
from statmech.kinds.empirical_risk import Risk
from theory.convex.best_lambda import find_best_lambda, search_best_lambda
from theory.convex.empirical_risk import make_convex_equations, solve_loss_minimum
from theory.convex.saddle_point import PenaltyPoint
from theory.convex.weight_averages import ModeWeightEquations

L2 = Penalty(0.0)
OMEGA, SHARES = np.array([0.2, 3.4]), (0.75, 0.25)
TO_ALL_DIGITS = {"rtol": 0, "atol": 6e-11}  # of the ten that are stated


def of_powers(*powers, **more):
    """Two modes with these parts of the variance of the teacher's field."""
    T = np.array(powers) / OMEGA
    law = Spectrum(tuple(OMEGA), SHARES, tuple(T / T.sum()), misfit=1 - sum(powers), **more)
    return make_input_population(law, 400)


def solved(loss, teacher, inputs, alpha, lam):
    alpha, lam = np.broadcast_arrays(np.atleast_1d(np.asarray(alpha, float)), np.asarray(lam, float))
    return solve_loss_minimum(loss, teacher, L2, Gauss(), alpha, lam, inputs)


VALUES = [  # of two routes that agree to 1e-12
    (
        "R1: ridge with misfit",
        (Square(), LinearTeacher(0.3), of_powers(0.35, 0.35), 0.8, 0.01),
        {"mse": 1.2173264419, "V": 8.3718572036, "train_loss": 0.0074422238},
    ),
    ("R2: ridgeless", (Square(), LinearTeacher(0.3), of_powers(0.15, 0.85), 0.7, 0.0), {"mse": 0.3360950747}),
    (
        "L1: logistic regression",
        (Logistic(), SignTeacher(), of_powers(0.15, 0.85), 2.0, 0.1),
        {
            "R_field": 0.9126692882,
            "length_field": 2.7722122109,
            "V": 2.5068845780,
            "train_loss": 0.1768278405,
            "eps_t": 0.0234341179,
        },
    ),
    (
        "L2: with misfit and flips",
        (Logistic(), SignTeacher(0.1), of_powers(0.35, 0.35), 2.0, 0.1),
        {"R_field": 0.5379644864, "length_field": 1.4323255888, "V": 1.8514229635},
    ),
    (
        "L3: hinge with misfit",
        (Hinge(), SignTeacher(), of_powers(0.35, 0.35), 2.0, 0.1),
        {"R_field": 0.6111788785, "length_field": 1.4974777172, "eps_t": 0.0790015793},
    ),
    (
        "F1: random features",
        (Square(), LinearTeacher(), make_input_population(Features("relu", 0.5), 400), 1.5, 0.1),
        {"mse": 0.3635021427},
    ),
]


@pytest.mark.parametrize(("learner", "values"), [case[1:] for case in VALUES], ids=[case[0] for case in VALUES])
def test_values_are_those_of_two_other_routes_to_all_digits(learner, values):
    state = solved(*learner)
    for name, value in values.items():
        assert np.allclose(getattr(state, name), value, **TO_ALL_DIGITS), name
    assert state.residual[0] <= 1e-13


def test_maximum_stability_and_the_best_penalty_are_those_of_two_other_routes():
    state = solved(Hinge(), SignTeacher(), of_powers(0.15, 0.85), 2.0, 0.0)
    assert np.allclose(state.R_field, 0.9098802029, **TO_ALL_DIGITS)
    assert np.allclose(1 / state.length_field, 0.3776389, rtol=0, atol=6e-8)
    inputs = of_powers(0.075, 0.925)
    found = find_best_lambda(Square(), LinearTeacher(0.5), L2, Gauss(), np.array([1.0]), inputs)
    assert np.allclose(found, 0.3226365996, **TO_ALL_DIGITS)


def test_of_several_minima_the_best_penalty_is_the_least():
    """Two well-filled groups of directions leave two minima, of which the shallower one is enclosed more closely."""
    inputs = make_input_population(Spectrum((1e4, 1.0, 1e-4), (0.1, 0.3, 0.6), (1e-8, 1e-4, 0.99989999)), 400)
    learner, alpha = (Square(), LinearTeacher(0.3), inputs), np.array([0.3614, 0.7198])
    best = find_best_lambda(*learner[:2], L2, Gauss(), alpha, inputs)
    least = solved(*learner, alpha, best).mse
    assert all((solved(*learner, alpha, lam).mse >= least * (1 - 1e-9)).all() for lam in np.geomspace(1e-6, 1e5, 34))


# isotropic modes


@pytest.mark.parametrize("lam", [0.0, 0.03, 10.0])
@pytest.mark.parametrize("loss", [Square(), Logistic(), Hinge(), SquaredHinge(), Absolute()])
@pytest.mark.parametrize("teacher", [SignTeacher(0.1), ProbitTeacher(0.5), LogitTeacher(3.0), LinearTeacher(0.3)])
def test_isotropic_modes_are_the_isotropic_equations(loss, teacher, lam):
    if not teacher.labels and loss.of == "stability":
        return
    alpha = np.array([0.4, 1.7, 6.0])
    one, three = (
        solved(loss, teacher, make_input_population(Spectrum(at), 99), alpha, lam) for at in ((1.0,), (1.0,) * 3)
    )
    iso = solved(loss, teacher, None, alpha, lam)
    for name, expected in iso._asdict().items():
        if name != "residual":
            for modes in (one, three):
                given = getattr(modes, name)
                assert np.allclose(
                    given,
                    expected,
                    rtol=1e-13 if name not in ("eps_t", "train_loss") else 1e-11,
                    atol=1e-15,
                    equal_nan=True,
                ), name


@pytest.mark.parametrize("loss", [Square(), Absolute()])
def test_outputs_without_noise_are_recovered_as_with_isotropic_inputs(loss):
    alpha, lam = np.array([0.5, 1.5, 4.0, 4.0]), np.array([0.0, 0.0, 0.05, 3.0])
    iso, modes = (
        solved(loss, LinearTeacher(), it, alpha, lam) for it in (None, make_input_population(Spectrum((1.0, 1.0)), 99))
    )
    assert np.allclose(modes.mse, iso.mse, rtol=1e-12, atol=1e-30)
    assert np.allclose(modes.V, iso.V, rtol=1e-12)
    assert np.any(iso.mse == 0)
    part = solved(loss, LinearTeacher(), of_powers(0.35, 0.35), alpha[1:2], 0.0)  # a misfit is noise
    assert part.mse[0] > 0.3


# derivatives, planted errors


@pytest.mark.parametrize(
    ("loss", "teacher", "x"),
    [
        (Logistic(), SignTeacher(0.1), [0.3, 0.5, -0.4]),
        (Hinge(), LogitTeacher(2.0), [0.1, 0.2, 0.6]),
        (Square(), LinearTeacher(0.3), [0.2, 0.4]),
    ],
)
def test_derivatives_are_those_of_differences(loss, teacher, x):
    inputs = of_powers(0.2, 0.5, ridge=(0.5, 2.0))
    equations, x = make_convex_equations(loss, teacher, L2, Gauss(), inputs), np.array(x)[:, None]
    alpha, at = np.array([1.3]), PenaltyPoint(np.log([0.2]), np.zeros(1))
    linear = equations.linearise(x, alpha, at)
    step = 1e-5
    for unknown in range(len(x)):
        moved = [
            equations.linearise(x + sign * step * np.eye(len(x))[unknown][:, None], alpha, at).F for sign in (1, -1)
        ]
        assert np.allclose((moved[0] - moved[1]) / (2 * step), linear.J[:, unknown], atol=3e-6)
    moved = [equations.linearise(x, alpha, at._replace(log_lam=at.log_lam + sign * step)).F for sign in (1, -1)]
    assert np.allclose((moved[0] - moved[1]) / (2 * step), linear.f, atol=1e-8)


@pytest.mark.parametrize("planted", ["powers", "shares", "ridge"])
def test_values_tell_the_columns_of_modes_apart(monkeypatch, planted):
    inputs = of_powers(0.15, 0.85, ridge=(1.0, 1.5))
    modes, learner = inputs.modes, (Logistic(), SignTeacher(), inputs, 2.0, 0.1)
    right = solved(*learner).R_field[0]
    wrong = Modes(**{**vars(modes), planted: getattr(modes, planted)[::-1]})
    monkeypatch.setattr(InputPopulation, "modes", wrong)
    assert abs(solved(*learner).R_field[0] - right) > 1e-3


def test_without_the_misfit_in_the_angle_the_value_is_another(monkeypatch):
    learner = (Logistic(), SignTeacher(0.1), of_powers(0.35, 0.35), 2.0, 0.1)
    right = solved(*learner).R_field[0]
    monkeypatch.setattr(ModeWeightEquations, "signal_fraction", 1.0)
    assert abs(solved(*learner).R_field[0] - right) > 1e-2


# ridge regression: closed forms, and own penalties


def test_ridge_is_the_fixed_point_of_its_resolvent():
    omega, nu, p = OMEGA, np.array(SHARES), np.array([0.2, 0.5])
    lam, alpha, noise = 0.05, 1.3, 0.3
    k = brentq(lambda k: k * (alpha - np.sum(nu * omega / (omega + k))) - lam, 1e-9, 1e3, xtol=1e-15)
    phi2 = np.sum(nu * (omega / (omega + k)) ** 2)
    mse = (1 - p.sum() + noise**2 + np.sum(p * (k / (omega + k)) ** 2)) / (1 - phi2 / alpha) - noise**2
    state = solved(Square(), LinearTeacher(noise), of_powers(*p), alpha, lam)
    assert np.isclose(state.mse[0], mse, rtol=1e-12)


def test_own_penalties_are_those_of_other_units():
    ridge = np.array([0.5, 2.0])
    law = Spectrum(tuple(OMEGA), SHARES, (0.9, 0.1), ridge=tuple(ridge))
    T = np.array([0.9, 0.1]) * ridge
    same = Spectrum(tuple(OMEGA / ridge), SHARES, tuple(T / T.sum()))
    one, other = (
        solved(Logistic(), SignTeacher(), make_input_population(it, 400), [0.5, 2.0], 0.1) for it in (law, same)
    )
    for name in ("R_field", "length_field", "V", "train_loss"):
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-12), name
    assert np.all(np.abs(one.length / other.length - 1) > 0.01)


def test_weights_in_no_direction_of_the_inputs_only_lower_the_ratio_of_examples():
    half = make_input_population(Spectrum((0.0, 2.0)), 400)
    full = make_input_population(Spectrum((1.0,)), 200)
    for loss, teacher, lam in (
        (Square(), LinearTeacher(0.3), 0.1),
        (Logistic(), SignTeacher(0.1), 0.1),
        (Square(), LinearTeacher(0.3), 0.0),
    ):
        one = solved(loss, teacher, half, [0.3, 0.8], lam)
        other = solved(loss, teacher, full, [0.6, 1.6], lam)
        assert np.allclose(one.R_field, other.R_field, rtol=1e-12)
        assert np.allclose(one.R, one.R_field * np.sqrt(0.5), rtol=1e-12)
    assert np.isinf(solved(Square(), LinearTeacher(0.3), half, 0.5, 0.0).mse[0])


# the best penalty


@pytest.mark.parametrize("alpha", [0.3, 1.0, 3.0])
def test_the_best_ridge_of_a_random_teacher_is_the_noise_whatever_the_spectrum(alpha):
    inputs = make_input_population(Spectrum(tuple(OMEGA), SHARES), 400)
    known, found = (
        by(Square(), LinearTeacher(0.5), L2, Gauss(), np.array([alpha]), inputs)
        for by in (find_best_lambda, search_best_lambda)
    )
    assert np.allclose([known, found], 0.25, rtol=1e-8)
    scaled = make_input_population(Spectrum(tuple(3 * OMEGA), SHARES, misfit=0.2, ridge=(2.0, 2.0)), 400)
    known, found = (
        by(Square(), SignTeacher(0.1), L2, Gauss(), np.array([alpha]), scaled)
        for by in (find_best_lambda, search_best_lambda)
    )
    assert np.allclose(known, found, rtol=1e-8)


def test_the_best_ridge_of_an_aligned_teacher_is_smaller_and_may_be_none():
    def best(noise, T):
        inputs = make_input_population(Spectrum(tuple(OMEGA), SHARES, T), 400)
        return find_best_lambda(Square(), LinearTeacher(noise), L2, Gauss(), np.array([0.3]), inputs)[0]

    bests = [best(0.5, T) for T in ((0.9, 0.1), "random", (0.3, 0.7), "aligned")]
    assert np.all(np.diff(bests) < 0)
    assert bests[1] == pytest.approx(0.25, rel=1e-12)
    assert best(0.1, (0.02, 0.98)) == 0


# separability


def test_separability_with_a_misfit_is_that_of_a_noisier_teacher():
    assert compute_separability_threshold(SignTeacher(), 0.7) == pytest.approx(3.4118566491, abs=6e-11)
    assert compute_separability_threshold(SignTeacher(), 0.7) == pytest.approx(
        compute_separability_threshold(ProbitTeacher(np.sqrt(0.3 / 0.7))), rel=1e-12
    )
    probit = np.sqrt(0.5**2 + 0.3) / np.sqrt(0.7)
    assert compute_separability_threshold(ProbitTeacher(0.5), 0.7) == pytest.approx(
        compute_separability_threshold(ProbitTeacher(probit)), rel=1e-12
    )
    assert compute_separability_threshold(SignTeacher(0.1), 0.7, rank=0.5) == pytest.approx(
        0.5 * compute_separability_threshold(SignTeacher(0.1), 0.7), rel=1e-15
    )


@pytest.mark.slow
def test_separability_of_a_logit_teacher_with_a_misfit_is_that_of_its_average():
    S, gain = 0.6, 4.0

    def label(v):
        return quad(lambda z: norm.pdf(z) / (1 + np.exp(-gain * (np.sqrt(S) * v + np.sqrt(1 - S) * z))), -9, 9)[0]

    v, weight = np.polynomial.legendre.leggauss(120)
    v, weight = 8 * v, 8 * weight * 2 * norm.pdf(8 * v) * np.array([label(8 * at) for at in v])

    def distance(t):
        return np.sum(weight * ((1 + (t * v) ** 2) * norm.cdf(-t * v) - t * v * norm.pdf(t * v)))

    least = minimize_scalar(distance, bounds=(0.01, 20), method="bounded", options={"xatol": 1e-8}).fun
    assert compute_separability_threshold(LogitTeacher(gain), S) == pytest.approx(1 / least, rel=1e-7)


def test_margins_end_at_the_threshold_whatever_the_spectrum():
    for T in ((0.9, 0.1), (0.1, 0.9)):
        inputs = make_input_population(Spectrum(tuple(OMEGA), SHARES, T, misfit=0.3), 400)
        edge = compute_separability_threshold(SignTeacher(), 0.7)
        state = solved(Hinge(), SignTeacher(), inputs, [0.98 * edge, 1.02 * edge], 0.0)
        assert np.isinf(state.V[0])
        assert np.isfinite(state.V[1])
        assert state.length_field[0] > 10
    loss = Risk(loss="logistic", lam=0, alpha=4, inputs={"spectrum": [0.5, 1.5], "misfit": 0.3})
    assert theory.solve(loss).alpha_c == pytest.approx(edge, rel=1e-14)
    with pytest.raises(ScenarioError, match=r"no minimum below alpha = 3.41186"):
        Risk(loss="logistic", lam=0, alpha=3, inputs={"spectrum": [0.5, 1.5], "misfit": 0.3})


# random features and power laws


def test_random_features_descend_twice_in_their_width():
    """Mei & Montanari 2019: three examples per latent variable, ReLU, outputs without noise, lam -> 0."""
    widths = {1.5: 0.619504, 2.5: 1.068035, 4.0: 0.462374, 10.0: 0.089842}
    for width, mse in widths.items():
        inputs = make_input_population(Features("relu", 1 / width), 10**4)
        assert solved(Square(), LinearTeacher(), inputs, 3 / width, 1e-8).mse[0] == pytest.approx(mse, abs=6e-7)


def test_many_modes_of_a_power_law_are_those_of_its_sum_rule():
    few = make_input_population(PowerLaw(1.5, 1.75), 4000)
    i = np.arange(1, 4001.0)
    omega, p = i**-1.5, i**-1.75
    T = tuple((p / omega) / np.sum(p / omega))
    all_modes = make_input_population(Spectrum(tuple(omega * 4000 / omega.sum()), (), T), 4000)
    one, other = (solved(Logistic(), SignTeacher(), it, [0.05, 0.5], 1e-3) for it in (few, all_modes))
    assert np.allclose(one.R_field, other.R_field, rtol=1e-11)
    assert np.allclose(one.length, other.length, rtol=1e-10)


@pytest.mark.parametrize("loss", [Square(), Logistic(), Hinge()])
def test_wide_spectra_are_solved_from_large_to_small_penalties(loss):
    law = Spectrum((1e4, 1.0, 1e-4), (0.1, 0.3, 0.6), (1 / 3, 1 / 3, 1 / 3))
    alpha = np.array([0.05, 0.2, 0.7, 1.5])
    for lam in (1e5, 1.0, 1e-4, 1e-8):
        state = solved(loss, SignTeacher(0.1), make_input_population(law, 1000), alpha, lam)
        assert np.all(state.residual <= 1e-9), lam


# what is refused


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"penalty": "l1"}, "penalty l1 needs inputs whose covariance is a multiple of 1: a rotation of the inputs"),
        ({"bayes": True}, "the Bayes-optimal student needs inputs of equal variance, not spectrum"),
        ({"solver": "amp"}, "message passing needs inputs of equal variance"),
        ({"inputs": {"spectrum": [1, 2], "ridge": [0, 1]}}, "ridge of a spectrum must be greater than 0"),
        ({"inputs": {"spectrum": [1, 2], "shares": [0.999, 0.001]}, "N": 7}, "a group would be empty"),
    ],
)
def test_what_has_no_equations_is_refused_in_a_sentence(given, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        Risk(**{"loss": "square", "alpha": 1, "inputs": {"spectrum": [0.5, 1.5]}, **given})
