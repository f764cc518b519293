"""Simulation of generations of learners that label the examples of their successors.

Generation 0 has the examples of a `Risk` with one generation. Every later generation draws fresh inputs from streams of
its own, and the first `num_real` inputs have true labels.
"""

from __future__ import annotations

import numpy as np

from simulate.convex.minimisation_and_separability import is_separable
from simulate.convex.training_data import (
    INPUT_STREAM,
    OUTPUT_STREAM,
    TeacherData,
    draw_teacher_data,
    make_random_stream,
)
from simulate.execution.work_units import ConvexFitSimulator
from simulate.kinds.empirical_risk import fit_student, measure_student
from statmech.kinds.risk_generations import Generations, GenerationsCell


class Simulator(ConvexFitSimulator[GenerationsCell]):
    """Simulator of generations of learners, one chain after the other."""

    source = "minimisation of a convex loss"
    scenario: Generations

    def simulate(self, cell: GenerationsCell, seed: int) -> dict[str, np.ndarray]:
        """Simulate one chain of generations, and return the variables of the recorded ones."""
        recorded, lam = self.scenario.generations, float(cell.lam)
        variables = self.scenario.variables
        results = {name: np.full(len(recorded), variable.missing) for name, variable in variables.items()}
        data = draw_teacher_data(cell, self.scenario.key, seed)
        for generation in range(recorded[-1] + 1):
            problem, separated, minimum = fit_student(cell, data, lam)
            if generation in recorded:
                values = measure_student(cell, data, problem, minimum, lam)
                values["separable"] = is_separable(problem, separated, minimum)
                for name in values.keys() & results.keys():
                    results[name][recorded.index(generation)] = values[name]
            if not np.all(np.isfinite(minimum.w)):
                break  # without a minimum there is no further generation
            data = draw_successor_data(cell, self.scenario.key, seed, generation + 1, data.teacher, minimum.w)
        return results

    def count_run_bytes(self, cell: GenerationsCell) -> float:
        """Return the bytes of a run: three copies of the inputs, and three matrices of the smaller dimension."""
        return 8.0 * 3 * (cell.P * cell.N + min(cell.P, cell.N) ** 2)


def draw_successor_data(
    cell: GenerationsCell, key: int, seed: int, generation: int, teacher: np.ndarray, student: np.ndarray
) -> TeacherData:
    """Draw fresh examples of a generation, with true labels and labels of the previous student.

    Parameters
    ----------
    cell
        The parameter combination.
    key, seed
        The key of the experiment's random numbers, and the run.
    generation
        Number of the generation, at least 1.
    teacher, student
        Weights (N,) of the teacher and of the previous student.
    """
    identity = {"N": cell.N, "key": key, "seed": seed, "generation": generation}
    X = make_random_stream(INPUT_STREAM, **identity).standard_normal((cell.P, cell.N))
    true_fields = X[: cell.num_real] @ teacher / np.sqrt(cell.N)
    true_labels = cell.teacher.draw(make_random_stream(OUTPUT_STREAM, **identity), true_fields)
    return TeacherData(teacher, X, np.append(true_labels, np.sign(X[cell.num_real :] @ student)))
