"""The Gram engine of groups has the law of weight vectors at any N, and planted errors change it."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from conftest import disagreements
from scipy.stats import ks_2samp

import simulate
import theory
from simulate.online import grouped_gram_engine, perceptrons
from statmech import Scenario
from statmech.inputs.covariance_modes import compute_group_sizes
from statmech.numerics.random_numbers import make_key_data

pytestmark = pytest.mark.quick

N, SHARES, VARIANCES = 14, (2 / 14, 5 / 14, 7 / 14), (3.0, 1.0, 0.3)
LEVEL = 1e-4  # family-wise, over all distributions compared
T = [0.5, 2.0]


def cell_of(teacher="random", **given):
    inputs = {"spectrum": list(VARIANCES), "shares": list(SHARES), "teacher": teacher}
    [cell] = Scenario(**{"N": N, "t": T, "flip": 0.1, "inputs": inputs, **given}).cells()
    return cell


def chain(cell, seeds):
    """Cosines and lengths, as vectors and as fields, of seeds of the engine: (seeds, T, values)."""
    with jax.enable_x64(True):
        task, batches = (
            perceptrons.make_perceptron_task(cell, "float64"),
            -(-seeds // grouped_gram_engine.GROUP_BATCH_SEEDS),
        )
        steps = np.rint(np.array(T) * N).astype(int)
        made = [grouped_gram_engine.run(task, make_key_data(10 + batch), steps) for batch in range(batches)]
    parts = [part for part in zip(*made, strict=True) if part[0] is not None]
    along, across, *fields = (np.concatenate(part)[:seeds] for part in parts)
    return described(along[..., 0], across), described(fields[0][..., 0], fields[1])


def described(along, across):
    """R and length of the first student, q of the first two, from parts along and across the teacher."""
    gram = along[..., :, None] * along[..., None, :] + across
    length = np.sqrt(np.diagonal(gram, axis1=-2, axis2=-1))
    found = [along[..., 0] / length[..., 0], length[..., 0]]
    return np.stack(found + ([gram[..., 0, 1] / length[..., 0] / length[..., 1]] if along.shape[-1] > 1 else []), -1)


def vectors(cell, seeds, rng):
    """The same from weight vectors, step by step."""
    law = cell.inputs.modes(N)
    K, spread = cell.K, np.repeat(law.variances, compute_group_sizes(law.shares, N))
    B, J = rng.standard_normal((seeds, N)), rng.standard_normal((seeds, K, N))
    B *= np.sqrt(N) / np.linalg.norm(B, axis=1, keepdims=True)
    if not np.allclose(law.teacher, law.shares):
        ends = np.cumsum(compute_group_sizes(law.shares, N))
        for part, power in zip(np.split(B, ends[:-1], axis=1), law.teacher, strict=True):
            part *= np.sqrt(N * power / np.sum(part**2, axis=1, keepdims=True))
    if cell.start is not None:
        basis = np.stack([np.linalg.qr(np.vstack([b, j]).T)[0].T for b, j in zip(B, J, strict=True)]) * np.sqrt(N)
        basis *= np.sign(np.einsum("sn,sn->s", basis[:, 0], B))[:, None, None]
        J = np.einsum("kj,sjn->skn", cell.start_coordinates, basis)
    found = []
    for step in range(round(T[-1] * N)):
        x = rng.standard_normal((seeds, N)) * np.sqrt(spread / N)
        label = np.sign(np.sum(B * x, axis=1)) * np.where(rng.random(seeds) < cell.flip, -1, 1)
        length = np.linalg.norm(J, axis=2) / np.sqrt(N)
        kappa = label[:, None] * np.einsum("skn,sn->sk", J, x) / length
        f = cell.rule.eta * label[:, None] * np.asarray(cell.rule.g(kappa, length))
        J = (1 - cell.decay / N) * J + f[..., None] * x[:, None]
        if cell.drift:
            b = rng.standard_normal((seeds, N))
            b -= np.sum(b * B, axis=1, keepdims=True) / N * B
            b *= np.sqrt(N) / np.linalg.norm(b, axis=1, keepdims=True)
            cos = 1 - cell.drift / N
            B = cos * B + np.sqrt(1 - cos**2) * b
        if step + 1 in np.rint(np.array(T) * N).astype(int):
            found.append([parts_of(B * scale, J * scale) for scale in (np.ones(N), np.sqrt(spread))])
    return tuple(np.stack([described(*at[way]) for at in found], axis=1) for way in (0, 1))


def parts_of(B, J):
    unit = B / np.linalg.norm(B, axis=1, keepdims=True)
    along = np.einsum("skn,sn->sk", J, unit)
    rest = J - along[..., None] * unit[:, None]
    return along / np.sqrt(N), np.einsum("skn,sln->skl", rest, rest) / N


def smallest(cell, seeds, rng):
    """The smallest p-value of Kolmogorov and Smirnov's test over all values and times, times their number."""
    pairs = list(zip(chain(cell, seeds), vectors(cell, seeds, rng), strict=True))
    tests = [
        ks_2samp(ours[:, t, at], theirs[:, t, at]).pvalue
        for ours, theirs in pairs
        for t in range(len(T))
        for at in range(ours.shape[-1])
    ]
    return min(tests) * len(tests)


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "K"), [("hebb", 1), ("perceptron", 3), ("adatron", 3), ("adatron_textbook", 1)])
def test_every_rule_has_the_law_of_weight_vectors(rule, K):
    """Also of three students, with few directions in a group: coordinates beyond them are 0."""
    for teacher in ("random", [0.5, 0.5, 0.0]):
        cell = cell_of(teacher, rule=rule, K=K)
        assert smallest(cell, 3000, np.random.default_rng(2)) > LEVEL / 8


@pytest.mark.slow
@pytest.mark.parametrize("given", [{"drift": 0.5, "decay": 0.5}, {"start": {"R": 0.5, "length": 2.0}}])
def test_drift_decay_and_a_start_have_the_law_of_weight_vectors(given):
    for teacher in ("random", [0.5, 0.5, 0.0]):
        cell = cell_of(teacher, rule="perceptron", K=2, **given)
        assert smallest(cell, 3000, np.random.default_rng(3)) > LEVEL / 4


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["degrees of freedom", "unit of length"])
def test_a_deliberate_error_changes_the_law(planted, monkeypatch):
    """A chi with one degree too many in each group; a student's length in units of its field's deviation."""
    monkeypatch.setenv("STATMECH_CACHE", "off")
    if planted == "degrees of freedom":
        chi = grouped_gram_engine.draw_chi
        monkeypatch.setattr(grouped_gram_engine, "draw_chi", lambda key, d, shape: chi(key, d + 1, shape))
    else:
        begin, spread = perceptrons.PerceptronLearner.start_block, np.mean(VARIANCES)
        monkeypatch.setattr(
            perceptrons.PerceptronLearner, "start_block", lambda self, kept, square: begin(self, kept, spread * square)
        )
    grouped_gram_engine._simulate_all_seeds.clear_cache()
    cell = cell_of(rule="adatron", K=1)
    p = smallest(cell, 4000, np.random.default_rng(4))
    grouped_gram_engine._simulate_all_seeds.clear_cache()
    assert p < 1e-6


@pytest.mark.slow
def test_one_group_has_the_law_of_isotropic_inputs():
    cell = cell_of(rule="hebb", K=2, inputs={"spectrum": [1.0]})
    assert smallest(cell, 1000, np.random.default_rng(5)) > LEVEL


@pytest.mark.slow
def test_a_scenario_of_few_groups_runs_on_their_order_parameters():
    scenario = Scenario(rule="hebb", K=[1, 3], N=[60, 100], t=1, seeds=2, inputs={"spectrum": [0.5, 1.5]})
    assert [cell.num_gram_variance_groups for cell in scenario.cells()] == [2, 2, 0, 2]
    assert {it.strip(") ").split(".")[-1] for it in simulate.run(scenario).source.split(";")} == {
        "grouped_gram_engine",
        "weight_vector_engine",
    }


@pytest.mark.slow
def test_a_scenario_of_groups_agrees_with_theory():
    inputs = {"spectrum": [0.2, 1.8], "teacher": [0.9, 0.1]}
    scenario = Scenario(rule="perceptron", K=3, N=4000, t=[1, 5], seeds=32, flip=0.1, inputs=inputs)
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []
