"""Several tasks of perceptrons and of networks: the chain has the distribution of weight vectors, and its limit."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import ks_2samp

import simulate
import theory
from simulate.online import gram_engine
from simulate.online.learning_steps import draw_task_masks
from statmech import Network, NetworkTasks, OnlineTasks, Scenario
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.students.rules import RULES

LEVEL = 1e-3  # family-wise, over all distributions compared
RUNS = 4096
UNITS = {"R": [[0.3, 0.1], [0.0, 0.2]], "Q": [[0.5, 0.1], [0.1, 0.4]], "v": [[0.8, -0.5], [0.4, 0.6]]}
COMMON = {"tasks": 2, "overlap": 0.5, "protocol": {"replay": 0.3}, "seeds": RUNS}
PERCEPTRON = COMMON | {
    **{"rule": "adatron", "N": 20, "eta": 2.0, "flip": 0.1, "decay": 0.2},
    **{"switch": 1.5, "t": [3], "start": {"length": 1.2, "R": [0.3, 0.1]}},
}
NETWORK = COMMON | {
    **{"network": "erf", "K": 2, "N": 8, "eta": 1.5, "eta_v": 0.6, "noise": 0.3, "decay": 0.4},
    **{"switch": 1, "t": [2], "start": UNITS},
}
SHARED = NETWORK | {"heads": "shared", "start": UNITS | {"v": UNITS["v"][0]}}
DROPOUT = NETWORK | {"N": 20, "t": [1], "switch": 0.5, "dropout": {"at": [0, 0.4], "is": [0.2, 0.5]}}
LEARNING = {"perceptron": PERCEPTRON, "network": NETWORK, "dropout": DROPOUT}
# runs to which another share or label is as visible; masks take more, if there is one example in a step
DIRECT = {"engine": "vectors", "seeds": 1024}
TASKS = np.array([[1, 0.5], [0.5, 1]])


def examples(given, batch, rng, share):
    """The inputs (RUNS, batch, N) of each step, and whether they are of the second task, until the last time."""
    N = given["N"]
    for step in range(round(given["t"][-1] * N)):
        x = rng.standard_normal((RUNS, batch, N)) / np.sqrt(N)
        yield x, rng.random((RUNS, batch)) >= (1.0 if step < given["switch"] * N else share)


def vectors_with(products, N, rng):
    """Vectors of these products, times N, in random directions."""
    return np.linalg.cholesky(products) @ np.linalg.qr(rng.standard_normal((N, len(products))))[0].T * np.sqrt(N)


def of_perceptrons(given, batch, rng, share=0.3, flip=0.1):
    """R with both teachers and the length (RUNS, ...) by the definition: weight vectors in NumPy."""
    N, decay, length, R = given["N"], given["decay"], 1.2, np.array(given["start"]["R"])
    rule = RULES[given["rule"]](eta=given["eta"])
    vectors = vectors_with(np.block([[TASKS, R[:, None]], [R, 1.0]]), N, rng)
    B, J = vectors[:2], np.tile(length * vectors[2], (RUNS, 1))
    for x, task in examples(given, batch, rng, share):
        label = np.sign(np.take_along_axis(x @ B.T, task[..., None].astype(int), 2)[..., 0])
        label *= np.where(rng.random(label.shape) < flip, -1, 1)
        size = np.linalg.norm(J, axis=1, keepdims=True) / np.sqrt(N)
        f = rule.eta * label * rule.g(label * np.einsum("rbn,rn->rb", x, J) / size, size)
        J = (1 - decay / N) * J + np.einsum("rb,rbn->rn", f, x) / batch
    size = np.linalg.norm(J, axis=1) / np.sqrt(N)
    return {"R": J @ B.T / N / size[:, None], "length": size}


def masks(given, step, shape, rng, alike):
    """The factors (RUNS, batch, K) on units: one draw for each, or one for all that are alike along an axis."""
    dropout = given.get("dropout", {"at": [0], "is": [0.0]})
    p = dropout["is"][np.searchsorted(np.array(dropout["at"]) * given["N"], step, side="right") - 1]
    drawn = [1 if axis == alike else size for axis, size in enumerate(shape)]
    return np.broadcast_to((rng.random(drawn) >= p) / (1 - p), shape)


def of_networks(given, batch, rng, share=0.3, alike=None):
    """R, Q and the heads (RUNS, ...) by the definition."""
    N, decay, v = given["N"], given["decay"], np.atleast_2d(given["start"]["v"])
    R, Q, shared = np.array(UNITS["R"]), np.array(UNITS["Q"]), len(v) == 1
    B, J = np.split(vectors_with(np.block([[TASKS, R.T], [R, Q]]), N, rng), 2)
    J, v = (np.tile(part, (RUNS, 1, 1)) for part in (J, v))
    for step, (x, second) in enumerate(examples(given, batch, rng, share)):
        task = second.astype(int)
        y, h = x @ B.T, x @ np.swapaxes(J, 1, 2)
        head = v[np.arange(RUNS)[:, None], 0 * task if shared else task]
        mask = masks(given, step, h.shape, rng, alike)
        g, slope = mask * erf(h / np.sqrt(2)), mask * np.sqrt(2 / np.pi) * np.exp(-(h**2) / 2)
        target = np.take_along_axis(erf(y / np.sqrt(2)), task[..., None], 2)[..., 0]
        e = target + given["noise"] * rng.standard_normal(task.shape) - (head * g).sum(-1)
        J = (1 - decay / N) * J + given["eta"] * np.einsum("rbk,rbn->rkn", head * slope * e[..., None], x) / batch
        gain = given["eta_v"] / N * g * e[..., None] / batch
        for k in range(v.shape[1]):
            v[:, k] += (gain * (shared | (task == k))[..., None]).sum(1)
    return {"R": J @ B.T / N, "Q": J @ np.swapaxes(J, 1, 2) / N, "v": v[:, 0] if shared else v}


def run_of(given, batch):
    return simulate.run(scenario_from(given | {"batch": batch}))


def deviation(run, given, **planted):
    """The least of the p-values of all order parameters, times their number, of runs and of weight vectors."""
    definition = of_perceptrons if "rule" in given else of_networks
    vectors = definition(given, int(run.batch), np.random.default_rng(1), **planted)
    p = [
        ks_2samp(run[name].values[(slice(None), 0, *at)], vectors[name][(slice(None), *at)]).pvalue
        for name, value in vectors.items()
        for at in np.ndindex(value.shape[1:])
    ]
    return min(p) * len(p)


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.parametrize(
    ("learning", "batch"),
    [("perceptron", 1), ("perceptron", 3), ("network", 1), ("network", 12), ("dropout", 1), ("dropout", 12)],
)
def test_the_chain_has_the_distribution_of_weight_vectors(learning, batch):
    """Of fewer examples than students, and of more than inputs; another share of replay, other labels, and masks that
    all units of an example or all examples of a step share are found."""
    given = LEARNING[learning]
    run = run_of(given, batch)
    assert deviation(run, given) > LEVEL
    others = {"perceptron": [{"share": 0.5}, {"flip": 0.16}], "network": [{"share": 0.5}]}
    for planted in others.get(learning, [{"alike": 2 if batch == 1 else 1}]):
        assert deviation(run, given, **planted) < LEVEL


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "batch"),
    [
        *((given | DIRECT, batch) for given in (PERCEPTRON, NETWORK) for batch in (1, 3)),
        *((DROPOUT | {"engine": "vectors"}, 1), (DROPOUT | DIRECT, 3)),
        *((SHARED, batch) for batch in (1, 3)),
    ],
)
def test_the_direct_engine_and_a_shared_head_have_it_too(given, batch):
    assert deviation(run_of(given, batch), given) > LEVEL


@pytest.fixture
def recompiled(monkeypatch):
    """Compile the chain with what a test plants in it, and again after it."""
    monkeypatch.setenv("STATMECH_CACHE", "off")  # programs are kept by what the files of the package say
    gram_engine._simulate_all_seeds.clear_cache()
    yield
    gram_engine._simulate_all_seeds.clear_cache()


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("learning", ["perceptron", "network"])
def test_one_degree_of_freedom_too_many_changes_the_distribution(learning, batch, recompiled, monkeypatch):
    chi_variable = gram_engine.draw_chi
    monkeypatch.setattr(gram_engine, "draw_chi", lambda key, d, *others: chi_variable(key, d + 1, *others))
    assert deviation(run_of(LEARNING[learning], batch), LEARNING[learning]) < LEVEL


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("learning", ["perceptron", "network"])
def test_noise_of_a_batch_that_is_not_divided_changes_the_distribution(learning, recompiled, monkeypatch):
    """The part across the basis has the length of one example's, not of the mean of three."""
    factor = gram_engine.compute_lq_factor
    monkeypatch.setattr(
        gram_engine, "compute_lq_factor", lambda rows: factor(rows) * (3**0.5 if rows.shape[1] == 3 else 1.0)
    )
    assert deviation(run_of(LEARNING[learning], 3), LEARNING[learning]) < LEVEL


LATER = {"N": 1000, "seeds": 32, "batch": 5, "decay": 0}
LIMITS = {
    "perceptron": PERCEPTRON | LATER | {"rule": "hebb", "t": [2, 4, 5, 8], "switch": 4},
    "network": NETWORK | LATER | {"t": [2, 5, 6, 10], "switch": 5, "eta": 2},
}


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.parametrize("learning", LIMITS)
def test_runs_of_many_inputs_tend_to_the_equations_before_and_after_a_switch(learning):
    """Order parameters at N = 1000, in units of the standard error of 32 runs; a noisier theory is found."""
    given, found = LIMITS[learning], {}
    run = simulate.run(scenario_from(given))
    for batch in (5, 4):
        solved = theory.solve(scenario_from(given | {"batch": batch}))
        error = {
            name: run[name].std("seed", ddof=1) / np.sqrt(32) for name in ("eps_g", "R", "v", "length") if name in run
        }
        z = [(run[name].mean("seed") - solved[name]) / of.where(of > 1e-12) for name, of in error.items()]
        found[batch] = max(float(np.abs(one).max()) for one in z)  # a head rests
    assert found[5] < 4 < found[4]


@pytest.mark.quick
@pytest.mark.parametrize("more", [{}, {"start": {"length": 0.7, "R": 0.3}, "engine": "vectors"}])
def test_one_task_has_the_runs_of_one_teacher_to_the_bit(more):
    common = {"rule": "perceptron", "N": 50, "t": [0, 1, 4], "flip": 0.1, "seeds": 8} | more
    tasks, one = simulate.run(OnlineTasks(**common, tasks=1)), simulate.run(Scenario(**common))
    for name in ("eps_g", "R", "length"):
        np.testing.assert_array_equal(tasks[name].values.ravel(), one[name].values.ravel())


@pytest.mark.slow
def test_one_task_has_the_same_runs_and_theory_with_a_head_of_its_own_as_with_a_shared_one():
    """Every protocol of one task; theory of single examples is that of a network without tasks."""
    common = {"network": "erf", "K": 2, "M": 2, "N": 40, "t": [0, 1, 3], "eta_v": 0.5, "seeds": 2}
    common["start"] = {"Q": 0.3, "R": {"diagonal": 0.1}, "v": [0.5, 0.7]}
    protocols = {"tasks": 1, "batch": [1, 3], "protocol": ["interleaved", "blocked", {"blocks": [0, 0.5, 1]}]}
    own, shared = (NetworkTasks(**common, **protocols, heads=heads) for heads in ("own", "shared"))
    alone = theory.solve(Network(**common))
    for one, other in ((simulate.run(own), simulate.run(shared)), (theory.solve(own), theory.solve(shared))):
        for name in ("eps_g", "R", "Q", "v"):
            values = one.v.isel(task=0) if name == "v" else one[name]
            np.testing.assert_array_equal(values, other[name])
            if "seed" not in one.dims:
                values = values.sel(batch=1).squeeze()
                for protocol in values.protocol.values:
                    np.testing.assert_allclose(values.sel(protocol=protocol), alone[name], rtol=1e-9)


def test_a_uniform_draws_each_task_in_its_share():
    uniform = (np.arange(1000) + 0.5) / 1000
    with jax.enable_x64(True):
        drawn = draw_task_masks(uniform, np.array([0.2, 0.0, 0.8]), 3)
    assert [int(here.sum()) for here in drawn] == [200, 0, 800]
