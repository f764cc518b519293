r"""Blocks of online learning steps: learners, rates, choice of tasks, and fields from inner products alone.

**Learners.** An engine draws inputs, knows the fields :math:`y_m` of the teachers and :math:`h_k` of the K students,
and adds :math:`f_k\mathbf x` to the students. The learner converts the fields of an example into the modulations f and
into changes of its own state: perceptrons (`simulate.online.perceptrons`) or networks of two layers
(`simulate.online.networks`). A learner is a dataclass. Its integers, strings and classes are known when a program is
compiled (the `fixed` parameters of its family, `statmech.parameters.parameter_fields.RealParameterFamily`), and its
real numbers are arrays.

**Blocks.** Both engines learn in blocks of M steps. Within a block a student changes only along the block's own inputs,
so with the fields :math:`h^m_i = \mathbf w_i\cdot\mathbf x^m` at the block's start and the inner products
:math:`S_{mn} = \mathbf x^m\cdot\mathbf x^n` the M steps are exactly

.. math:: h^m_k \leftarrow h^m_k + \sum_{n<m} f^n_k S_{nm}

with the modulations f, and the weights need f only at the block's end. Perceptrons also need the students' lengths:
:math:`l_k^2 \leftarrow l_k^2 + (2f^m_kh^m_k + (f^m_k)^2S_{mm})/N`. The engines draw the fields in different ways.

**Rates.** Each step of a block has a learning rate, drift, decay and probabilities of the tasks. The m-th step of a
run, m = 0, 1, ..., has the learning rate at t = m/N. The task of each example is drawn at random, with the
probabilities of a protocol.

**Decay.** With :math:`\mathbf J_k \leftarrow a\mathbf J_k + f_k\mathbf x`, :math:`a = 1 - \nu/N`, a student is at step
m :math:`a^m\mathbf J_k + \sum_{n<m} a^{m-1-n}f^n_k\mathbf x^n`. So modulations fade as weights do,
:math:`f^n_k \leftarrow af^n_k` at every step after theirs, and

.. math:: h^m_k \leftarrow a^mh^m_k + \sum_{n<m} f^n_kS_{nm}, \qquad
          l_k^2 \leftarrow a^2l_k^2 + (2af^m_kh^m_k + (f^m_k)^2S_{mm})/N.

The lost fractions :math:`1 - a^m` are computed and subtracted from the contribution of the examples: :math:`1 - \nu/N`
itself would be rounded, in float32 or at large N.

**Drift.** After each step the teacher turns, :math:`\mathbf e \leftarrow \cos\psi\,\mathbf e + \sin\psi\,\mathbf b`
with :math:`\mathbf e = \mathbf B/\sqrt N`, :math:`\cos\psi = 1 - \delta/N`. A uniform direction b perpendicular to e is
the direction of a normal vector g minus its projection onto e. So the teacher stays in the span of its position at the
block's start and the block's :math:`\mathbf g^n`: :math:`\mathbf e = \tau_0\mathbf e^0 + \sum_n\tau_{n+1}\mathbf g^n`
with

.. math:: \boldsymbol\tau \leftarrow \Bigl(\cos\psi - \sin\psi\,\frac{p}{r}\Bigr)\boldsymbol\tau, \qquad
          \tau_{m+1} = \frac{\sin\psi}{r}, \qquad p = \mathbf g^m\cdot\mathbf e, \quad r^2 = |\mathbf g^m|^2 - p^2.

Inner products alone determine this path and the teacher's fields along it.

**Rows of a real table** are inputs of online learning after multiplication by their labels (`SignedRows`): a step
:math:`\eta\,y\,g(y\,\mathbf J\cdot\mathbf x/l, l)\,\mathbf x` equals the step for the input :math:`y\mathbf x` and the
label 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from statmech.inputs.input_distributions import Gaussian, Inputs, Rows
from statmech.numerics.gaussian import Array
from statmech.parameters.parameter_fields import RealParameterFamily
from statmech.parameters.schedules_and_controls import TimeDependence
from statmech.parameters.task_protocols import ProtocolPieces
from statmech.runtime.compiled_programs import pad_array_length

DEFAULT_INPUTS = Gaussian()
LearnerStateArrays = Any  # a tree of arrays with students on the first axis
MIN_FLOAT32_RATE_PER_STEP = 1e-6  # minimum decay/N (Gram engine: also drift/N) in float32 (docs/gram_engine.md)


class StepRates(NamedTuple):
    """The rates of a block's M steps, arrays (..., M) or (..., M, width).

    `width` is the number of batch elements. Without a step, drift and decay are 0.
    """

    eta: Array  # learning rate
    drift: Array  # delta/N, 1 minus the cosine of the teacher's rotation angle per step
    decay: Array  # decay/N, the fraction of the weights lost in a step
    decayed_fraction_before_step: Array  # fraction of the weights lost in earlier steps of the block
    task_probabilities: Array | None = None  # probabilities of several tasks (..., M, tasks)
    noise: Array | None = None  # flip rate or standard deviation of the noise, if it changes with time
    dropout: Array | None = None  # probability that a unit is silent, if it changes with time

    @property
    def decayed_fraction_in_block(self) -> Array:
        """The fraction of the weights lost in all M steps of the block."""
        return self.decayed_fraction_before_step[-1] + (1 - self.decayed_fraction_before_step[-1]) * self.decay[-1]


def compute_step_rates(
    changes: TimeDependence, eta: Array, N: Array, first: Array, active: Array, dtype: str
) -> StepRates:
    """Compute the rates of a block of consecutive learning steps that start at step `first`.

    Parameters
    ----------
    changes, eta
        Changes with time, and the learning rate at t = 0: numbers, or arrays (width,).
    N
        Input dimension.
    first
        Number of the first step.
    active
        True where there is a step (..., M).
    dtype
        Precision of the result.
    """
    t, axis = (first + jnp.arange(active.size).reshape(active.shape)) / N, active.ndim - 1
    probabilities = changes.tasks and changes.tasks.at(t)
    noise, dropout = (change and change.value_at(t).astype(dtype) for change in (changes.noise, changes.dropout))
    t, active = (part.reshape(*part.shape, *[1] * jnp.ndim(changes.drift)) for part in (t, active))
    drift, decay = (jnp.where(active, rate / N, 0.0) for rate in (changes.drift, changes.decay))
    fading = jnp.cumsum(jnp.log1p(-decay), axis=axis)  # -inf after a step that loses all weights
    before = -jnp.expm1(jax.lax.slice_in_dim(fading, 0, -1, axis=axis))
    before = jnp.concatenate([jnp.zeros_like(jax.lax.slice_in_dim(decay, 0, 1, axis=axis)), before], axis=axis)
    rate, drift, decay, before = (part.astype(dtype) for part in (changes.schedule.rate(eta, t), drift, decay, before))
    return StepRates(rate, drift, decay, before, probabilities, noise, dropout)


def pad_protocol(pieces: ProtocolPieces) -> ProtocolPieces:
    """Pad a protocol with pieces to a standard length.

    The added pieces never start. One program then serves protocols of different lengths.
    """
    missing = pad_array_length(max(len(pieces.starts), 2)) - len(pieces.starts)
    starts = np.pad(pieces.starts, (0, missing), constant_values=np.inf)
    return ProtocolPieces(starts[None], np.pad(pieces.shares, ((0, missing), (0, 0)), mode="edge")[None])


def draw_task_masks(uniform: Array, probabilities: Array, tasks: int) -> list[Array]:
    """Return a mask for each task: True where the example belongs to the task.

    The `probabilities` (tasks,) divide (0, 1) into intervals, and the uniform number selects one interval.
    """
    ends = jnp.cumsum(probabilities)
    task = reduce(add, (uniform >= end for end in ends[:-1]), jnp.zeros(jnp.shape(uniform), int))
    return [task == k for k in range(tasks)]


def select_task_values(values: Sequence[Array], masks: Sequence[Array]) -> Array:
    """Select for each example the values of its task."""
    return reduce(add, (mask * value for mask, value in zip(masks, values, strict=True)))


class OnlineLearner(ABC):
    """The interface of students and teachers to an engine.

    Arrays of one step have an axis of units, `units`: the first (0; an axis of batch elements, one per seed, may
    follow), or the last (-1, after an axis of seeds).
    """

    normals_per_step: ClassVar[int] = 0  # number of normals that the noise of a step needs
    uniforms_per_step: ClassVar[int] = 0  # number of uniforms that the noise of a step needs
    errors_need_field_variances: ClassVar[bool] = (
        False  # whether errors also depend on the variances of fields, not only on angles
    )
    eta: Array  # learning rate of the students' weights
    N: Array
    units: int

    @abstractmethod
    def noise(self, normals: Array, uniforms: Array, dtype: Any) -> Any:
        """Make the noise of each step from its normals and uniforms, or return None."""

    @abstractmethod
    def examples(self, noise: Any, active: Array) -> Any:
        """Return the learner's additional input to the fields for M steps, as arrays (M, ...).

        No step takes place where `active` (M,) is False.
        """

    def convert_to_teacher_values(self, basis: Array) -> Array:
        """Convert values (M, ...) for an orthonormal basis of the teachers into values for the teachers.

        The values are coordinates, fields or vectors.
        """
        return basis

    def input_means(self, noise: Any) -> Array | None:
        """Return the means c (M, ...) of M inputs, or None if all means are 0.

        The mean of an input is c B/N with the first teacher B.
        """
        return None

    @abstractmethod
    def start_block(self, saved_state: LearnerStateArrays, squared_length: Array) -> LearnerStateArrays:
        """Return the state at the start of a block, given the students' squared lengths J^2/N."""

    @abstractmethod
    def saved_state(self, carry: LearnerStateArrays) -> LearnerStateArrays:
        """Return the part of the state that is passed on to the next block."""

    @abstractmethod
    def step(
        self, carry: LearnerStateArrays, y: Array, h: Array, norm: Array, example: Any, step_rates: StepRates | None
    ) -> tuple[Array, LearnerStateArrays]:
        """Return the modulations f of one step, and the state after the step.

        Nothing changes where the example is inactive.

        Parameters
        ----------
        carry
            The carried state.
        y, h
            Fields of teachers and students.
        norm
            The input's squared length x.x.
        example
            Input of the step in addition to fields (see `examples`).
        step_rates
            The rates of this step, or None if they are constant.
        """


@dataclass(frozen=True)
class EngineTask:
    """A learner to simulate, with its static constants, numerical parameters and initial state.

    Either one task, or several that differ in numbers: the numbers then have a first axis of tasks, of length 1 if all
    tasks share them.
    """

    learner: RealParameterFamily
    parameters: dict[str, Any]
    K: int
    M: int
    N: float
    dtype: str
    initial_coordinates: np.ndarray | None  # initial students (K, M + K), teachers' axes first, or None to draw them
    scale: float  # standard deviation of drawn weights
    initial_learner_state: LearnerStateArrays  # the learner's saved state at t = 0
    changes: TimeDependence | None = None
    drifting: bool = False
    inputs: Inputs = DEFAULT_INPUTS
    batch: int = 1  # number of examples averaged in a step
    first_averaged_step: int | None = None  # if not None, the second half of the K vectors are averages of the first

    def numbers(self, which: Any = 0) -> tuple[dict[str, Any], TimeDependence | None]:
        """Return the parameters and changing step rates of one task, or of the tasks at these indices (width,)."""

        def select(values: np.ndarray) -> Any:
            return values[which] if values.ndim == 1 else values[0]

        return jax.tree.map(select, (self.parameters, self.changes))


def stack_task_numbers(numbers: Iterable[Any], dtype: str = "float64") -> Any:
    """Stack the numbers, or trees of numbers, of several tasks into arrays (tasks,)."""
    return jax.tree.map(lambda *values: np.array(values, dtype), *numbers)


def combine_basis_values(rows: Array, basis: Array, unit_axis: int) -> Array:
    """Convert values (M, ...) for an orthonormal basis e of the teachers into values for the teachers.

    The coefficients are the `rows`: B_m/sqrt N = sum_n rows_mn e_n. `unit_axis` is the axis of units of one step (see
    `OnlineLearner`): 0 where the last axis is the batch, whose sums are unrolled.
    """
    if unit_axis:
        return jnp.tensordot(rows, basis, 1)
    columns = rows.reshape(*rows.shape, *[1] * (basis.ndim - 1))
    return reduce(add, (columns[:, n] * basis[n] for n in range(len(basis))))


class EngineRecord(NamedTuple):
    """The result of an engine: students at the recorded times, with seeds on the first axis.

    `parallel` (seeds, T, K, M) are their coordinates in the teachers' basis, `perpendicular` (seeds, T, K, K) the Gram
    matrix of the rest, and `initial_learner_state` (seeds, T, K) the learner's state in addition to the weights.
    `measured` (seeds, T, K + 2) are errors on new inputs of perceptrons, their vote and their mean, where angles do not
    determine the errors. `parallel_fields` and `perpendicular_fields` are `parallel` and `perpendicular` of the fields,
    where the angles of fields determine the errors. `teacher_basis_fields` (seeds, T, M, M) are the coordinates of the
    fields of the teachers' basis, on the same axes as `parallel_fields`. `weights` (seeds, T, K, N) are the students
    themselves, for errors on a table.
    """

    parallel: Array
    perpendicular: Array
    saved_state: Array | None = None
    measured: Array | None = None
    parallel_fields: Array | None = None
    perpendicular_fields: Array | None = None
    teacher_basis_fields: Array | None = None
    weights: Array | None = None


def compute_drifting_teacher_path(teacher_products: Array, inner: Array, drift: Array, N: Array) -> tuple[Array, Array]:
    """Compute the fields (M,) of a drifting teacher and its coefficients (M + 1,) after a block.

    Each field is taken at the step of its input. `teacher_products` (2M,) are the products of the teacher at the
    block's start with M inputs and M random directions. `inner` (2M, 2M) are the inner products of these inputs and
    directions, drawn from the same distribution. Arrays may have a trailing axis of batch elements.
    """
    M = len(drift)
    products = jnp.swapaxes(jnp.concatenate([teacher_products[None], N * inner[M:]]), 0, 1)
    cos, sin = 1 - drift, jnp.sqrt(drift * (2 - drift))
    rounding = jnp.finfo(products.dtype).eps

    def step(path: Array, xs: tuple[Array, ...]) -> tuple[Array, Array]:
        m, of_input, of_direction, cos, sin = xs
        field, parallel = jnp.sum(path * of_input, axis=0), jnp.sum(path * of_direction, axis=0)
        square = of_direction[m + 1]
        perpendicular = jnp.sqrt(jnp.maximum(square - parallel**2, rounding * square))
        return ((cos - sin * parallel / perpendicular) * path).at[m + 1].set(sin / perpendicular), field

    begin = jnp.zeros_like(products[0]).at[0].set(1.0)
    path, fields = jax.lax.scan(step, begin, (jnp.arange(M), products[:M], products[M:], cos, sin))
    return fields, path


def compute_block_modulations(
    learner: OnlineLearner,
    teacher_fields: Array,
    student_fields: Array,
    inner: Array,
    carry: LearnerStateArrays,
    examples: Any,
    block_rates: StepRates | None = None,
    averaging: AveragingWeights | None = None,
) -> tuple[Array, LearnerStateArrays]:
    """Compute the modulations f (M, K) of a block of M steps and the learner's state after the block.

    With averages of the students, f (M, 2 K) also has the coefficients of the inputs in each average.

    Every array may have a trailing axis of batch elements, one per seed.

    Parameters
    ----------
    learner
        The learner.
    teacher_fields, student_fields
        Fields of teachers (M, teachers) and students (M, K) at the block's start.
    inner
        Inner products of the inputs (M, M).
    carry
        State of the learner.
    examples
        Input of the learner in addition to fields (`Learner.examples`).
    block_rates
        Rates that change with time. Modulations are then returned with their decay up to the block's end.
    averaging
        Weights of the block's steps in the averages, or None without averages.
    """

    def step(
        carry: tuple[Array, LearnerStateArrays], xs: tuple[Any, ...]
    ) -> tuple[tuple[Array, LearnerStateArrays], Array | None]:
        f, carry = carry
        m, y, h, inner, example, step_rates = xs
        h = subtract_fraction(h, h, step_rates and step_rates.decayed_fraction_before_step) + jnp.sum(
            inner[:, None] * f, axis=0
        )  # later steps do not contribute: their f is still zero
        new, carry = learner.step(carry, y, h, inner[m], example, step_rates)
        new_students = subtract_fraction(f, f, step_rates and step_rates.decay).at[m].set(new)
        return (new_students, carry), new if averaging else None

    # not unrolled, because XLA would recompute the fields in each step
    xs = (jnp.arange(len(inner)), teacher_fields, student_fields, inner, examples, block_rates)
    (f, carry), undecayed = jax.lax.scan(step, (jnp.zeros_like(student_fields), carry), xs)
    if averaging is None or undecayed is None:
        return f, carry
    weights = averaging.modulations.reshape(-1, *[1] * (f.ndim - 1))
    return jnp.concatenate([f, weights * undecayed], axis=1), carry


class AveragingWeights(NamedTuple):
    """Weights in the averages' changes of a block: of the students at its start, and of its modulations (M,)."""

    students: Array
    modulations: Array


def compute_averaging_weights(averaged: Array | None, rates: StepRates | None, N: Array) -> AveragingWeights | None:
    r"""Compute the weights of a block's students and modulations in the averages, or return None without averages.

    An average gains :math:`\mathbf J/N` before each averaged step. In the steps m, m + 1, ... of the block it gains
    :math:`s_m` times the student at step m, with :math:`s_m = [m\text{ is averaged}]/N + (1-\nu_m/N)\,s_{m+1}`. The
    modulation of step m becomes part of the student at step m + 1.
    """
    if averaged is None:
        return None
    weight, weights = jnp.zeros_like(N), []
    for m in reversed(range(len(averaged))):
        weights.append(weight)
        weight = averaged[m] / N + subtract_fraction(weight, weight, rates and rates.decay[m])
    return AveragingWeights(weight, jnp.stack(weights[::-1]))


def add_previous_students(
    gain: Array, vectors: Array, rates: StepRates | None, averaging: AveragingWeights | None, axis: int = 0
) -> Array:
    """Complete the change of students, and of their averages, by the parts along the students at the block's start.

    Students lose a fraction by decay, and averages gain a multiple of the students.

    Parameters
    ----------
    gain
        Changes of students and averages along the inputs.
    vectors
        Students, followed by their averages.
    rates
        The rates of the block, or None if they are constant.
    averaging
        Weights of the block's steps in the averages, or None without averages.
    axis
        The axis of vectors.
    """
    decayed_fraction = rates and rates.decayed_fraction_in_block
    if averaging is None:
        return subtract_fraction(gain, vectors, decayed_fraction)
    (of_students, of_averages), (students, _) = jnp.split(gain, 2, axis), jnp.split(vectors, 2, axis)
    return jnp.concatenate(
        [subtract_fraction(of_students, students, decayed_fraction), of_averages + averaging.students * students], axis
    )


def subtract_fraction(x: Array, y: Array, fraction: Array | None) -> Array:
    """Subtract a fraction of y from x, or return x if `fraction` is None.

    The loss is subtracted from the gain, not from the weights: the noise of the gain keeps losses below the last digit
    right on average.
    """
    return x if fraction is None else x - fraction * y


@dataclass(frozen=True)
class SignedRows(Rows):
    """Rows of a table with two classes, times their labels, drawn with replacement."""

    has_errors_given_by_angles = True  # errors are computed on all rows, without new inputs

    def table(self, N: int) -> np.ndarray:
        """Return the products (n, N) of rows and labels."""
        from statmech.kinds.risk_table import load_rows_table  # imported here because most runs have no table

        table = load_rows_table(self)
        return (table.y[:, None] * table.Z).astype(np.float32)
