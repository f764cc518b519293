"""Tests of runs of one unit on the sphere: the chain against explicit vectors, times against theory, and batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import simulate
import theory
from simulate.execution.work_units import check_can_simulate, make_simulator, remarks
from simulate.online import fixed_length_engine
from simulate.online.fixed_length_engine import simulate_runs
from statmech import FixedLengthNetwork, Scenario, ScenarioError, run
from statmech.errors import DivergedStudentError
from statmech.kinds.fixed_length_network import CHAIN_STEP_SECONDS
from statmech.numerics.random_numbers import fold_in_key_data, make_key_data
from statmech.runtime.compiled_programs import set_up_compilation_cache
from statmech.runtime.jax_and_blas_settings import use_next_device
from statmech.students.label_teachers import EdgeLabels, make_door, make_wedge
from statmech.students.sphere_units import CubicUnit, HermiteUnit, LearningTask

LAW_STEPS = np.array([1, 5, 20, 80])
WEDGE = LearningTask(HermiteUnit(3), make_wedge())
LAW_TASKS = {
    "labels": (WEDGE, 0.43),
    "flips": (replace(WEDGE, flip=0.2), 0.3),
    "door": (LearningTask(HermiteUnit(2), make_door(), v=-1.0), 0.6),
    "both coefficients": (LearningTask(CubicUnit(), EdgeLabels((-0.5, 0.3), -1.0)), 0.5),
    "square error": (LearningTask(HermiteUnit(2), EdgeLabels((0.2,)), error="square"), 0.2),
    "outputs": (LearningTask(HermiteUnit(2), None, error="square", noise=0.5), 0.1),
    "trial of labels": (replace(WEDGE, trial=0.3), 0.2),
    "trial of outputs": (LearningTask(HermiteUnit(2), None, trial=0.1), 0.1),
}
SINGLE_RUN = {"network": "hermite", "degree": 3, "length": "fixed", "teacher": "wedge", "until": {"R": 0.5}}


def simulate_law(task, eta, uses_vectors, seed, batches=24, steps=LAW_STEPS, N=20):
    """Cosines (runs, T) of many runs at given steps."""
    key = make_key_data(seed)
    with use_next_device(gpu=False):
        parts = [
            simulate_runs(
                task,
                eta=eta,
                N=N,
                target=None,
                is_even=False,
                num_runs=256,
                key=fold_in_key_data(key, index),
                recorded_steps=steps,
                max_steps=10**9,
                uses_vectors=uses_vectors,
            )[1]
            for index in range(batches)
        ]
    return np.concatenate(parts)


def count_deviations(chain, vectors):
    """z values of means and variances (2, T) of two samples (runs, T) of cosines."""
    moments = [(sample, (sample - sample.mean(0)) ** 2) for sample in (chain, vectors)]
    values = [
        (a.mean(0) - b.mean(0)) / np.sqrt(a.var(0) / len(a) + b.var(0) / len(b)) for a, b in zip(*moments, strict=True)
    ]
    return np.array(values)


@pytest.mark.parametrize("name", ["labels", *(pytest.param(n, marks=pytest.mark.slow) for n in [*LAW_TASKS][1:])])
def test_the_chain_of_cosines_has_the_law_of_explicit_vectors(name):
    task, eta = LAW_TASKS[name]
    z = count_deviations(simulate_law(task, eta, False, 1), simulate_law(task, eta, True, 2))
    assert np.abs(z).max() < 3.9


@pytest.mark.slow
def test_planted_errors_in_the_chain_are_found_by_the_law_of_vectors(monkeypatch):
    task, eta = LAW_TASKS["labels"]
    vectors = simulate_law(task, eta, True, 2)

    def find_deviation(step, seed):
        monkeypatch.setattr(fixed_length_engine, "_step_chain", step)
        set_up_compilation_cache()
        fixed_length_engine._simulate_program.clear_cache()
        return np.abs(count_deviations(simulate_law(task, eta, False, seed), vectors)).max()

    original = fixed_length_engine._step_chain

    def step_with_large_rate(task, arguments, *state):
        return original(task, arguments._replace(eta=arguments.eta * np.sqrt(20.0)), *state)

    def step_with_longer_input(task, arguments, R, u, w, chi, *randoms):
        return original(task, arguments, R, u, w, chi * np.sqrt(20 / 18), *randoms)

    def step_with_reversed_labels(task, arguments, *state):
        return original(replace(task, v=-task.v), arguments, *state)

    try:
        assert find_deviation(step_with_large_rate, 3) > 10
        assert find_deviation(step_with_longer_input, 4) > 4.5
        assert find_deviation(step_with_reversed_labels, 5) > 10
    finally:
        monkeypatch.undo()
        set_up_compilation_cache()


def test_times_of_passage_agree_with_theory():
    scenario = FixedLengthNetwork(**SINGLE_RUN, eta={"power": -0.5, "at_1": 1.9274357}, flip=[0, 0.1], N=60, seeds=512)
    results = run(scenario)
    mean, error = results.simulation.t_until.mean("seed"), results.simulation.t_until.std("seed") / 512**0.5
    assert np.abs((mean - results.theory.t_until) / error).max() < 3.5
    spread = results.simulation.t_until.std("seed") / results.theory.t_until_std
    assert np.abs(spread - 1).max() < 0.2


def test_survival_of_runs_agrees_with_theory():
    import theory

    scenario = FixedLengthNetwork(**SINGLE_RUN, eta=0.25, N=60, seeds=1024)
    t = simulate.run(scenario).t_until.values
    time = theory.hitting_time(scenario)
    for fraction in (0.25, 0.5, 1, 2):
        p = float(time.survival(fraction * time.mean))
        assert abs(np.mean(t > fraction * time.mean) - p) < 3.5 * np.sqrt(p * (1 - p) / t.size)


def test_runs_do_not_depend_on_the_number_of_seeds():
    large, small = (
        simulate.run(FixedLengthNetwork(**SINGLE_RUN, eta=0.3, N=30, t=t, seeds=seeds)).t_until.values
        for t, seeds in ((None, 70), (None, 5))
    )
    assert np.array_equal(large[:5], small)


def test_recorded_cosines_precede_the_time_of_passage():
    times = np.arange(0, 40, 0.5)
    results = simulate.run(
        FixedLengthNetwork(
            network="hermite",
            degree=2,
            length="fixed",
            teacher="door",
            w=-1,
            eta=0.6,
            N=50,
            until={"R": 0.6},
            t=times,
            seeds=40,
        )
    )
    R, t_until = np.abs(results.R.values), results.t_until.values
    for cosines, passed in zip(R, t_until, strict=True):
        assert np.all(cosines[times < passed] < 0.6)
    assert R.max() > 0.6
    assert np.all(results.eps_g.values >= 0)


def test_errors_of_recorded_cosines_are_those_of_test_fields():
    rng = np.random.default_rng(3)
    h, v = rng.standard_normal((2, 400_000))
    for task in (LearningTask(HermiteUnit(3), make_wedge(), v=-1.0), LearningTask(HermiteUnit(3), None)):
        u = 0.6 * h + 0.8 * v
        y = task.teacher.label(u) if task.teacher else task.unit.both(u)[0]
        errors = (y - task.v * task.unit.both(h)[0]) ** 2 / 2
        assert abs(errors.mean() - task.compute_error(np.array([0.6]))[0]) < 4 * errors.std() / h.size**0.5


def test_looking_twice_helps_outputs_and_not_labels():
    outputs = {**SINGLE_RUN, "teacher": "unit", "N": 100, "seeds": 24, "until": {"R": 0.5}}
    once, twice = (
        simulate.run(FixedLengthNetwork(**outputs, eta=eta, trial_eta=trial)).t_until.values
        for eta, trial in ((0.004, 0.0), (0.004, 0.05))
    )
    assert twice.mean() < 0.7 * once.mean()
    sentence = next(iter(remarks(FixedLengthNetwork(**SINGLE_RUN, eta=0.2, trial_eta=0.3, N=50))))
    assert "gains nothing for labels" in sentence


def test_rates_that_never_find_the_teacher_are_refused_with_the_best_rate():
    scenario = FixedLengthNetwork(**SINGLE_RUN, eta=1.0, N=10_000)
    with pytest.raises(
        ScenarioError, match=r"never finds the teacher.*a = 0\.0045.* too small: the best rate is 0\.019"
    ):
        check_can_simulate(make_simulator(scenario))
    assert "never finds the teacher" in remarks(scenario)[0]


def test_traps_are_refused_by_their_expected_number_of_steps():
    trap = {**SINGLE_RUN, "network": "cubic", "wedge_width": 1.3}
    trap.pop("degree")
    with pytest.raises(ScenarioError, match=r"R = 0 is a trap"):
        check_can_simulate(make_simulator(FixedLengthNetwork(**trap, eta=0.05, N=1000)))


@pytest.mark.parametrize("eta", [0.1, "best"])
def test_labels_without_signal_are_refused_before_a_run(eta):
    with pytest.raises(ScenarioError, match=r"flipped with probability 1/2 have no signal"):
        check_can_simulate(make_simulator(FixedLengthNetwork(**SINGLE_RUN, eta=eta, flip=0.5, N=100)))


def test_runs_that_are_cut_have_no_mean(monkeypatch):
    from simulate.kinds import fixed_length_network

    monkeypatch.setattr(fixed_length_network, "count_max_steps", lambda cell: 3000)
    scenario = FixedLengthNetwork(**SINGLE_RUN, eta=0.3, N=30, seeds=40)
    unit = next(iter(make_simulator(scenario).units(list(scenario.cells()), range(40))))
    with pytest.raises(DivergedStudentError, match=r"of 40 runs have not passed R = 0\.5 at t = 100"):
        make_simulator(scenario).run(unit)


def test_dry_run_states_the_expected_number_of_steps():
    sentence = remarks(FixedLengthNetwork(**SINGLE_RUN, eta=0.1, flip=0.1, N=100))[-1]
    assert sentence == "a run takes 4.41e+04 steps on average, by theory (information exponent 3)"


def test_estimated_seconds_follow_the_steps_of_long_runs():
    # by its first signal term alone, the last of these cells would take a hundredth of its steps
    wedge = {"network": "cubic", "length": "fixed", "teacher": "wedge", "until": {"R": 0.5}, "eta": 0.0922, "N": 100}
    cells = [FixedLengthNetwork(**wedge, wedge_width=width) for width in (1.1, 1.192)]
    steps = [100 * float(theory.hitting_time(scenario).mean) for scenario in cells]
    seconds = [scenario.estimate_seconds_per_seed() for scenario in cells]
    assert steps[1] / steps[0] > 100
    assert seconds == pytest.approx(CHAIN_STEP_SECONDS * np.array(steps))


def test_a_hitting_time_of_another_kind_is_refused_in_one_sentence():
    with pytest.raises(ScenarioError, match="predicted for networks with `length: fixed` only"):
        theory.hitting_time(Scenario(rule="hebb", t=1))


@pytest.mark.slow
def test_the_best_rate_is_a_number_that_runs_take():
    best = simulate.run(FixedLengthNetwork(**SINGLE_RUN, eta="best", N=30, seeds=20)).t_until.values
    assert best.min() > 0
