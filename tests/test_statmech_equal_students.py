"""The vote of equal students: any K, students as similar or as opposed as they can be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc, ndtr

from statmech.numerics.gaussian import make_composite_rule, normal_density
from statmech.students.ensemble_vote import few_student_vote_error, majority_vote_error


def test_the_vote_of_one_element_does_not_depend_on_the_others():
    """Panels are chosen by each element's own angles, so that a sweep has the same bits however it is divided."""
    rng = np.random.default_rng(1)
    theta, c = 10 ** rng.uniform(-6, 0.2, 500), rng.uniform(0, 1, 500)
    K = rng.integers(3, 300, 500).astype(float)
    together = majority_vote_error(theta, c, K)
    for size in (1, 7, 250):
        divided = [majority_vote_error(*(x[at : at + size] for x in (theta, c, K))) for at in range(0, 500, size)]
        np.testing.assert_array_equal(np.concatenate(divided), together)


@pytest.mark.parametrize("K", [3, 11, 51, 127, 129, 1001])
def test_panels_that_stop_at_the_sigmoids_lose_no_digit(K):
    """An independent form: four times the panels, 16 times as far towards 0, and the incomplete beta function."""
    theta = np.concatenate([np.geomspace(1e-8, 1.5, 40), np.linspace(1.6, 3.1, 10)])
    c = np.tile([1e-10, 1e-3, 0.4, 0.9, 1 - 1e-9], 10)
    m, weight = make_composite_rule(np.concatenate([[0.0], np.geomspace(2.0**-48 * 10, 10, 180)]), 24)
    gamma = (np.cos(theta) / (np.sin(theta) * np.sqrt(c)))[:, None]
    alpha = np.sqrt(np.cos(theta) ** 2 + np.sin(theta) ** 2 * c) / (np.sin(theta) * np.sqrt(1 - c))
    n = (K + 1) // 2
    lost = betainc(n, n, ndtr(-alpha[:, None] * m))
    integrand = normal_density(m) * (ndtr(-gamma * m) * (1 - lost) + ndtr(gamma * m) * lost)
    expected = 2 * np.sum(weight * integrand, axis=-1)
    np.testing.assert_allclose(majority_vote_error(theta, c, K), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("K", [3, 4])
@pytest.mark.parametrize("theta", [1e-8, 1e-3, 0.1, 0.7, 1.5, 1.6, 3.14])
@pytest.mark.parametrize("nearly", [1e-9, 0.3, 0.9, 0.999, 1.0])
def test_opposed_students_vote_as_the_exact_vote_of_few(K, theta, nearly):
    """Up to students that are as opposed as K, or K - 1 for even K, can be."""
    c = -nearly / (K - 1)
    along = np.full(K, np.cos(theta))
    across = np.sin(theta) ** 2 * ((1 - c) * np.eye(K) + c)
    error = majority_vote_error(np.array(theta), np.array(c), np.array(float(K)))
    np.testing.assert_allclose(error, few_student_vote_error(along, across), rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("K", [5, 11, 101])
def test_the_vote_of_opposed_students_continues_that_of_others(K):
    """At c = 0 the two integrals meet, which have nothing in common."""
    theta = np.array([1e-6, 1e-3, 0.1, 1.0, 2.0])
    below, above = (majority_vote_error(theta, np.full(5, c), np.full(5, float(K))) for c in (-1e-13, 1e-13))
    np.testing.assert_allclose(below, above, rtol=1e-9, atol=1e-14)  # rounding of numbers of order 1
