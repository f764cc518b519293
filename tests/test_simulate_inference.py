"""Message passing follows state evolution step by step, and a run depends on its own parameters and seed alone."""

from __future__ import annotations

from functools import partial
from itertools import islice

import numpy as np
import pytest
from conftest import disagreements

import simulate
import theory
from simulate.convex import message_passing
from simulate.convex.message_passing import iterate_messages
from statmech import Inference, ScenarioError
from statmech.convex.teachers import SignTeacher
from statmech.convex.weight_distributions import Binary, Gauss

SMALL = {"N": 60, "steps": 8, "seeds": 3}
SWEEPS = [
    {"prior": ["gauss", "binary"], "teacher": "sign", "flip": [0, 0.1], "alpha": [0.5, 1.1]},
    {"prior": "sparse", "teacher": "probit", "noise": 0.5, "alpha": 2.0},
    {"prior": "binary", "teacher": "logit", "gain": 3.0, "alpha": 1.5, "start": ["uninformed", "informed"]},
    {"prior": "sparse", "teacher": "linear", "noise": 0.3, "alpha": 0.7, "start": ["uninformed", "informed"]},
]


def both(**sweep):
    scenario = Inference(**{"N": 1000, "steps": 6, "seeds": 12, **sweep})
    return simulate.run(scenario), theory.solve(scenario)


@pytest.mark.parametrize(
    "sweep",
    [pytest.param(it, id=it["teacher"], marks=() if it["teacher"] == "probit" else pytest.mark.slow) for it in SWEEPS],
)
def test_each_step_follows_state_evolution(sweep):
    assert not disagreements(*both(**sweep))


def without_memory(X, output, estimate, w, V):
    """The steps without Onsager's term: each as if it were the first one."""
    N = len(w)
    while True:
        g, steepness = output(X @ w / np.sqrt(N), V)
        s = steepness.sum() / N
        w, variances = estimate(s * w + g @ X / np.sqrt(N), s)
        V = variances.mean()
        yield w, g


@pytest.mark.parametrize(("kernel", "follows"), [(iterate_messages, True), (without_memory, False)])
def test_without_the_onsager_term_steps_do_not_follow_state_evolution(kernel, follows):
    N, P, overlaps = 1000, 2000, []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, teacher = rng.standard_normal((P, N)), Gauss().draw(rng, N)
        y = np.sign(X @ teacher)
        steps = kernel(X, partial(SignTeacher().score, y), Gauss().posterior, np.zeros(N), 1.0)
        overlaps.append([w @ teacher / N for w, *_ in islice(steps, 5)])
    error = np.std(overlaps, axis=0, ddof=1) / np.sqrt(10)
    z = (np.mean(overlaps, axis=0) - theory.state_evolution("gauss", 2.0, steps=5)[1:]) / error
    assert (np.max(np.abs(z)) < 4.8) == follows  # t of 9 degrees of freedom: 0.1 %


def test_an_informed_start_has_the_overlap_and_the_mean_square_of_its_error():
    runs = simulate.run(Inference(prior="gauss", alpha=0.5, start="informed", N=1000, steps=1, seeds=20)).isel(step=0)
    for name, expected in (("m", 1 - 1e-4), ("q", 1 - 1e-4), ("mse", 1e-4)):
        error = float(runs[name].std("seed", ddof=1)) / np.sqrt(20)
        assert float(runs[name].mean("seed")) == pytest.approx(expected, abs=4 * error)


def test_binary_weights_are_recovered_exactly_and_stay():
    runs = simulate.run(Inference(prior="binary", alpha=2.0, N=500, steps=60, seeds=5))
    assert np.all(runs.mse.isel(step=-1) < 1e-9)
    np.testing.assert_array_equal(runs.mse.isel(step=-1), runs.mse.isel(step=-10))
    assert np.all(np.isfinite(runs.eps_g))


def test_sparse_weights_are_recovered_from_fewer_exact_outputs_than_weights():
    runs = simulate.run(Inference(prior="sparse", rho=0.1, teacher="linear", alpha=0.4, N=1000, steps=100, seeds=3))
    assert np.all(runs.mse.isel(step=-1) < 1e-7)
    assert np.all(runs.eps_g.isel(step=-1) < 1e-4)


@pytest.mark.parametrize("teacher", ["sign", "probit", "logit", "linear"])
def test_few_examples_are_learnt_without_a_warning(teacher):
    runs = simulate.run(Inference(prior=["gauss", "sparse"], teacher=teacher, N=20, alpha=[0.05, 0.3], seeds=4))
    assert np.all(np.isfinite(runs.mse))


def test_a_run_does_not_depend_on_what_else_is_simulated():
    whole = simulate.run(Inference(prior=["binary", "gauss"], alpha=[0.5, 1.5], flip=[0, 0.1], **SMALL))
    alone = simulate.run(Inference(prior="gauss", alpha=1.5, flip=0.1, **SMALL))
    for name in alone:
        np.testing.assert_array_equal(alone[name], whole[name].sel(prior="gauss", alpha=1.5, flip=0.1))


@pytest.mark.slow
def test_starts_and_flips_of_a_seed_share_their_examples():
    seeds = 40
    runs = simulate.run(
        Inference(
            prior="gauss", alpha=1.0, flip=[0, 0.05], N=60, steps=30, start=["uninformed", "informed"], seeds=seeds
        )
    ).isel(step=-1)
    informed, uninformed = runs.m.sel(start="informed"), runs.m.sel(start="uninformed")
    assert float(np.abs(informed - uninformed).median()) < 1e-6  # both tend to the same fixed point
    assert np.corrcoef(*informed.values)[0, 1] > 3.5 / np.sqrt(seeds)


def test_a_teacher_has_mean_square_1():
    """At the start next to it m = 1 - 1e-4 up to fluctuations of the noise, which is a hundredth of the weights."""
    runs = simulate.run(Inference(prior="sparse", rho=0.05, alpha=1.0, start="informed", N=200, steps=1, seeds=8))
    np.testing.assert_allclose(runs.m.isel(step=0), 1 - 1e-4, atol=5 * 0.01 / np.sqrt(200))


def test_steps_end_where_the_weights_are_settled():
    X = np.random.default_rng(0).standard_normal((50, 20))
    y = np.sign(X @ np.ones(20))

    def output(h, V):
        return (y - h) / (1 + V), np.full(50, 1 / (1 + V))

    def ridge(r, s):
        return r / (s + 1), np.full(20, 1 / (s + 1))

    *_, (w, *_) = iterate_messages(X, output, ridge, np.zeros(20), 1.0, change_tol=1e-13)
    Z = X / np.sqrt(20)
    np.testing.assert_allclose(w, np.linalg.solve(Z.T @ Z + np.eye(20), Z.T @ y), rtol=1e-10)
    *_, (damped, *_) = iterate_messages(X, output, ridge, np.zeros(20), 1.0, change_tol=1e-13, damping=0.5)
    np.testing.assert_allclose(damped, w, rtol=1e-10)


def test_nothing_is_done_from_weights_that_are_known():
    assert not list(
        iterate_messages(
            np.ones((2, 2)), None, Binary().posterior, np.ones(2), message_passing.RECOVERED_VARIANCE_TOL / 2
        )
    )


def test_more_examples_than_memory_are_refused_before_anything_runs():
    with pytest.raises(ScenarioError, match="alpha: a run with"):
        simulate.run(Inference(prior="gauss", N=10**6, alpha=10.0))
