"""The majority vote: its CPU time per seed and recorded time, and the variance that measuring adds to it.

python benchmarks/everyday_vote.py           # pins itself to one core; a minute
python benchmarks/everyday_vote.py --tiny    # the same at toy size: tests that it runs, not how fast
"""

from __future__ import annotations

import time
from statistics import median
from unittest import mock

import numpy as np
import timing

TIMES = [0.5, 2.0]


def students(K: int, N: int, seeds: int) -> list[tuple]:
    """What the runs of a scenario give to the vote: the scenario, a unit, and its students at the recorded times."""
    import simulate
    import simulate.kinds.online_perceptron as online
    from statmech import Scenario

    given: list[tuple] = []

    def keep(*of):
        given.append(of)
        return np.zeros(of[2].shape[:3])

    with mock.patch.object(online, "_compute_vote_errors", keep):
        simulate.run(Scenario(rule="perceptron", K=K, N=N, t=TIMES, seeds=seeds))
    return given


def votes(given: list[tuple]) -> np.ndarray:
    """The votes of all seeds, (seeds, T), of the one parameter combination."""
    from simulate.kinds.online_perceptron import _compute_vote_errors

    return np.concatenate([_compute_vote_errors(*of)[0] for of in sorted(given, key=lambda of: of[1].seeds.start)])


def seconds(given: list[tuple], repeats: int = 5) -> float:
    """CPU seconds per seed and recorded time, the median of several."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        size = votes(given).size
        taken.append((time.process_time() - start) / size)
    return median(taken)


def share(given: list[tuple]) -> float:
    """The variance of measuring over that between seeds, by circles of two keys; the larger of the recorded times."""
    other = [(scenario.model_copy(update={"key": scenario.key + 1}), *rest) for scenario, *rest in given]
    both = np.stack([votes(given), votes(other)])
    noise = np.var(both[0] - both[1], axis=0, ddof=1) / 2
    return float(np.max(noise / (np.var(both.mean(axis=0), axis=0, ddof=1) - noise / 2)))


def main() -> None:
    tiny = timing.tiny(__doc__)
    timing.pin()
    rows = []
    for K in (3,) if tiny else (3, 5, 11, 51):
        for N in (100,) if tiny else (100, 10_000):
            given = students(K, N, 8 if tiny else 128 if K > 11 else 256)
            rows.append([K, f"{N:,}", 1e3 * seconds(given), share(given)])
    title = "The vote (goals: K = 3 below 0.05 ms; share below 0.1)"
    timing.table(title, ["K", "N", "ms per seed and recorded time", "measuring variance over physical"], rows)
    print(f"\n{timing.machine()}")


if __name__ == "__main__":
    main()
