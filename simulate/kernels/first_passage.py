"""Compiled summation of rows up to a stopping level, with perceptron updates."""

from __future__ import annotations

from simulate.kernels.coordinate_loops import compile_loop
from simulate.kernels.partial_sums import MAX_BLOCK_EXAMPLES, MIN_BLOCK_EXAMPLES


@compile_loop(
    "UniTuple(i8, 3)(f8[:,::1], f8[::1], f8, f8[::1], b1[::1], i8[::1], f8, f8, b1, f8, i8, i8, b1, f8[::1], i8[::1])"
)
def sum_block_until_mistake(  # type: ignore[no-untyped-def]
    z,
    w,
    b,
    bias_factors,
    probes,
    checkpoints,
    tau,
    level_rise_per_feature,
    two_sided,
    theta,
    row,
    block,
    learns,
    sums,
    features,
):
    """Sum rows z times w until a block ends or a mistake occurs, a full sum of at most theta.

    Starts at a given row. Returns the next row, the size of the next block, and the number of lost rows: rows that
    stopped although their full sums are not positive. Lost rows are counted only if the student learns here.

    Parameters
    ----------
    z, w, b
        Rows (m, n), weights (n,) and bias.
    bias_factors, probes
        Factors of the bias (m,), and True for rows that do not stop (m,).
    checkpoints
        Increasing numbers of features, up to n: sums are compared with the level there.
    tau, level_rise_per_feature
        The level, and its rise per feature.
    two_sided
        True to compare the absolute value of the sum.
    theta
        Threshold of full sums; -inf for no mistakes.
    row, block
        The first row, and the number of rows in its block.
    learns
        True to add each mistaken row to w and continue with a new block.
    sums, features
        Output: the sum where each row stopped (m,), and its number of summed features (m,).
    """
    m, n = z.shape
    num_lost, end, probed = 0, row + block, False
    while row < m:
        total, first, probe = b * bias_factors[row], 0, probes[row]
        for checkpoint in checkpoints:
            total += z[row, first] * w[first]  # the only feature up to this checkpoint if all features are checkpoints
            for i in range(first + 1, checkpoint):
                total += z[row, i] * w[i]
            first = checkpoint
            if not probe and (abs(total) if two_sided else total) >= tau + level_rise_per_feature * checkpoint:
                break
        sums[row], features[row] = total, first
        mistaken = first == n and total <= theta
        if learns and first < n:
            for i in range(first, n):
                total += z[row, i] * w[i]
            num_lost += total <= 0
        if learns and mistaken:
            for i in range(n):
                w[i] += z[row, i]
        row += 1
        probed |= probe
        if mistaken or row == end:
            block = max(block // 2, MIN_BLOCK_EXAMPLES) if mistaken else min(2 * block, MAX_BLOCK_EXAMPLES)
            end = row + block
            if probed or (mistaken and not learns):
                break
    return row, block, num_lost
