"""What corrections of order 1/N add to the theory of 1,000 scenarios, as a ratio of CPU times.

    python benchmarks/fluctuations.py           # pins itself to one core
    python benchmarks/fluctuations.py --tiny    # the same at toy size: tests that it runs, not how fast

The scenarios are single students with learning rates from 0.2 to 2.5, t = 1 to 50 at six times. Calls with and without
corrections alternate, so that both meet the same load; the ratio is that of medians.
"""

from __future__ import annotations

import time

import numpy as np
import timing

import theory
from statmech import Scenario

RULES = ("hebb", "perceptron", "adatron", "adatron_textbook")


def scenario(rule: str, count: int, corrections: bool) -> Scenario:
    eta = np.linspace(0.2, 2.5, count)
    return Scenario(rule=rule, N=100, eta=eta, t=[1, 2, 5, 10, 20, 50], corrections=corrections)


def seconds(sweep: Scenario) -> float:
    """CPU time of a call of theory."""
    start = time.process_time()
    theory.solve(sweep)
    return time.process_time() - start


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    rules, count, repeats = (RULES[:1], 1, 1) if tiny else (RULES, 1000, 7)
    rows = []
    for rule in rules:
        sweeps = [scenario(rule, count, corrections) for corrections in (False, True)]
        first = [seconds(sweep) for sweep in sweeps]  # they compile
        plain, corrected = np.median([[seconds(sweep) for sweep in sweeps] for _ in range(repeats)], axis=0)
        rows.append([rule, 1e3 * plain, 1e3 * corrected, corrected / plain, first[1]])
    print(timing.machine())
    header = ["", "without, ms", "with corrections, ms", "ratio", "the first call with them, s"]
    timing.table(f"{count:,} scenarios of one student, t = 1 to 50", header, rows)


if __name__ == "__main__":
    main()
