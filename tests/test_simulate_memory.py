"""The memory that a simulation is said to take, compared with what it holds: NumPy's arrays, and XLA's buffers."""

import subprocess
import sys
import tracemalloc

import jax
import numpy as np
import pytest
from conftest import brief

from simulate.convex import training_data
from simulate.execution import work_units
from simulate.execution.work_units import make_simulator
from simulate.online import weight_vector_engine
from statmech import Attention, Boosting, Inference, Risk, Scenario, Stopping
from statmech.errors import ScenarioError
from statmech.runtime.operating_system import get_peak_memory

FACTOR = 1.3  # between the bytes stated and those held
BOUND = {"boundary": "brownian-bridge", "error_rate": 0.1, "seeds": 1}
SCENARIOS = {
    "inference": Inference(prior="binary", N=1000, alpha=1.2, steps=2, seeds=1),
    "boosting, many examples": Boosting(booster="adaboost", s=3, P=20_000, N=60, cap=2, seeds=1),
    "boosting, many tests": Boosting(booster="adaboost", s=3, P=200, N=200, cap=2, seeds=1),
    "attention": Attention(attention="brownian-bridge", error_rate=[0.1, 0.2], N=10_000, t=[0.01], seeds=1),
    "many walks": Stopping(**BOUND, N=1000, walks=1200),
    "few long walks": Stopping(**BOUND, N=10**6, walks=2),
    "few looks": Stopping(**BOUND, N=1000, walks=300, chunk=5),
}


def held(simulator):
    """The largest number of bytes of Python objects and NumPy's arrays while the first unit runs."""
    unit = next(iter(simulator.units(list(simulator.scenario.cells()), range(1))))
    simulator.run(unit)  # imports what it needs
    tracemalloc.start()
    try:
        simulator.run(unit)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_unit_holds_the_bytes_that_are_stated(name):
    simulator = make_simulator(SCENARIOS[name])
    assert 1 / FACTOR < held(simulator) / simulator.estimate_max_unit_bytes() < FACTOR


@pytest.mark.parametrize("given", [{"loss": "logistic"}, {"loss": "hinge"}, {"loss": "square", "penalty": "l1"}])
@pytest.mark.parametrize("alpha", brief([0.5, 1, 3]))
def test_minimisation_holds_no_more_than_is_stated(given, alpha):
    simulator = make_simulator(Risk(lam=0.1, N=200, alpha=alpha, seeds=1, **given))
    assert held(simulator) < FACTOR * simulator.estimate_max_unit_bytes()


def test_a_second_copy_of_the_inputs_is_noticed(monkeypatch):
    drawn, copies = training_data.draw_teacher_data, []

    def twice(*given):
        data = drawn(*given)
        copies[:] = [data.X.copy()]
        return data

    monkeypatch.setattr(training_data, "draw_teacher_data", twice)
    simulator = make_simulator(SCENARIOS["inference"])
    assert held(simulator) / simulator.estimate_max_unit_bytes() > FACTOR


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {"K": 2},  # as users compile
        *(
            pytest.param(given, marks=pytest.mark.quick)
            for given in ({"K": 20, "dtype": "float32"}, {"K": 2, "inputs": "rademacher"})
        ),
    ],
)
def test_the_direct_engine_holds_the_bytes_that_are_stated(given):
    simulator = make_simulator(Scenario(rule="perceptron", engine="vectors", N=10_000, t=[0.01], **given))
    cell = next(iter(simulator.scenario.cells()))
    task = simulator.describe_task(cell)
    with jax.enable_x64(True):
        program = weight_vector_engine.VectorProgram(
            task.learner, task.inputs, task.K, task.M, int(task.N), task.dtype, task.drifting
        )
        scale, table = np.asarray(task.scale, task.dtype), task.inputs.table(program.N)
        parameters, changes = task.numbers()
        problem = weight_vector_engine.VectorArguments(
            parameters, task.initial_coordinates, scale, task.initial_learner_state, table, changes
        )
        lowered = jax.jit(weight_vector_engine._simulate_all_seeds.function, static_argnums=0).lower(
            program, np.zeros((4, 2), np.uint32), problem, np.array([16])
        )
        buffers = lowered.compile().memory_analysis().temp_size_in_bytes
    packed = (
        weight_vector_engine.VECTOR_BLOCK_STEPS * cell.N * np.dtype(task.dtype).itemsize
    )  # inputs, copied by the matrix product: not XLA's
    assert 1 / FACTOR < (buffers + packed) / simulator.estimate_max_unit_bytes() < FACTOR


def test_memory_is_that_of_all_units_at_once_beside_what_the_process_holds(monkeypatch):
    unit, simulator = 8 * 8000 * 13_600, make_simulator(Inference(prior="binary", N=8000, alpha=1.7, seeds=4))

    def on(cores):
        monkeypatch.setattr(work_units, "count_cores", lambda: cores)
        return work_units.estimate_peak_memory(simulator)

    assert on(4) - on(1) == pytest.approx(3 * unit, rel=0.1)
    assert on(8) == pytest.approx(on(4), rel=0.01)  # there are four units
    assert (
        work_units.count_affordable_units(simulator, 4, 2.5 * unit + get_peak_memory() + work_units.STORE_LIBRARY_BYTES)
        == 2
    )
    with pytest.raises(ScenarioError, match="too little"):
        work_units.estimate_peak_memory(simulator, 0.9 * unit + get_peak_memory() + work_units.STORE_LIBRARY_BYTES)


@pytest.mark.slow
def test_a_dry_run_states_inputs_not_only_results():
    run = ["run", "binary_perceptron", "N=8000", "alpha=1.7", "start=informed", "seeds=1", "--dry-run"]
    done = subprocess.run([sys.executable, "-m", "statmech", *run], capture_output=True, text=True, check=True)
    line = next(line for line in done.stdout.splitlines() if line.startswith("memory"))
    assert float(line.split()[2]) > 0.9, line
