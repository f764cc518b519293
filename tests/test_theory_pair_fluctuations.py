"""Fluctuations of order 1/N of pairs and ensembles of equal students: against Gaussian matrices and simulation."""

from __future__ import annotations

import numpy as np
import pytest

import simulate
import theory
from statmech import Scenario
from theory import pair_fluctuations

T = [0.2, 1.0, 5.0]


@pytest.mark.slow
def test_pairs_that_learn_by_hebb_are_correlations_of_gaussian_vectors():
    """Their parts across the teacher are Gaussian: c is the sample correlation of normals of correlation t/(1 + t)."""
    [cell] = Scenario(rule="hebb", K=4, t=T).cells()
    found, c = pair_fluctuations.solve(cell, T), np.asarray(T) / (1 + np.asarray(T))
    np.testing.assert_allclose(found.S0, (1 - c**2) ** 2, rtol=1e-6)
    np.testing.assert_allclose(found.S1, c * (1 - c) ** 2 * (2 + 3 * c) / 2, rtol=1e-6)
    np.testing.assert_allclose(found.S2, 2 * c**2 * (1 - c) ** 2, rtol=1e-6)
    np.testing.assert_allclose(found.bias_c, -c * (1 - c**2) / 2, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["perceptron", "adatron"])
def test_ensembles_of_three_vary_and_deviate_as_predicted(rule):
    scenario = Scenario(rule=rule, K=3, N=100, t=T, seeds=2000, corrections=True)
    runs, solution = simulate.run(scenario), theory.solve(scenario)
    for name in ("q", "eps_g_weight_mean", "eps_g_majority_vote"):
        values = runs[name].mean("student") if name == "q" else runs[name]
        expected = solution.mean("student")
        error = values.std("seed", ddof=1) / np.sqrt(scenario.seeds)
        if f"{name}_bias" in solution:
            z = (values.mean("seed") - expected[name] - expected[f"{name}_bias"]) / error
            assert abs(z).max() < 4, name
        ratio = runs[name].var("seed", ddof=1) / solution[f"{name}_std"] ** 2
        assert abs(ratio - 1).max() < 5 * np.sqrt(2 / scenario.seeds), name
