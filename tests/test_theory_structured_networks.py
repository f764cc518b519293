"""Networks with inputs of unequal variance: known values, one mode, Stein's lemma, and agreement with simulation."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from conftest import disagreements

import simulate
import theory
from statmech import Network, ScenarioError
from statmech.inputs.input_distributions import inputs_from_config
from statmech.students.activations import ACTIVATIONS
from theory.networks import anisotropic_inputs
from theory.networks.order_parameter_equations import (
    UnitFields,
    average_gradient_derivatives,
    average_gradient_overlaps,
)

pytestmark = pytest.mark.quick

TWO = {"spectrum": [0.2, 1.8]}
THREE = {"spectrum": [0.3, 1, 2.4], "shares": [0.4, 0.35, 0.25]}
GENERAL = {
    "M": 2,
    "K": 2,
    "eta": 0.8,
    "eta_v": 0.3,
    "noise": 0.4,
    "decay": 0.1,
    "teacher": {"T": [[1.0, 0.3], [0.3, 1.2]], "w": [1.0, -0.6]},
    "start": {"Q": [[0.5, 0.1], [0.1, 0.3]], "R": [[0.2, 0.05], [-0.1, 0.15]], "v": [0.8, 0.5]},
}
LABELS = {
    "M": 1,
    "K": 2,
    "eta": 0.5,
    "eta_v": 0.2,
    "teacher": {"output": "sign", "network": "erf"},
    "start": {"Q": [[0.5, 0.1], [0.1, 0.3]], "R": [[0.2], [-0.1]], "v": [0.8, 0.5]},
}


def assert_digits(values, text):
    for value, digits in zip(values, text.split(), strict=True):
        assert value == pytest.approx(float(digits), abs=0.51 * 10.0 ** -len(digits.partition(".")[2]))


@pytest.mark.slow
def test_erf_units_have_their_known_errors():
    """Two other programs agree on them to 1e-9."""
    start = {"Q": 0.25, "R": {"diagonal": 0.05}}
    found = theory.solve(Network(network="erf", eta=1.5, noise=0.1, start=start, t=[1, 10, 30], inputs=THREE))
    assert_digits(found.eps_g.values, ".195500909 .051609754 .0238365743")


@pytest.mark.slow
def test_a_linear_unit_has_its_known_errors():
    given = {"network": "linear", "K": 1, "M": 1, "eta": 0.5, "noise": 0.1, "start": {"Q": 0, "R": 0}}
    found = theory.solve(Network(**given, t=[1, 10, 100], inputs=TWO))
    assert_digits(2 * found.eps_g.values, ".3295545671 .0233092985 .0033333339")


ONE_MODE = [
    ("erf", GENERAL),
    pytest.param("relu", GENERAL, marks=pytest.mark.slow),
    pytest.param("erf", LABELS, marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given"), ONE_MODE)
def test_equal_variances_have_the_solution_of_isotropic_inputs(name, given):
    one, many = (theory.solve(Network(network=name, t=[0, 1, 5], inputs=it, **given)) for it in ("gaussian", MODES))
    for variable in ("eps_g", "R", "Q", "v", "specialisation"):
        np.testing.assert_allclose(many[variable], one[variable], atol=1e-11, err_msg=variable)


MODES = {"spectrum": [1, 1], "shares": [0.3, 0.7]}


@pytest.mark.slow
def test_larger_inputs_are_as_larger_weights():
    """For linear units and one variance l: fields grow as sqrt(l) with the weights, and steps by l."""
    given = {"network": "linear", "M": 1, "K": 1, "t": [1], "teacher": {"T": 2.0}, "start": {"Q": 1.0, "R": 0.2}}
    scaled = {"network": "linear", "M": 1, "K": 1, "t": [1], "teacher": {"T": 4.0}, "start": {"Q": 2.0, "R": 0.4}}
    one = theory.solve(Network(**given, eta=0.2, inputs={"spectrum": [2.0]}))
    other = theory.solve(Network(**scaled, eta=0.4))
    np.testing.assert_allclose(one.eps_g, other.eps_g, rtol=1e-9)
    np.testing.assert_allclose(2 * one.Q, other.Q, rtol=1e-9)


@pytest.mark.slow
def test_a_spread_of_the_variances_shortens_the_plateau_and_leaves_its_height():
    """Known values for eigenvalues 1 - D and 1 + D: where the error falls least (Yoshida & Okada 2019)."""
    t = np.arange(0, 400.0, 2.5)
    laws = [{"spectrum": [1 - D, 1 + D]} for D in (0, 0.3, 0.6, 0.9)]
    start = {"Q": 0.25, "R": {"diagonal": 1e-3}}
    eps = theory.solve(Network(network="erf", eta=0.3, start=start, t=t.tolist(), inputs=laws)).eps_g.values
    height = theory.plateau(2, 2, 0.3).eps_g
    for error, flattest in zip(eps, (185, 168, 138, 125), strict=True):
        assert np.interp(flattest, t, error) == pytest.approx(0.01332, abs=5e-5)
        assert np.interp(flattest, t, error) == pytest.approx(height, rel=0.01)
    below = [t[np.argmax(error < height / 2)] for error in eps]
    assert below == sorted(below, reverse=True)
    assert below[-1] < 0.75 * below[0]


@pytest.mark.slow
@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_give_the_responses_by_steins_lemma(name, sign):
    fields = some_fields(ACTIVATIONS[name](), sign)
    i, p = (at.reshape(-1) for at in np.indices((2, 3)))
    with jax.enable_x64(True):
        found = np.einsum("pbl,ibl->ipl", fields.gram, average_gradient_derivatives(fields, np.arange(2)))
        expected = np.asarray(average_gradient_overlaps(fields, i, p)).reshape(2, 3, -1)
    np.testing.assert_allclose(found, expected, atol=1e-13)


def some_fields(activation, sign=False, spacing=0.0):
    """Two students and a teacher of two lanes."""
    root = np.random.default_rng(3).normal(size=(2, 3, 3))
    gram = np.moveaxis(root @ np.swapaxes(root, 1, 2) / 3, 0, -1)
    return UnitFields(activation, gram, np.array([[-0.8, -1.0], [0.5, 0.7], [1.0, -0.6]]), sign, spacing)


@pytest.mark.slow
def test_derivatives_of_an_activation_without_closed_forms_are_sums():
    with jax.enable_x64(True):
        closed, sums = (
            average_gradient_derivatives(some_fields(ACTIVATIONS["erf"](), spacing=h), np.arange(2))
            for h in (0.0, 0.25)
        )
    np.testing.assert_allclose(sums, closed, atol=1e-8)


UNLIKE = {**THREE, "teacher": [0.6, 0.3, 0.1]}


@pytest.fixture(scope="module")
def runs():
    """Runs of erf and ReLU units with all that may change, and their scenario."""
    scenario = Network(network=["erf", "relu"], N=500, t=[1, 4], seeds=32, inputs=UNLIKE, **GENERAL)
    return scenario, simulate.run(scenario)


@pytest.mark.slow
def test_theory_agrees_with_simulation(runs):
    scenario, simulation = runs
    assert disagreements(simulation, theory.solve(scenario)) == []


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ["powers", "curvature", "weights"])
def test_a_planted_error_of_theory_is_found(runs, mistake, monkeypatch):
    """A teacher of other powers, gradients without the second derivative, and errors by the weights."""
    scenario, simulation = runs
    if mistake == "powers":
        monkeypatch.setattr(anisotropic_inputs, "condense_modes", lambda modes: replace(modes, teacher=modes.shares))
    if mistake == "curvature":
        monkeypatch.setattr("theory.networks.order_parameter_equations._curvatures", lambda fields, i, found: 0.0)
    if mistake == "weights":
        honest = anisotropic_inputs.solve_cells
        monkeypatch.setattr(
            anisotropic_inputs,
            "solve_cells",
            lambda cells, t: [it._replace(fields=it.weights) for it in honest(cells, t)],
        )
    assert disagreements(simulation, theory.solve(scenario))


@pytest.mark.slow
def test_theory_agrees_with_simulation_of_labels_and_of_a_power_law():
    law = {"power_law": {"decay": 0.8, "teacher_decay": 1.0}}
    scenario = Network(network="erf", N=500, t=[1, 4], seeds=32, inputs=law, **LABELS)
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


def test_runs_with_one_direction_of_large_variance_are_not_judged():
    assert (
        "one direction has 40% of the variance"
        in Network(network="erf", N=400, t=1, inputs=STEEP, start=APART).expected_deviation_reason
    )
    assert not Network(network="erf", N=400, t=1, inputs=THREE, start=APART).expected_deviation_reason


STEEP, APART = {"power_law": {}}, {"Q": 0.25, "R": {"diagonal": 0.1}}


@pytest.mark.slow
def test_teacher_units_have_the_stated_powers_exactly():
    """At t = 0 students that are the teacher's units have no error, and R with them is T; in fields it is S T."""
    given = {"network": "erf", "N": 30, "t": [0], "seeds": 2, "start": "learnt", "teacher": GENERAL["teacher"]}
    run = simulate.run(Network(**given, inputs=UNLIKE))
    np.testing.assert_allclose(run.R[0, 0], GENERAL["teacher"]["T"], atol=1e-12)
    np.testing.assert_allclose(run.eps_g, 0, atol=1e-12)
    modes = inputs_from_config(UNLIKE).modes(30)
    seen = theory_of_fields(modes.variances @ modes.teacher)
    far = simulate.run(Network(**(given | {"start": {"Q": 1e-12}}), inputs=UNLIKE))
    np.testing.assert_allclose(far.eps_g, seen, rtol=1e-4)


def theory_of_fields(S):
    """Half the mean square of the teacher's output, with fields of covariance S T."""
    T, w = S * np.array(GENERAL["teacher"]["T"]), np.array(GENERAL["teacher"]["w"])
    a = np.diagonal(T)
    return w @ (2 / np.pi * np.arcsin(T / np.sqrt(np.outer(1 + a, 1 + a)))) @ w / 2


@pytest.mark.slow
def test_an_axis_of_inputs_has_the_solutions_of_each():
    given = {"network": "erf", "t": [2], "start": {"Q": 0.25, "R": {"diagonal": 0.05}}}
    both = theory.solve(Network(**given, inputs=["gaussian", TWO]))
    for at, law in enumerate(("gaussian", TWO)):
        np.testing.assert_array_equal(both.eps_g[at], theory.solve(Network(**given, inputs=law)).eps_g)


REFUSED = [
    ({"rows": "digits.csv"}, "averages over normal fields, of gaussian inputs, a spectrum or a power_law, not of rows"),
    ("rademacher", "averages over normal fields"),
    ({"anisotropic": {"spectrum": [0.5, 1.5]}}, r"write {spectrum: \[0.5, 1.5\]}"),
    ({"features": {}}, "features need a teacher on latent variables"),
    ({**TWO, "misfit": 0.1}, "has no misfit"),
    ({**TWO, "ridge": [1, 2]}, "has no penalty"),
    ({**TWO, "shares": [0.05, 0.95], "teacher": [1, 0]}, "2 teacher units cannot have all their power in 1 of N = 20"),
]


@pytest.mark.parametrize(("law", "sentence"), REFUSED)
def test_other_inputs_are_refused_with_a_sentence(law, sentence):
    with pytest.raises(ScenarioError, match=sentence) as refused:
        Network(network="erf", N=20, t=1, inputs=law)
    assert len(refused.value.problems) == 1


def test_stationary_states_and_escape_times_are_those_of_isotropic_inputs():
    with pytest.raises(ScenarioError, match="stationary states are supported for isotropic inputs only"):
        theory.noise_floor(Network(network="erf", noise=0.1, t=1, inputs=TWO))
    with pytest.raises(ScenarioError, match="escape times are predicted for isotropic inputs"):
        theory.escape(Network(network="erf", start={"Q": 0.25, "R": 0}, t=1, inputs=TWO))


def test_configs_of_gaussian_inputs_have_no_key_of_them():
    plain = Network(network="erf", t=1)
    assert "inputs" not in plain.config()
    assert (
        next(plain.cells()).identity_hash()
        == next(Network(network="erf", t=1, inputs="gaussian").cells()).identity_hash()
    )
    assert next(plain.cells()).identity_hash() != next(Network(network="erf", t=1, inputs=TWO).cells()).identity_hash()
