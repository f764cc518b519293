"""Descent whose steps act on single weights: the ladder of both sides, its limits, exact runs, and planted errors."""

from __future__ import annotations

import inspect
import sys
import types
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import erf
from scipy.stats import norm

import simulate
import theory
from simulate.convex.descent_engines import run_explicit_descent
from statmech import Descent, Inference, Risk
from statmech.convex.descent_methods import Adam, Gradient, Nesterov
from statmech.convex.weight_distributions import Binary, Gauss, Sparse
from theory.stored_examples import descent_dynamics
from theory.stored_examples.field_samples import compute_mean_teacher_field

SPARSE = {"weights": "sparse", "rho": 0.2}
NOISY = {"flip": 0.1, "lam": 0.3, "eta": 0.3, "epochs": [1, 2, 5, 10, 20]}
STARTED = {"start": {"length": 1, "R": 0.3}}


def cell(**keys):
    return next(Descent(**({"descent": "gradient", "loss": "logistic", "alpha": 2, "N": 10**6} | keys)).cells())


def at_size(this, size):
    """Means and standard errors of replicas of a fixed number of samples."""
    return descent_dynamics._average_paths(
        this,
        [
            descent_dynamics.simulate_descent(this, replica, size)
            for replica in range(descent_dynamics.NUM_DESCENT_REPLICAS)
        ],
        size,
    )


# the other ladder


@dataclass(frozen=True)
class AloneGradient(Gradient):
    coordinatewise = True


@dataclass(frozen=True)
class AloneNesterov(Nesterov):
    coordinatewise = True


def on_both_sides(this):
    """The same descent, on samples of single weights."""
    kinds = {Gradient: AloneGradient(), Nesterov: AloneNesterov()}
    return replace(this, descent=kinds[type(this.descent)])


@pytest.mark.parametrize(
    ("keys", "tolerance"),
    [
        (NOISY, 2e-3),
        (NOISY | STARTED | {"descent": "nesterov", "momentum": 0.9}, 1e-3),
        (NOISY | STARTED | {"loss": "hinge", "batch": 0.5, "eta": 0.1, "weights": "binary"}, 2e-3),
    ],
    ids=["logistic", "Nesterov", "hinge in batches, binary"],
)
def test_a_descent_along_the_force_is_that_of_the_ladder_of_one_side(keys, tolerance):
    this = cell(**keys)
    one, both = at_size(this, 2**11), at_size(on_both_sides(this), 2**11)
    for name in ("R", "length", "train_loss"):
        error = np.hypot(one.error[name], both.error[name])
        deviation = np.abs(one.mean[name] - both.mean[name])
        assert np.all(deviation < np.minimum(4 * error + 1e-9, tolerance * (1 + both.mean[name]))), name


def test_weights_matter_to_steps_of_single_weights_only():
    of = {weights: cell(**NOISY, weights=weights) for weights in ("gauss", "binary")}
    assert np.array_equal(*(descent_dynamics.simulate_descent(it, 0, 512).parallel for it in of.values()))
    alone = [
        descent_dynamics.simulate_descent(replace(it, descent=Adam()), 0, 2**12).parallel[-1] for it in of.values()
    ]
    assert abs(np.diff(alone)) > 0.02


@pytest.mark.slow
def test_the_rotation_of_a_teacher_changes_the_law_of_no_gradient_descent():
    """At N = 6, where binary weights differ most from normal ones; of sign descent it changes the law."""

    def deviation(**keys):
        R = []
        for weights in ("gauss", "binary"):
            this = cell(N=6, flip=0.1, eta=0.3, epochs=[1, 3], weights=weights, engine="explicit", **keys)
            R.append([run_explicit_descent(this, np.random.default_rng([7, run]))["R"] for run in range(800)])
        one, other = np.array(R)
        return np.abs(one.mean(0) - other.mean(0)) / np.sqrt((one.var(0) + other.var(0)) / 800)

    assert np.all(deviation() < 3.5)
    assert np.all(deviation(descent="sign") > 5)


# known values


def test_the_first_step_of_signs_is_known():
    """The force on a weight is a w* + b n with normal n and a/b = <yu> sqrt(alpha), Hebb's, for any loss."""
    for weights in ("gauss", "binary"):
        this = cell(descent="sign", loss="hinge", flip=0.1, epochs=[1], weights=weights, eta=0.2)
        odds = compute_mean_teacher_field(this.teacher) * np.sqrt(2)
        normal, binary = np.sqrt(2 / np.pi) * odds / np.sqrt(1 + odds**2), erf(odds / np.sqrt(2))
        found = at_size(this, 2**14)
        assert found.error["R"][0] < 5e-4
        assert abs(found.mean["R"][0] - (normal if weights == "gauss" else binary)) < 4 * found.error["R"][0] + 1e-5
        assert found.mean["length"][0] == pytest.approx(0.2)


def test_the_first_proximal_step_of_sparse_weights_is_known():
    """Soft thresholds of Gaussian fields: of the weights that are 0, and of the others."""
    this = cell(loss="square", teacher="linear", noise=0.5, penalty="l1", lam=0.8, eta=0.3, epochs=[1], **SPARSE)
    alpha, threshold = this.alpha, this.eta * this.lam
    spread = np.sqrt(this.eta**2 * alpha * (1 + this.teacher.noise**2))
    slope, square, products = this.eta * alpha, 0.0, 0.0
    for share, _, variance in this.weights.pieces:
        s = np.sqrt(slope**2 * variance + spread**2)
        beyond, height = 2 * norm.sf(threshold / s), 2 * norm.pdf(threshold / s)
        square += share * ((s * s + threshold**2) * beyond - s * threshold * height)
        products += share * slope * variance * beyond
    found = at_size(this, 2**14)
    for name, exact in {"R": products / np.sqrt(square), "length": np.sqrt(square)}.items():
        assert found.error[name][0] < 3e-4
        assert abs(found.mean[name][0] - exact) < 4 * found.error[name][0] + 1e-6


LASSO = {"flip": 0.1, "penalty": "l1", "lam": 1, "eta": 0.9, "descent": "nesterov", "momentum": 0.5, "epochs": 30}
ELASTIC = {"loss": "square", "teacher": "linear", "noise": 0.3, "penalty": "elastic_net", "lam": 0.8, "epochs": 40}


def from_the_minimum(keys):
    """Deviations of R, the length and the loss after the last step, and their standard errors."""
    found = at_size(cell(**keys, **SPARSE), 2**11)
    of_risk = {key: value for key, value in keys.items() if key in Risk.model_fields}
    minimum = theory.solve(Risk(**{"loss": "logistic", "alpha": 2, **SPARSE} | of_risk))
    names = ("R", "length", "train_loss")
    deviations, errors = zip(*((found.mean[it] - minimum[it].item(), found.error[it]) for it in names), strict=True)
    return np.abs(np.concatenate(deviations)), np.concatenate(errors)


@pytest.mark.parametrize("keys", [LASSO, ELASTIC | {"eta": 0.2}], ids=["FISTA", "ISTA of the elastic net"])
def test_many_proximal_steps_lead_to_the_minimum(keys):
    deviations, errors = from_the_minimum(keys)
    assert np.all(errors < 3e-3)
    assert np.all(deviations < 5 * errors)


PLANTED = {
    "no reaction on fields": ("image += ", "image + "),
    "no reaction on weights": ("answer += ", "answer + "),
    "the newest answer only": ("@ self.slopes.filled / np", "[-1:] @ self.slopes.filled[-1:] / np"),
    "alpha for its root": ("return np.sqrt(self.alpha) * (", "return self.alpha * ("),
}


@pytest.mark.parametrize(("right", "wrong"), PLANTED.values(), ids=PLANTED.keys())
def test_planted_errors_do_not_lead_to_the_minimum(right, wrong, monkeypatch):
    source = inspect.getsource(descent_dynamics)
    assert source.count(right) == 1
    mistaken = types.ModuleType("mistaken")
    monkeypatch.setitem(sys.modules, "mistaken", mistaken)  # where dataclasses look for their annotations
    exec(source.replace(right, wrong), mistaken.__dict__)
    monkeypatch.setattr(descent_dynamics, "TwoSided", mistaken.TwoSided)
    assert not from_the_minimum(LASSO)[0].max() < 0.02


def test_what_the_minimum_and_bayes_reach_have_the_penalty_and_the_weights():
    keys = {"loss": "logistic", "penalty": "l1", "flip": 0.1, "alpha": 2, **SPARSE}
    solved = theory.solve(Descent(descent="gradient", lam=0.5, epochs=[1], **keys))
    at_lam, best = (theory.solve(Risk(**keys, lam=lam, N=10_000)) for lam in (0.5, "best"))
    assert solved.eps_limit.item() == pytest.approx(at_lam.eps_g.item(), abs=1e-12)
    assert solved.eps_best_lam.item() == pytest.approx(best.eps_g.item(), abs=1e-12)
    bayes = theory.solve(Inference(prior="sparse", rho=0.2, flip=0.1, alpha=2, steps=200)).eps_g.values.squeeze()[-1]
    assert solved.eps_bayes.item() == pytest.approx(bayes, abs=1e-6)


@pytest.mark.parametrize("weights", [Gauss(), Binary(), Sparse(rho=0.1)])
def test_samples_of_weights_have_their_distribution(weights):
    w = descent_dynamics.sample_teacher_weights(weights, (np.arange(2**12) + 0.5) / 2**12)
    assert np.mean(w * w) == pytest.approx(1)
    for x in (-2, -0.5, 0.1, 0.9, 3):
        below = sum(p * (norm.cdf((x - m) / np.sqrt(v)) if v else m < x) for p, m, v in weights.pieces)
        assert np.mean(w < x) == pytest.approx(below, abs=1e-3)


def test_adam_is_that_of_its_paper():
    rng, adam = np.random.default_rng(0), Adam(beta1=0.8, beta2=0.95, epsilon=1e-3)
    state = adam.start(np.ones(3))
    w, m, v = np.ones(3), 0.0, 0.0
    for t in range(1, 6):
        g = rng.standard_normal(3)
        m, v = 0.8 * m + 0.2 * g, 0.95 * v + 0.05 * g**2
        w = w - 0.1 * (m / (1 - 0.8**t)) / (np.sqrt(v / (1 - 0.95**t)) + 1e-3)
        state = adam.next(state, g, 0.1, t - 1)
    np.testing.assert_allclose(state[0], w, rtol=1e-12)


# exact runs

SETTINGS = {
    "lasso, sparse": {"penalty": "l1", "lam": 0.5, "eta": 0.2, "flip": 0.1, **SPARSE},
    "elastic net, Nesterov, batches": {
        **{"descent": "nesterov", "momentum": 0.7, "loss": "squared_hinge", "penalty": "elastic_net", "lam": 0.5},
        **{"eta": 0.1, "flip": 0.1, "batch": 0.5, "epochs": [0.5, 1, 2, 4], **SPARSE},
    },
    "lasso, momentum, binary": {
        **{"descent": "momentum", "momentum": 0.7, "loss": "square", "teacher": "linear", "noise": 0.3, **STARTED},
        **{"penalty": "l1", "lam": 0.4, "eta": 0.1, "weights": "binary"},
    },
    "signs": {"descent": "sign", "eta": 0.1, "lam": 0.1, "flip": 0.1, **STARTED},
    "signs of the hinge, binary": {"descent": "sign", "eta": 0.05, "loss": "hinge", "flip": 0.1, "weights": "binary"},
    "Adam, sparse": {"descent": "adam", "eta": 0.1, "lam": 0.1, "flip": 0.1, "schedule": {"t0": 5}, **SPARSE},
    "Adam, linear": {
        **{"descent": "adam", "beta1": 0.6, "beta2": 0.9, "eta": 0.1, "loss": "huber", "teacher": "linear"},
        **{"noise": 0.5, "batch": 0.5, "sampling": "replacement", **STARTED},
    },
}


@pytest.mark.slow
def test_exact_runs_agree_with_theory():
    """24 runs at N = 600 of each setting: deviations in standard errors of both."""
    deviations = {}
    for name, keys in SETTINGS.items():
        base = {"descent": "gradient", "loss": "logistic", "alpha": 1.5, "N": 600, "epochs": [1, 2, 4, 8], "seeds": 24}
        scenario = Descent(**base | keys)
        runs, limit = simulate.run(scenario), at_size(next(scenario.cells()), 2**11)
        for variable in ("R", "length", "train_loss"):
            values = runs[variable].transpose("seed", ..., "epochs").values.reshape(24, -1)
            error = np.hypot(values.std(axis=0, ddof=1) / np.sqrt(24), limit.error[variable])
            deviations[name, variable] = (values.mean(axis=0) - limit.mean[variable]) / (error + 1e-9)
    every = np.concatenate(list(deviations.values()))
    assert {name: np.abs(z).max() for name, z in deviations.items() if np.abs(z).max() > 4} == {}
    assert np.sqrt(np.mean(every**2)) < 1.5
