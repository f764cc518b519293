r"""A block of M learning steps, computed from fields and inner products alone.

Both engines learn in blocks. Within a block a student changes only along the block's own inputs, so with the fields
:math:`h^m_i = \mathbf w_i\cdot\mathbf x^m` at the block's start and the inner products :math:`S_{mn} =
\mathbf x^m\cdot\mathbf x^n` the M steps are exactly

.. math:: h^m_k \leftarrow h^m_k + \sum_{n<m} f^n_k S_{nm}

with the modulations f that a learner (`simulate.kernels.learner`) finds from the fields, and the weights need f only at
the block's end. Perceptrons also need the students' lengths: :math:`l_k^2 \leftarrow l_k^2 + (2f^m_kh^m_k +
(f^m_k)^2S_{mm})/N`. The engines draw the fields in different ways.

**Decay.** With :math:`\mathbf J_k \leftarrow a\mathbf J_k + f_k\mathbf x`, :math:`a = 1 - \nu/N`, a student is at step
m :math:`a^m\mathbf J_k + \sum_{n<m} a^{m-1-n}f^n_k\mathbf x^n`. So modulations fade as weights do,
:math:`f^n_k \leftarrow af^n_k` at every step after theirs, and

.. math:: h^m_k \leftarrow a^mh^m_k + \sum_{n<m} f^n_kS_{nm}, \qquad
          l_k^2 \leftarrow a^2l_k^2 + (2af^m_kh^m_k + (f^m_k)^2S_{mm})/N.

The lost fractions :math:`1 - a^m` are computed and subtracted from the contribution of the examples: :math:`1 - \nu/N`
itself would be rounded, in float32 or at large N.

**Schedule.** The m-th step of a run, m = 0, 1, ..., has the learning rate at t = m/N.

**Drift.** After each step the teacher turns, :math:`\mathbf e \leftarrow \cos\psi\,\mathbf e + \sin\psi\,\mathbf b`
with :math:`\mathbf e = \mathbf B/\sqrt N`, :math:`\cos\psi = 1 - \delta/N`. A uniform direction b perpendicular to e is
the direction of a normal vector g minus its projection onto e. So the teacher stays in the span of its position at the
block's start and the block's :math:`\mathbf g^n`: :math:`\mathbf e = \tau_0\mathbf e^0 + \sum_n\tau_{n+1}\mathbf g^n`
with

.. math:: \boldsymbol\tau \leftarrow \Bigl(\cos\psi - \sin\psi\,\frac{p}{r}\Bigr)\boldsymbol\tau, \qquad
          \tau_{m+1} = \frac{\sin\psi}{r}, \qquad p = \mathbf g^m\cdot\mathbf e, \quad r^2 = |\mathbf g^m|^2 - p^2.

Inner products alone determine this path and the teacher's fields along it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from simulate.kernels.courses import StepRates
from simulate.kernels.learner import LearnerStateArrays, OnlineLearner
from statmech.numerics.gaussian import Array

MIN_FLOAT32_RATE_PER_STEP = 1e-6  # minimum decay/N (Gram engine: also drift/N) in float32 (docs/gram_engine.md)


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
) -> tuple[Array, LearnerStateArrays]:
    """Compute the modulations f (M, K) of a block of M steps and the learner's state after the block.

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
    """

    def step(
        carry: tuple[Array, LearnerStateArrays], xs: tuple[Any, ...]
    ) -> tuple[tuple[Array, LearnerStateArrays], None]:
        f, carry = carry
        m, y, h, inner, example, step_rates = xs
        h = subtract_fraction(h, h, step_rates and step_rates.decayed_fraction_before_step) + jnp.sum(
            inner[:, None] * f, axis=0
        )  # later steps do not contribute: their f is still zero
        new, carry = learner.step(carry, y, h, inner[m], example, step_rates)
        return (subtract_fraction(f, f, step_rates and step_rates.decay).at[m].set(new), carry), None

    # not unrolled, because XLA would recompute the fields in each step
    xs = (jnp.arange(len(inner)), teacher_fields, student_fields, inner, examples, block_rates)
    return jax.lax.scan(step, (jnp.zeros_like(student_fields), carry), xs)[0]


def subtract_fraction(x: Array, y: Array, fraction: Array | None) -> Array:
    """Subtract a fraction of y from x, or return x if `fraction` is None.

    The loss is subtracted from the gain, not from the weights: the noise of the gain keeps losses below the last digit
    right on average.
    """
    return x if fraction is None else x - fraction * y
