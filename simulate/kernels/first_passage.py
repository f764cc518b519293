"""Sums of rows from left to right until they reach a level, compiled: each row leaves at a look of its own."""

from __future__ import annotations

from simulate.kernels.coordinate_loops import compiled


@compiled("i8(f8[:,::1], f8[::1], i8[::1], f8[::1], f8, b1, f8, f8[::1], i8[::1])")
def walk(z, w, looks, tau, slope, two_sided, theta, sums, features):  # type: ignore[no-untyped-def]
    """Sum rows z times w until one that is summed to its end does not exceed theta; return the number of rows summed.

    Parameters
    ----------
    z, w
        Rows (m, n) and weights (n,).
    looks
        Numbers of features after which sums are compared with the level, increasing to n.
    tau, slope
        Levels (m,), and their rise per feature.
    two_sided
        True to compare the absolute value of the sum.
    theta
        Largest final sum at which to end; -inf for none.
    sums
        Initial sums (m,), replaced by those where each row ended.
    features
        Numbers of features summed (m,), written.
    """
    m, n = z.shape
    for row in range(m):
        x, total, first, level = z[row], sums[row], 0, tau[row]
        for look in looks:
            total += x[first] * w[first]  # of looks at every feature the only one
            for i in range(first + 1, look):
                total += x[i] * w[i]
            first = look
            if (abs(total) if two_sided else total) >= level + slope * look:
                break
        sums[row], features[row] = total, first
        if first == n and total <= theta:
            return row + 1
    return m
