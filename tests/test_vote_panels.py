"""The vote of equal students: panels that end where the integrand is smooth, and a sum for the lost votes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betainc, ndtr

from statmech.equal_students import majority_vote
from statmech.gaussian import composite_legendre, density


def test_the_vote_of_one_element_does_not_depend_on_the_others():
    """Panels are chosen by each element's own angles, so that a sweep has the same bits however it is divided."""
    rng = np.random.default_rng(1)
    theta, c = 10 ** rng.uniform(-6, 0.2, 500), rng.uniform(0, 1, 500)
    K = rng.integers(3, 300, 500).astype(float)
    together = majority_vote(theta, c, K)
    for size in (1, 7, 250):
        divided = [majority_vote(*(x[at : at + size] for x in (theta, c, K))) for at in range(0, 500, size)]
        np.testing.assert_array_equal(np.concatenate(divided), together)


@pytest.mark.parametrize("K", [3, 11, 51, 127, 129, 1001])
def test_panels_that_stop_at_the_sigmoids_lose_no_digit(K):
    """An independent form: four times the panels, 16 times as far towards 0, and the incomplete beta function."""
    theta = np.concatenate([np.geomspace(1e-8, 1.5, 40), np.linspace(1.6, 3.1, 10)])
    c = np.tile([1e-10, 1e-3, 0.4, 0.9, 1 - 1e-9], 10)
    m, weight = composite_legendre(np.concatenate([[0.0], np.geomspace(2.0**-48 * 10, 10, 180)]), 24)
    gamma = (np.cos(theta) / (np.sin(theta) * np.sqrt(c)))[:, None]
    alpha = np.sqrt(np.cos(theta) ** 2 + np.sin(theta) ** 2 * c) / (np.sin(theta) * np.sqrt(1 - c))
    n = (K + 1) // 2
    lost = betainc(n, n, ndtr(-alpha[:, None] * m))
    integrand = density(m) * (ndtr(-gamma * m) * (1 - lost) + ndtr(gamma * m) * lost)
    expected = 2 * np.sum(weight * integrand, axis=-1)
    np.testing.assert_allclose(majority_vote(theta, c, K), expected, rtol=1e-12, atol=1e-15)
