r"""A block of M learning steps in the space of fields alone.

Both engines learn in blocks. Within a block a student changes only along the block's own inputs, so with the fields
:math:`h^m_i = \mathbf w_i\cdot\mathbf x^m` at the block's start and the inner products :math:`S_{mn} =
\mathbf x^m\cdot\mathbf x^n` the M steps are exactly

.. math:: h^m_k \leftarrow h^m_k + \sum_{n<m} f^n_k S_{nm}

with the modulations f that a learner (`simulate.kernels.learner`) finds from the fields, and the weights need f only at
the block's end. Perceptrons need the students' lengths, too: :math:`l_k^2 \leftarrow l_k^2 + (2f^m_kh^m_k +
(f^m_k)^2S_{mm})/N`. The engines differ in how they draw the fields.

**Decay.** With :math:`\mathbf J_k \leftarrow a\mathbf J_k + f_k\mathbf x`, :math:`a = 1 - \nu/N`, a student is at step
m :math:`a^m\mathbf J_k + \sum_{n<m} a^{m-1-n}f^n_k\mathbf x^n`. So modulations fade as weights do,
:math:`f^n_k \leftarrow af^n_k` at every step after theirs, and

.. math:: h^m_k \leftarrow a^mh^m_k + \sum_{n<m} f^n_kS_{nm}, \qquad
          l_k^2 \leftarrow a^2l_k^2 + (2af^m_kh^m_k + (f^m_k)^2S_{mm})/N.

Fractions lost, :math:`1 - a^m`, are computed, and subtracted from what the examples add: :math:`1 - \nu/N` itself is
rounded, in float32 or at large N.

**Schedule.** The learning rate of the m-th step of a run, m = 0, 1, ..., is that of t = m/N.

**Drift.** After each step the teacher turns, :math:`\mathbf e \leftarrow \cos\psi\,\mathbf e + \sin\psi\,\mathbf b`
with :math:`\mathbf e = \mathbf B/\sqrt N`, :math:`\cos\psi = 1 - \delta/N`. A uniform direction b perpendicular to it
is that of a normal vector g less its part along e. So a block's teacher stays in the span of where it was and of the
block's :math:`\mathbf g^n`: :math:`\mathbf e = \tau_0\mathbf e^0 + \sum_n\tau_{n+1}\mathbf g^n` with

.. math:: \boldsymbol\tau \leftarrow \Bigl(\cos\psi - \sin\psi\,\frac{p}{r}\Bigr)\boldsymbol\tau, \qquad
          \tau_{m+1} = \frac{\sin\psi}{r}, \qquad p = \mathbf g^m\cdot\mathbf e, \quad r^2 = |\mathbf g^m|^2 - p^2.

Inner products alone give this path, and along it the teacher's fields.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from simulate.kernels.courses import Course
from simulate.kernels.learner import Learner, State
from statmech.numerics.gaussian import Array

SLOWEST = 1e-6  # decay/N, and in the Gram engine drift/N, down to which float32 resolves them (docs/gram_engine.md)


def path_of_teacher(teacher: Array, inner: Array, drift: Array, N: Array) -> tuple[Array, Array]:
    """The fields (M,) of a drifting teacher, each when its input is seen, and its coefficients (M + 1,) after a block.

    `teacher` (2M,) are the products of the teacher at the block's start with M inputs and M random directions,
    `inner` (2M, 2M) those of inputs and directions, all drawn alike. Arrays may have a trailing axis of lanes.
    """
    M = len(drift)
    products = jnp.swapaxes(jnp.concatenate([teacher[None], N * inner[M:]]), 0, 1)
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


def modulations(
    learner: Learner,
    teacher: Array,
    seen: Array,
    inner: Array,
    carry: State,
    examples: Any,
    course: Course | None = None,
) -> tuple[Array, State]:
    """Compute the modulations f (M, K) of a block of M steps, and what the learner carries after it.

    Every array may have a trailing axis of lanes, one lane per seed.

    Parameters
    ----------
    learner
        The learner.
    teacher, seen
        Fields of teachers (M, teachers) and students (M, K) at the block's start.
    inner
        Inner products of the inputs (M, M).
    carry
        What the learner carries.
    examples
        What it sees beside fields (`Learner.examples`).
    course
        Changes with time: modulations have then faded at the block's end, where the weights need them.
    """

    def step(carry: tuple[Array, State], xs: tuple[Any, ...]) -> tuple[tuple[Array, State], None]:
        f, carry = carry
        m, y, h, inner, example, step_rates = xs
        h = less(h, h, step_rates and step_rates.before) + jnp.sum(
            inner[:, None] * f, axis=0
        )  # f of the steps to come is zero
        new, carry = learner.step(carry, y, h, inner[m], example, step_rates)
        return (less(f, f, step_rates and step_rates.decay).at[m].set(new), carry), None

    # a loop, not unrolled: XLA would fuse the fields into every step that uses them, and compute them again there
    xs = (jnp.arange(len(inner)), teacher, seen, inner, examples, course)
    return jax.lax.scan(step, (jnp.zeros_like(seen), carry), xs)[0]


def less(x: Array, of: Array, fraction: Array | None) -> Array:
    """x less a fraction of another quantity; x itself where nothing is lost (None).

    A gain less a loss is rounded with the gain, whose noise keeps losses below the last digit right on average.
    """
    return x if fraction is None else x - fraction * of
