r"""A block of M learning steps in the space of fields alone.

Both engines learn in blocks. Within a block a student changes only along the block's own inputs, so with the fields
:math:`h^m_i = \mathbf w_i\cdot\mathbf x^m` at the block's start and the inner products :math:`S_{mn} =
\mathbf x^m\cdot\mathbf x^n` the M steps are exactly

.. math:: h^m_k \leftarrow h^m_k + \sum_{n<m} f^n_k S_{nm}, \qquad
          l_k^2 \leftarrow l_k^2 + (2f^m_kh^m_k + (f^m_k)^2S_{mm})/N,

and the weights need the modulations f only at its end. The engines differ in how they draw the fields.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from statmech.gaussian import Array
from statmech.rules import Rule


class Record(NamedTuple):
    """The result of an engine: students at the recorded times, seeds first.

    `along` (seeds, T, K) are their parts along the teacher, `across` (seeds, T, K, K) the Gram matrix of the rest.
    `measured` (seeds, T, K + 2) are the errors of students, vote and mean on new inputs, where angles do not give them.
    """

    along: Array
    across: Array
    measured: Array | None = None


def modulations(
    rule: Rule, fields: Array, inner: Array, squared_length: Array, right: Array, N: Array
) -> tuple[Array, Array]:
    """The modulations f, shape (M, K), of a block of steps, and the squared lengths after it.

    `fields` (K+1, M) are those of teacher and students at the block's start, `inner` (M, M) the inputs' inner
    products, `squared_length` (K,) is l^2, and `right` (M,) is 1 for a true label, -1 for a flipped one, and 0 where
    there is no step (after the last step before a recorded time). Every array may have a trailing axis of lanes, one
    lane per seed.
    """

    def step(carry: tuple[Array, Array], xs: tuple[Array, ...]) -> tuple[tuple[Array, Array], None]:
        f, squared_length = carry
        m, teacher, h, inner, right = xs
        h = h + jnp.sum(inner[:, None] * f, axis=0)  # f of the steps to come is zero
        new, squared_length = modulation(rule, teacher, h, inner[m], squared_length, right, N)
        return (f.at[m].set(new), squared_length), None

    # a loop, not unrolled: XLA would fuse the fields into every step that uses them, and compute them again there
    seen = jnp.swapaxes(fields[1:], 0, 1)
    xs = (jnp.arange(len(inner)), fields[0], seen, inner, right)
    return jax.lax.scan(step, (jnp.zeros_like(seen), squared_length), xs)[0]


def modulation(
    rule: Rule, teacher: Array, h: Array, norm: Array, squared_length: Array, right: Array, N: Array
) -> tuple[Array, Array]:
    """One step: the modulations f and the students' new squared lengths; `norm` is the input's squared norm."""
    label = jnp.where(teacher > 0, right, -right)
    length = jnp.sqrt(squared_length)
    # length 0 has no direction: its normalised field is set to 0, an error only for a rule with a margin > 0
    u = h / jnp.where(length > 0, length, 1.0)
    f = (rule.eta * label * rule.g(label * u, length)).astype(h.dtype)
    return f, jnp.maximum(squared_length + (2 * f * h + f * f * norm) / N, 0.0)
