"""Descent for N -> infinity: closed forms of the square loss, a second route, known limits, and planted errors."""

from __future__ import annotations

import inspect
import sys
import tracemalloc
import types
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.special import ndtri
from scipy.stats import qmc, t
from threadpoolctl import threadpool_info, threadpool_limits

import theory
from statmech.convex.descent_methods import HeavyBall, Nesterov
from statmech.convex.losses import DESCENT_LOSSES, Penalty
from statmech.convex.teachers import LogitTeacher, ProbitTeacher, SignTeacher
from statmech.convex.weight_distributions import Gauss
from statmech.kinds.empirical_risk import Risk
from statmech.kinds.gradient_descent import Descent
from statmech.numerics.gaussian import normal_density
from theory import solutions
from theory.convex.empirical_risk import solve_loss_minimum
from theory.stored_examples import descent_dynamics, field_samples
from theory.stored_examples.descent_dynamics import compute_descent_curves

NOISY = {"loss": "logistic", "flip": 0.1, "alpha": 2, "lam": 0.02, "eta": 0.8, "start": {"length": 1}}
SETTINGS = {  # of the square loss
    "labels": {"flip": 0.1, "alpha": 2, "lam": 0.1, "eta": 0.2},
    "labels, started": {"alpha": 0.7, "eta": 0.3, "start": {"length": 1.5, "R": 0.2}},
    "linear": {"teacher": "linear", "noise": 0.5, "alpha": 3, "lam": 0.5, "eta": 0.1, "start": {"length": 1}},
    "heavy ball": {"descent": "momentum", "momentum": 0.8, "flip": 0.1, "alpha": 2, "lam": 0.1, "eta": 0.2},
    "Nesterov": {"descent": "nesterov", "momentum": 0.7, "teacher": "linear", "noise": 0.3, "alpha": 1.5, "eta": 0.1},
    "schedule": {"flip": 0.2, "alpha": 4, "eta": 0.2, "schedule": {"t0": 20}, "start": {"length": 0.5, "R": -0.5}},
}


def cell(**keys):
    return next(iter(Descent(**{"descent": "gradient", "N": 10**6, **keys}).cells()))


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


def agree(found, error, expected, known=0.0):
    """Within four standard errors, of theory and of what is expected."""
    return np.all(np.abs(found - expected) < 4 * np.hypot(error, known) + 1e-12)


# the square loss: modes of the Marchenko-Pastur law, each of which descends by itself


def modes(alpha, steps):
    """Eigenvalues of X^T X/N and their weights: exact for polynomials up to twice the number of steps."""
    count = steps + 2
    diagonal = np.append(alpha, np.full(count - 1, 1 + alpha))
    x, vectors = np.linalg.eigh(np.diag(diagonal) + np.sqrt(alpha) * (np.eye(count, k=1) + np.eye(count, k=-1)))
    return x, vectors[0] ** 2


def closed_form(this):
    """Overlap, length and training loss of the square loss after every step.

    In each mode w is a P times the teacher, S times the start and R times the noise that the inputs project on it;
    with labels a = <yu>, and y - a u acts as noise.
    """
    a, noise = (
        (1.0, this.teacher.noise**2)
        if not this.teacher.labels
        else (field_samples.compute_mean_teacher_field(this.teacher), None)
    )
    noise = 1 - a * a if noise is None else noise
    heavy = this.descent.momentum if isinstance(this.descent, HeavyBall) else 0.0
    ahead = this.descent.momentum if isinstance(this.descent, Nesterov) else 0.0
    x, weight = modes(this.alpha, this.steps[-1])
    w = before = np.array([0 * x, 0 * x + 1, 0 * x])
    m0, q0 = this.length * this.R, this.length**2 * (1 - this.R**2)
    found = []
    for step in range(this.steps[-1] + 1):
        P, S, R = w
        c = a * P + S * m0
        fit = x * ((c - a) ** 2 + S * S * q0) + noise * (x * x * R * R - 2 * x * R)
        square = weight @ (c * c + S * S * q0 + noise * x * R * R)
        found.append((weight @ c, np.sqrt(square), (weight @ fit + noise * this.alpha) / (2 * this.alpha)))
        z = w + ahead * (w - before)
        eta = this.eta / (1 + step / this.t0) if this.t0 else this.eta
        drawn = np.array([x * (z[0] - 1), x * z[1], x * z[2] - 1])
        w, before = z + heavy * (w - before) - eta * (drawn + this.lam * z), w
    return np.array(found).T


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())
def test_the_square_loss_is_exact(setting):
    this = cell(loss="square", epochs=list(range(61)), **setting)
    found = at_size(this, 512)
    for name, exact in zip(("overlap", "length", "train_loss"), closed_form(this), strict=True):
        value = found.mean["R"] * found.mean["length"] if name == "overlap" else found.mean[name]
        assert np.allclose(value, exact, rtol=1e-10, atol=1e-10), name
    if not this.teacher.labels:
        overlap, length, _ = closed_form(this)
        assert np.allclose(found.mean["mse"], 1 - 2 * overlap + length**2, rtol=1e-10, atol=1e-10)
    assert np.all(found.error["R"] < 1e-10)


def test_random_batches_of_a_share_b_move_the_overlap_as_the_full_batch_does_at_b_times_the_rate():
    keys = {"loss": "square", "flip": 0.1, "alpha": 2, "lam": 0.5, "eta": 0.2}
    this = cell(**keys, batch=0.4, sampling="replacement", epochs=np.arange(1, 6) * 2)
    expected = closed_form(replace(cell(**keys), eta=0.4 * 0.2, steps=(25,)))[0][list(this.steps)]
    paths = np.array(
        [descent_dynamics.simulate_descent(this, replica, 2**12).parallel[list(this.steps)] for replica in range(8)]
    )
    error = np.std(paths, axis=0, ddof=1) / np.sqrt(8)
    assert np.all(error < 5e-4)
    assert agree(np.mean(paths, axis=0), error, expected)


PLANTED = {  # what theory says, and what a mistaken theory would
    "sign of the new direction": ("np.append(v, -np.sqrt", "np.append(v, np.sqrt"),
    "no reaction": ("image -= f / np.sqrt(self.alpha)", "pass"),
    "alpha for its root": ("image -= f / np.sqrt(self.alpha)", "image -= f / self.alpha"),
    "alpha for its root in the force": ("-np.sqrt(self.alpha) * g", "-self.alpha * g"),
    "a projection 2 % off": ("f *= 1 / g", "f *= 1 / g; f += 0.02 * self.slopes.buffer[0]"),
    "penalty of a full batch": ("cell.batch * l2 * z", "l2 * z"),
}


@pytest.mark.parametrize(("right", "wrong"), PLANTED.values(), ids=PLANTED.keys())
def test_planted_errors_are_seen(right, wrong, monkeypatch):
    source = inspect.getsource(descent_dynamics)
    assert source.count(right) == 1
    mistaken = types.ModuleType("mistaken")
    monkeypatch.setitem(sys.modules, "mistaken", mistaken)  # where dataclasses look for their annotations
    exec(source.replace(right, wrong), mistaken.__dict__)
    keys = {"loss": "square", "flip": 0.1, "alpha": 2, "lam": 0.5, "eta": 0.2, "epochs": [10]}
    this = cell(**keys, batch=0.5, sampling="replacement")
    exact = closed_form(replace(this, eta=0.5 * 0.2))[0]
    assert abs(descent_dynamics.simulate_descent(this, 0, 4096).parallel[-1] - exact[-1]) < 2e-3
    if "batch" in right:
        assert abs(mistaken.simulate_descent(this, 0, 4096).parallel[-1] - exact[-1]) > 0.02
        return
    this = cell(**keys)
    deviation = mistaken.simulate_descent(this, 0, 512).parallel[-1] - closed_form(this)[0][-1]
    assert not abs(deviation) < 1e-3


# smooth losses


QUADRATURE = [0.26626293, 0.25466475, 0.25104771, 0.24972195]  # of the first four steps, by tensors of 32 x 18^4 nodes


def test_the_first_steps_of_the_logistic_loss_are_those_of_a_quadrature():
    this = cell(**{**NOISY, "start": {"length": 0}}, epochs=[1, 2, 3, 4])
    found = at_size(this, 2**16)
    assert abs(found.mean["eps_g"][0] - QUADRATURE[0]) < 1e-8
    assert np.all(found.error["eps_g"] < 1.5e-6)
    assert agree(found.mean["eps_g"], found.error["eps_g"], QUADRATURE, 1e-8)


def test_intervals_of_the_standard_error_hold_the_exact_value():
    this = cell(**{**NOISY, "start": {"length": 0}}, epochs=[2, 3, 4])
    groups = 48
    paths = [
        descent_dynamics.simulate_descent(this, replica, 512)
        for replica in range(descent_dynamics.NUM_DESCENT_REPLICAS * groups)
    ]
    held = []
    for first in range(0, len(paths), descent_dynamics.NUM_DESCENT_REPLICAS):
        found = descent_dynamics._average_paths(this, paths[first : first + descent_dynamics.NUM_DESCENT_REPLICAS], 512)
        deviation = np.abs(found.mean["eps_g"] - QUADRATURE[1:])
        held.append(deviation < t.ppf(0.975, descent_dynamics.NUM_DESCENT_REPLICAS - 1) * found.error["eps_g"])
    assert 0.88 <= np.mean(held) <= 0.995


def responses(this, replica, size):
    """Cosines after every step by response functions: Gaussian fields of a covariance, and the reaction's kernels."""
    steps, alpha, eta, lam = this.steps[-1], this.alpha, this.eta, this.lam
    net = np.clip(qmc.Sobol(steps + 2, rng=np.random.default_rng(replica)).random(size), 1e-16, 1 - 1e-16)
    u, normals = field_samples.compute_teacher_field_quantiles(this.teacher, net[:, 0]), ndtri(net[:, 1:])
    m, a, q0 = np.zeros(steps + 1), np.ones(steps + 1), this.length**2
    W, factor = np.zeros((steps + 1, steps)), np.zeros((steps + 1, steps + 1))
    G, D = np.zeros((steps, size)), np.zeros((steps, steps, size))
    R = np.zeros(steps + 1)
    for now in range(steps + 1):
        covariance = q0 * np.outer(a[: now + 1], a[: now + 1])
        covariance += alpha * W[: now + 1] @ (G @ G.T / size) @ W[: now + 1].T
        R[now] = m[now] / np.sqrt(m[now] ** 2 + covariance[now, now])
        if now == steps:
            return R
        factor[now, :now] = np.linalg.solve(factor[:now, :now], covariance[now, :now])
        factor[now, now] = np.sqrt(covariance[now, now] - factor[now, :now] @ factor[now, :now])
        h = m[now] * u + normals[:, : now + 1] @ factor[now, : now + 1] + W[now] @ G
        G[now], bend = this.loss_for_teacher_outputs.slope(h), this.loss_for_teacher_outputs.curvature(h)
        D[now] = np.einsum("r,rsn->sn", W[now], D)
        D[now, now] += 1
        D[now] *= bend  # of G at this step with respect to fields at earlier ones
        reaction = alpha * np.mean(D[now], axis=-1)
        m[now + 1] = m[now] - eta * (alpha * np.mean(G[now] * u) + lam * m[now])
        a[now + 1] = a[now] - eta * (reaction @ a[:steps] + lam * a[now])
        W[now + 1] = W[now] - eta * (reaction @ W[:steps] + lam * W[now])
        W[now + 1, now] -= eta


def test_response_functions_are_a_second_route():
    this = cell(**NOISY, epochs=[1, 2, 5, 8])
    route = np.array([responses(this, replica, 2**13) for replica in range(8)])[:, list(this.steps)]
    route_error = np.std(route, axis=0, ddof=1) / np.sqrt(8)
    found = at_size(this, 2**13)
    assert np.all(route_error < 3e-4)
    assert agree(found.mean["R"], found.error["R"], np.mean(route, axis=0), route_error)


REFERENCE = {  # steps: eps_g and its error
    **{1: (0.33508354, 1e-8), 2: (0.287297, 2e-6), 5: (0.257558, 3e-6), 10: (0.253926, 4e-6)},
    **{20: (0.257921, 4e-6), 40: (0.264070, 5e-6)},
}


def test_curves_are_within_their_errors_of_the_reference():
    found = compute_descent_curves(cell(**NOISY, epochs=list(REFERENCE)))
    expected, known = np.array(list(REFERENCE.values())).T
    assert np.all(found.error["eps_g"] < 1e-4)
    assert np.all(found.error["R"] < 1e-4)
    assert agree(found.mean["eps_g"], found.error["eps_g"], expected, known)


# limits


@pytest.mark.parametrize(
    "keys",
    [
        {"loss": "logistic", "flip": 0.1, "alpha": 2, "lam": 0.1, "eta": 0.8, "epochs": [300]},
        {"loss": "squared_hinge", "teacher": "sign", "flip": 0.1, "alpha": 2, "lam": 0.5, "eta": 0.25, "epochs": [80]},
        {"loss": "huber", "teacher": "linear", "noise": 0.5, "alpha": 2, "lam": 0.5, "eta": 0.25, "epochs": [60]},
    ],
)
def test_many_epochs_lead_to_the_minimum(keys):
    this = cell(**keys)
    found = at_size(this, 2**11)
    state = solve_loss_minimum(
        this.loss, this.teacher, Penalty(), Gauss(), np.array([this.alpha]), np.array([this.lam])
    )
    for name in ("R", "length", "train_loss", "eps_t", "eps_g", "eps_y", "mse"):
        value, error, expected = found.mean[name][0], found.error[name][0], getattr(state, name)[0]
        assert np.isnan(value) == np.isnan(expected), name
        assert np.isnan(value) or abs(value - expected) < 5 * error, name
        assert np.isnan(value) or error < 3e-3, name


@pytest.mark.parametrize("loss", sorted(set(DESCENT_LOSSES) - {"squared_perceptron"}))
@pytest.mark.parametrize("teacher", [SignTeacher(flip=0.1), LogitTeacher(gain=2.0)])
def test_the_first_step_from_0_is_hebbs_rule(loss, teacher):
    this = replace(cell(loss=loss, alpha=1.5, eta=0.1, epochs=[1]), teacher=teacher)
    path = descent_dynamics.simulate_descent(this, 0, 512)
    mean = field_samples.compute_mean_teacher_field(teacher)
    assert path.perpendicular[1] / path.parallel[1] == pytest.approx(1 / np.sqrt(1.5) / mean, rel=1e-7)


def online_perceptron(time, state):
    """The slopes of the overlap and the squared length of Rosenblatt's rule, an example a time."""
    m, square = state
    length = np.sqrt(square)
    R = m / length
    pull = (1 - R) / np.sqrt(2 * np.pi)
    return pull, -2 * length * pull + np.arccos(R) / np.pi


def test_small_batches_tend_to_the_online_rule():
    m, square = solve_ivp(online_perceptron, (0, 2), (0.0, 1.0), rtol=1e-10, atol=1e-10).y[:, -1]
    assert m / np.sqrt(square) == pytest.approx(0.59392515, abs=1e-8)  # of `theory.solve`
    shares = np.array([1 / 4, 1 / 8, 1 / 16])
    this = cell(loss="perceptron", alpha=2, eta=1, start={"length": 1}, epochs=[1])
    found = [at_size(replace(this, batch=b, steps=(round(1 / b),)), 2**13) for b in shares]
    excess = np.array([one.mean["length"][0] for one in found]) - np.sqrt(square)
    error = max(one.error["length"][0] for one in found)
    assert np.allclose(excess[:-1] / excess[1:], 2, atol=0.25)  # linear in b
    assert abs(2 * excess[2] - excess[1]) < 0.1 * excess[2] + 4 * error


# samples, replicas and what a scenario reports


@pytest.mark.parametrize(
    "teacher",
    [
        LogitTeacher(gain=1.0),
        LogitTeacher(gain=30.0),
        ProbitTeacher(noise=0.5),
        ProbitTeacher(noise=1e-3),
        SignTeacher(0.2),
    ],
)
def test_quantiles_of_the_teachers_field_invert_its_distribution(teacher):
    shares = np.array([1e-7, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-5])
    width = float(teacher.width(np.zeros(1))[0])
    cuts = np.sort(np.outer([-1, 1], width * np.array([1, 3, 8, 30])).ravel())
    for share, field in zip(shares, field_samples.compute_teacher_field_quantiles(teacher, shares), strict=True):
        edges = [-9.5, *cuts[(cuts > -9.5) & (cuts < field)], field]
        edges = np.sort([*edges, 0.0]) if field > 0 else edges
        below = sum(
            quad(lambda v: 2 * normal_density(v) * float(teacher.probability(np.array(v))), low, high, epsabs=1e-13)[0]
            for low, high in pairwise(edges)
        )
        assert below == pytest.approx(share, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("keys", [{}, {"batch": 0.25}, {"batch": 0.25, "sampling": "replacement"}])
def test_a_longer_run_extends_a_shorter_one(keys):
    short, long = (descent_dynamics.simulate_descent(cell(**NOISY, **keys, epochs=[last]), 3, 512) for last in (3, 6))
    assert np.array_equal(long.parallel[: len(short.parallel)], short.parallel)


def test_what_overflows_is_no_number_from_there_on():
    this = cell(loss="exponential", flip=0.1, alpha=3, eta=40, epochs=range(1, 13))
    found = compute_descent_curves(this)
    numbers = np.isfinite(found.mean["R"])
    assert numbers[0]
    assert not numbers[-1]
    for values in (*found.mean.values(), *found.error.values()):
        assert not np.isinf(values).any()
        assert not np.isfinite(values[~numbers]).any()
    assert np.isfinite(found.eps_g[:2]).all()


def test_a_student_of_length_0_guesses():
    solved = theory.solve(Descent(descent="gradient", loss="square", flip=0.1, alpha=2, epochs=[0, 1]))
    first = solved.isel(epochs=0)
    assert (first.R.item(), first.length.item(), first.eps_g.item(), first.eps_y.item()) == (0, 0, 0.5, 0.5)
    assert first.train_loss.item() == 0.5
    assert first.eps_t.item() == 0.5


def test_a_scenario_reports_the_best_step_and_what_the_minimum_reaches():
    keys = {"loss": "square", "flip": 0.1, "alpha": [2, 3]}
    solved = theory.solve(Descent(descent="gradient", eta=0.05, lam=0.3, epochs=range(21), **keys))
    at_lam, best = (theory.solve(Risk(**keys, lam=lam, N=10_000)) for lam in (0.3, "best"))
    assert np.allclose(solved.eps_limit, at_lam.eps_g, rtol=0, atol=1e-12)
    assert np.allclose(solved.eps_best_lam, best.eps_g, rtol=0, atol=1e-12)
    assert np.allclose(solved.eps_bayes, np.arccos(at_lam.R_bayes) / np.pi, rtol=0, atol=1e-12)
    assert np.allclose(solved.eps_best, solved.eps_g.min("epochs"), rtol=0, atol=1e-15)
    assert np.array_equal(solved.best_epoch, solved.eps_g.idxmin("epochs"))
    few = theory.solve(Descent(descent="gradient", eta=0.05, lam=0.3, epochs=[20], **keys))
    assert np.allclose(few.eps_best, solved.eps_best, rtol=0, atol=1e-9)


def test_the_perceptron_has_no_minimum():
    keys = {"loss": "perceptron", "flip": 0.1, "alpha": 2, "lam": 0.3}
    solved = theory.solve(Descent(descent="gradient", eta=0.05, epochs=[1, 2], **keys))
    assert np.isnan(solved.eps_limit)
    assert np.isnan(solved.eps_best_lam)
    assert solved.eps_bayes.item() == pytest.approx(0.243, abs=1e-5)


def test_the_bytes_of_more_samples_are_checked(monkeypatch):
    monkeypatch.setattr(descent_dynamics, "get_total_memory", lambda: 2.0**20)
    with pytest.raises(Exception, match=r"theory with \d+ directions takes .* GiB, and this machine has 0.000977 GiB"):
        compute_descent_curves(cell(loss="hinge", flip=0.1, alpha=3, eta=0.05, epochs=[20]))


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_replica_takes_at_most_the_bytes_stated(loss):
    [cell] = Descent(descent="gradient", loss=loss, alpha=3, flip=0.1, eta=0.05, epochs=[60]).cells()
    descent_dynamics.simulate_descent(cell, 0, 2**13)  # tables of quantiles and scrambles are kept
    tracemalloc.start()
    path = descent_dynamics.simulate_descent(cell, 0, 2**13)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.3 < peak / descent_dynamics.estimate_replica_bytes(cell, path.num_directions, 2**13) < 1.3


def test_theory_is_solved_with_one_blas_thread(monkeypatch):
    """Further threads mostly wait for each other; last bits would depend on the number of cores, too."""
    seen, fill = [], solutions.fill_arrays
    monkeypatch.setattr(solutions, "fill_arrays", lambda *given: (seen.append(threads()), fill(*given)))
    scenario = Descent(descent="gradient", loss="square", alpha=2, epochs=[1])
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        solutions.solve(scenario)
        assert threads() == before
    assert seen == [{1}]


def threads():
    """The numbers of threads of the BLAS libraries of this process."""
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
