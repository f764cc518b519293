"""Both engines of descent at finite N have one distribution, that of theory at large N; planted errors are found."""

from __future__ import annotations

import tracemalloc
from functools import cache

import numpy as np
import pytest
from scipy.stats import norm, t

import simulate
import theory
from simulate.convex import descent_engines
from simulate.convex.descent_engines import DeferredInputs, iterate_batches, run_deferred_descent, run_explicit_descent
from simulate.kinds.gradient_descent import BYTE_ESTIMATES_BY_ENGINE, RUN_FUNCTIONS_BY_ENGINE
from statmech import Descent, Scenario
from statmech.results.comparison import predict_mean_and_std
from theory.stored_examples.descent_dynamics import compute_descent_curves

ENGINES = pytest.mark.parametrize("run_descent", [run_deferred_descent, run_explicit_descent])
RUNS = 1500  # see an error of 10 % in a variance, and at N = 20 all the planted ones
FEW = 500  # see most of the planted errors at z = 8 or more
RARE = 1e-3  # probability that some comparison of a setting exceeds its bound if both engines are right

EIGHT = {"N": 20, "eta": 0.8, "flip": 0.1, "start": {"length": 1}, "epochs": [*range(1, 9)]}
QUARTERS = EIGHT | {"batch": 0.25, "epochs": [step / 4 for step in range(1, 9)]}
LINEAR = {"teacher": "linear", "noise": 0.5}
UNFLIPPED = {key: value for key, value in EIGHT.items() if key != "flip"}
SETTINGS = {
    "logistic": EIGHT | {"start": {}, "lam": 0.3},
    "probit, overlap": UNFLIPPED | {"teacher": "probit", "noise": 0.5, "start": {"length": 1.5, "R": 0.4}},
    "hinge, momentum": EIGHT | {"loss": "hinge", "descent": "momentum", "momentum": 0.8, "eta": 0.3},
    "squared hinge, Nesterov": EIGHT
    | {"loss": "squared_hinge", "descent": "nesterov", "momentum": 0.8, "eta": 0.2, "lam": 0.1},
    "perceptron, replacement": QUARTERS | {"loss": "perceptron", "sampling": "replacement"},
    "shuffle, schedule": QUARTERS | {"lam": 2, "schedule": {"t0": 3}},
    "square, linear": UNFLIPPED | LINEAR | {"loss": "square", "eta": 0.2},
    "Huber, linear": UNFLIPPED | LINEAR | {"loss": "huber", "eta": 0.3},
    "more steps than inputs": EIGHT | {"N": 6, "epochs": [1, 2, 3, 5, 8, 12]},
    "more steps than examples": EIGHT | {"alpha": 0.5, "epochs": [1, 2, 5, 9, 12, 15]},
    "single examples": EIGHT | {"N": 6, "batch": 1 / 12, "epochs": [1 / 12, 5 / 12, 1, 1.5]},
}


def cell_of(**given):
    """The cell of a scenario without axes."""
    return next(Descent(**({"descent": "gradient", "loss": "logistic", "alpha": 2} | given)).cells())


def sample(run_descent, cell, runs=RUNS, seed=0):
    """The part along the teacher, the length, the loss and the error (runs, steps) of independent runs."""
    found = [run_descent(cell, np.random.default_rng([seed, run])) for run in range(runs)]
    values = {name: np.array([run[name] for run in found]) for name in found[0]}
    values["along"] = values["R"] * values["length"]
    return np.stack([values[name] for name in ("along", "length", "train_loss", "eps_t") if name in values])


@cache
def explicit_sample(name):
    return sample(run_explicit_descent, cell_of(**SETTINGS[name]))


def deviations(one, other):
    """The differences of means and of variances over their standard errors."""

    def moments(values):
        centred = values - values.mean(axis=1, keepdims=True)
        variance = (centred**2).mean(axis=1)
        errors = variance, (centred**4).mean(axis=1) - variance**2
        return np.stack([values.mean(axis=1), variance]), np.stack(errors) / values.shape[1]

    (value, error), (expected, uncertainty) = moments(one), moments(other)
    return (value - expected) / np.sqrt(error + uncertainty)


def bound(z):
    """The bound that the largest of so many deviations exceeds with probability `RARE` at most."""
    return norm.isf(RARE / z.size / 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_deferred_inputs_are_distributed_as_explicit_ones(name):
    z = deviations(sample(run_deferred_descent, cell_of(**SETTINGS[name]), seed=1), explicit_sample(name))
    assert abs(z).max() < bound(z)


def in_the_other_sign(force):
    def planted(self, rows, slopes):
        known, v = self.n, force(self, rows, slopes)
        v[known:] *= -1
        return v

    return planted


def without_reaction(new_image):
    def planted(self, chi):
        new_image(self, 0.0)

    return planted


def component_by_alpha(force):
    """With f of mean square 1 the new component has a factor sqrt(alpha); here alpha."""

    def planted(self, rows, slopes):
        known, v = self.n, force(self, rows, slopes)
        v[known:] *= np.sqrt(self.cell.alpha)
        return v

    return planted


def image_by_alpha(new_image):
    """With f of mean square 1 it has a factor 1/sqrt(alpha); here 1/alpha."""
    return lambda self, chi: new_image(self, chi / np.sqrt(self.cell.alpha))


def off_by_two_percent(new_f):
    def planted(self, G):
        f, r = self.f[: self.k], self.f[self.k]
        r[:] = G - 0.98 * (f @ G) @ f
        size = np.linalg.norm(r)
        r /= size
        return size

    return planted


def off_the_newest_alone(new_image):
    def planted(self, chi):
        f, k = self.f, self.k
        self.f, self.k = f[k:], 0
        new_image(self, chi)
        self.f, self.k = f, k + 1

    return planted


PLANTED = {
    "the new direction's sign": ({"force": in_the_other_sign}, "logistic"),
    "no reaction": ({"new_image": without_reaction}, "logistic"),
    "alpha for its root": ({"force": component_by_alpha, "new_image": image_by_alpha}, "logistic"),
    "orthogonal to 2 %": ({"new_f": off_by_two_percent}, "logistic"),
    "images not off all f": ({"new_image": off_the_newest_alone}, "logistic"),
    "N degrees of freedom": ({"chi": lambda chi: lambda self, freedom: chi(self, self.cell.N)}, "shuffle, schedule"),
    "lengths that do not vary": ({"chi": lambda chi: lambda self, freedom: self.cell.N**0.5}, "shuffle, schedule"),
}


@pytest.mark.slow
@pytest.mark.parametrize("error", PLANTED)
def test_an_error_planted_in_the_ladder_is_found(error, monkeypatch):
    changed, name = PLANTED[error]
    for method, plant in changed.items():
        monkeypatch.setattr(DeferredInputs, method, plant(getattr(DeferredInputs, method)))
    assert_found(name, RUNS if error == "orthogonal to 2 %" else FEW)


@pytest.mark.slow
def test_a_penalty_that_forgets_the_size_of_a_batch_is_found(monkeypatch):
    monkeypatch.setattr(descent_engines, "add_penalty_force", lambda cell, force, z: force + cell.lam * z)
    assert_found("shuffle, schedule", FEW)


def assert_found(name, runs):
    with np.errstate(all="ignore"):
        z = deviations(sample(run_deferred_descent, cell_of(**SETTINGS[name]), runs, seed=1), explicit_sample(name))
    assert not abs(z).max() < 1.3 * bound(z)


LARGE = {"N": 2000, "epochs": [0.5, 1, 2, 4, 8]}
BESIDE_THEORY = {
    "hinge, replacement, schedule": {
        **{"loss": "hinge", "flip": 0.1, "eta": 0.2, "batch": 0.25, "sampling": "replacement"},
        "schedule": {"t0": 2},
    },
    "Huber, linear, Nesterov": {
        **{"loss": "huber", **LINEAR, "eta": 0.1, "descent": "nesterov", "momentum": 0.5, "batch": 0.5},
        "start": {"length": 1, "R": 0.2},
    },
    "logistic, logit": {"teacher": "logit", "gain": 2, "eta": 0.3, "lam": 0.1, "alpha": 0.5, "batch": 0.5},
}


@pytest.mark.parametrize("name", BESIDE_THEORY)
def test_large_runs_agree_with_theory(name):
    cell, runs = cell_of(**LARGE | BESIDE_THEORY[name]), 64
    solution = compute_descent_curves(cell)
    found = [run_deferred_descent(cell, np.random.default_rng(seed)) for seed in range(runs)]
    values = {name: np.array([run[name] for run in found]) for name in found[0]}
    z = np.stack(
        [
            (value.mean(axis=0) - solution.mean[name]) / np.hypot(value.std(axis=0) / runs**0.5, solution.error[name])
            for name, value in values.items()
        ]
    )
    assert abs(z).max() < t.isf(RARE / z.size / 2, runs - 1)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "rule"),
    [
        ("perceptron", "perceptron"),
        ("squared_perceptron", "adatron_textbook"),
    ],
)
def test_one_pass_of_single_examples_is_the_online_rule(loss, rule):
    N, start = 50, {"length": 1, "R": 0.3}
    cell = cell_of(loss=loss, N=N, batch=1 / (2 * N), epochs=[0.5, 1], eta=1, flip=0.1, start=start)
    along, length, *_ = sample(run_explicit_descent, cell, runs=300)
    online = Scenario(rule=rule, N=N, t=[1, 2], flip=0.1, start=start, corrections=True)
    solution = theory.solve(online)
    for name, values in {"R": along / length, "length": length}.items():
        error = values.std(axis=0) / np.sqrt(len(values))
        z = (values.mean(axis=0) - predict_mean_and_std(solution, name)[0].squeeze().values) / error
        assert abs(z).max() < 4


@ENGINES
def test_a_run_that_overflows_is_nan_from_there_on(run_descent):
    cell = cell_of(loss="exponential", N=50, eta=50, flip=0.1, epochs=[*range(30)])
    values = run_descent(cell, np.random.default_rng(0))
    overflowed = np.isnan(values["length"])
    assert 1 < overflowed.argmax() < 28
    for name, value in values.items():
        np.testing.assert_array_equal(np.isnan(value)[1:], np.logical_or.accumulate(overflowed)[1:], err_msg=name)


@ENGINES
@pytest.mark.parametrize("start", [{}, {"length": 2, "R": -0.5}, {"length": 2, "R": 1}])
def test_epoch_0_is_the_start(run_descent, start):
    values = run_descent(cell_of(N=30, flip=0.1, start=start, epochs=[0, 1]), np.random.default_rng(0))
    R = start.get("R", 0)
    expected = {"length": start.get("length", 0), "R": R, "eps_g": np.arccos(R) / np.pi}
    expected["eps_y"] = 0.1 + 0.8 * expected["eps_g"]
    for name, value in expected.items():
        assert values[name][0] == pytest.approx(value, abs=1e-12)
    assert (values["eps_t"][0] == 0.5) == (not start)


@ENGINES
@pytest.mark.parametrize("changed", [{}, {"batch": 0.25, "sampling": "replacement", "descent": "nesterov"}])
def test_a_longer_run_extends_a_shorter_one(run_descent, changed):
    short, long = ((1, 4), (1, 4, 30))
    one, other = (run_descent(cell_of(N=20, **changed, epochs=it), np.random.default_rng(0)) for it in (short, long))
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name][:2])


@pytest.mark.parametrize(
    "given",
    [
        {"epochs": [0]},
        {"penalty": "l1", "lam": 1e3, "epochs": [0, 1, 3], "batch": 0.5},
        {"penalty": "elastic_net", "lam": 1e3, "loss": "hinge", "epochs": [2]},
    ],
)
def test_weights_of_0_answer_by_a_fair_coin_in_runs_and_theory(given):
    scenario = Descent(**{"descent": "gradient", "loss": "logistic", "alpha": 2, "N": 20, "seeds": 3} | given)
    for found in (simulate.run(scenario), theory.solve(scenario)):
        assert (found.length == 0).all()
        assert (found.R == 0).all()
        for name in ("eps_g", "eps_y", "eps_t"):
            assert (found[name] == 0.5).all(), name


def test_the_training_error_is_the_mean_over_all_runs_where_a_penalty_leaves_some_without_weights():
    given = {"descent": "gradient", "loss": "logistic", "penalty": "l1", "alpha": 2, "N": 20, "seeds": 40}
    runs = simulate.run(Descent(**given, lam=2, eta=0.3, epochs=[1]))
    blank = runs.length == 0
    assert 0 < blank.sum() < blank.size
    assert (runs.eps_t.where(blank, 0.5) == 0.5).all()


def test_an_epoch_of_shuffled_batches_has_every_example_once():
    cell = cell_of(N=7, alpha=3, batch=1 / 4, epochs=[1])
    steps = iterate_batches(cell, np.random.default_rng(0))
    first, second = ([next(steps) for _ in range(4)] for _ in range(2))
    assert sorted(np.concatenate(first)) == sorted(np.concatenate(second)) == [*range(21)]
    assert {len(batch) for batch in first} == {5, 6}
    assert sorted(first[0]) != sorted(second[0])


def test_a_batch_with_replacement_is_a_subset_of_its_size():
    steps = iterate_batches(
        cell_of(N=7, alpha=3, batch=0.3, sampling="replacement", epochs=[3]), np.random.default_rng(0)
    )
    drawn = [next(steps) for _ in range(40)]
    assert {len({*batch}) for batch in drawn} == {round(0.3 * 21)}
    assert {*np.concatenate(drawn)} == {*range(21)}


MEASURED = [
    ("deferred", {"N": 1000, "epochs": [40]}),
    ("deferred", {"N": 500, "batch": 0.25, "epochs": [5], "loss": "hinge"}),
    ("deferred", {"N": 10**7, "alpha": 1e-4, "epochs": [40], "loss": "hinge", "start": {"length": 1}}),
    ("deferred", {"N": 50, "alpha": 400, "epochs": [100], "eta": 1e-3}),
    ("explicit", {"N": 300, "epochs": [5]}),
    ("explicit", {"N": 300, "epochs": [5], "batch": 0.5}),
]


@pytest.mark.parametrize(("engine", "given"), MEASURED)
def test_a_run_takes_the_bytes_stated(engine, given):
    run_descent, estimate_bytes = RUN_FUNCTIONS_BY_ENGINE[engine], BYTE_ESTIMATES_BY_ENGINE[engine]
    cell = cell_of(**given)
    run_descent(cell, np.random.default_rng(0))  # what is imported and cached stays
    tracemalloc.start()
    run_descent(cell, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 1 / 1.3 < peak / estimate_bytes(cell) < 1.3
