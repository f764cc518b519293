"""Networks on the Gram engine of groups have the law of weight vectors at any N, and planted errors change it."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from conftest import disagreements
from scipy.stats import ks_2samp

import simulate
import theory
from simulate.kinds.network import DIRECT_ENGINE_REMARK, Simulator
from simulate.online import gram_engine, grouped_gram_engine, networks
from simulate.online import weight_vector_engine as vectors_engine
from statmech import Network
from statmech.inputs.covariance_modes import compute_group_sizes
from statmech.numerics.random_numbers import make_key_data
from statmech.students.student_geometry import factorise_gram

pytestmark = pytest.mark.quick

N, SHARES, VARIANCES = 14, (2 / 14, 5 / 14, 7 / 14), (3.0, 1.0, 0.3)
LEVEL = 1e-4  # family-wise, over all distributions compared
T = [0.5, 2.0]
ALL = {
    "M": 2,
    "K": 2,
    "eta": 0.8,
    "eta_v": 0.6,
    "noise": 0.3,
    "decay": 0.4,
    "teacher": {"T": [[1.0, 0.4], [0.4, 0.8]], "w": [1.0, -0.7]},
    "start": {"R": [[0.3, 0.1], [0.0, 0.2]], "Q": [[0.5, 0.1], [0.1, 0.4]], "v": [0.8, -0.5]},
}
FIXED = {"M": 2, "K": 2, "eta": 0.8, "start": {"drawn": 0.6}}


def cell_of(powers="random", **given):
    inputs = {"spectrum": list(VARIANCES), "shares": list(SHARES), "teacher": powers}
    [cell] = Network(**{"N": N, "t": T, "inputs": inputs} | given).cells()
    return cell


def chain(cell, seeds, engine=grouped_gram_engine):
    """Products of all units, as vectors and as fields, and the second layer, of seeds of an engine."""
    with jax.enable_x64(True):
        task, batches = networks.make_network_task(cell, "float64"), -(-seeds // engine.batch(cell.K))
        steps = np.rint(np.array(T) * N).astype(int)
        made = [engine.run(task, make_key_data(10 + batch), steps) for batch in range(batches)]
    record = [None if part[0] is None else np.concatenate(part)[:seeds] for part in zip(*made, strict=True)]
    along, across, v, _, *fields = record
    units = factorise_gram(cell.T)
    group = networks.find_distinct_students(cell)[1]
    ways = [described(units, along, across, group)]
    if fields[0] is not None:
        ways.append(described(units @ fields[2], *fields[:2], group))
    return np.concatenate([*ways, v[..., group]], axis=-1)


def described(units, along, across, group):
    """The products (seeds, T, values) of units with these coordinates, without those that are the same for all."""
    along, across = along[..., group, :], across[..., group[:, None], group]
    T, R = units @ np.swapaxes(units, -1, -2), along @ np.swapaxes(units, -1, -2)
    return products(np.broadcast_to(T, (*R.shape[:2], *T.shape[-2:])), R, along @ np.swapaxes(along, -1, -2) + across)


def products(T, R, Q):
    flat = [matrix.reshape(*matrix.shape[:-2], -1) for matrix in (T, R, Q)]
    return np.concatenate(flat if np.ptp(flat[0], axis=0).max() > 1e-9 else flat[1:], axis=-1)


def vectors(cell, seeds, rng):
    """The same from weight vectors, step by step."""
    modes, units = cell.inputs.modes(N), factorise_gram(cell.T)
    sizes = compute_group_sizes(modes.shares, N)
    basis = basis_of_teachers(cell.M, modes, sizes, seeds, rng)
    J = rng.standard_normal((seeds, cell.K, N))
    if cell.drawn:
        J *= np.sqrt(cell.units.Q[0, 0])
    else:
        basis = orthonormal(np.concatenate([basis, J], axis=1))
        gram = np.block([[cell.T, cell.units.R.T], [cell.units.R, cell.units.Q]])
        J, basis = factorise_gram(gram)[cell.M :] @ basis, basis[:, : cell.M]
    B, v, spread = units @ basis, np.tile(cell.units.v, (seeds, 1)), np.repeat(modes.variances, sizes)
    found = []
    for step in range(round(T[-1] * N)):
        x = rng.standard_normal((seeds, N)) * np.sqrt(spread / N)
        y, h = (np.einsum("skn,sn->sk", each, x) for each in (B, J))
        output = cell.teacher_activation.both(y)[0] @ cell.w
        output = (np.sign(output) if cell.sign else output) + cell.noise * rng.standard_normal(seeds)
        mask = (rng.random(h.shape) >= cell.dropout) / (1 - cell.dropout)
        g, derivative = (mask * np.asarray(part) for part in cell.activation.both(h))
        error = (output - np.sum(v * g, axis=1))[:, None]
        J = (1 - cell.decay / N) * J + (cell.eta * v * derivative * error)[..., None] * x[:, None]
        v = v + cell.eta_v / N * g * error
        if step + 1 in np.rint(np.array(T) * N).astype(int):
            ways = [(B * root, J * root) for root in (np.ones(N), np.sqrt(spread))]
            ways = [products(*(a @ np.swapaxes(b, 1, 2) / N for a, b in ((B, B), (J, B), (J, J)))) for B, J in ways]
            found.append(np.concatenate([*ways, v], axis=-1))
    return np.stack(found, axis=1)


def basis_of_teachers(M, modes, sizes, seeds, rng):
    """Orthogonal vectors of length sqrt(N): random, or perpendicular in each group that has a direction for each."""
    basis = rng.standard_normal((seeds, M, N))
    if not np.allclose(modes.teacher, modes.shares):
        parts = np.split(basis, np.cumsum(sizes)[:-1], axis=2)
        parts = [orthonormal(part) if part.shape[2] >= M else part for part in parts]
        powers = np.sqrt(modes.teacher)
        basis = [
            power * part / np.linalg.norm(part, axis=2, keepdims=True)
            for power, part in zip(powers, parts, strict=True)
        ]
        basis = np.concatenate(basis, axis=2)
    return orthonormal(basis)


def orthonormal(rows):
    """Without the signs that LAPACK chooses by the first components: groups would not be independent."""
    q, r = np.linalg.qr(np.swapaxes(rows, 1, 2))
    return np.swapaxes(q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None], 1, 2) * np.sqrt(N)


def smallest(ours, theirs):
    """The smallest p-value of Kolmogorov and Smirnov's test over all values and times, times their number."""
    tests = [ks_2samp(ours[:, t, at], theirs[:, t, at]).pvalue for t in range(len(T)) for at in range(theirs.shape[-1])]
    return min(tests) * len(tests)


def deviation(cell, seeds, seed):
    return smallest(chain(cell, seeds), vectors(cell, seeds, np.random.default_rng(seed)))


@pytest.mark.slow
def test_both_layers_have_the_law_of_weight_vectors():
    """With noise, decay and correlated teacher units; one group has as many directions as there are teacher units."""
    assert deviation(cell_of(network="erf", **ALL), 1000, seed=1) > LEVEL


WITHOUT_ONE = {  # a unit without weights, which remains so, and needs no axis in a group of few directions
    "Q": np.diag([0.0, 0.4, 0.4]).tolist(),
    "R": [[0.0], [0.1], [-0.1]],
    "v": [0.0, 0.8, 0.8],
}
CASES = [
    ("relu", {**FIXED, "teacher": {"w": [1.0, -0.7]}}, [0.5, 0.5, 0.0]),
    ("relu", ALL, "random"),
    ("linear", {**FIXED, "eta": 0.4, "noise": 0.5}, "aligned"),
    ("erf", {**FIXED, "M": 1, "noise": 0.3, "teacher": {"output": "sign"}}, "random"),
    ("erf", {"M": 1, "K": 3, "eta": 0.8, "start": WITHOUT_ONE}, [0.5, 0.5, 0.0]),
    ("erf", {**FIXED, "eta_v": 0.6, "dropout": 0.4}, [0.5, 0.2, 0.3]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "given", "powers"), CASES)
def test_every_activation_and_start_has_the_law_of_weight_vectors(name, given, powers):
    assert deviation(cell_of(powers, network=name, **given), 3000, seed=2) > LEVEL / len(CASES)


@pytest.mark.slow
@pytest.mark.parametrize("planted", ["degrees of freedom", "one group's fields"])
def test_a_deliberate_error_changes_the_law(planted, monkeypatch):
    """A chi with one degree too many in each group; fields and products of inputs of the last group alone."""
    monkeypatch.setenv("STATMECH_CACHE", "off")
    if planted == "degrees of freedom":
        chi = grouped_gram_engine.draw_chi
        monkeypatch.setattr(grouped_gram_engine, "draw_chi", lambda key, d, shape: chi(key, d + 1, shape))
    else:
        monkeypatch.setattr(grouped_gram_engine, "sum_over_groups", lambda terms: sum(terms)[..., -1, :])
    grouped_gram_engine._simulate_all_seeds.clear_cache()
    p = deviation(cell_of(network="erf", **FIXED | {"eta": 2.0}), 2000, seed=3)
    grouped_gram_engine._simulate_all_seeds.clear_cache()
    assert p < 1e-6


@pytest.mark.slow
def test_one_group_has_the_law_of_isotropic_inputs():
    """That of the chain without groups, whose products are those of the weights."""
    isotropic, grouped = (cell_of(network="erf", **ALL, inputs=it) for it in ("gaussian", {"spectrum": [1.0]}))
    ours, theirs = chain(grouped, 1000), chain(isotropic, 1000, gram_engine)
    as_vectors, as_fields, v = np.split(ours, [8, 16], axis=-1)
    np.testing.assert_allclose(as_fields, as_vectors, atol=1e-12)
    assert smallest(np.concatenate([as_vectors, v], axis=-1), theirs) > LEVEL


def test_a_scenario_of_few_groups_runs_on_their_order_parameters():
    scenario = Network(network="erf", N=[60, 100], t=1, inputs={"spectrum": [0.5, 1.5]}, **ALL)
    assert [cell.num_gram_variance_groups for cell in scenario.cells()] == [0, 2]
    simulator = Simulator(scenario)
    assert [simulator.choose_engine(cell) for cell in scenario.cells()] == [vectors_engine, grouped_gram_engine]
    assert simulator.get_remarks_before_run() == [DIRECT_ENGINE_REMARK]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["erf", "relu"])
def test_runs_of_many_directions_agree_with_theory(name):
    inputs = {"spectrum": [0.3, 1, 2.4], "shares": [0.4, 0.35, 0.25], "teacher": [0.6, 0.3, 0.1]}
    scenario = Network(network=name, N=4000, t=[1, 5], seeds=32, inputs=inputs, **ALL)
    assert disagreements(simulate.run(scenario), theory.solve(scenario)) == []


@pytest.mark.slow
def test_fields_that_coincide_have_one_axis():
    """Inputs that vary in one direction: fields of both teacher units and of all students are multiples of one."""
    given = {"network": "erf", "N": 300, "t": [0, 1], "seeds": 4, "start": {"drawn": 1.0}}
    run = simulate.run(Network(**given, inputs={"spectrum": [300.0, 0.0], "shares": [1 / 300, 299 / 300]}))
    assert np.isfinite(run.eps_g).all()
    assert (run.eps_g[:, 1] < run.eps_g[:, 0]).all()
