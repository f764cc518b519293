"""Stationary states under drift and decay take their known values, and those of the equations at late times."""

from __future__ import annotations

import numpy as np
import pytest

import theory
from statmech import Scenario, ScenarioError

pytestmark = pytest.mark.quick

START = {"length": 0.2, "R": 0.2}
DRIFTS = np.array([0.001, 0.01, 0.1, 1.0])
TABLE = {
    "bayes": [0.0446172331, 0.0952149055, 0.1958556848, 0.3430055041],
    "perceptron": [0.0503871898, 0.1074514744, 0.2207191601, 0.3865192727],
    "adatron_textbook": [0.0512217088, 0.1096261927, 0.2279824593, 0.4010364761],
    "hebb": [0.0750030740, 0.1319561896, 0.2260408996, 0.3514378802],
}
AMPLITUDES = {"bayes": 0.4473209420, "perceptron": 0.5052854482, "adatron_textbook": 0.5131129754, "hebb": 0.4237772081}


def swept(rule, drifts):
    """The states of a rule with its best decay at these drifts."""
    best = {"hebb": np.sqrt(drifts**2 + 4 * drifts / np.pi), "bayes": drifts}
    together = {"drift": drifts.tolist(), "decay": best.get(rule, 0 * drifts).tolist()}
    eta = 1.5 if rule == "adatron_textbook" else 1.0
    return theory.stationary(Scenario(rule=rule, zip=together, eta=eta, t=1, start=START))


@pytest.mark.parametrize(
    "rule",
    [*(pytest.param(rule, marks=pytest.mark.slow) for rule in ("bayes", "adatron_textbook", "hebb")), "perceptron"],
)
def test_the_errors_take_their_known_values(rule):
    np.testing.assert_allclose(swept(rule, DRIFTS).eps_g, TABLE[rule], atol=6e-11)


@pytest.mark.slow
@pytest.mark.parametrize("rule", TABLE)
def test_the_errors_vanish_as_a_power_of_the_drift(rule):
    """Down to a drift of 1e-9, where 1 - R is 1e-6; the next order falls with the drift."""
    drifts = np.array([1e-9, 1e-6])
    power, following = (1 / 4, 1 / 2) if rule == "hebb" else (1 / 3, 2 / 3)
    off = swept(rule, drifts).eps_g.values / drifts**power / AMPLITUDES[rule] - 1
    assert abs(off[0]) < 1e-5
    assert abs(np.log10(off[1] / off[0]) / 3 - following) < 0.02


def test_the_perceptron_regulates_itself_whatever_its_rate():
    found = theory.stationary(Scenario(rule="perceptron", drift=[1e-9, 0.01, 1], eta=[0.2, 5], t=1))
    theta = np.pi * found.eps_g
    versine = 2 * np.sin(theta / 2) ** 2
    np.testing.assert_allclose(versine**2 / (found.drift * found.R * theta), 1.0, rtol=1e-9)
    np.testing.assert_allclose(found.length / (found.eta * theta / versine / np.sqrt(2 * np.pi)), 1.0, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "given"),
    [
        ("hebb", {"drift": 0.1, "decay": 0.2}),
        ("perceptron", {"drift": 0.1, "decay": [0, 0.1]}),
        ("perceptron", {"flip": 0.1, "decay": 0.1, "eta": 0.5}),
        ("perceptron", {"margin": 0.3, "drift": 0.1, "decay": 0.1}),
        ("adatron", {"drift": 0.1, "flip": [0, 0.1]}),
        ("adatron_textbook", {"drift": 0.1, "flip": 0.05}),
        ("bayes", {"drift": 0.1, "decay": 0.1, "flip": 0.1, "assumed_flip": 0.1}),
    ],
)
def test_the_equations_tend_to_the_state(rule, given):
    late = theory.solve(Scenario(rule=rule, t=[300], start=START, **given)).isel(t=0, student=0)
    found = theory.stationary(Scenario(rule=rule, t=1, start=START, **given))
    for name in ("R", "eps_g", *(["length"] if rule != "adatron_textbook" else [])):
        np.testing.assert_allclose(found[name], late[name], rtol=1e-6)
        assert found[name].dims == late[name].dims


def test_every_start_leads_to_the_same_state():
    states = [
        theory.stationary(
            Scenario(rule="perceptron", drift=[0.1, 0.3], decay=0.05, t=1, start={"length": length, "R": R})
        )
        for length in (0.01, 1, 100)
        for R in (-0.9, 0, 0.99)
    ]
    assert np.ptp([state.eps_g for state in states], axis=0).max() < 1e-12


@pytest.mark.slow
def test_the_best_decay_of_the_optimal_rule_is_the_drift():
    decays = [0.005, 0.009, 0.01, 0.011, 0.02]
    found = theory.stationary(Scenario(rule="bayes", drift=0.01, decay=decays, t=1, start=START)).eps_g
    assert np.argmin(found.values) == 2
    assert abs(found[2] - 0.0952149055) < 6e-11


def test_the_best_decay_of_hebb_is_known():
    drift, best = 0.01, np.sqrt(0.01**2 + 0.04 / np.pi)
    found = theory.stationary(Scenario(rule="hebb", drift=drift, decay=[0.97 * best, best, 1.03 * best], t=1)).eps_g
    assert np.argmin(found.values) == 1


@pytest.mark.slow
def test_a_state_that_does_not_exist_is_nan_with_the_reason():
    hebb = theory.stationary(Scenario(rule="hebb", drift=[0, 0.01], decay=[0, 0.1], t=1))
    assert np.isfinite(hebb.eps_g).values.tolist() == [[False, True], [False, True]]
    assert "hebb (eta = 1, flip = 0, drift = 0.01): the length grows without bound" in hebb.attrs["absent"]
    assert "without drift or decay no stable state was found" in hebb.attrs["absent"]
    textbook = theory.stationary(Scenario(rule="adatron_textbook", drift=[0.01, 0.1], t=1))
    assert np.isfinite(textbook.eps_g).all()
    assert np.isnan(textbook.length).all()
    assert "R alone is stationary" in textbook.attrs["absent"]
    assert "absent" not in theory.stationary(Scenario(rule="perceptron", drift=[0.01, 0.1], t=1)).attrs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"schedule": {"t0": 5}}, "a decreasing learning rate has no stationary state"),
        ({"K": 2, "start": {"length": [1, 2]}}, "students with equal starts"),
        ({"inputs": {"anisotropic": {"spectrum": [1, 2]}}, "N": 50}, "isotropic"),
    ],
)
def test_scenarios_without_stationary_states_are_refused(given, message):
    with pytest.raises(ScenarioError, match=message):
        theory.stationary(Scenario(rule="perceptron", drift=0.01, t=1, **given))


@pytest.mark.parametrize("start", [{"R": 0.2, "q": 0.3}, "drawn"])
def test_the_number_of_students_does_not_matter(start):
    alone = theory.stationary(Scenario(rule="perceptron", drift=[0.1, 0.3], t=1)).eps_g
    found = theory.stationary(Scenario(rule="perceptron", drift=[0.1, 0.3], t=1, K=3, start=start)).eps_g
    assert np.abs(found - alone).max() < 1e-12
