"""The error of a majority vote is exact for few students, and measured for many to a fraction of its own spread."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad

import simulate
import theory
from statmech import Scenario
from statmech.numerics.statistics import standard_error
from statmech.students import ensemble_vote
from statmech.students.ensemble_vote import (
    NUM_TEST_CIRCLES,
    choose_test_circle_count,
    draw_random_circles,
    few_student_vote_error,
    integrate_vote_error,
    measure_near_equal_vote_error,
    measure_vote_error,
)
from statmech.students.ensemble_vote import majority_vote_error as of_equal_students
from statmech.students.student_geometry import factor_semidefinite_matrix

N_DRAWN = 40


def drawn(kind: str, K: int, n: int = N_DRAWN) -> tuple[np.ndarray, np.ndarray]:
    """Students' parts along the teacher (n, K) and rows across it (n, K, dimensions)."""
    rng = np.random.default_rng(1)
    along, across = rng.standard_normal((n, K)), rng.standard_normal((n, K, K))
    common = np.sqrt(0.5) * np.eye(K)[0]
    return {
        "any": (along, across),
        "at the start": (along / 10, np.eye(K) + across / 10),
        "late": (np.ones((n, K)), 1e-3 * (np.sqrt(0.5) * np.eye(K) + common + across / 10)),
        "nearly identical": (np.ones((n, K)), common + across / 100),
        "coplanar with the teacher in pairs": (along, across * (np.arange(K) < 2)),
        "in one plane with the teacher": (along, across[:, :, :1]),
    }[kind]


def gram(rows: np.ndarray) -> np.ndarray:
    return rows @ np.swapaxes(rows, -1, -2)


def by_price(along: np.ndarray, across: np.ndarray) -> float:
    """Another integral for three students: all three cosines to the teacher grow from 0 to their values."""
    length = np.sqrt(np.diag(across) + along**2)
    R, q = along / length, (across + np.outer(along, along)) / np.outer(length, length)

    def slope(t: float) -> float:
        total, every = 0.0, np.block([[np.ones((1, 1)), t * R[None]], [t * R[:, None], q]])
        for k in range(3):
            given, others = [0, k + 1], [m + 1 for m in range(3) if m != k]
            rest = every[np.ix_(others, given)] @ np.linalg.inv(every[np.ix_(given, given)])
            rest = every[np.ix_(others, others)] - rest @ every[np.ix_(given, others)]
            cosine = np.clip(rest[0, 1] / np.sqrt(rest[0, 0] * rest[1, 1]), -1, 1)
            total += R[k] / np.sqrt(1 - (t * R[k]) ** 2) * np.arcsin(cosine)
        return total

    product = 4 / np.pi**2 * quad(slope, 0, 1, epsabs=1e-13, epsrel=1e-13, limit=200)[0]
    return float(0.5 - (2 / np.pi * np.arcsin(R).sum() - product) / 4)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "within"), [("any", 1e-12), ("at the start", 1e-12), ("nearly identical", 1e-11)])
def test_the_vote_of_three_is_that_of_another_integral(kind, within):
    along, rows = drawn(kind, 3)
    expected = [by_price(*students) for students in zip(along, gram(rows), strict=True)]
    np.testing.assert_allclose(few_student_vote_error(along, gram(rows)), expected, rtol=0, atol=within)


@pytest.mark.parametrize("kind", ["any", "late", "nearly identical", "coplanar with the teacher in pairs"])
@pytest.mark.parametrize("K", [3, 4])
def test_the_exact_vote_is_the_mean_over_circles(K, kind):
    along, rows = drawn(kind, K)
    rng = np.random.default_rng(2)
    over_circles = np.stack(
        [measure_vote_error(along, rows, draw_random_circles(rng, 500, K)[:, None]) for _ in range(24)]
    )
    deviation = over_circles.mean(axis=0) - few_student_vote_error(along, gram(rows))
    z = deviation / standard_error(over_circles, axis=0)
    assert np.max(np.abs(z)) < 5
    assert (
        np.max(np.abs(z + 0.05 * few_student_vote_error(along, gram(rows)) / standard_error(over_circles, axis=0))) > 5
    )


def test_students_in_one_plane_with_the_teacher_are_exact():
    along, rows = drawn("in one plane with the teacher", 3, 1000)
    arcs = measure_vote_error(along, rows, np.eye(2)[:, None, None])  # the plane's circle
    np.testing.assert_allclose(few_student_vote_error(along, gram(rows)), arcs, rtol=0, atol=1e-8)


@pytest.mark.parametrize("theta", [1.5, 0.1, 1e-3, 1e-9])
@pytest.mark.parametrize("c", [0.0, 0.3, 0.999, 1.0])
def test_equal_students_near_perfect_learning_keep_their_digits(theta, c):
    across = np.sin(theta) ** 2 * ((1 - c) * np.eye(3) + c)
    exact = of_equal_students(np.asarray(theta), np.asarray(c), np.asarray(3.0))
    assert few_student_vote_error(np.full(3, np.cos(theta)), across) == pytest.approx(float(exact), rel=1e-11)


def test_students_that_coincide_decide_the_vote():
    one, other, same = np.array([1.0, 0.3]), np.array([-0.2, 1.0]), np.array([1.0, 0.0])
    error = few_student_vote_error(np.stack([one[0], one[0], other[0]]), gram(np.array([[0.3], [0.3], [1.0]])))
    assert error == pytest.approx(np.arctan2(0.3, 1.0) / np.pi, abs=1e-12)
    assert few_student_vote_error(np.full(3, same[0]), np.zeros((3, 3))) == 0
    assert few_student_vote_error(np.full(3, -same[0]), np.zeros((3, 3))) == 1
    assert few_student_vote_error(np.array([1.0, 1.0, -1.0]), np.zeros((3, 3))) == pytest.approx(0, abs=1e-15)


def test_each_exact_vote_is_the_same_in_any_company():
    for kind in ("any", "late", "nearly identical", "in one plane with the teacher"):
        along, rows = drawn(kind, 3)
        together = few_student_vote_error(along, gram(rows))
        alone = [few_student_vote_error(*students) for students in zip(along, gram(rows), strict=True)]
        np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("K", [3, 6, 51])
def test_few_panels_integrate_over_the_common_field_as_many(K):
    rng = np.random.default_rng(0)
    small = 10.0 ** rng.uniform(-9, 0, 100)
    theta = np.concatenate([small, np.pi - small, rng.uniform(0, np.pi, 100)])
    c = np.concatenate([rng.uniform(0, 1, 100), 1 - small, small])
    many = of_equal_students(theta, c, np.asarray(float(K)))
    np.testing.assert_allclose(integrate_vote_error(theta, c, K), many, rtol=1e-12)


def measured(along: np.ndarray, rows: np.ndarray, draws: int, points: int = 200) -> np.ndarray:
    """The vote of each ensemble (n,) measured in independent draws (draws, n)."""
    rng, K = np.random.default_rng(3), along.shape[-1]
    inputs = (np.stack([draw_random_circles(rng, points, K) for _ in along], axis=1) for _ in range(draws))
    return np.stack([measure_near_equal_vote_error(along, gram(rows), x) for x in inputs])


def z_of_the_measured_vote(K: int, kind: str) -> np.ndarray:
    """The deviation of the measured votes' mean from the exact or the theory's value, in standard errors."""
    along, rows = drawn(kind, K, 6)
    draws = measured(along, rows, 64)
    if K <= 4:
        expected, error = few_student_vote_error(along, gram(rows)), np.zeros(6)
    else:
        many = [
            theory.online.ensemble_errors.compute_vote_error(a, gram(r), tolerance=1.0)
            for a, r in zip(along, rows, strict=True)
        ]
        expected, error = np.array([m.value for m in many]), np.array([m.error for m in many])
    return (draws.mean(axis=0) - expected) / np.hypot(standard_error(draws, axis=0), error)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["any", "late", "nearly identical"])
@pytest.mark.parametrize("K", [3, 4, 5, 6, 11])
def test_the_measured_vote_is_unbiased(K, kind):
    assert np.max(np.abs(z_of_the_measured_vote(K, kind))) < 4.5


def test_a_wrong_error_of_equal_students_would_be_a_bias(monkeypatch):
    exact = ensemble_vote.integrate_vote_error
    monkeypatch.setattr(ensemble_vote, "integrate_vote_error", lambda *of: 1.01 * exact(*of))
    assert np.max(np.abs(z_of_the_measured_vote(3, "late"))) > 4.5


@cache
def learnt(K: int, N: int) -> tuple[np.ndarray, np.ndarray]:
    """The students of runs, (seeds, T, K) along the teacher and (seeds, T, K, K) across it."""
    runs = simulate.run(Scenario(rule="perceptron", K=K, N=N, t=[0.5, 2], seeds=256, gram=True)).gram.values
    along = runs[..., 0, 1:]
    return along, runs[..., 1:, 1:] - along[..., :, None] * along[..., None, :]


def measuring_share(K: int, N: int, old: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """The variance of measuring over that between runs, and its standard error, at each recorded time."""
    along, across = learnt(K, N)
    rng, points = np.random.default_rng(4), NUM_TEST_CIRCLES if old else choose_test_circle_count(K, N)
    votes = np.empty((2, *along.shape[:-1]))
    for turn, seed in np.ndindex(2, len(along)):
        of = (along[seed], factor_semidefinite_matrix(across[seed])) if old else (along[seed], across[seed])
        votes[turn, seed] = (measure_vote_error if old else measure_near_equal_vote_error)(
            *of, draw_random_circles(rng, points, K)[:, None]
        )
    noise = np.var(votes[0] - votes[1], axis=0, ddof=1) / 2
    share = noise / (np.var(votes.mean(axis=0), axis=0, ddof=1) - noise / 2)
    return share, share * np.sqrt(4 / len(along)) * (1 + share)  # two variances, each known to sqrt(2 / seeds)


@pytest.mark.slow
@pytest.mark.parametrize("N", [100, 4000])
@pytest.mark.parametrize("K", [pytest.param(5, marks=pytest.mark.quick), 11])  # 11 learn slowly then
def test_measuring_adds_less_than_a_tenth_to_the_spread_of_the_vote(K, N):
    share, error = measuring_share(K, N)
    assert np.all(share - 2 * error < 0.1)
    assert np.all(error < 0.02)


@pytest.mark.quick
@pytest.mark.slow
def test_as_many_circles_without_equal_students_would_add_more_than_the_spread_itself():
    assert np.all(measuring_share(5, 4000, old=True)[0] > 1)


@pytest.mark.quick
@pytest.mark.slow
def test_the_vote_of_three_in_a_run_is_exact():
    run = simulate.run(Scenario(rule="hebb", K=3, N=20, t=[0, 1], seeds=3, gram=True))
    along = run.gram.values[..., 0, 1:]
    across = run.gram.values[..., 1:, 1:] - along[..., :, None] * along[..., None, :]
    np.testing.assert_allclose(run.eps_g_majority_vote, few_student_vote_error(along, across), rtol=1e-12)
