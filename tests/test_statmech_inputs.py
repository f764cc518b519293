"""Input distributions have the stated moments; isotropic ones agree with theory; errors of others are measured."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np
import pytest
from conftest import disagreements

import simulate
import theory
from simulate.execution.work_units import remarks
from statmech import Risk, Scenario, ScenarioError
from statmech.inputs.input_distributions import (
    INPUTS,
    Anisotropic,
    Features,
    Gaussian,
    GroupedInputs,
    Inputs,
    PowerLaw,
    Rademacher,
    Rows,
    Spectrum,
    Sphere,
    inputs_from_config,
    inputs_to_config,
)


def drawn(inputs: Inputs, N: int, M: int = 20_000) -> np.ndarray:
    draw = jax.jit(lambda key: inputs.draw(key, M, N, inputs.table(N)))
    return np.asarray(draw(jax.random.key(0)), float)


@pytest.mark.quick
@pytest.mark.parametrize("inputs", [Gaussian(), Rademacher(), Sphere(), Anisotropic((0.4, 1.6))])
def test_a_distribution_is_centred_and_has_its_covariance(inputs):
    N = 10
    x = drawn(inputs, N)
    expected = inputs.table(N) ** 2 if isinstance(inputs, Anisotropic) else np.ones(N)
    noise = 5 * np.max(expected) / np.sqrt(len(x))
    np.testing.assert_allclose(x.mean(axis=0) * np.sqrt(N), 0, atol=noise)
    np.testing.assert_allclose(N * x.T @ x / len(x), np.diag(expected), atol=2 * noise)


def test_axes_of_a_spectrum_have_its_shares_and_its_eigenvalues():
    law = inputs_from_config({"spectrum": [0.2, 1.8], "shares": [0.75, 0.25]})
    np.testing.assert_allclose(law.table(8) ** 2, 6 * [0.2] + 2 * [1.8], rtol=1e-6)
    assert np.mean(PowerLaw(2.0).table(50) ** 2) == pytest.approx(1, rel=1e-6)


@dataclass(frozen=True)
class Uniform(Inputs):
    """Independent components that are uniform in an interval: a distribution of a user, with `draw` alone."""

    def draw(self, key, M, N, table):
        return jax.random.uniform(key, (M, N), minval=-1, maxval=1) * np.float32((3 / N) ** 0.5)


@pytest.mark.quick
@pytest.mark.parametrize("inputs", [Gaussian(), Rademacher(), Sphere(), Uniform()])
def test_stored_examples_have_the_covariance_of_their_distribution(inputs):
    P, N = 4000, 5
    X = inputs.draw_examples(np.random.default_rng(0), P, N)
    np.testing.assert_allclose(X.T @ X / P, np.eye(N), atol=5 * np.sqrt(2 / P))
    np.testing.assert_array_equal(inputs.draw_examples(np.random.default_rng(0), 7, N), X[:7])


def test_a_distribution_with_draw_alone_reaches_stored_examples(monkeypatch):
    monkeypatch.setitem(INPUTS, "uniform", Uniform)
    scenario = Risk(loss="logistic", lam=1.0, alpha=2.0, N=200, seeds=16, inputs="uniform")
    gaussian = simulate.run(scenario.model_copy(update={"inputs": Gaussian()}))
    simulation = simulate.run(scenario)
    assert disagreements(simulation, theory.solve(scenario)) == []
    assert not np.array_equal(simulation.eps_g, gaussian.eps_g)  # the inputs are not replaced by Gaussian ones


@pytest.mark.quick
def test_the_class_of_a_distribution_is_rarely_tested():
    classes = "|".join(kind.__name__ for kind in (*INPUTS.values(), GroupedInputs, Inputs))
    pattern = re.compile(rf"isinstance\([^()]*\b({classes})\b")
    root = Path(__file__).parents[1]
    files = [
        path for package in ("statmech", "simulate", "theory", "figures") for path in (root / package).rglob("*.py")
    ]
    found = {path.relative_to(root): len(pattern.findall(path.read_text())) for path in files}
    found.pop(Path("statmech/inputs/input_distributions.py"))
    assert sum(found.values()) <= 8, {path: count for path, count in found.items() if count}


@pytest.mark.quick
def test_norms_follow_the_distribution():
    np.testing.assert_allclose((drawn(Sphere(), 7) ** 2).sum(axis=1), 1, rtol=1e-5)
    assert set(np.unique(drawn(Rademacher(), 4))) == {-0.5, 0.5}


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["rademacher", "sphere"])
def test_isotropic_inputs_agree_with_the_equations(inputs):
    scenario = Scenario(rule=["hebb", "adatron"], K=3, N=500, t=[0.5, 2], seeds=32, inputs=inputs, start={"R": 0.2})
    simulation = simulate.run(scenario)
    assert "weight vectors" in simulation.source  # the Gram engine is not exact here, as the result states
    assert disagreements(simulation, theory.solve(scenario)) == []


@pytest.mark.quick
@pytest.mark.slow
def test_an_axis_of_distributions_runs_each_on_its_engine():
    scenario = Scenario(rule="hebb", N=20, t=[1], seeds=2, inputs=["gaussian", "sphere"])
    simulation = simulate.run(scenario)
    assert list(simulation.inputs.values) == ["gaussian", "sphere"]
    assert "gram" in simulation.source
    assert "vectors" in simulation.source
    assert Scenario(**scenario.config()) == scenario


@pytest.mark.quick
@pytest.mark.slow
def test_measured_errors_follow_the_distribution_and_not_the_angle():
    """All variance is on one axis: a student that agrees with the teacher there makes no errors."""
    inputs = {"anisotropic": {"spectrum": [1.0, 0.0]}}
    simulation = simulate.run(Scenario(rule="perceptron", N=2, t=[0, 30], seeds=16, inputs=inputs))
    late = simulation.isel(t=1, student=0)
    assert np.all(late.eps_g == 0)
    assert np.all(np.arccos(late.R) > 0.01)


@pytest.mark.quick
@pytest.mark.slow
def test_rows_of_a_table_are_learnt(tmp_path):
    """Centred corners of a square: the teacher is learnt on them without error."""
    corners = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1]], float)
    np.savetxt(tmp_path / "rows.csv", corners, delimiter=",")
    inputs = {"rows": {"path": str(tmp_path / "rows.csv")}}
    table = inputs_from_config(inputs).table(3)
    np.testing.assert_allclose(table.mean(axis=0), 0, atol=1e-7)
    assert np.mean(np.sum(table**2, axis=1)) == pytest.approx(1, rel=1e-6)
    simulation = simulate.run(Scenario(rule="perceptron", N=3, K=2, t=[0, 200], seeds=8, inputs=inputs))
    assert np.all(simulation.eps_g.isel(t=1) < 0.02)
    found = inputs_from_config(inputs).modes(3)
    np.testing.assert_allclose(found.variances, np.linalg.eigvalsh(3 * np.cov(table.T, bias=True)), rtol=1e-6)
    assert found.shares @ found.variances == pytest.approx(1, rel=1e-6)


def test_a_distribution_without_modes_has_no_theory(inputs_without_theory):
    with pytest.raises(ScenarioError, match="isotropic inputs, and for inputs with known modes"):
        theory.solve(Scenario(rule="hebb", N=3, t=[1], inputs=inputs_without_theory))


@pytest.mark.slow
def test_a_distribution_of_the_user_is_one_class_and_one_line(monkeypatch):
    @dataclass(frozen=True)
    class Uniform(Inputs):
        def draw(self, key, M, N, table):
            return jax.random.uniform(key, (M, N), np.float32, -1, 1) * (3 / N) ** 0.5

    monkeypatch.setitem(INPUTS, "uniform", Uniform)
    scenario = Scenario(rule="hebb", K=2, N=300, t=[1], seeds=16, inputs="uniform", start={"R": 0.0})
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


LAWS = [Gaussian(), Rademacher(), Anisotropic((1.0, 2.0)), Rows("a.csv"), Spectrum((0.2, 1.8), teacher=(0.9, 0.1))]


@pytest.mark.parametrize("inputs", [*LAWS, PowerLaw(2.0), Features(latent=0.25)])
def test_a_distribution_survives_a_round_trip_through_yaml(inputs):
    assert inputs_from_config(inputs_to_config(inputs)) == inputs


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("gausian", 'Did you mean "gaussian"'),
        (3, "is not a distribution of inputs"),
        ({"rows": {"file": "x"}}, '"file" is not a parameter of rows'),
        ({"rows": {"path": 3}}, "path of rows must be a string, not 3"),
        ({"gaussian": 3}, "takes its parameters by name"),
        ({"gaussian": {}, "rows": "x.csv"}, "must name one distribution"),
        ({"spectrum": [0.2, 1.8], "shares": [0.5, 0.6]}, "shares of a spectrum must add up to 1, not to 1.1"),
        ({"spectrum": [0.2, 1.8], "shares": [1.0]}, "must be 2 numbers of 0 or more"),
        ({"spectrum": [0.2, 1.8], "shares": [0.99, 0.01]}, "on N = 10: a group would be empty"),
        ({"spectrum": [0.2, 1.8], "teacher": "along"}, "a list of powers or random or aligned"),
        ({"spectrum": [0.0, 1.8], "teacher": [1, 0]}, "power in a group whose eigenvalue is not 0"),
        ({"spectrum": [0.2, 1.8], "misfit": 1}, "misfit must be at least 0 and below 1"),
        ({"spectrum": [0.2, 1.8], "misft": 1}, 'Did you mean "misfit"'),
        ({"power_law": {"decay": -1}}, "decay of a power law must lie between 0 and 10"),
        ({"features": {"activation": "linear"}}, "linear in the latent variables"),
        ({"features": {"latent": 0}}, "latent variables per feature must lie between"),
        ({"features": {"latent": 0.5}}, "features need a teacher on latent variables"),
        ({"spectrum": [0.2, 1.8], "misfit": 0.1}, "the teacher of online learning has no misfit"),
        ({"spectrum": [0.2, 1.8], "ridge": [1, 2]}, "online learning has no penalty"),
        ({"anisotropic": {"spectrum": [-1]}}, "a spectrum is a list of finite eigenvalues"),
        ({"anisotropic": {"spectrum": ["a"]}}, "a spectrum is a list of finite eigenvalues"),
        ({"anisotropic": {"spectrum": []}}, "a spectrum is a list of finite eigenvalues"),
    ],
)
def test_impossible_inputs_are_refused(inputs, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario(rule="hebb", t=[1], N=10, inputs=inputs)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (np.array([[1j, 2], [3, 4]]), "real numbers are needed, not complex128"),
        (np.zeros((0, 3)), "it is empty"),
        (np.array([["a", "b"]]), "real numbers are needed, not str32"),
        (np.zeros(2, [("a", "f4"), ("b", "i4")]), "real numbers are needed"),
    ],
)
def test_a_table_of_other_than_real_numbers_is_refused(rows, reason, tmp_path):
    np.save(tmp_path / "x.npy", rows)
    with pytest.raises(ScenarioError, match=f"not a readable table: {reason}"):
        simulate.run(Scenario(rule="hebb", t=1, N=2, inputs={"rows": {"path": str(tmp_path / "x.npy")}}))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", b"root:x:0:0\n", "a table requires at least two rows"),
        ("a.csv", b"1,2\n3,4\n5,secret\n", 'row 3, column "1" is not a number'),
        ("a.csv", b"1,2\n3,4\n3\n", "row 3 has 1 columns, but row 1 has 2"),
        ("a.csv", b"secret\0\xff\n", "is not a text file"),
        ("a.npy", b"\x93NUMPY\x01\x00\x10\x00root:x: secret 1", "its content is not an array"),
    ],
)
def test_a_message_about_a_table_quotes_nothing_of_the_file(name, content, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    with pytest.raises(ScenarioError) as refused:
        simulate.run(Scenario(rule="hebb", t=[1], N=2, inputs={"rows": {"path": name}}))
    message = str(refused.value)
    assert reason in message
    assert not [word for word in ("root", "secret", "0xff") if word in message]


@pytest.mark.parametrize(
    ("inputs", "directions"),
    [
        ({"power_law": {"decay": 2}}, "2.5"),
        ({"spectrum": [100, 0.1], "shares": [0.01, 0.99]}, "12.1"),
        ({"spectrum": [0.5, 1.5]}, None),
        ("gaussian", None),
        ("rademacher", None),
    ],
    ids=str,
)
def test_inputs_of_few_directions_are_remarked_upon_before_anything_runs(inputs, directions):
    found = remarks(Scenario(rule="hebb", inputs=inputs, N=1000, t=1))
    few = [line for line in found if "directions" in line]
    assert len(few) == (directions is not None)
    assert all(f"effectively {directions} directions" in line for line in few)


def test_of_several_dimensions_the_smallest_is_remarked_upon():
    few = Scenario(rule="hebb", inputs={"spectrum": [0.5, 1.5]}, N=[1000, 20], t=1)
    assert "effectively 16 directions" in " ".join(remarks(few))
