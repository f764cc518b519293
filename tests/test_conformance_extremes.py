"""Every parameter at its extremes: the numbers are right, or there is an error that says what to change."""

from __future__ import annotations

import math
from functools import partial

import jax
import numpy as np
import pytest
from conftest import disagreements, start_of

import simulate
import theory
from simulate.online import gram_engine, perceptrons, weight_vector_engine
from statmech import LEARNERS, RULES, Attention, Boosting, Scenario, ScenarioError, Stopping, StoredExamples
from statmech.classification.boosting import BOOSTERS
from statmech.classification.stopping_boundaries import BOUNDARIES
from statmech.errors import DivergedStudentError, StatmechError
from statmech.numerics.random_numbers import make_key_data
from statmech.parameters.parameter_fields import get_parameters
from statmech.students.student_geometry import student_coordinates

SMALL = (5e-324, 1e-300, 1e-160, 1e-50)
LARGE = (*(1 / value for value in SMALL[1:]), 1.79e308)
VALUES = (*SMALL, 0.0, -1.0, *(-value for value in (*SMALL, *LARGE)), 1e-16, 1.0, 1e16, 2.0**63, *LARGE)

ONLINE = partial(Scenario, N=20, K=2, t=[0, 1], seeds=4)
STORED = partial(StoredExamples, N=8, alpha=1, seeds=2, epochs=[20])
WALKS = partial(Stopping, N=50, walks=50, seeds=2)
ATTENTIVE = partial(Attention, N=20, chunk=4, t=[0.5, 1], seeds=1)
BOOSTED = partial(Boosting, s=3, P=40, N=6, seeds=2, tests=100)

PARAMETRIC = [
    (make, choice, name, parameter)
    for make, choice, kinds in (
        (ONLINE, "rule", RULES),
        (STORED, "learner", LEARNERS),
        (BOOSTED, "booster", BOOSTERS),
    )
    for name, kind in kinds.items()
    for parameter, key in get_parameters(kind).items()
    if key.numeric
]
KEYED = [
    *((ONLINE, {"rule": rule}, "flip") for rule in RULES),
    *((STORED, {"learner": learner}, key) for learner in LEARNERS for key in ("alpha", "flip")),
    *(
        (WALKS, {"boundary": b, "error_rate": 0.05}, key)
        for b in BOUNDARIES
        for key in ("error_rate", "mean", "feature_mean", "theta")
    ),
    *((ATTENTIVE, {"attention": b, "error_rate": 0.05}, key) for b in BOUNDARIES for key in ("error_rate", "probes")),
]


def near(bound):
    """A bound and its two neighbours, where it is finite."""
    return [bound, *(math.nextafter(bound, side) for side in (-math.inf, math.inf))] if math.isfinite(bound) else []


def results(make, **given):
    """The datasets of simulation and theory, without those that are refused; there is no other error and no warning."""
    found = []
    equations = given.get("engine", "gram") == "gram" and given.get("dtype", "float64") == "float64"  # else the same
    for run in (simulate.run, theory.solve) if equations else (simulate.run,):
        try:
            found.append(run(make(**given)))
        except StatmechError as refusal:
            assert len(str(refusal).splitlines()) == 1, refusal  # noqa: PT017
    return found


def faults(dataset, rounding=1e-9):
    """Impossible values in a dataset."""
    found = []
    bounds = {"R": (-1, 1), "q": (-1, 1), "eps_g": (0, 1), "decision_error": (0, 1), "features": (0, 1)}
    for name, variable in dataset.data_vars.items():
        values = np.where(known(dataset, name), variable.values.astype(float), 0.0)
        low, high = bounds.get(str(name).removesuffix("_brownian"), (-np.inf, np.inf))
        if not np.all((low - rounding <= values) & (values <= high + rounding) & np.isfinite(values)):
            found.append(f"{name}: {variable.values.ravel()[:4]}")
    return found


def known(dataset, name):
    """True where a variable must be a number; NaN means that it does not exist for a run."""
    values = dataset[name]
    theoretical = "seed" not in dataset.dims
    if name == "q" and dataset.sizes["student"] == 1:
        return np.zeros(values.shape, bool)
    if "stopped_by" in dataset and name in ("R", "eps_g", "kappa", "eps_t", "gap"):
        learnt = dataset.updates_made.values >= 0
        solved = learnt & (dataset.stopped_by.values != 7)  # no-solution
        untouched = (dataset.R.values == 0) & (name in ("kappa", "gap"))  # w = 0 has no stability
        return solved & ~untouched & (name != "gap")
    if theoretical and "alpha" in dataset.coords:  # there is no such curve, or the stabilities are Gaussian
        return np.zeros(values.shape, bool) | (np.isfinite(dataset.R.values) & (name != "kappa"))
    if name == "stages" or (theoretical and "booster" in dataset.coords):
        return dataset["converged"].values if "converged" in dataset else np.zeros(values.shape, bool)
    if theoretical and "boundary" in dataset.coords and not name.endswith("_brownian"):
        return np.isfinite(values.values)  # too many looks to count, at a low level
    return np.ones(values.shape, bool)


def scan(make, fixed, key, values):
    for value in values:
        for dataset in results(make, **fixed, **{key: value}):
            assert not faults(dataset), (fixed, key, value, faults(dataset))


def extremes(key, values):
    most = 100 if key.whole and key.upper > 100 else math.inf  # a longer run is not an error
    values = [value for value in values if key.whole or value not in (1e16, 2.0**63)]  # where whole numbers end
    every = sorted({*values, *near(key.lower), *near(key.upper)})
    return [value for value in every if not 20 < value < 1e20 or value < most]


def affordable(choice, name, key):
    """What a rule or a learner needs besides the key that is scanned: a start, no pairs by quadrature, short chains."""
    if choice == "rule":
        return {"start": start_of(name)} | ({} if RULES[name]().has_closed_form else {"K": 1})
    return {"sweeps": 20} if name in ("gibbs", "bayes") and key != "sweeps" else {}


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize(("make", "choice", "name", "parameter"), PARAMETRIC)
def test_a_parameter_at_its_extremes_is_right_or_refused(make, choice, name, parameter):
    kinds = {"rule": RULES, "learner": LEARNERS, "booster": BOOSTERS}[choice]
    fixed = {choice: name} | affordable(choice, name, parameter)
    scan(make, fixed, parameter, extremes(get_parameters(kinds[name])[parameter], VALUES))


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize(("make", "fixed", "key"), KEYED)
def test_a_key_at_its_extremes_is_right_or_refused(make, fixed, key):
    fixed = fixed | affordable(*next(iter(fixed.items())), key)
    scan(make, {k: v for k, v in fixed.items() if k != key}, key, (*VALUES, 0.5, math.nextafter(0.5, 0)))


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "engine", "dtype"),
    [
        *((rule, *of) for rule in RULES for of in (("gram", "float64"), ("vectors", "float32"))),
        *(("adatron_textbook", *of) for of in (("gram", "float32"), ("vectors", "float64"))),
    ],
)
def test_any_initial_length_is_right_or_refused(rule, engine, dtype):
    for length in (*SMALL, 1e-100, 1e-10, 1e10, 1e100, *LARGE, 0.0, -1.0):
        fixed = {"rule": rule, "engine": engine, "dtype": dtype}
        if length <= 1e-10:  # pairs by quadrature would take thousands of steps
            fixed |= affordable("rule", rule, "length")
        for dataset in results(ONLINE, **fixed | {"start": {"length": length}}):
            found = faults(dataset, rounding=1e-6 if dtype == "float32" else 1e-9)
            assert not found, (length, found)


def recorded(scenario, engine):
    """The students' components along and across the teacher, from one key for all parameters."""
    [cell] = scenario.cells()
    with jax.enable_x64(True):
        steps = np.array([0, 50, 150], np.int64)
        record = engine.run(perceptrons.make_perceptron_task(cell, scenario.dtype), make_key_data(3), steps)
        return [np.asarray(part, float) for part in record[:2]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "K", "engine", "dtype"),
    [
        ("adatron", 3, gram_engine, "float64"),
        ("adatron", 3, weight_vector_engine, "float32"),
        *(
            pytest.param(*case, marks=pytest.mark.quick)
            for case in [
                ("perceptron", 1, gram_engine, "float64"),
                ("perceptron", 1, weight_vector_engine, "float32"),
                ("hebb", 3, gram_engine, "float32"),
                ("hebb", 3, weight_vector_engine, "float64"),
                ("adatron_textbook", 1, gram_engine, "float32"),
                ("adatron_textbook", 1, weight_vector_engine, "float64"),
            ]
        ),
    ],
)
def test_scaling_lengths_and_rates_together_changes_no_bit(rule, K, engine, dtype):
    power = {"float64": 332, "float32": 33}[dtype]

    def at(scale):
        start = {"length": scale, "R": 0.2, "q": 0.3}
        eta = 0.75 * (scale if rule != "adatron_textbook" else 1.0)
        return recorded(Scenario(rule=rule, N=50, K=K, t=[1], dtype=dtype, eta=eta, start=start), engine)

    along, across = at(1.0)
    for scale in (2.0**power, 2.0**-power):
        scaled = at(scale)
        np.testing.assert_array_equal(scaled[0] / scale, along)
        np.testing.assert_array_equal(scaled[1] / scale / scale, across)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("rule", ["perceptron", "hebb", "adatron"])
def test_theory_depends_only_on_the_ratio_of_rate_and_length(rule):
    one, long, short = (
        theory.solve(Scenario(rule=rule, K=3, t=[1, 5], eta=scale, start={"length": scale, "R": 0.2, "q": 0.3}))
        for scale in (1.0, 1e100, 1e-100)
    )
    for other in (long, short):
        for name in ("R", "q", "eps_g", "eps_g_majority_vote", "eps_g_weight_mean"):
            np.testing.assert_allclose(other[name], one[name], rtol=1e-7)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("length", [1e-100, 1e-30])
def test_students_of_very_small_length_learn_as_in_theory(length):
    scenario = Scenario(rule="hebb", N=2000, t=[0.5, 1], seeds=64, start={"length": length})
    assert not disagreements(simulate.run(scenario), theory.solve(scenario))


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_students_learn_nothing_at_a_negligible_rate(rule):
    given = {"rule": rule, "K": 2, "N": 50, "t": [0, 1], "eta": 1e-300, "seeds": 4, "start": start_of(rule)}
    run = simulate.run(Scenario(**given)).isel(seed=0)
    for name in ("R", "length", "eps_g"):
        np.testing.assert_allclose(run[name][1], run[name][0], rtol=1e-12)
    with pytest.raises(ScenarioError, match="float32 does not resolve"):
        simulate.run(Scenario(**given, dtype="float32"))


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_infinite_margin_is_hebb_or_learns_nothing(dtype):
    make = partial(Scenario, N=50, K=2, t=[1], dtype=dtype, start={"R": 0.2})
    hebb, wide = (
        recorded(make(**given), gram_engine) for given in ({"rule": "hebb"}, {"rule": "perceptron", "margin": 1e300})
    )
    np.testing.assert_array_equal(hebb[0], wide[0])
    none = recorded(make(rule="perceptron", margin=-1e300), gram_engine)[0]
    np.testing.assert_allclose(none, 0.2, rtol=1e-6)


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("eta", [1e155, 1.79e308])
@pytest.mark.parametrize("rule", RULES)
def test_a_student_that_diverges_is_an_error_the_user_can_fix(rule, eta):
    with pytest.raises(
        DivergedStudentError, match=rf"^{rule} \(eta = .*\) has diverged: a student's length left the range"
    ):
        simulate.run(Scenario(rule=rule, K=2, N=50, t=[1, 3], eta=eta, seeds=4, start=start_of(rule)))
    assert issubclass(DivergedStudentError, StatmechError)
    assert issubclass(DivergedStudentError, ArithmeticError)


@pytest.mark.quick
@pytest.mark.slow
def test_a_length_that_overflows_is_an_error_of_theory_too():
    """The textbook rule multiplies lengths."""
    with pytest.raises(DivergedStudentError, match="diverged"):
        theory.solve(Scenario(rule="adatron_textbook", K=2, t=[1000], eta=6))


@pytest.mark.parametrize(
    ("length", "dtype", "message"),
    [
        (1e-300, "float64", "length must lie between 1e-100 and 1e+100, where float64 holds its square, not 1e-300"),
        (1e300, "float64", "not 1e+300"),
        (1e-11, "float32", "length must lie between 1e-10 and 1e+10, where float32 holds its square, not 1e-11"),
        (math.nextafter(1e100, math.inf), "float64", "length must lie between"),
        ([1.0, 1e101], "float64", "not 1e\\+101"),
    ],
)
def test_an_initial_length_too_small_or_large_is_refused(length, dtype, message):
    with pytest.raises(ScenarioError, match=message.replace("1e+", r"1e\+")):
        Scenario(rule="perceptron", K=2, N=50, t=[1], dtype=dtype, start={"length": length})


@pytest.mark.quick
@pytest.mark.parametrize(
    "length",
    [
        [1, 1e-8],
        [1e100, 1e-100],
        *(pytest.param(three, marks=pytest.mark.slow) for three in ([1, 1e-8, 1e-4], [1e-30, 1, 1e8])),
    ],
)
def test_students_of_very_different_lengths_start_at_their_cosines(length):
    K = len(length)
    q = np.full((K, K), 0.5) + np.eye(K) / 2
    rows = student_coordinates(np.array(length, float), np.full(K, 0.5), q) / np.array(length)[:, None]
    np.testing.assert_allclose(rows @ rows.T, q, atol=1e-14)
    np.testing.assert_allclose(rows[:, 0], 0.5, rtol=1e-14)
    run = simulate.run(
        Scenario(rule="hebb", K=K, N=50, t=[0, 1], seeds=2, start={"length": length, "R": 0.5, "q": 0.5})
    )
    run = run.isel(t=0)
    np.testing.assert_allclose(run.R, 0.5, rtol=1e-12)
    np.testing.assert_allclose(run.length.isel(seed=0), length, rtol=1e-12)
    np.testing.assert_allclose(run.eps_g_weight_mean if K == 2 else run.q, 1 / 3 if K == 2 else 0.5, rtol=1e-6)


@pytest.mark.quick
@pytest.mark.slow
def test_float32_is_refused_where_rounding_outweighs_an_example():
    """At N = 1e6 and t = 1 lengths in float32 deviate by ten standard deviations of a run."""
    with pytest.raises(ScenarioError, match=r"float32 does not resolve the update by one example at N = 1e\+06"):
        simulate.run(Scenario(rule="hebb", N=10**6, t=[0.001], seeds=2, dtype="float32"))


@pytest.mark.quick
@pytest.mark.slow
def test_neither_float64_nor_a_start_without_examples_is_refused_there():
    simulate.run(Scenario(rule="hebb", N=10**6, t=[0.001], seeds=2))
    simulate.run(Scenario(rule="hebb", N=10**6, t=[0], seeds=2, dtype="float32"))


@pytest.mark.parametrize("spectrum", [[1e-300], [1.0, 1e300], [5e-324, 1.0], [1e21]])
def test_eigenvalues_too_small_for_float32_inputs_are_refused(spectrum):
    with pytest.raises(ScenarioError, match="eigenvalues of a spectrum must be 0 or between 1e-20 and 1e\\+20"):
        Scenario(rule="perceptron", N=20, t=[1], inputs={"anisotropic": {"spectrum": spectrum}})


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("value", [1e-20, 1e20])
def test_inputs_of_extreme_size_are_learnt_at_inverse_rates(value):
    make = partial(Scenario, rule="hebb", N=40, t=[2], seeds=8)
    extreme = simulate.run(make(inputs={"anisotropic": {"spectrum": [value]}}, eta=value**-0.5))
    plain = simulate.run(make(engine="vectors"))
    assert abs(extreme.R.mean() - plain.R.mean()) < 4 * (extreme.R.std() + plain.R.std()) / 8**0.5
    assert abs(extreme.length.mean() - plain.length.mean()) < 4 * (extreme.length.std() + plain.length.std()) / 8**0.5


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("given", [{"mean": 1000.0}, {"mean": -300.0}, {"theta": 300.0}, {"theta": -1000.0}])
def test_a_decision_that_is_certain_is_so_in_theory_too(boundary, given):
    scenario = Stopping(boundary=boundary, error_rate=0.05, N=50, walks=500, seeds=4, **given)
    run, solved = simulate.run(scenario), theory.solve(scenario)
    for name in ("decision_error", "features"):
        error = run[name].std(ddof=1) / 2 + 1e-3
        assert abs(float(run[name].mean() - solved[name])) < 5 * error
        assert -1e-9 <= solved[name] <= 1 + 1e-9


@pytest.mark.parametrize(
    ("key", "value"), [("mean", 1001), ("theta", -1e30), ("feature_mean", 200), ("error_rate", 1e-301)]
)
def test_walks_too_numerous_to_count_are_refused(key, value):
    with pytest.raises(ScenarioError, match=f"^{key}: "):
        WALKS(**({"boundary": "constant", "error_rate": 0.05} | {key: value}))


def test_bounds_of_boosting_are_nan_or_trivial_rather_than_overflow():
    for given in ({"discount": 1e-300}, {"discount": 1e-160}, {"N": 10**15}):
        found = theory.solve(Boosting(booster="adaboost", **({"s": 3, "P": 50, "N": 8} | given)))
        assert np.isnan(found.stages) or found.stages > 0
        assert np.isnan(found.eps_g) or found.eps_g == 1


@pytest.mark.quick
def test_the_target_fraction_of_the_largest_stability_is_a_key_of_minover():
    """It was once called `gap`, like a variable of the dataset, and every run with it failed."""
    run = simulate.run(StoredExamples(learner="minover", N=10, alpha=1, within=[0.5, 1e-9], seeds=2, epochs=[50]))
    assert run.converged.sel(within=0.5).all()
    assert not run.converged.sel(within=1e-9).any()
    assert run.gap.dims == ("within", "seed", "epochs")


@pytest.mark.parametrize(("key", "value"), [("sweeps", 2e9), ("votes", 1e5)])
def test_chains_longer_than_memory_are_refused(key, value):
    with pytest.raises(ScenarioError, match="must be at most"):
        STORED(learner="bayes", **{key: value})
    with pytest.raises(ScenarioError, match="chains of bayes take"):
        simulate.run(StoredExamples(learner="bayes", N=8, alpha=1, sweeps=10**9, seeds=1000))
