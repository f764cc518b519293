"""Perceptrons of several tasks: the chain has the distribution of weight vectors, and tends to the equations."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy.stats import ks_2samp

import simulate
import theory
from simulate.kernels import gram
from simulate.kernels.drawn_tasks import drawn_tasks
from statmech import OnlineTasks, Scenario
from statmech.rules import RULES

LEVEL = 1e-3  # family-wise, over all distributions compared
RUNS, N, STEPS, SWITCH = 4096, 20, 60, 30
SMALL = {
    "rule": "adatron",
    "tasks": 2,
    "overlap": 0.5,
    "N": N,
    "eta": 2.0,
    "flip": 0.1,
    "decay": 0.2,
    "protocol": {"replay": 0.3},
    "switch": SWITCH / N,
    "start": {"length": 1.2, "R": [0.3, 0.1]},
    "t": [STEPS / N],
    "seeds": RUNS,
}


def weight_vectors(batch, rng, share=0.3, flip=0.1):
    """R with both teachers and the length (RUNS, ...) by the definition: weight vectors in NumPy."""
    rule, decay, length, R = RULES[SMALL["rule"]](eta=SMALL["eta"]), SMALL["decay"], 1.2, np.array([0.3, 0.1])
    root = np.linalg.cholesky(np.block([[np.array([[1, 0.5], [0.5, 1]]), R[:, None]], [R, 1.0]]))
    vectors = root @ np.linalg.qr(rng.standard_normal((N, 3)))[0].T * np.sqrt(N)
    B, J = vectors[:2], np.tile(length * vectors[2], (RUNS, 1))
    for step in range(STEPS):
        x = rng.standard_normal((RUNS, batch, N)) / np.sqrt(N)
        task = rng.random((RUNS, batch)) >= (1.0 if step < SWITCH else share)
        label = np.sign(np.take_along_axis(x @ B.T, task[..., None].astype(int), 2)[..., 0])
        label *= np.where(rng.random(label.shape) < flip, -1, 1)
        size = np.linalg.norm(J, axis=1, keepdims=True) / np.sqrt(N)
        f = rule.eta * label * rule.g(label * np.einsum("rbn,rn->rb", x, J) / size, size)
        J = (1 - decay / N) * J + np.einsum("rb,rbn->rn", f, x) / batch
    size = np.linalg.norm(J, axis=1) / np.sqrt(N)
    return {"R": J @ B.T / N / size[:, None], "length": size}


def scenario(batch, **given):
    return OnlineTasks(**SMALL | {"batch": batch} | given)


def deviation(run, **planted):
    """The least of the p-values of R with both teachers and of the length, times three."""
    vectors = weight_vectors(int(run.batch), np.random.default_rng(1), **planted)
    found = [(run.R.values[:, 0, k], vectors["R"][:, k]) for k in (0, 1)]
    return 3 * min(ks_2samp(*one).pvalue for one in [*found, (run.length.values[:, 0], vectors["length"])])


@pytest.mark.quick
@pytest.mark.parametrize("batch", [1, 3])
def test_the_chain_has_the_distribution_of_weight_vectors(batch):
    """Another share of replay and another fraction of flipped labels are found."""
    run = simulate.run(scenario(batch))
    assert deviation(run) > LEVEL
    assert deviation(run, share=0.5) < LEVEL
    assert deviation(run, flip=0.16) < LEVEL


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_the_direct_engine_has_it_too(batch):
    assert deviation(simulate.run(scenario(batch, engine="vectors"))) > LEVEL


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_one_degree_of_freedom_too_many_changes_the_distribution(batch, monkeypatch):
    chi_variable = gram.chi_variable
    monkeypatch.setattr(gram, "chi_variable", lambda key, d, *others: chi_variable(key, d + 1, *others))
    monkeypatch.setenv("STATMECH_CACHE", "off")  # programs are kept by what the files of the package say
    gram._run.clear_cache()
    try:
        assert deviation(simulate.run(scenario(batch))) < LEVEL
    finally:
        gram._run.clear_cache()


@pytest.mark.quick
@pytest.mark.slow
def test_noise_of_a_batch_that_is_not_divided_changes_the_distribution(monkeypatch):
    """The part across the basis has the length of one example's, not of the mean of three."""
    factor = gram.lower_factor
    monkeypatch.setattr(gram, "lower_factor", lambda rows: factor(rows) * (3**0.5 if rows.shape[1] == 3 else 1.0))
    monkeypatch.setenv("STATMECH_CACHE", "off")
    gram._run.clear_cache()
    try:
        assert deviation(simulate.run(scenario(3))) < LEVEL
    finally:
        gram._run.clear_cache()


@pytest.mark.quick
def test_runs_of_many_inputs_tend_to_the_equations_before_and_after_a_switch():
    """R and the length at N = 1000, in units of the standard error of 32 runs; a noisier theory is found."""
    given = SMALL | {"rule": "hebb", "N": 1000, "t": [4, 8, 10, 16], "switch": 8, "seeds": 32, "batch": 5}
    run, found = simulate.run(OnlineTasks(**given)), {}
    for batch in (5, 4):
        solved = theory.solve(OnlineTasks(**given | {"batch": batch}))
        z = [
            (run[name].mean("seed") - solved[name]) / run[name].std("seed", ddof=1) * 32**0.5
            for name in ("R", "length")
        ]
        found[batch] = max(float(np.abs(one).max()) for one in z)
    assert found[5] < 4 < found[4]


@pytest.mark.quick
@pytest.mark.parametrize("more", [{}, {"start": {"length": 0.7, "R": 0.3}, "engine": "vectors"}])
def test_one_task_has_the_runs_of_one_teacher_to_the_bit(more):
    common = {"rule": "perceptron", "N": 50, "t": [0, 1, 4], "flip": 0.1, "seeds": 8} | more
    tasks, one = simulate.run(OnlineTasks(**common, tasks=1)), simulate.run(Scenario(**common))
    for name in ("eps_g", "R", "length"):
        np.testing.assert_array_equal(tasks[name].values.ravel(), one[name].values.ravel())


def test_a_uniform_draws_each_task_in_its_share():
    uniform = (np.arange(1000) + 0.5) / 1000
    with jax.enable_x64(True):
        drawn = drawn_tasks(uniform, np.array([0.2, 0.0, 0.8]), 3)
    assert [int(here.sum()) for here in drawn] == [200, 0, 800]
