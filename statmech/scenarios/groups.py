"""The number of groups of equal-variance inputs in the Gram engine."""

from __future__ import annotations

from statmech.inputs import Inputs

MAX_GRAM_VECTORS = 16  # weight vectors are faster for more students and teachers
MIN_DIRECTIONS_PER_ORDER_PARAMETER = 10  # weight vectors are faster for fewer directions


def count_gram_variance_groups(inputs: Inputs, num_vectors: int, N: int) -> int:
    """Return the number of equal-variance groups in the Gram engine, or 0 if weight vectors are faster.

    >>> from statmech.inputs import Spectrum
    >>> [count_gram_variance_groups(Spectrum((0.5, 1.5)), num_vectors=4, N=N) for N in (60, 100)]
    [0, 2]
    """
    number = inputs.num_variance_groups
    return (
        number
        if num_vectors <= MAX_GRAM_VECTORS and MIN_DIRECTIONS_PER_ORDER_PARAMETER * number * num_vectors <= N
        else 0
    )
