r"""Order-parameter equations of two-layer networks that learn online, for N -> infinity.

A step changes the first layer by :math:`\eta\,\delta_k\mathbf x - (\nu/N)\,\mathbf J_k` with :math:`\delta_k =
v_k\,g'(h_k)\,e`, and the second by :math:`(\eta_v/N)\,g(h_k)\,e` (`statmech.scenarios.network`). Since
:math:`|\mathbf x|^2\to 1`, the products of weight vectors per N follow, in time t = steps/N,

.. math::

   \dot R_{im} &= \eta\,\langle\delta_i\,y_m\rangle - \nu R_{im}, \\
   \dot Q_{ij} &= \eta\,\langle\delta_i h_j + \delta_j h_i\rangle + \eta^2\langle\delta_i\delta_j\rangle - 2 \nu Q_{ij},
   \\
   \dot v_i &= \eta_v\,\langle g(h_i)\,e\rangle ,

where the noise only adds :math:`\sigma^2 v_iv_j\langle g'(h_i)g'(h_j)\rangle` to
:math:`\langle\delta_i\delta_j\rangle`. The averages over the normal fields with covariances R, Q and T are sums of
averages of the activation (`theory.networks.averages`). Parameter combinations with the same activation and numbers of
units form a batch along the last axis, of length L, and are integrated in parallel (`theory.numerics.dormand_prince`).

**Dropout.** With a new mask r on the student units for each example, :math:`r_iv_i` replaces :math:`v_i` in e and
:math:`\delta_i`, and :math:`r_ig(h_i)` replaces :math:`g(h_i)` in the last line. Averages are also over the masks: with
the weights c of all units in e and :math:`\rho = 1/(1-p)`,

.. math::

   \langle\delta_iy_m\rangle &= v_i\sum_a\rho^{\delta_{ia}}c_a I_3(i, m, a), \qquad
   \langle r_ig(h_i)\,e\rangle = \sum_a\rho^{\delta_{ia}}c_a I_2(i, a), \\
   \langle\delta_i\delta_j\rangle &= v_iv_j\Big[\sum_{ab}\rho^{n(ijab)}c_ac_b I_4(i, j, a, b)
   + \rho^{\delta_{ij}}\sigma^2\langle g'(h_i)g'(h_j)\rangle\Big],

where n is the number of students among i, j, a, b minus the number of different students.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.networks.lattice_averages import averages_of, spacing_for
from statmech.networks.network_error import generalization_error
from statmech.numerics.gaussian import Array
from statmech.parameters import Family, family_of
from statmech.runtime.devices import double_precision
from statmech.runtime.forks import check_fork
from statmech.runtime.programs import QUICK, CachedProgram
from statmech.scenarios.network import NetworkCell
from statmech.scenarios.network_matrices import Units
from theory.networks.averages import TERMS, Fields, Masks, errors, responses, slopes, squares
from theory.numerics.dormand_prince import integrate
from theory.numerics.lanes import check_complete, side_by_side, with_last_again
from theory.numerics.pieces import in_pieces

RTOL, RTOL_LESS, ATOL = 1e-11, 1e-9, 1e-13  # line integrals have errors of 1e-13 and more
RATES = "eta", "eta_v", "noise", "decay", "dropout"
MAX_STEPS, MAX_STEPS_LESS = 2_000_000, 20_000
LANES = 128


@dataclass(frozen=True)
class Equations:
    """Static arguments of the compiled solver.

    These are the activation, numbers of units, whether the teacher gives labels, the spacing of the field lattice for
    an activation without closed forms, and whether there is dropout.
    """

    activation: Family
    K: int
    M: int
    sign: bool = False
    spacing: float = 0.0
    dropout: bool = False

    @property
    def approximate(self) -> bool:
        """True if averages are line integrals or lattice sums, which are slower and less accurate."""
        return bool(getattr(self.activation.kind, "kinks", ())) or self.spacing > 0


class Setting(NamedTuple):
    """Run-time arguments with the batch as last axis.

    These are parameters of the activation, rates, noise, decay and dropout (L,), T (M, M, L), w (M, L), and the
    learning rate as a function of time (`statmech.controls.Polynomials`) if it changes.
    """

    parameters: dict[str, Array]
    eta: Array
    eta_v: Array
    noise: Array
    decay: Array
    dropout: Array
    T: Array
    w: Array
    eta_polynomials: Any = None


class Entries(NamedTuple):
    """Indices of entries whose rates are computed: R (student, teacher), Q (first, second) and v (output)."""

    student: np.ndarray
    teacher: np.ndarray
    first: np.ndarray
    second: np.ndarray
    output: np.ndarray


class Rates(NamedTuple):
    """Time derivatives of entries of R, Q and v, each (n, L)."""

    R: Array
    Q: Array
    v: Array


def every_entry(K: int, M: int) -> Entries:
    """Return all entries of R, row by row, of Q's upper triangle, and of v."""
    student, teacher = (index.reshape(-1) for index in np.indices((K, M)))
    return Entries(student, teacher, *np.triu_indices(K), np.arange(K))


def gram_of(units: Units, T: Array) -> Array:
    """Return the covariances (K + M, K + M, L) of all fields, students first."""
    students = jnp.concatenate([units.Q, units.R], axis=1)
    return jnp.concatenate([students, jnp.concatenate([jnp.swapaxes(units.R, 0, 1), T], axis=1)])


def fields_of(equations: Equations, setting: Setting, units: Units) -> Fields:
    """Return the fields of students and teachers with their weights in the error.

    The units R, Q, v have the batch as last axis.
    """
    w = jnp.sign(setting.w) if equations.sign else setting.w  # the label is sgn(w g(y)) = sgn w sgn y
    weights = jnp.concatenate([-units.v, w])
    averages = equations.activation(**setting.parameters)
    masks = Masks(1 / (1 - setting.dropout), equations.K) if equations.dropout else None
    return Fields(averages, gram_of(units, setting.T), weights, equations.sign, equations.spacing, masks)


def rates(equations: Equations, setting: Setting, units: Units, entries: Entries) -> Rates:
    """Compute time derivatives for some entries of R (K, M, L), Q (K, K, L) and v (K, L)."""
    fields = fields_of(equations, setting, units)
    R, Q, v = units
    student, teacher, i, j, output = entries
    towards_teachers = v[student] * responses(fields, student, equations.K + teacher)
    between_students = v[i] * responses(fields, i, j) + v[j] * responses(fields, j, i)
    noise_terms = v[i] * v[j] * (squares(fields, i, j) + setting.noise**2 * slopes(fields, i, j))
    return Rates(
        setting.eta * towards_teachers - setting.decay * R[student, teacher],
        setting.eta * between_students + setting.eta**2 * noise_terms - 2 * setting.decay * Q[i, j],
        setting.eta_v * errors(fields, output),
    )


def packed(units: Units) -> Array:
    """Pack R, the upper triangle of Q, and v into rows (C, ...)."""
    R, Q, v = units
    return np.concatenate([R.reshape(-1, *R.shape[2:]), Q[np.triu_indices(len(Q))], v])


def unpacked(equations: Equations, rows: Array) -> Units:
    """Return R (K, M, ...), Q (K, K, ...) and v (K, ...) from rows (C, ...)."""
    K, M = equations.K, equations.M
    i, j = np.triu_indices(K)
    row_indices = np.zeros((K, K), int)
    row_indices[i, j] = row_indices[j, i] = K * M + np.arange(i.size)
    return Units(rows[: K * M].reshape(K, M, *rows.shape[1:]), rows[row_indices], rows[-K:])


def field(equations: Equations, setting: Setting, rows: Array) -> Array:
    """Compute the time derivative of the state's rows (C, L)."""
    entries = every_entry(equations.K, equations.M)
    return jnp.concatenate(rates(equations, setting, unpacked(equations, rows), entries))


def over_time(rates: Callable[[Setting, Array], Array], setting: Setting, rows: Array) -> Array:
    """Compute the time derivative of the state's rows (C, L), with a changing learning rate.

    The last row is the time if the learning rate is a function of time.
    """
    if setting.eta_polynomials is None:
        return rates(setting, rows)
    eta = jax.vmap(lambda polynomials, t: polynomials.at(t), -1)(setting.eta_polynomials, rows[-1])
    row_rates = rates(setting._replace(eta=eta, eta_polynomials=None), rows[:-1])
    return jnp.concatenate([row_rates, jnp.ones_like(rows[-1:])])


def with_time(solve: Callable[[Array], tuple[Array, Array]], setting: Setting, start: Array) -> tuple[Array, Array]:
    """Solve from the state's rows (C, L).

    A row with the time is added if the learning rate is a function of time.
    """
    if setting.eta_polynomials is None:
        return solve(start)
    rows, completed = solve(np.concatenate([start, np.zeros_like(start[:1])]))
    return rows[:, :-1], completed


@partial(CachedProgram, options=lambda equations: [] if equations.approximate else [QUICK])
def solve_lanes(equations: Equations, setting: Setting, start: Array, times: Array, most: Array) -> tuple[Array, Array]:
    """Integrate the state's rows (T, C, L) of a batch.

    Also returns True for the elements that have reached the last time.

    Parameters
    ----------
    equations, setting
        Static and run-time arguments.
    start
        The rows at t = 0 (C, L).
    times
        Recorded times (T,).
    most
        Maximum number of steps.
    """
    atol, rtol = jnp.full((start.shape[0], 1), ATOL), RTOL_LESS if equations.approximate else RTOL
    return integrate(partial(over_time, partial(field, equations), setting), start, times, rtol, atol, most)


def equations_of(cell: NetworkCell) -> Equations:
    """Return the static arguments for the compiled program of a cell."""
    spacing = 0.0 if cell.activation.has_closed_forms else spacing_for(cell.activation)
    return Equations(family_of(cell.activation), cell.K, cell.M, cell.sign, spacing, cell.drops)


def setting_of(cells: Sequence[NetworkCell]) -> Setting:
    """Return the run-time arguments of cells as a batch."""
    names = family_of(cells[0].activation).reals
    parameters = {name: np.asarray([getattr(cell.activation, name) for cell in cells], float) for name in names}
    rates = {name: np.asarray([getattr(cell, name) for cell in cells], float) for name in RATES}
    T, w = (np.stack([getattr(cell, name) for cell in cells], axis=-1) for name in ("T", "w"))
    cell_polynomials = [cell.polynomials["eta"] for cell in cells if "eta" in cell.given]
    eta_polynomials = (
        jax.tree.map(lambda *arrays: np.stack(arrays, axis=-1), *cell_polynomials) if cell_polynomials else None
    )
    return Setting(parameters, **rates, T=T, w=w, eta_polynomials=eta_polynomials)


def solve_cells(cells: Sequence[NetworkCell], times: Iterable[float]) -> list[Units]:
    """Compute R (T, K, M), Q (T, K, K) and v (T, K) of each cell at each time.

    Raises `SolverError` if the integration stops early. Cells with the same activation and numbers of units are
    integrated in parallel. Cells that differ only in N share a solution.
    """
    check_fork()
    t = np.asarray(list(times), float)

    def program(at: int) -> tuple[Equations, tuple[Any, ...]]:
        return equations_of(cells[at]), cells[at].layout

    def solve_group(program: tuple[Equations, Any], some: list[int]) -> list[Units]:
        return _solve_together(program[0], [cells[index] for index in some], t)

    with double_precision():
        return side_by_side(list(map(identity_of, cells)), program, lambda program: lanes_of(program[0]), solve_group)


def error_of(cell: NetworkCell, units: Units, T: Array | None = None) -> np.ndarray:
    """Compute the generalization error of a cell from its units R (..., K, M), Q (..., K, K) and v (..., K).

    Rounding of R and Q can make a small error negative: it is then set to 0. T (M, M) is the cell's teacher by default,
    or the covariance of the teacher's fields.
    """
    T = cell.T if T is None else T
    error = generalization_error(averages_of(cell.activation), T, cell.w, *units, output=cell.teacher.output)
    return np.maximum(error, 0.0)


def lanes_of(equations: Equations) -> int:
    """Return the batch size: a power of two, smaller for cells with many averages."""
    if equations.spacing:
        return 1
    fields, pairs = equations.K + equations.M, equations.K * (equations.K + 1) // 2
    max_cells = max(1, 8 * TERMS // (pairs * fields * (fields + 1) // 2))
    return min(LANES, 1 << (max_cells.bit_length() - 1))


def identity_of(cell: NetworkCell) -> tuple[Any, ...]:
    """Return a key with everything that determines a cell's equations and start."""
    numbers = cell.K, cell.M, *(getattr(cell, name) for name in RATES)
    return cell.name, *cell.parameters.values(), *numbers, id(cell.teacher), id(cell.start), *cell.controls


def _solve_together(equations: Equations, cells: Sequence[NetworkCell], times: np.ndarray) -> list[Units]:
    """Solve cells that share one program.

    Cells and times are padded to common sizes.
    """
    padded_cells = with_last_again(cells)
    start = np.stack([packed(cell.units) for cell in padded_cells], axis=-1)
    max_steps = np.int64(MAX_STEPS_LESS if equations.approximate else MAX_STEPS)

    def solve(begin: float, start: Array, times: Array) -> tuple[Array, Array]:
        setting = setting_of([cell.after(begin) for cell in padded_cells])
        return with_time(lambda rows: solve_lanes(equations, setting, rows, times, max_steps), setting, start)

    rows, completed = in_pieces(solve, cells[0].edges or (0.0,), start, times)
    rows = np.moveaxis(rows, -1, 0)[: len(cells)]
    check_complete(cells, rows, completed, times[-1])
    return [Units(*(np.moveaxis(part, -1, 0) for part in unpacked(equations, cell_rows.T))) for cell_rows in rows]
