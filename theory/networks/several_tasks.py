r"""Order-parameter equations of a network that learns several tasks online, for N -> infinity.

The teacher units of all tasks together have the products T. Task k has output weights :math:`W_k`, which vanish except
on its own units, and the student has a head :math:`V_k` for it, or one head V for all tasks. At time t an example
belongs to task k with probability :math:`p_k(t)` (`statmech.parameters.task_protocols`). With the rates :math:`\dot
R^{(k)}`, ... in `theory.networks.order_parameter_equations` for the weights :math:`W_k` and :math:`V_k`,

.. math:: \dot R = \sum_k p_k\dot R^{(k)}, \qquad \dot Q = \sum_k p_k\dot Q^{(k)}, \qquad \dot V_k = p_k\dot v^{(k)},

and :math:`\dot V = \sum_k p_k\dot v^{(k)}` for a shared head: all rates are averages over examples. Averages over the
fields do not depend on weights, and are computed once for all tasks. A step that averages b examples is equivalent to
b steps with one example each at the rates :math:`\eta/b`, :math:`\eta_v/b` and :math:`\nu/b`: only :math:`\eta^2`
becomes :math:`\eta^2/b`.

The probabilities jump where a piece of the protocol begins, so that pieces are integrated separately.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network_tasks import NetworkTaskCell
from statmech.numerics.gaussian import Array
from statmech.runtime.compiled_programs import cached_program
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.activations import ensure_gaussian_averages
from statmech.students.network_error import generalization_error
from theory.networks.order_parameter_equations import (
    APPROXIMATE_RTOL,
    ATOL,
    MAX_APPROXIMATE_STEPS,
    MAX_STEPS,
    RTOL,
    EntryRates,
    NetworkSetting,
    NetworkSolverOptions,
    choose_network_batch_size,
    compute_entry_rates,
    compute_rates_with_time,
    make_entry_indices,
    make_network_setting,
    make_network_solver_options,
    make_solution_key,
    pack_units,
    solve_with_time_row,
    unpack_units,
)
from theory.numerics.batch_integration import (
    check_integration_complete,
    integrate,
    integrate_in_pieces,
    pad_with_last_member,
    solve_in_batches,
)


@dataclass(frozen=True)
class TaskEquations:
    """Static arguments of the compiled solver of several tasks.

    `network` contains the arguments of one network with the teacher units of all tasks. `heads` is the number of
    student heads, either one per task or a single shared head.
    """

    network: NetworkSolverOptions
    heads: int


class TaskSetting(NamedTuple):
    """Run-time arguments of the compiled solver of several tasks, with the batch as last axis.

    `network` has weights w (tasks, M, L), and `batch` is the number of examples per step.
    """

    network: NetworkSetting
    batch: Array


def compute_task_rates(
    equations: TaskEquations, setting: TaskSetting, units: StudentUnits, task_probabilities: Array
) -> EntryRates:
    """Compute the time derivatives of all entries of R and Q (n, L) and of the heads (heads, K, L).

    `task_probabilities` has the shape (tasks, L). `units` contains R (K, M, L), Q (K, K, L) and v (heads, K, L).
    """
    network, batch = setting
    entries = make_entry_indices(equations.network.K, equations.network.M)
    slower = network._replace(**{name: getattr(network, name) / batch for name in ("eta", "eta_v", "decay")})

    def compute_single_task_rates(w: Array, v: Array) -> EntryRates:
        return compute_entry_rates(equations.network, slower._replace(w=w), units._replace(v=v), entries)

    heads = jnp.broadcast_to(units.v, (len(network.w), *units.v.shape[1:]))
    # averages do not depend on w and v, so they are computed only once
    rates_by_task = jax.vmap(compute_single_task_rates)(network.w, heads)
    weighted = EntryRates(*(batch * task_probabilities[:, None] * part for part in rates_by_task))
    v = weighted.v if equations.heads > 1 else weighted.v.sum(0, keepdims=True)
    return EntryRates(weighted.R.sum(0), weighted.Q.sum(0), v)


def pack_task_units(units: StudentUnits) -> Array:
    """Pack R, the upper triangle of Q, and the heads into rows (C, ...)."""
    return pack_units(units._replace(v=units.v.reshape(-1, *units.v.shape[2:])))


def unpack_task_units(equations: TaskEquations, rows: Array) -> StudentUnits:
    """Unpack R (K, M, ...), Q (K, K, ...) and the heads v (heads, K, ...) from rows (C, ...)."""
    heads = rows[-equations.heads * equations.network.K :]
    units = unpack_units(equations.network, rows)
    return units._replace(v=heads.reshape(equations.heads, equations.network.K, *rows.shape[1:]))


def compute_task_row_rates(
    equations: TaskEquations, setting: TaskSetting, task_probabilities: Array, rows: Array
) -> Array:
    """Compute the time derivatives of the packed order parameters (C, L)."""
    R, Q, v = compute_task_rates(equations, setting, unpack_task_units(equations, rows), task_probabilities)
    return jnp.concatenate([R, Q, v.reshape(-1, v.shape[-1])])


@cached_program
def solve_task_piece(
    equations: TaskEquations,
    setting: TaskSetting,
    task_probabilities: Array,
    start: Array,
    times: Array,
    max_steps: Array,
) -> tuple[Array, Array]:
    """Integrate the packed order parameters (T, C, L) of networks at constant task probabilities.

    Also returns a mask (L,) of the elements that have reached the last time.

    Parameters
    ----------
    equations, setting
        Static and run-time arguments.
    task_probabilities
        Probabilities of the tasks (tasks, L).
    start, times, max_steps
        Arguments of `theory.networks.order_parameter_equations.solve_network_batch`, from the beginning of the piece.
    """
    atol, rtol = jnp.full((start.shape[0], 1), ATOL), APPROXIMATE_RTOL if equations.network.is_approximate else RTOL

    def row_rates(network: NetworkSetting, rows: Array) -> Array:
        return compute_task_row_rates(equations, setting._replace(network=network), task_probabilities, rows)

    return integrate(partial(compute_rates_with_time, row_rates, setting.network), start, times, rtol, atol, max_steps)


def solve_task_rows(
    equations: TaskEquations, cells: Sequence[NetworkTaskCell], times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate the packed order parameters (T, C, L) of networks whose tasks change at equal times.

    Also returns a mask (L,) of the elements that have reached the last time.
    """
    start = np.stack([pack_task_units(cell.units) for cell in cells], axis=-1)
    max_steps = np.int64(MAX_APPROXIMATE_STEPS if equations.network.is_approximate else MAX_STEPS)

    def solve(begin: float, start: Array, times: Array) -> tuple[Array, Array]:
        probabilities = np.stack([cell.protocol_pieces.at(np.float64(begin)) for cell in cells], axis=-1)
        setting = make_task_setting([cell.after(begin) for cell in cells])
        return solve_with_time_row(
            lambda rows: solve_task_piece(equations, setting, probabilities, rows, times, max_steps),
            setting.network,
            start,
        )

    with use_cpu_double_precision():
        return integrate_in_pieces(solve, cells[0].edges, start, times)


def solve_cells(cells: Sequence[NetworkTaskCell], times: Iterable[float]) -> list[StudentUnits]:
    """Solve for R (T, K, M), Q (T, K, K) and the heads v (T, heads, K) of each cell's network at each time.

    Raises `SolverError` if the integration stops early. Cells with the same numbers of units and heads whose pieces
    begin together are integrated in parallel. Cells that differ only in N share a solution.
    """
    record_jax_use()
    t = np.asarray(list(times), float)
    return solve_in_batches(
        cells,
        lambda cell: (*make_solution_key(cell), cell.overlap, cell.batch, cell.protocol),
        lambda cell: (make_task_equations(cell), cell.control_segment_layout),
        lambda program: choose_network_batch_size(program[0].network),
        lambda program, batch: _solve_with_one_program(program[0], batch, t),
    )


def compute_task_errors(cell: NetworkTaskCell, units: StudentUnits) -> np.ndarray:
    """Compute the generalization errors (T, tasks) of a network on its tasks.

    `units` contains R (T, K, M), Q (T, K, K) and v (T, heads, K).
    """
    R, Q, v = units
    heads, averages = np.broadcast_to(v, (len(v), cell.tasks, cell.K)), ensure_gaussian_averages(cell.activation)
    errors = [generalization_error(averages, cell.T, w, R, Q, heads[:, task]) for task, w in enumerate(cell.w)]
    return np.maximum(np.stack(errors, axis=-1), 0.0)


def make_task_equations(cell: NetworkTaskCell) -> TaskEquations:
    """Make the static arguments of the compiled solver from a cell."""
    return TaskEquations(make_network_solver_options(cell), cell.heads)


def make_task_setting(cells: Sequence[NetworkTaskCell]) -> TaskSetting:
    """Make the run-time arguments of the compiled solver from a batch of cells."""
    return TaskSetting(make_network_setting(cells), np.array([cell.batch for cell in cells], float))


def _solve_with_one_program(
    equations: TaskEquations, cells: Sequence[NetworkTaskCell], times: np.ndarray
) -> list[StudentUnits]:
    """Solve networks that learn a sequence of tasks with one compiled program, padded to a common batch size."""
    padded_cells = pad_with_last_member(cells)
    rows, completed = solve_task_rows(equations, padded_cells, times)
    cell_rows = [rows[..., index] for index in range(len(cells))]
    check_integration_complete(cells, cell_rows, completed, times[-1])
    return [
        StudentUnits(*(np.moveaxis(part, -1, 0) for part in unpack_task_units(equations, cell_row.T)))
        for cell_row in cell_rows
    ]
