"""The times at which runs leave the symmetric plateau have the predicted distribution, without any fit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import kstest

import simulate
import theory
from figures.published.plateaus import find_escape_times
from statmech import Network, ScenarioError

pytestmark = pytest.mark.quick

START = {"Q": 0.25, "R": 0}


def network(**given):
    return Network(**({"network": "erf", "M": 2, "K": 2, "eta": 1.5, "start": START, "t": 1} | given))


@pytest.mark.slow
def test_runs_escape_at_the_predicted_times():
    """Kolmogorov-Smirnov of 192 runs; a shift that is wrong by 0.4 of the spread, or twice the rate, is found."""
    N = 500
    runs = simulate.run(network(N=N, t=np.linspace(0, 120, 121).tolist(), seeds=192, key=5))
    times = find_escape_times(runs)
    times = np.where(np.isnan(times), np.inf, times)  # few are late
    found = theory.escape(network())

    def p(rate, shift):
        """Escapes by t = 120 against -ln|xi|/rate + shift, whose |xi| has the distribution erf(x/sqrt 2)."""
        xi = np.exp(-rate * (times - np.log(N) / (2 * found.rate) - shift))
        return kstest(xi, lambda x: erf(x / np.sqrt(2))).pvalue

    assert p(*found) > 1e-2
    assert p(found.rate, found.shift + 6.0) < 1e-2 * p(*found)
    assert p(2 * found.rate, found.shift) < 1e-2 * p(*found)


@pytest.mark.slow
def test_the_rate_is_that_of_the_plateau():
    """Found by differences along the only direction that distinguishes the units, and as the largest eigenvalue."""
    for eta in (0.5, 1.5):
        assert abs(theory.escape(network(eta=eta)).rate / theory.plateau(2, 2, eta).escape_rate - 1) < 1e-6


@pytest.mark.slow
def test_noise_of_the_labels_lets_runs_escape_earlier():
    assert theory.escape(network(noise=0.5)).shift < theory.escape(network()).shift


def test_a_linear_network_has_no_plateau_to_escape_from():
    with pytest.raises(ScenarioError, match="student units that start with equal overlaps"):
        theory.escape(network(network="linear"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"K": 3}, "for K = 2 and M = 2, not K = 3 and M = 2"),
        ({"eta": [1, 2]}, "a single value of every key except N"),
        ({"start": "drawn"}, "start with equal overlaps"),
        ({"start": {"Q": 1, "R": {"diagonal": 0.1}}}, "start with equal overlaps"),
        ({"teacher": {"w": [1, 2]}}, "start with equal overlaps"),
        ({"network": "relu"}, "activations without kinks"),
    ],
)
def test_what_has_no_prediction_is_refused(given, sentence):
    with pytest.raises(ScenarioError, match=sentence):
        theory.escape(network(**given))
