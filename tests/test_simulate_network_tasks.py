"""Networks of several tasks: the chain has the distribution of weight vectors, and tends to the equations."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import ks_2samp

import simulate
import theory
from simulate.kernels import gram
from statmech import NetworkTasks

LEVEL = 1e-3  # family-wise, over all distributions compared
RUNS = 4096
START = {"R": [[0.3, 0.1], [0.0, 0.2]], "Q": [[0.5, 0.1], [0.1, 0.4]], "v": [[0.8, -0.5], [0.4, 0.6]]}
SMALL = {
    "network": "erf",
    "tasks": 2,
    "overlap": 0.5,
    "K": 2,
    "N": 8,
    "eta": 1.5,
    "eta_v": 0.6,
    "noise": 0.3,
    "decay": 0.4,
    "protocol": {"replay": 0.3},
    "switch": 1,
    "start": START,
    "t": [2],
    "seeds": RUNS,
}


def weight_vectors(batch, share, shared, rng):
    """R, Q and the heads (RUNS, ...) after 16 steps, by the definition: weight vectors in NumPy."""
    N, K, steps, eta, eta_v, sigma, decay = 8, 2, 16, 1.5, 0.6, 0.3, 0.4
    T = np.array([[1, 0.5], [0.5, 1]])
    R, Q = np.array(START["R"]), np.array(START["Q"])
    root = np.linalg.cholesky(np.block([[T, R.T], [R, Q]]))
    frame = np.linalg.qr(rng.standard_normal((N, 2 + K)))[0].T * np.sqrt(N)
    B, J = (root @ frame)[:2], np.tile((root @ frame)[2:], (RUNS, 1, 1))
    v = np.tile(np.array([START["v"][0]] if shared else START["v"]), (RUNS, 1, 1))
    for step in range(steps):
        x = rng.standard_normal((RUNS, batch, N)) / np.sqrt(N)
        first = 1.0 if step < 8 else share
        task = (rng.random((RUNS, batch)) >= first).astype(int)
        y, h = x @ B.T, x @ np.swapaxes(J, 1, 2)
        head = v[np.arange(RUNS)[:, None], 0 * task if shared else task]
        g, slope = erf(h / np.sqrt(2)), np.sqrt(2 / np.pi) * np.exp(-(h**2) / 2)
        target = np.take_along_axis(erf(y / np.sqrt(2)), task[..., None], 2)[..., 0]
        e = target + sigma * rng.standard_normal(task.shape) - (head * g).sum(-1)
        J = (1 - decay / N) * J + eta * np.einsum("rbk,rbn->rkn", head * slope * e[..., None], x) / batch
        gain = eta_v / N * g * e[..., None] / batch
        for k in range(v.shape[1]):
            v[:, k] += (gain * (shared | (task == k))[..., None]).sum(1)
    return {"R": J @ B.T / N, "Q": J @ np.swapaxes(J, 1, 2) / N, "v": v[:, 0] if shared else v}


def scenario(batch, **given):
    return NetworkTasks(**SMALL | {"batch": batch} | given)


def deviation(run, share=0.3):
    """The least of the p-values of all entries of R, Q and the heads, times their number."""
    vectors = weight_vectors(int(run.batch), share, "task" not in run.v.dims, np.random.default_rng(1))
    p = [
        ks_2samp(run[name].values[(slice(None), 0, *at)], vectors[name][(slice(None), *at)]).pvalue
        for name, value in vectors.items()
        for at in np.ndindex(value.shape[1:])
    ]
    return min(p) * len(p)


@pytest.mark.slow
@pytest.mark.quick
@pytest.mark.parametrize("batch", [1, 3, 12])
def test_the_chain_has_the_distribution_of_weight_vectors(batch):
    """Fewer examples than students, and more; another share of replay is found."""
    run = simulate.run(scenario(batch))
    assert deviation(run) > LEVEL
    assert deviation(run, share=0.45) < LEVEL


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 3])
def test_a_shared_head_and_the_direct_engine_have_it_too(batch):
    shared = {"heads": "shared", "start": START | {"v": START["v"][0]}}
    assert deviation(simulate.run(scenario(batch, **shared))) > LEVEL
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


@pytest.mark.slow
@pytest.mark.quick
def test_runs_of_many_inputs_tend_to_the_equations_before_and_after_a_switch():
    """Errors and heads at N = 1000, at times that are far apart, in units of the standard error of 32 runs."""
    given = SMALL | {"N": 1000, "t": [4, 10, 12, 20], "switch": 10, "decay": 0, "eta": 2, "seeds": 32, "batch": 5}
    scenario = NetworkTasks(**given)
    run, solved = simulate.run(scenario), theory.solve(scenario)
    for name in ("eps_g", "v", "R"):
        error = run[name].std("seed", ddof=1) / np.sqrt(scenario.seeds)
        z = np.abs((run[name].mean("seed") - solved[name]) / error.where(error > 1e-12))  # a head rests
        assert float((z**2).mean()) ** 0.5 < 2, name  # entries of one run are correlated
        assert float(z.max()) < 4, name
