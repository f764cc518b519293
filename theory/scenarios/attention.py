"""Theory of the Attentive Perceptron online: order parameters, features evaluated, and decision errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from statmech.boundaries import Boundary
from statmech.order_parameters import angle_from_versine
from statmech.scenarios.attention import Attention, AttentionCell
from theory.stopping.attention import AttentiveOrderParameters, solve_cells

SOURCE = "order-parameter equations, N -> infinity at given chunk / N and memory / N"
LINE_POINTS = 60  # style: ok


def solve(scenario: Attention, cells: Sequence[AttentionCell]) -> Iterator[dict[str, np.ndarray]]:
    """Return the theoretical variables of each cell.

    Cells with the same boundary are solved in parallel. `theory.stopping.attention` has the equations.
    """
    groups: dict[Boundary, list[AttentionCell]] = {}
    for cell in cells:
        groups.setdefault(cell.boundary, []).append(cell)
    variables: dict[tuple[int, ...], dict[str, np.ndarray]] = {}
    for members in groups.values():
        states = solve_cells(members, scenario.t)
        for index, cell in enumerate(members):
            state = AttentiveOrderParameters(*(values[index] for values in states))
            variables[cell.index] = compute_variables(state, np.asarray(scenario.t))
    return (variables[cell.index] for cell in cells)


def compute_variables(state: AttentiveOrderParameters, t: np.ndarray) -> dict[str, np.ndarray]:
    """Return the variables of a solved student at each time.

    Rates are averaged since the previous time, or since the start for the first time, and NaN at t = 0.
    """
    span = np.diff(t, prepend=0.0)
    lasting = np.where(span > 0, span, np.nan)
    return {
        "R": 1 - state.y,
        "length": np.exp(state.log_length),
        "eps_g": angle_from_versine(state.y) / np.pi,
        "features": np.diff(state.work, prepend=0.0) / lasting,
        "decision_error": np.diff(state.errors, prepend=0.0) / lasting,
        "work": state.work,
    }
