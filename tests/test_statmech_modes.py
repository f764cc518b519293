"""Modes: few nodes stand for many directions, and averages over them are those over all."""

from __future__ import annotations

import numpy as np
import pytest

from statmech.inputs.covariance_modes import (
    HermiteCoefficients,
    compute_group_sizes,
    hermite_coefficients,
    make_feature_modes,
    make_modes,
    make_power_law_modes,
    marchenko_pastur_rule,
)
from statmech.students.activations import ACTIVATIONS


@pytest.mark.parametrize("strength", [1e-3, 1.0, 1e3])
def test_a_compressed_power_law_has_the_sums_over_all_modes(strength):
    few = make_power_law_modes(1.5, 1.75, 10**5)
    i = np.arange(1, 10**5 + 1.0)
    omega, p = i**-1.5 / np.mean(i**-1.5), i**-1.75 / np.sum(i**-1.75)
    assert len(few.variances) < 130
    for f in (lambda w: w / (w + strength), lambda w: np.exp(-w / strength)):
        assert few.shares @ f(few.variances) == pytest.approx(np.mean(f(omega)), rel=1e-11)
        assert few.powers @ f(few.variances) == pytest.approx(p @ f(omega), rel=1e-11)


@pytest.mark.parametrize("modes", [1, 16, 17, 33, 40])
def test_a_short_power_law_counts_every_mode(modes):
    assert make_power_law_modes(1.0, 1.0, modes).shares.sum() == pytest.approx(1, rel=1e-14)
    assert len(make_power_law_modes(1.0, 1.0, modes).shares) <= modes


@pytest.mark.parametrize("ratio", [0.25, 0.99, 1.0, 1.01, 4.0])
def test_marchenko_and_pastur_s_law_has_its_stieltjes_transform(ratio):
    """g = <1/(s + z)> solves r z g^2 + (z + 1 - r) g = 1."""
    s, weight = marchenko_pastur_rule(ratio)
    z, b = 0.5, 0.5 + 1 - ratio
    g = (-b + np.sqrt(b * b + 4 * ratio * z)) / (2 * ratio * z)
    assert weight @ (1 / (s + z)) == pytest.approx(g, rel=1e-12)


def test_modes_of_features_are_those_of_a_large_projection():
    rng, N, D = np.random.default_rng(1), 1200, 600
    F, relu = rng.standard_normal((N, D)), hermite_coefficients(ACTIVATIONS["relu"]())
    omega, U = np.linalg.eigh(relu.linear**2 * F @ F.T / D + relu.nonlinear_norm**2 * np.eye(N))
    theta = rng.standard_normal(D)
    p = (U.T @ F @ theta * relu.linear / D) ** 2 / omega / (theta @ theta / D)
    modes = make_feature_modes(relu, D / N)
    for k in (0.05, 1.0):
        assert np.mean(omega / (omega + k)) == pytest.approx(
            modes.shares @ (modes.variances / (modes.variances + k)), rel=5e-3
        )
        assert np.sum(p / (omega + k)) == pytest.approx(modes.powers @ (1 / (modes.variances + k)), rel=0.1)


def test_coefficients_of_an_error_function_are_known():
    """<z erf(z / sqrt(2))> = 1/sqrt(pi), and the mean square is (2/pi) arcsin(1/2)."""
    assert hermite_coefficients(ACTIVATIONS["erf"]()) == pytest.approx(
        (0, np.pi**-0.5, np.sqrt(1 / 3 - 1 / np.pi)), abs=1e-12
    )


def test_the_powers_of_a_teacher_are_shares_of_its_field():
    modes = make_modes([0.2, 3.4], [0.75, 0.25], teacher=[0.5, 0.5], misfit=0.3)
    np.testing.assert_allclose(modes.powers, 0.7 * np.array([0.2, 3.4]) / 3.6)
    assert modes.misfit == pytest.approx(0.3)
    assert make_modes([1.0, 1.0, 2.0]).participation_ratio == pytest.approx(16 / 18)
    assert compute_group_sizes(np.array([0.1, 0.3, 0.6]), 7).tolist() == [1, 2, 4]
    assert isinstance(make_feature_modes(HermiteCoefficients(0, 0.5, 0.3), 2.0).misfit, float)
