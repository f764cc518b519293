"""Theory of generations of learners, for each parameter combination at its P/N and rounded fraction of true labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from statmech.convex.losses import Loss
from statmech.convex.teachers import LabelTeacher
from statmech.kinds.risk_generations import Generations, GenerationsCell
from theory.convex.label_mixtures import GenerationChain
from theory.kinds.cell_groups import CellVariables

SOURCE = "replica-symmetric, N -> infinity"
LINE_POINTS = 30  # each point takes 0.1 to 1 seconds  # style: ok


def solve(scenario: Generations, cells: Sequence[GenerationsCell]) -> Iterator[CellVariables]:
    """Return the theoretical variables of each cell at its recorded generations.

    Values are NaN where the loss has no minimum.
    """
    recorded = tuple(scenario.generations)
    return (_solve_chain(cell, cell.num_real / cell.P, cell.P / cell.N, recorded) for cell in cells)


def solve_line(scenario: Generations, cells: Sequence[GenerationsCell]) -> Iterator[CellVariables]:
    """Solve theory for a dense line, at alpha and the fraction of true labels without rounding."""
    recorded = tuple(scenario.generations)
    return (_solve_chain(cell, cell.real, cell.alpha, recorded) for cell in cells)


def _solve_chain(cell: GenerationsCell, real: float, alpha: float, recorded: tuple[int, ...]) -> CellVariables:
    assert isinstance(cell.teacher, LabelTeacher)
    return dict(
        _solve_cached_chain(cell.loss_for_teacher_outputs, cell.teacher, real, alpha, float(cell.lam), recorded)
    )


@lru_cache(maxsize=512)  # runs and lines share points
def _solve_cached_chain(
    loss: Loss, teacher: LabelTeacher, real: float, alpha: float, lam: float, recorded: tuple[int, ...]
) -> CellVariables:
    """Compute the variables of a chain at the recorded generations, and at its fixed point."""
    chain = GenerationChain(loss, teacher, real, alpha, lam)
    states = chain.solve_generations(recorded[-1])._asdict()
    fixed_point = np.asarray(chain.solve_fixed_point())
    return {name: values[list(recorded)] for name, values in states.items()} | {
        "R_fixed_point": fixed_point,
        "eps_fixed_point": np.arccos(fixed_point) / np.pi,
    }
