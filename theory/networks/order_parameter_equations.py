r"""Order-parameter equations of two-layer networks that learn online, for N -> infinity.

A step changes the first layer by :math:`\eta\,\delta_k\mathbf x - (\nu/N)\,\mathbf J_k` with :math:`\delta_k =
v_k\,g'(h_k)\,e`, and the second by :math:`(\eta_v/N)\,g(h_k)\,e` (`statmech.kinds.network`). Since
:math:`|\mathbf x|^2\to 1`, the products of weight vectors per N follow, in time :math:`t=\mathrm{steps}/N`,

.. math::

   \dot R_{im} &= \eta\,\langle\delta_i\,y_m\rangle - \nu R_{im}, \\
   \dot Q_{ij} &= \eta\,\langle\delta_i h_j + \delta_j h_i\rangle + \eta^2\langle\delta_i\delta_j\rangle - 2 \nu Q_{ij},
   \\
   \dot v_i &= \eta_v\,\langle g(h_i)\,e\rangle ,

where the noise only adds :math:`\sigma^2 v_iv_j\langle g'(h_i)g'(h_j)\rangle` to
:math:`\langle\delta_i\delta_j\rangle`.

**Averages** over the normal fields, with covariances R, Q and T, are sums over units of averages of the activation.
With the fields :math:`x_a` of all units, students first, and weights :math:`c_a` (-v for students, w for teachers), a
network without noise has the error :math:`e = \sum_a c_a g(x_a)`, and

.. math:: \langle g(h_i)\,e\rangle &= \sum_a c_a I_2(i, a), \qquad
          \langle g'(h_i)\,x_p\,e\rangle = \sum_a c_a I_3(i, p, a), \\
          \langle g'(h_i)g'(h_j)\,e^2\rangle &= \sum_{ab} c_a c_b I_4(i, j, a, b) .

By Stein's lemma the second is linear in the covariances of :math:`x_p`, whose coefficients are the averages of
derivatives,

.. math:: \Big\langle\frac{\partial}{\partial x_b}g'(x_i)\,e\Big\rangle
          = \delta_{ib}\sum_a c_a \langle g''(x_i)g(x_a)\rangle + c_b\langle g'(x_i)g'(x_b)\rangle,

so that :math:`\langle g''(x_i)g(x_a)\rangle` is :math:`I_3(i, p, a)` at the covariances 1 of :math:`x_p` with
:math:`x_i` and 0 with :math:`x_a`.

Where the teacher's output is a label, its single unit is inside a sign. The averages S2, S3, S4 replace the averages
that contain this unit once, and its square is 1.

**Dropout.** Each example silences every student unit with probability p, independently. Outputs and gradients then
contain :math:`r_ig(h_i)` instead of :math:`g(h_i)`, with a new mask r for each example: :math:`r_i` is 0 with
probability p, and otherwise :math:`\rho = 1/(1-p)`. Since :math:`\langle r^n\rangle = \rho^{n-1}`,

.. math:: \langle r_ir_j\rangle = \rho^{\delta_{ij}}, \qquad
          \langle r_ir_jr_ar_b\rangle = \rho^{4-|\{i,j,a,b\}|},

and similarly for any number of factors: the exponent of :math:`\rho` is the number of factors minus the number of
different units. Masks do not depend on the fields, so that these means multiply the terms of the sums. Teacher units
are never silent and have no such factor.

In the equations :math:`r_iv_i` replaces :math:`v_i` in e and :math:`\delta_i`, and :math:`r_ig(h_i)` replaces
:math:`g(h_i)` in the rate of :math:`v_i`. With averages also over the masks, and the weights :math:`c_a` of the units
in e,

.. math::

   \langle\delta_iy_m\rangle &= v_i\sum_a\rho^{\delta_{ia}}c_a I_3(i, m, a), \qquad
   \langle r_ig(h_i)\,e\rangle = \sum_a\rho^{\delta_{ia}}c_a I_2(i, a), \\
   \langle\delta_i\delta_j\rangle &= v_iv_j\Big[\sum_{ab}\rho^{n(ijab)}c_ac_b I_4(i, j, a, b)
   + \rho^{\delta_{ij}}\sigma^2\langle g'(h_i)g'(h_j)\rangle\Big],

where n is the number of students among i, j, a, b minus the number of different students.

**Batches.** Parameter combinations with the same activation and numbers of units form a batch along the last axis, of
length L, and are integrated in parallel (`theory.numerics.batch_integration`). Covariances are gathered by arrays of
indices, with a column per tuple of units, so that each average is one call for all tuples and the whole batch. An
activation without closed forms is averaged over a common lattice for all fields (`statmech.students.activations`),
which has a million points for four fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.keys.initial_states import StudentUnits
from statmech.kinds.network import NetworkCell
from statmech.numerics.gaussian import Array
from statmech.numerics.orthants import safe_ratio
from statmech.parameters.parameter_fields import RealParameterFamily, get_real_parameter_family
from statmech.runtime.compiled_programs import OLD_FUSION_OPTIONS, CachedProgram
from statmech.runtime.jax_and_blas_settings import use_cpu_double_precision
from statmech.runtime.operating_system import record_jax_use
from statmech.students.activations import (
    choose_smooth_lattice_spacing,
    compute_cholesky_rows,
    ensure_gaussian_averages,
    make_lattice,
)
from statmech.students.network_error import generalization_error
from theory.numerics.batch_integration import (
    check_integration_complete,
    integrate,
    integrate_in_pieces,
    pad_with_last_member,
    solve_in_batches,
)

MAX_PARALLEL_AVERAGES = 2**16  # larger batches exceed the CPU cache
RTOL, APPROXIMATE_RTOL, ATOL = 1e-11, 1e-9, 1e-13  # line integrals have errors of at least 1e-13
SCALAR_SETTING_NAMES = "eta", "eta_v", "noise", "decay", "dropout"
MAX_STEPS, MAX_APPROXIMATE_STEPS = 2_000_000, 20_000
MAX_NETWORK_BATCH_SIZE = 128


class DropoutMasks(NamedTuple):
    """Dropout masks, random factors on student units with mean 1 and mean square rho (L,).

    `num_student_units` is the number of student units, the first of all units.
    """

    rho: Array
    num_student_units: int

    def mean(self, first_unit: Array, *other_units: Array) -> Array:
        """Compute the mean product (..., L) of a network's dropout masks for each tuple of units."""
        earlier_units, repeats = [first_unit], 0
        for unit in other_units:
            repeats = repeats + 1 * (
                reduce(or_, (unit == earlier for earlier in earlier_units)) & (unit < self.num_student_units)
            )
            earlier_units.append(unit)
        return jnp.stack([self.rho**power for power in range(len(earlier_units))])[repeats]


class UnitFields(NamedTuple):
    """Gaussian fields of all units, with their weights in the error of the network.

    `averages` are the averages of the activation (`statmech.students.activations.Activation`), `gram` the covariances
    (n, n, L), and `weights` (n, L) the weights in the error. `sign` is True if the last field is inside a sign.
    `lattice_spacing` is the spacing of the lattice, 0 for closed forms, and `dropout_masks` the dropout masks of
    students, if there is dropout.
    """

    averages: Any
    gram: Array
    weights: Array
    sign: bool
    lattice_spacing: float = 0.0
    dropout_masks: DropoutMasks | None = None

    def apply_mask_means(self, values: Array, *units: Array) -> Array:
        """Multiply values (..., L) for tuples of units by the mean products of their masks."""
        return values if self.dropout_masks is None else values * self.dropout_masks.mean(*units)

    @property
    def num_smooth_fields(self) -> int:
        """Number of fields that enter the activation."""
        return len(self.gram) - self.sign


def gather_covariances(gram: Array, *units: Array) -> Array:
    """Gather the covariance matrices (k, k, ..., L) of tuples of k units, given k index arrays.

    >>> gather_covariances(np.arange(4.0).reshape(2, 2, 1), np.array([0, 1]), np.array([1, 1]))[0, 1, :, 0].tolist()
    [1.0, 3.0]
    """
    xp = jnp if any(isinstance(indices, jax.Array) for indices in units) else np
    tuples = xp.stack(xp.broadcast_arrays(*units))
    return gram[tuples[:, None], tuples[None, :]]


class LatticePoints(NamedTuple):
    """Lattice points with weights (P,), the fields, g and g' (n, P, L), and the network error (P, L)."""

    weight: Array
    x: Array
    g: Array
    slope: Array
    error: Array

    def mean(self, values: Array) -> Array:
        """Average values (m, P, L) over the lattice, returning (m, L)."""
        return jnp.tensordot(values, self.weight, ((1,), (0,)))


def make_lattice_points(fields: UnitFields) -> LatticePoints:
    """Make the joint lattice of all fields in a network."""
    z, weight = make_lattice(len(fields.gram), fields.lattice_spacing)
    x = jnp.stack(
        [sum(entry * z[j][:, None] for j, entry in enumerate(row)) for row in compute_cholesky_rows(fields.gram)]
    )
    g, slope = fields.averages.both(x)
    outputs = jnp.concatenate([g[:-1], jnp.sign(x[-1:])]) if fields.sign else g
    return LatticePoints(jnp.asarray(weight), x, g, slope, jnp.sum(fields.weights[:, None] * outputs, axis=0))


def average_outputs_times_error(fields: UnitFields, i: Array) -> Array:
    """Average g(x_i) e over a network's fields for n units i, as an array (n, L)."""
    if fields.lattice_spacing:
        points = make_lattice_points(fields)
        return points.mean(points.g[i] * _average_error_over_masks(fields, points, i))
    averages, gram, weights, sign, *_ = fields
    a = np.arange(fields.num_smooth_fields)
    average = jnp.sum(
        fields.apply_mask_means(weights[a], i[:, None], a) * averages.I2(gather_covariances(gram, i[:, None], a)),
        axis=1,
    )
    return (
        average + weights[-1] * averages.S2(gather_covariances(gram, i, np.full_like(i, len(gram) - 1)))
        if sign
        else average
    )


def average_gradient_overlaps(fields: UnitFields, i: Array, p: Array) -> Array:
    """Average g'(x_i) x_p e over a network's fields for n pairs of units (i, p), as an array (n, L)."""
    if fields.lattice_spacing:
        points = make_lattice_points(fields)
        return points.mean(points.slope[i] * points.x[p] * _average_error_over_masks(fields, points, i))
    averages, gram, weights, sign, *_ = fields
    a = np.arange(fields.num_smooth_fields)
    terms = averages.I3(gather_covariances(gram, i[:, None], p[:, None], a))
    average = jnp.sum(fields.apply_mask_means(weights[a], i[:, None], a) * terms, axis=1)
    if not sign:
        return average
    return average + weights[-1] * averages.S3(gather_covariances(gram, i, p, np.full_like(i, len(gram) - 1)))


def average_gradient_derivatives(fields: UnitFields, i: Array) -> Array:
    """Average the derivative of g'(x_i) e with respect to each field of a network, as an array (n, fields, L)."""
    smooth = np.arange(fields.num_smooth_fields)
    left, right = (indices.reshape(-1) for indices in np.meshgrid(i, smooth, indexing="ij"))
    slope = average_slope_products(fields, left, right).reshape(i.size, smooth.size, -1)
    average = jnp.asarray(fields.weights[smooth] * slope)
    curved = _curvatures(fields, i, average)
    if fields.sign:
        averages, gram, weights, *_ = fields
        last = np.full_like(i, fields.num_smooth_fields)
        by_last = weights[-1] * averages.S3(_set_middle_covariances(gather_covariances(gram, i, i, last), 0.0, 1.0))
        curved = curved + weights[-1] * averages.S3(
            _set_middle_covariances(gather_covariances(gram, i, i, last), 1.0, 0.0)
        )
        average = jnp.concatenate([average, by_last[:, None]], axis=1)
    return average.at[np.arange(i.size), i].add(curved)


def _curvatures(fields: UnitFields, i: Array, slope_averages: Array) -> Array:
    """Average g''(x_i) e over a network's fields as an array (n, L), without the sign term of the error e."""
    averages, gram, weights, *_ = fields
    smooth = np.arange(fields.num_smooth_fields)
    if fields.lattice_spacing:  # by Stein's lemma for <g'(x_i) x_i e>
        return safe_ratio(
            average_gradient_overlaps(fields, i, i) - jnp.sum(gram[i][:, smooth] * slope_averages, axis=1), gram[i, i]
        )
    C = _set_middle_covariances(gather_covariances(gram, i[:, None], i[:, None], smooth), 1.0, 0.0)
    return jnp.sum(fields.apply_mask_means(weights[smooth], i[:, None], smooth) * averages.I3(C), axis=1)


def _set_middle_covariances(C: Array, with_first: float, with_last: float) -> Array:
    """Set the covariances (3, 3, ...) between the middle field and the first and last fields."""
    C = jnp.asarray(C)
    return C.at[0, 1].set(with_first).at[1, 0].set(with_first).at[1, 2].set(with_last).at[2, 1].set(with_last)


def average_gradient_products(fields: UnitFields, i: Array, j: Array) -> Array:
    """Average g'(x_i) g'(x_j) e^2 over a network's fields for n pairs of units, as an array (n, L).

    Many pairs are processed in batches.
    """
    if fields.lattice_spacing:
        points = make_lattice_points(fields)
        slope, square = points.slope[i] * points.slope[j], _average_error_over_masks(fields, points, i, j) ** 2
        if fields.dropout_masks is not None:
            square = square + _compute_mask_variance(fields, points, i, j)
        return fields.apply_mask_means(points.mean(slope * square), i, j)
    averages_per_pair = fields.num_smooth_fields * (fields.num_smooth_fields + 1) // 2 * fields.gram.shape[-1]
    size = max(1, MAX_PARALLEL_AVERAGES // averages_per_pair)
    if size >= len(i):
        return _average_gradient_product_batch(fields, i, j)
    pairs = np.pad(np.stack([i, j]), ((0, 0), (0, -len(i) % size))).reshape(2, -1, size)
    batches = jax.lax.map(
        lambda batch: _average_gradient_product_batch(fields, *batch), (jnp.asarray(pairs[0]), jnp.asarray(pairs[1]))
    )
    return batches.reshape(-1, batches.shape[-1])[: len(i)]


def _average_gradient_product_batch(fields: UnitFields, i: Array, j: Array) -> Array:
    averages, gram, weights, sign, *_ = fields
    first, second = i[:, None], j[:, None]
    a, b = np.triu_indices(fields.num_smooth_fields)
    factors = fields.apply_mask_means(np.where(a < b, 2.0, 1.0)[:, None] * weights[a] * weights[b], first, second, a, b)
    average = jnp.sum(factors * averages.I4(gather_covariances(gram, first, second, a, b)), axis=1)
    if not sign:
        return average
    a, last = np.arange(fields.num_smooth_fields), len(gram) - 1
    sign_terms = averages.S4(gather_covariances(gram, first, second, a, np.full_like(a, last)))
    average = average + 2 * weights[-1] * jnp.sum(
        fields.apply_mask_means(weights[a], first, second, a) * sign_terms, axis=1
    )
    return average + weights[-1] ** 2 * average_slope_products(fields, i, j)


def average_slope_products(fields: UnitFields, i: Array, j: Array) -> Array:
    """Average g'(x_i) g'(x_j) over a network's fields for n pairs of units, as an array (n, L)."""
    if fields.lattice_spacing:
        points = make_lattice_points(fields)
        return fields.apply_mask_means(points.mean(points.slope[i] * points.slope[j]), i, j)
    return fields.apply_mask_means(fields.averages.J2(gather_covariances(fields.gram, i, j)), i, j)


def _average_error_over_masks(fields: UnitFields, points: LatticePoints, *units: Array) -> Array:
    """Average a network's error at each lattice point over dropout masks that keep these units active.

    The result has the shape (n, P, L), or (P, L) without dropout.
    """
    if fields.dropout_masks is None:
        return points.error
    rho, students = fields.dropout_masks
    outputs = fields.weights[:students, None] * points.g[:students]
    return points.error + (rho - 1) * jnp.tensordot(1.0 * _mark_student_units(students, *units), outputs, 1)


def _compute_mask_variance(fields: UnitFields, points: LatticePoints, *units: Array) -> Array:
    """Compute the variance (n, P, L) of a network's error that is due to the dropout masks of all other units."""
    assert fields.dropout_masks is not None
    rho, students = fields.dropout_masks
    outputs = fields.weights[:students, None] * points.g[:students]
    return (rho - 1) * jnp.tensordot(1.0 - _mark_student_units(students, *units), outputs**2, 1)


def _mark_student_units(num_student_units: int, *units: Array) -> Array:
    """Return a mask (n, students) of the student units among these units."""
    return reduce(or_, (np.arange(num_student_units) == unit[:, None] for unit in units))


@dataclass(frozen=True)
class NetworkSolverOptions:
    """Static arguments of the compiled solver of a network.

    These are the activation, numbers of units, whether the teacher gives labels, the spacing of the field lattice for
    an activation without closed forms, and whether there is dropout.
    """

    activation: RealParameterFamily
    K: int
    M: int
    sign: bool = False
    lattice_spacing: float = 0.0
    dropout: bool = False

    @property
    def is_approximate(self) -> bool:
        """Whether averages are line integrals or lattice sums, which are slower and less accurate."""
        return bool(getattr(self.activation.kind, "kinks", ())) or self.lattice_spacing > 0


class NetworkSetting(NamedTuple):
    """Run-time arguments of the compiled solver of networks, with the batch as last axis.

    These are parameters of the activation, rates, noise, decay and dropout (L,), T (M, M, L), w (M, L), and the
    learning rate as a function of time (`statmech.parameters.schedules_and_controls.PiecewisePolynomial`) if it
    changes.
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


class EntryIndices(NamedTuple):
    """Indices of the entries R[student, teacher], Q[first, second] and v[output] to differentiate in time."""

    student: np.ndarray
    teacher: np.ndarray
    first: np.ndarray
    second: np.ndarray
    output: np.ndarray


class EntryRates(NamedTuple):
    """Time derivatives of selected entries of R, Q and v, as arrays (n, L)."""

    R: Array
    Q: Array
    v: Array


def make_entry_indices(K: int, M: int) -> EntryIndices:
    """Return the indices of all entries of R, v and the upper triangle of Q."""
    student, teacher = (index.reshape(-1) for index in np.indices((K, M)))
    return EntryIndices(student, teacher, *np.triu_indices(K), np.arange(K))


def make_field_covariances(units: StudentUnits, T: Array) -> Array:
    """Make the covariance matrix (K + M, K + M, L) of all fields, with student units first."""
    students = jnp.concatenate([units.Q, units.R], axis=1)
    return jnp.concatenate([students, jnp.concatenate([jnp.swapaxes(units.R, 0, 1), T], axis=1)])


def make_network_fields(equations: NetworkSolverOptions, setting: NetworkSetting, units: StudentUnits) -> UnitFields:
    """Make the fields of all student and teacher units with their weights in the error.

    The order parameters R, Q and v in `units` have the batch as last axis.
    """
    w = jnp.sign(setting.w) if equations.sign else setting.w  # the label sgn(w g(y)) equals sgn(w) sgn(y)
    weights = jnp.concatenate([-units.v, w])
    averages = equations.activation(**setting.parameters)
    masks = DropoutMasks(1 / (1 - setting.dropout), equations.K) if equations.dropout else None
    return UnitFields(
        averages, make_field_covariances(units, setting.T), weights, equations.sign, equations.lattice_spacing, masks
    )


def compute_entry_rates(
    equations: NetworkSolverOptions, setting: NetworkSetting, units: StudentUnits, entries: EntryIndices
) -> EntryRates:
    """Compute the time derivatives of selected entries of R (K, M, L), Q (K, K, L) and v (K, L)."""
    fields = make_network_fields(equations, setting, units)
    R, Q, v = units
    student, teacher, i, j, output = entries
    towards_teachers = v[student] * average_gradient_overlaps(fields, student, equations.K + teacher)
    between_students = v[i] * average_gradient_overlaps(fields, i, j) + v[j] * average_gradient_overlaps(fields, j, i)
    noise_terms = (
        v[i]
        * v[j]
        * (average_gradient_products(fields, i, j) + setting.noise**2 * average_slope_products(fields, i, j))
    )
    return EntryRates(
        setting.eta * towards_teachers - setting.decay * R[student, teacher],
        setting.eta * between_students + setting.eta**2 * noise_terms - 2 * setting.decay * Q[i, j],
        setting.eta_v * average_outputs_times_error(fields, output),
    )


def pack_units(units: StudentUnits) -> Array:
    """Pack R, the upper triangle of Q, and v into rows (C, ...)."""
    R, Q, v = units
    return np.concatenate([R.reshape(-1, *R.shape[2:]), Q[np.triu_indices(len(Q))], v])


def unpack_units(equations: NetworkSolverOptions, rows: Array) -> StudentUnits:
    """Unpack a network's R (K, M, ...), Q (K, K, ...) and v (K, ...) from rows (C, ...)."""
    K, M = equations.K, equations.M
    i, j = np.triu_indices(K)
    row_indices = np.zeros((K, K), int)
    row_indices[i, j] = row_indices[j, i] = K * M + np.arange(i.size)
    return StudentUnits(rows[: K * M].reshape(K, M, *rows.shape[1:]), rows[row_indices], rows[-K:])


def compute_row_rates(equations: NetworkSolverOptions, setting: NetworkSetting, rows: Array) -> Array:
    """Compute the time derivatives of the packed order parameters (C, L)."""
    entries = make_entry_indices(equations.K, equations.M)
    return jnp.concatenate(compute_entry_rates(equations, setting, unpack_units(equations, rows), entries))


def compute_rates_with_time(
    compute_rates: Callable[[NetworkSetting, Array], Array], setting: NetworkSetting, rows: Array
) -> Array:
    """Compute the time derivatives of a network's packed order parameters (C, L) at the current learning rate.

    If the learning rate is a function of time, the last row is the time.
    """
    if setting.eta_polynomials is None:
        return compute_rates(setting, rows)
    eta = jax.vmap(lambda polynomials, t: polynomials.value_at(t), -1)(setting.eta_polynomials, rows[-1])
    row_rates = compute_rates(setting._replace(eta=eta, eta_polynomials=None), rows[:-1])
    return jnp.concatenate([row_rates, jnp.ones_like(rows[-1:])])


def solve_with_time_row(
    solve: Callable[[Array], tuple[Array, Array]], setting: NetworkSetting, start: Array
) -> tuple[Array, Array]:
    """Solve a network with an additional row for the time if its learning rate is a function of time.

    `start` contains the packed order parameters (C, L).
    """
    if setting.eta_polynomials is None:
        return solve(start)
    rows, completed = solve(np.concatenate([start, np.zeros_like(start[:1])]))
    return rows[:, :-1], completed


@partial(CachedProgram, options=lambda equations: [] if equations.is_approximate else [OLD_FUSION_OPTIONS])
def solve_network_batch(
    equations: NetworkSolverOptions, setting: NetworkSetting, start: Array, times: Array, max_steps: Array
) -> tuple[Array, Array]:
    """Integrate the packed order parameters (T, C, L) of a batch of networks.

    Also returns a mask (L,) of the elements that have reached the last time.

    Parameters
    ----------
    equations, setting
        Static and run-time arguments.
    start
        The rows at t = 0 (C, L).
    times
        Recorded times (T,).
    max_steps
        Maximum number of steps.
    """
    atol, rtol = jnp.full((start.shape[0], 1), ATOL), APPROXIMATE_RTOL if equations.is_approximate else RTOL
    return integrate(
        partial(compute_rates_with_time, partial(compute_row_rates, equations), setting),
        start,
        times,
        rtol,
        atol,
        max_steps,
    )


def make_network_solver_options(cell: NetworkCell) -> NetworkSolverOptions:
    """Make the static arguments of the compiled solver of networks from a cell."""
    spacing = 0.0 if cell.activation.has_closed_forms else choose_smooth_lattice_spacing(cell.activation)
    return NetworkSolverOptions(
        get_real_parameter_family(cell.activation), cell.K, cell.M, cell.sign, spacing, cell.has_dropout
    )


def make_network_setting(cells: Sequence[NetworkCell]) -> NetworkSetting:
    """Make the run-time arguments of the compiled solver of networks from a batch of cells."""
    names = get_real_parameter_family(cells[0].activation).real_parameter_names
    parameters = {name: np.asarray([getattr(cell.activation, name) for cell in cells], float) for name in names}
    rates = {name: np.asarray([getattr(cell, name) for cell in cells], float) for name in SCALAR_SETTING_NAMES}
    T, w = (np.stack([getattr(cell, name) for cell in cells], axis=-1) for name in ("T", "w"))
    cell_polynomials = [cell.control_polynomials["eta"] for cell in cells if "eta" in cell.known_controls]
    eta_polynomials = (
        jax.tree.map(lambda *arrays: np.stack(arrays, axis=-1), *cell_polynomials) if cell_polynomials else None
    )
    return NetworkSetting(parameters, **rates, T=T, w=w, eta_polynomials=eta_polynomials)


def solve_cells(cells: Sequence[NetworkCell], times: Iterable[float]) -> list[StudentUnits]:
    """Solve for R (T, K, M), Q (T, K, K) and v (T, K) of each cell's network at each time.

    Raises `SolverError` if the integration stops early. Cells with the same activation and numbers of units are
    integrated in parallel. Cells that differ only in N share a solution.
    """
    record_jax_use()
    t = np.asarray(list(times), float)
    with use_cpu_double_precision():
        return solve_in_batches(
            cells,
            make_solution_key,
            lambda cell: (make_network_solver_options(cell), cell.control_segment_layout),
            lambda program: choose_network_batch_size(program[0]),
            lambda program, batch: _solve_with_one_program(program[0], batch, t),
        )


def compute_generalization_error(cell: NetworkCell, units: StudentUnits, T: Array | None = None) -> np.ndarray:
    """Compute a cell's generalization error from the solution R (..., K, M), Q (..., K, K) and v (..., K).

    Small errors that rounding makes negative are set to 0. T (M, M) is the covariance of the teacher's fields, by
    default the matrix T of the cell.
    """
    T = cell.T if T is None else T
    error = generalization_error(
        ensure_gaussian_averages(cell.activation), T, cell.w, *units, output=cell.teacher.output
    )
    return np.maximum(error, 0.0)


def choose_network_batch_size(equations: NetworkSolverOptions) -> int:
    """Return the batch size as a power of two, smaller for networks with many averages."""
    if equations.lattice_spacing:
        return 1
    fields, pairs = equations.K + equations.M, equations.K * (equations.K + 1) // 2
    max_cells = max(1, 8 * MAX_PARALLEL_AVERAGES // (pairs * fields * (fields + 1) // 2))
    return min(MAX_NETWORK_BATCH_SIZE, 1 << (max_cells.bit_length() - 1))


def make_solution_key(cell: NetworkCell) -> tuple[Any, ...]:
    """Make a hashable key of everything that determines the solution of a cell."""
    numbers = cell.K, cell.M, *(getattr(cell, name) for name in SCALAR_SETTING_NAMES)
    return cell.name, *cell.activation_parameters.values(), *numbers, id(cell.teacher), id(cell.start), *cell.controls


def _solve_with_one_program(
    equations: NetworkSolverOptions, cells: Sequence[NetworkCell], times: np.ndarray
) -> list[StudentUnits]:
    """Solve the equations of a batch of networks with one compiled program.

    Cells and times are padded to common sizes.
    """
    padded_cells = pad_with_last_member(cells)
    start = np.stack([pack_units(cell.units) for cell in padded_cells], axis=-1)
    max_steps = np.int64(MAX_APPROXIMATE_STEPS if equations.is_approximate else MAX_STEPS)

    def solve(begin: float, start: Array, times: Array) -> tuple[Array, Array]:
        setting = make_network_setting([cell.after(begin) for cell in padded_cells])
        return solve_with_time_row(
            lambda rows: solve_network_batch(equations, setting, rows, times, max_steps), setting, start
        )

    rows, completed = integrate_in_pieces(solve, cells[0].edges or (0.0,), start, times)
    rows = np.moveaxis(rows, -1, 0)[: len(cells)]
    check_integration_complete(cells, rows, completed, times[-1])
    return [
        StudentUnits(*(np.moveaxis(part, -1, 0) for part in unpack_units(equations, cell_rows.T))) for cell_rows in rows
    ]
