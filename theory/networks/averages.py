r"""Gaussian averages over the fields of a network, as sums over its units.

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
that contain this unit once, and its square is 1. Covariances are gathered by arrays of indices, with a column per tuple
of units, so that each average is one call for all tuples and the whole batch (the last axis, of length L).

**Dropout.** Each example silences every student unit with probability p, independently. Outputs and gradients then
contain :math:`r_ig(h_i)` instead of :math:`g(h_i)`: :math:`r_i` is 0 with probability p, and otherwise
:math:`\rho = 1/(1-p)`. Since :math:`\langle r^n\rangle = \rho^{n-1}`,

.. math:: \langle r_ir_j\rangle = \rho^{\delta_{ij}}, \qquad
          \langle r_ir_jr_ar_b\rangle = \rho^{4-|\{i,j,a,b\}|},

and similarly for any number of factors: the exponent of :math:`\rho` is the number of factors minus the number of
different units. Masks do not depend on the fields, so that these means multiply the terms of the sums. Teacher units
are never silent and have no such factor.

An activation without closed forms is averaged over a common lattice for all fields
(`statmech.networks.lattice_averages`), which has a million points for four fields.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.networks.lattice_averages import compute_cholesky_rows, make_lattice
from statmech.numerics.gaussian import Array
from statmech.numerics.orthants import safe_ratio

MAX_PARALLEL_AVERAGES = 2**16  # larger batches exceed the CPU cache


class DropoutMasks(NamedTuple):
    """Dropout masks, random factors on student units with mean 1 and mean square rho (L,).

    `num_student_units` is the number of student units, the first of all units.
    """

    rho: Array
    num_student_units: int

    def mean(self, first_unit: Array, *other_units: Array) -> Array:
        """Compute the mean product (..., L) of the masks for each tuple of units."""
        earlier_units, repeats = [first_unit], 0
        for unit in other_units:
            repeats = repeats + 1 * (
                reduce(or_, (unit == earlier for earlier in earlier_units)) & (unit < self.num_student_units)
            )
            earlier_units.append(unit)
        return jnp.stack([self.rho**power for power in range(len(earlier_units))])[repeats]


class UnitFields(NamedTuple):
    """Gaussian fields of all units, with their weights in the error of the network.

    `averages` are the averages of the activation (`statmech.activations.Activation`), `gram` the covariances (n, n, L),
    and `weights` (n, L) the weights in the error. `sign` is True if the last field is inside a sign. `lattice_spacing`
    is the spacing of the lattice, 0 for closed forms, and `dropout_masks` the dropout masks of students, if there is
    dropout.
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
    """Make the joint lattice of all fields."""
    z, weight = make_lattice(len(fields.gram), fields.lattice_spacing)
    x = jnp.stack(
        [sum(entry * z[j][:, None] for j, entry in enumerate(row)) for row in compute_cholesky_rows(fields.gram)]
    )
    g, slope = fields.averages.both(x)
    outputs = jnp.concatenate([g[:-1], jnp.sign(x[-1:])]) if fields.sign else g
    return LatticePoints(jnp.asarray(weight), x, g, slope, jnp.sum(fields.weights[:, None] * outputs, axis=0))


def average_outputs_times_error(fields: UnitFields, i: Array) -> Array:
    """Average g(x_i) e over the fields for n units i, as an array (n, L)."""
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
    """Average g'(x_i) x_p e over the fields for n pairs of units (i, p), as an array (n, L)."""
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
    """Average the derivative of g'(x_i) e with respect to each field, as an array (n, fields, L)."""
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
    """Average g''(x_i) e over the fields as an array (n, L), without the sign term of the error e."""
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
    """Average g'(x_i) g'(x_j) e^2 over the fields for n pairs of units, as an array (n, L).

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
    """Average g'(x_i) g'(x_j) over the fields for n pairs of units, as an array (n, L)."""
    if fields.lattice_spacing:
        points = make_lattice_points(fields)
        return fields.apply_mask_means(points.mean(points.slope[i] * points.slope[j]), i, j)
    return fields.apply_mask_means(fields.averages.J2(gather_covariances(fields.gram, i, j)), i, j)


def _average_error_over_masks(fields: UnitFields, points: LatticePoints, *units: Array) -> Array:
    """Average the error at each lattice point over dropout masks that keep these units active.

    The result has the shape (n, P, L), or (P, L) without dropout.
    """
    if fields.dropout_masks is None:
        return points.error
    rho, students = fields.dropout_masks
    outputs = fields.weights[:students, None] * points.g[:students]
    return points.error + (rho - 1) * jnp.tensordot(1.0 * _mark_student_units(students, *units), outputs, 1)


def _compute_mask_variance(fields: UnitFields, points: LatticePoints, *units: Array) -> Array:
    """Compute the variance (n, P, L) of the error that is due to the masks of all other units."""
    assert fields.dropout_masks is not None
    rho, students = fields.dropout_masks
    outputs = fields.weights[:students, None] * points.g[:students]
    return (rho - 1) * jnp.tensordot(1.0 - _mark_student_units(students, *units), outputs**2, 1)


def _mark_student_units(num_student_units: int, *units: Array) -> Array:
    """Return a mask (n, students) of the student units among these units."""
    return reduce(or_, (np.arange(num_student_units) == unit[:, None] for unit in units))
