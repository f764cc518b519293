"""Scenarios, results and errors in other processes and threads."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import sys
import threading
import warnings

import pytest
from conftest import few_optimisations, in_child

import simulate
import theory
from statmech import LEARNERS, RULES, Scenario, ScenarioError, StoredExamples, errors
from statmech.kinds.selection_and_vocabulary import scenario_from

CONFIGS = [
    {"rule": ["perceptron", "adatron"], "K": 2, "N": 50, "t": [1], "seeds": 3, "start": {"length": [1, 2], "R": 0.1}},
    {"rule": "hebb", "N": 50, "t": [1], "seeds": 3, "inputs": {"anisotropic": {"spectrum": [0.5, 1.5]}}},
    {"zip": {"rule": ["hebb", "perceptron"], "eta": [1, 0.5]}, "N": 50, "t": [1], "seeds": 3},
    {"learner": ["hebb", "minover", "adatron"], "N": 10, "alpha": 2, "seeds": 2},
    {"boundary": "constant", "error_rate": 0.05, "seeds": 2, "walks": 50},
    {"attention": "centred", "error_rate": 0.05, "t": [1], "N": 50, "seeds": 2},
    {"booster": "adaboost", "s": 3, "P": 50, "seeds": 2, "N": 8},
]


@pytest.mark.quick
@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: next(iter(config)))
def test_copies_of_scenarios_and_results_are_equal(config):
    scenario = scenario_from(dict(config))
    for other in (pickle.loads(pickle.dumps(scenario)), copy.deepcopy(scenario), copy.copy(scenario)):
        assert other == scenario
        assert list(other.cells()) == list(scenario.cells())
    run = simulate.run(scenario)
    assert simulate.run(pickle.loads(pickle.dumps(scenario))).identical(run)
    for result in [run] if scenario.unsolved else [run, theory.solve(scenario)]:
        assert pickle.loads(pickle.dumps(result)).identical(result)
        assert copy.deepcopy(result).identical(result)


def test_a_study_and_every_rule_and_learner_are_copied_too(data_folder):
    study = scenario_from({"classifier": "perceptron", "data": "votes"})
    assert pickle.loads(pickle.dumps(study)) == study
    for kind in (*RULES.values(), *LEARNERS.values()):
        assert pickle.loads(pickle.dumps(kind())) == copy.deepcopy(kind()) == kind()


def test_errors_reach_another_process_as_they_are():
    raised = [ScenarioError([(("eta",), "is wrong")]), errors.ForkAfterJaxError(), errors.DamagedStoreError("x", ["y"])]
    raised += [kind("told") for kind in (errors.DivergedStudentError, errors.SolverError, errors.StoreError)]
    for error in raised:
        other = pickle.loads(pickle.dumps(error))
        assert type(other) is type(error)
        assert str(other) == str(error)


@pytest.mark.parametrize(
    "config",
    [
        {"rule": "perceptron", "K": 2, "N": 100, "t": [0, 1], "seeds": 4},
        pytest.param(
            {"learner": ["minover", "gibbs"], "sweeps": 100, "N": 10, "alpha": 2, "seeds": 4},
            marks=[pytest.mark.quick, pytest.mark.slow],
        ),
    ],
    ids=lambda config: next(iter(config)),
)
def test_two_simultaneous_threads_give_the_bits_of_one(config):
    scenario = scenario_from(dict(config))
    one, found = simulate.run(scenario), []
    threads = [threading.Thread(target=lambda: found.append(simulate.run(scenario))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [other.identical(one) for other in found] == [True, True]


def child(run, scenario):
    try:
        run(scenario)
    except errors.ForkAfterJaxError:
        sys.exit(7)


def forks(scenario, warm, runs):
    """Run a scenario, if `warm`, and write the exit codes of forks that call functions of it."""
    warnings.simplefilter("ignore")
    codes = []
    with few_optimisations():
        if warm:
            simulate.run(scenario)
        for run in runs:
            process = multiprocessing.get_context("fork").Process(target=child, args=(run, scenario))
            process.start()
            process.join(50)
            codes.append(process.exitcode if process.exitcode is not None else process.kill() or 99)
    print(codes, file=sys.stderr)


ONLINE = Scenario(rule="hebb", N=50, t=[1], seeds=2)
STORED = StoredExamples(learner="minover", N=10, alpha=2, seeds=2, epochs=[5])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "warm", "runs", "codes"),
    [
        (ONLINE, True, [simulate.run, theory.solve], [7, 7]),
        (STORED, True, [simulate.run], [7]),
        (ONLINE, False, [simulate.run], [0]),
    ],
)
def test_a_fork_after_jax_is_an_error_and_not_a_wait(scenario, warm, runs, codes):
    """Without the check, the child waits forever for threads that it does not have."""
    assert in_child(forks, scenario, warm, runs) == (0, f"{codes}\n")
