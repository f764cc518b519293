"""Tests of the times at which a unit on the sphere finds its teacher: published values, limits and planted errors."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from statmech.students.activations import ACTIVATIONS
from statmech.students.label_teachers import EdgeLabels, make_door, make_wedge
from statmech.students.sphere_units import CubicUnit, HermiteUnit, LearningTask
from theory.networks import hitting_times
from theory.networks.hitting_times import (
    HittingTime,
    compute_explosion_time,
    find_best_universal_strength,
    invert_survival,
    make_generator_bands,
)
from theory.networks.sphere_steps import SearchEquations, compute_change_moments, compute_noise_at_zero

WEDGE = LearningTask(HermiteUnit(3), make_wedge())
DOOR = LearningTask(HermiteUnit(2), make_door(), v=-1.0)
BEST_WEDGE_ETA0 = 1.9274357


def test_hermite_coefficients_of_the_wedge_and_the_door_are_those_of_their_closed_forms():
    wedge, door = (teacher.hermite_coefficients(6) for teacher in (make_wedge(), make_door()))
    assert wedge == pytest.approx([0, 0, 0, 0.4515646047, 0, -0.4658593084], abs=1e-10)
    assert door[[2, 4]] == pytest.approx([-0.6062367010, 0.4454000252], abs=1e-10)
    assert wedge[3] == pytest.approx(4 * math.log(2) / math.sqrt(2 * math.pi * 6), rel=1e-14)


@pytest.mark.parametrize(
    ("k", "a", "mean"),
    [(3, 1.0, 4.4786397243), (3, 2.0, 2.5077021397), (4, 1.0, 1.4247459411), (5, 1.0, 3.8548711842)],
)
def test_explosion_times_have_all_published_digits(k, a, mean):
    assert compute_explosion_time(k, a)[0] == pytest.approx(mean, abs=6e-11)


@pytest.mark.parametrize(("k", "least"), [(3, 1.4874157723), (4, 0.1434437594)])
def test_the_best_rate_has_the_universal_constant(k, least):
    a = find_best_universal_strength(k)
    assert a**2 * compute_explosion_time(k, a)[0] == pytest.approx(least, abs=6e-11)


def test_more_quadrature_nodes_do_not_change_explosion_times(monkeypatch):
    before = compute_explosion_time(3, 0.5)
    hitting_times._make_collocation_rule.cache_clear()
    monkeypatch.setattr(hitting_times, "PANEL_NODES", 32)
    assert compute_explosion_time.__wrapped__(3, 0.5) == pytest.approx(before, rel=1e-13)
    monkeypatch.setattr(hitting_times, "UNIVERSAL_END", 1e5)
    assert compute_explosion_time.__wrapped__(3, 0.5) == pytest.approx(before, rel=1e-13)
    hitting_times._make_collocation_rule.cache_clear()


def test_limits_and_times_at_finite_dimension_have_all_published_digits():
    limit = HittingTime(WEDGE, 0.1, 100, 0.5)
    assert (limit.limit, limit.limit_std) == pytest.approx((3.3463257708, 2.9033635659), abs=6e-11)
    flipped = HittingTime(replace(WEDGE, flip=0.1), 0.1, 100, 0.5)
    assert (flipped.mean, flipped.std) == pytest.approx((441.4885394, 396.0968049), abs=6e-8)
    best = HittingTime(WEDGE, BEST_WEDGE_ETA0 / 10, 100, 0.5)
    assert best.mean / 100 == pytest.approx(2.595631181, rel=1e-8)
    assert best.limit == pytest.approx(2.4314835831, rel=1e-9)
    assert best.best_eta * 10 == pytest.approx(BEST_WEDGE_ETA0, abs=6e-8)


@pytest.mark.parametrize(
    ("task", "eta", "N", "mean", "std"),
    [
        (WEDGE, BEST_WEDGE_ETA0 / math.sqrt(300), 300, 300 * 2.4699, 300 * 2.22),
        (WEDGE, BEST_WEDGE_ETA0 / math.sqrt(1000), 1000, 1000 * 2.4356, 1000 * 2.17),
        (WEDGE, 0.05, 100, 634.2, None),
        (replace(WEDGE, flip=0.2), 0.11565, 100, 721.5, None),
        (DOOR, 0.606236701, 100, 5.8061, 3.11),
        (DOOR, 0.606236701, 1000, 9.1993, 3.05),
        (DOOR, 0.606236701, 10_000, 12.3676, 3.03),
        (LearningTask(CubicUnit(), make_wedge()), 0.09218, 100, 902.2, None),
        (LearningTask(CubicUnit(), make_wedge(1.17)), 0.0922, 100, 375.4, None),
        (LearningTask(HermiteUnit(4), EdgeLabels((-1.60831, -0.5, 0.5, 1.60831), -1.0)), 0.05, 40, 825.7, None),
    ],
)
def test_times_agree_with_the_settings_that_were_simulated(task, eta, N, mean, std):
    time = HittingTime(task, eta, N, 0.5)
    assert time.mean == pytest.approx(mean, rel=3e-4)
    assert std is None or time.std == pytest.approx(std, rel=3e-3)


def _without_perpendicular_variance(equations, R):
    drift, variance = ORIGINAL(equations, R)
    return drift, variance + equations.eta**2 / equations.N * R * R * equations.compute_moments(R)[2]


def _without_squared_signal(equations, R):
    drift, variance = ORIGINAL(equations, R)
    return drift, variance + equations.eta**2 / equations.N * equations.compute_moments(R)[0] ** 2


def _with_unprojected_signal(equations, R):
    drift, variance = ORIGINAL(equations, R)
    signal = equations.compute_moments(R)[0]
    return drift + equations.eta * signal * (1 / (1 - R * R) - 1), variance


def _with_double_restoring_force(equations, R):
    drift, variance = ORIGINAL(equations, R)
    return drift - equations.eta**2 / 2 * R * equations.compute_moments(R)[1] * (1 - 1 / equations.N), variance


ORIGINAL = SearchEquations.compute_drift_and_variance


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (_without_perpendicular_variance, 2.619244515),
        (_without_squared_signal, 2.598338682),
        (_with_unprojected_signal, 2.267106341),
        (_with_double_restoring_force, 1561.0),
    ],
)
def test_planted_errors_in_drift_and_variance_are_found(monkeypatch, error, wrong):
    monkeypatch.setattr(SearchEquations, "compute_drift_and_variance", error)
    mean = HittingTime(WEDGE, BEST_WEDGE_ETA0 / 10, 100, 0.5).mean / 100
    assert mean != pytest.approx(2.595631181, rel=1e-4)
    assert mean == pytest.approx(wrong, rel=2e-2)


def test_planted_start_without_fluctuations_is_found(monkeypatch):
    monkeypatch.setattr(hitting_times, "normal_density", lambda z: np.exp(-z * z / 2e-4))
    assert compute_explosion_time.__wrapped__(3, 1.0)[0] == pytest.approx(5.070356, rel=2e-3)


def test_flips_weaken_the_signal_by_one_minus_twice_their_probability():
    clean, flipped = (task.signal_terms[2] for task in (WEDGE, replace(WEDGE, flip=0.1)))
    assert flipped == pytest.approx(0.8 * clean, rel=1e-12)
    wrong = HittingTime(replace(WEDGE, flip=0.05), 0.1, 100, 0.5).mean
    assert HittingTime(replace(WEDGE, flip=0.1), 0.1, 100, 0.5).mean > 1.1 * wrong


def test_outputs_and_the_square_error_have_their_own_noise():
    for noise in (0.0, 0.5):
        found = compute_noise_at_zero(LearningTask(HermiteUnit(3), None, noise=noise))
        assert found == pytest.approx((3 * (1 + noise**2), 3 * (7 + noise**2)), rel=1e-10)
    assert compute_noise_at_zero(replace(WEDGE, error="square"))[0] == pytest.approx(96, rel=1e-10)


@pytest.mark.parametrize(
    "task",
    [WEDGE, replace(DOOR, flip=0.1, error="square"), LearningTask(HermiteUnit(4), None, error="square", noise=0.3)],
)
def test_the_first_products_of_hermite_coefficients_are_the_drift_of_small_cosines(task):
    R, k = 0.3, task.exponent
    drift = compute_change_moments(task, np.array([R])).C[0]
    assert drift == pytest.approx((1 - R * R) * np.polynomial.polynomial.polyval(R, task.signal_terms), rel=1e-6)
    assert k == {3: 3, 2: 2, 4: 4}[task.unit.degree]


def test_looking_twice_lowers_the_exponent_for_outputs_but_not_for_labels():
    R = np.array([0.0, 0.01])
    outputs, labels, once = (
        compute_change_moments(task, R)
        for task in (LearningTask(HermiteUnit(3), None, trial=0.05), replace(WEDGE, trial=0.3), WEDGE)
    )
    assert outputs.C[0] == pytest.approx(0.2025, rel=1e-9)
    assert abs(labels.C[0]) < 1e-12
    assert labels.C[1] / labels.F[0] < once.C[1] / once.F[0] / 3  # the noise grows more than the signal


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_moments_of_any_activation_are_averages_over_fields(activation):
    task = LearningTask(ACTIVATIONS[activation](), EdgeLabels((-0.3, 0.8)), error="square", flip=0.2)
    rng = np.random.default_rng(1)
    h, v, R = *rng.standard_normal((2, 400_000)), 0.4
    y = task.teacher.label(R * h + math.sqrt(1 - R * R) * v) * np.where(rng.random(h.size) < 0.2, -1, 1)
    f = task.compute_change(y, h)
    samples = math.sqrt(1 - R * R) * f * v, f * f, f * f * v * v, f * f * v * h
    moments = compute_change_moments(task, np.array([R]))
    for sample, exact in zip(samples, (moments.C, moments.F, moments.V, moments.X), strict=True):
        assert abs(sample.mean() - exact[0]) < 4 * sample.std() / math.sqrt(h.size)


def test_even_exponents_start_at_a_mirror_and_grow_logarithmically():
    times = [HittingTime(DOOR, 0.606236701, N, 0.5) for N in (10**6, 10**8)]
    assert [time.exponent for time in times] == [2, 2]
    excess = [time.mean - math.log(time.N) / (2 * time.growth_rate) - time.limit for time in times]
    assert abs(excess[1]) < 2e-6 < abs(excess[0]) < 2e-4
    assert times[1].std == pytest.approx(times[1].limit_std, rel=1e-6)


def test_exponent_one_has_no_search():
    task = LearningTask(ACTIVATIONS["erf"](), EdgeLabels((0.0,)))
    time = HittingTime(task, 1.0, 10**5, 0.5)
    assert time.exponent == 1
    assert time.mean == pytest.approx(time.limit, rel=1e-4)
    best = HittingTime(task, time.best_eta, 10**5, 0.5)
    assert best.limit < HittingTime(task, 1.02 * time.best_eta, 10**5, 0.5).limit
    assert best.limit < HittingTime(task, 0.98 * time.best_eta, 10**5, 0.5).limit


def test_rates_that_never_find_the_teacher_have_infinite_or_enormous_times():
    assert HittingTime(WEDGE, 10.0, 10**6, 0.5).limit == math.inf
    assert HittingTime(WEDGE, 10.0, 10**6, 0.5).mean > 1e100


def test_survival_integrates_to_the_mean_and_is_nearly_exponential():
    time = HittingTime(WEDGE, BEST_WEDGE_ETA0 / 1000, 10**6, 0.5)
    fractions = np.array([0.25, 0.5, 0.75, 1, 2, 3])
    published = [0.8573, 0.6484, 0.4888, 0.3684, 0.1189, 0.0384]
    assert time.survival(fractions * time.mean) == pytest.approx(published, abs=8e-4)
    small = HittingTime(WEDGE, BEST_WEDGE_ETA0 / 10, 100, 0.5)
    t = np.linspace(0, 15, 121) * small.mean
    assert np.trapezoid(small.survival(t), t) == pytest.approx(small.mean, rel=2e-4)


def test_volumes_of_a_free_diffusion_have_the_known_survival():
    bands = make_generator_bands(lambda x: (0 * x, 1 + 0 * x), np.linspace(0.0, 1.0, 801))
    start = np.zeros(800)
    start[0] = 1.0
    n = np.arange(20)
    exact = np.sum(4 / np.pi * (-1.0) ** n / (2 * n + 1) * np.exp(-((n + 0.5) ** 2) * np.pi**2 * 0.3 / 2))
    assert float(invert_survival(bands, start, np.array(0.3))) == pytest.approx(exact, abs=1e-5)
