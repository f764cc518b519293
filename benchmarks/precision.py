"""The error of float32 coordinates in the Gram engine: paired runs with the same random numbers in float64.

python benchmarks/precision.py           # about a minute
python benchmarks/precision.py --tiny    # the same at toy size: tests that it runs; its numbers are meaningless
"""

from __future__ import annotations

import timing

import simulate
from statmech import Scenario

CASES = [("hebb", 100_000, 1.0), ("hebb", 1_000, 500.0), ("perceptron", 10_000, 50.0), ("adatron", 1_000, 500.0)]
TINY = [("hebb", 100, 1.0)]
SEEDS = 64


def differences(rule: str, N: int, t: float) -> list[object]:
    """Length, and relative differences of the means of eps_g and 1 - q, with the standard error over the pairs."""
    double, single = (
        simulate.run(Scenario(rule=rule, K=2, N=N, t=[t], seeds=SEEDS, dtype=dtype)).isel(t=0, student=0)
        for dtype in ("float64", "float32")
    )
    row: list[object] = [rule, f"{N:,}", f"{t:g}", float(double.length.mean()) * N**0.5]
    for name, sign, origin in (("eps_g", 1, 0), ("q", -1, 1)):
        values, others = (origin + sign * data[name] for data in (double, single))
        relative = (others - values) / values.mean()
        error = float(relative.std(ddof=1)) / SEEDS**0.5
        row.append(f"{float(relative.mean()):+.1e} ± {error:.0e}")
    return row


def main() -> None:
    cases = TINY if timing.tiny(__doc__) else CASES
    print(timing.machine())
    rows = [differences(*case) for case in cases]
    timing.table(
        "float32 minus float64 in the Gram engine, relative", ["rule", "N", "t", "l sqrt(N)", "eps_g", "1 - q"], rows
    )


if __name__ == "__main__":
    main()
